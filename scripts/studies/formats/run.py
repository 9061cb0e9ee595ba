"""Do wire formats cost accuracy? docs/studies/formats/protocol.md says what is asked, and how.

    .venv/bin/python -m scripts.studies.formats.run rates
    .venv/bin/python -m scripts.studies.formats.run pilot
    .venv/bin/python -m scripts.studies.formats.run study
    .venv/bin/python -m scripts.studies.formats.run rates --study larger
    .venv/bin/python -m scripts.studies.formats.run study --study larger
    .venv/bin/python -m scripts.studies.formats.run study --study repeated --optimizer adamw
    .venv/bin/python -m scripts.studies.formats.run study --study images
    .venv/bin/python -m scripts.studies.formats.run pilot --study colours
    .venv/bin/python -m scripts.studies.formats.run study --study colours
    .venv/bin/python -m scripts.studies.formats.run study --study habits
    .venv/bin/python -m scripts.studies.formats.run classes

Finished runs are kept in build/formats, so that it goes on where it was interrupted, and go into
docs/studies/formats/*.json, from which `report` makes the page anew, and `classes` that on all
that decide. --restore takes those as finished.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

import torch

from deft_horovod.base.wire_format import WireFormat
from scripts.places import ROOT
from scripts.studies import finished_runs
from scripts.studies.formats import classes
from scripts.studies.formats.report import page, pilot_text, seeds_by_task, untrained, verdicts
from scripts.studies.formats.study import (
    DECIDING,
    STUDIES,
    Setting,
    Study,
    best_settings,
    pilot_runs,
    rate_runs,
    study_runs,
)
from scripts.studies.formats.tasks import TASKS
from scripts.studies.formats.training import Run, Training, beginning, final_loss
from scripts.studies.pool import train_all

FINISHED = ROOT / "build" / "formats"
REPORT = ROOT / "docs" / "studies" / "formats"
PAGES = {
    "small": "results.md",
    "larger": "larger.md",
    "repeated": "repeated.md",
    "images": "images.md",
    "colours": "colours.md",
    "habits": "habits.md",
}
CLASSES_PAGE = "classes.md"
_DEFAULT: Final[WireFormat] = "int8"  # the coarsest of `accuracy="equal"`

Losses = dict[Run, list[float]]


def train(run: Run) -> list[float]:
    torch.set_num_threads(1)
    return Training(run).train()


def path_of(run: Run, folder: Path) -> Path:
    """Of its outcome, once it is finished."""
    return finished_runs.path_of(run, folder, "task", "optimizer", "format", "seed")


def finish(runs: Sequence[Run], folder: Path, processes: int) -> None:
    """Trains those that are missing."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = {run: path_of(run, folder) for run in runs}
    missing = {run: path for run, path in paths.items() if not path.exists()}
    for task in {TASKS[run.task].begins_from for run in missing} - {""}:
        beginning(task)  # here, lest several processes make it
    train_all(missing, train, processes, _said)


def _said(run: Run, losses: list[float]) -> str:
    title = Setting.of(run).title
    return f"{title}, {run.format}, seed {run.seed}: {final_loss(losses):.4f}"


def finished(runs: Iterable[Run], folder: Path) -> Losses:
    """As far as they are."""
    return finished_runs.finished({run: path_of(run, folder) for run in runs})


def keep(losses: Losses, path: Path) -> None:
    finished_runs.keep({run: {"losses": found} for run, found in losses.items()}, path)


def kept(path: Path) -> Losses:
    """What :func:`keep` wrote; nothing if there is no such file."""
    return {run: found["losses"] for run, found in finished_runs.kept(path, Run).items()}


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("stage", choices=["rates", "pilot", "study", "report", "classes"])
    parser.add_argument("--study", choices=sorted(STUDIES), default="small")
    parser.add_argument(
        "--optimizer", action="append", help="train runs of these only; all are reported"
    )
    parser.add_argument("--task", action="append", help="train runs of these only, too")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--folder", type=Path, default=FINISHED, help="of finished runs")
    parser.add_argument("--report", type=Path, default=REPORT, help="folder of page and data")
    parser.add_argument(
        "--restore", action="store_true", help="take the runs of the kept data as finished"
    )
    return parser.parse_args(arguments)


def data_file(report: Path, study: Study, stage: str) -> Path:
    prefix = study.rates_prefix if stage == "rates" else study.prefix
    return report / f"{prefix}{stage}.json"


def restore(report: Path, study: Study, folder: Path) -> None:
    """Takes the runs that are kept as finished."""
    for stage in ("rates", "pilot", "study"):
        found = kept(data_file(report, study, stage))
        finished_runs.restore({path_of(run, folder): losses for run, losses in found.items()})


def of_classes(report: Path) -> str:
    """The page on what the deciding studies say together."""
    found = {}
    to_come = []
    for study in DECIDING:
        rates = kept(data_file(report, study, "rates"))
        settings = best_settings({run: final_loss(losses) for run, losses in rates.items()}, study)
        runs = kept(data_file(report, study, "study"))
        found.update(verdicts(runs, settings, study, _DEFAULT))
        to_come += untrained(runs, settings, study)
    return classes.page(found, to_come)


def main(arguments: Sequence[str] | None = None) -> int:
    options = parse(arguments)
    study = STUDIES[options.study]

    if options.stage == "classes":
        (options.report / CLASSES_PAGE).write_text(of_classes(options.report), encoding="utf-8")
        return 0

    def file(stage: str) -> Path:
        return data_file(options.report, study, stage)

    if options.restore:
        restore(options.report, study, options.folder)

    def done(stage: str, runs: Sequence[Run]) -> Losses:
        if options.stage == stage:
            wanted = [
                run
                for run in runs
                if run.optimizer in (options.optimizer or (run.optimizer,))
                and run.task in (options.task or (run.task,))
            ]
            finish(wanted, options.folder, options.processes)
            keep(finished(runs, options.folder), file(stage))
        return kept(file(stage))

    rates = done("rates", rate_runs(study))
    settings = best_settings({run: final_loss(losses) for run, losses in rates.items()}, study)
    seeds = dict.fromkeys(study.margins, study.seeds)
    pilot = done("pilot", pilot_runs(settings, study))
    if not study.seeds:
        seeds = seeds_by_task(pilot, settings, study)
    if options.stage == "pilot":
        print(pilot_text(pilot, settings, study))
    found = done("study", study_runs(settings, seeds, study))
    if options.stage in ("study", "report"):
        (options.report / PAGES[study.name]).write_text(page(found, settings, study), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
