"""What does the error of a gradient tell about harm? docs/studies/judge/protocol.md says what is
asked, and how.

    python -m scripts.studies.judge.run rates --device cuda
    python -m scripts.studies.judge.run study --device cuda
    python -m scripts.studies.judge.run report

Finished runs are kept in build/judge, so that it goes on where it was interrupted; `report` puts
them into docs/studies/judge/*.json and makes the page anew from those. On another machine,
`--restore` takes them from there.
"""

from __future__ import annotations

import argparse
import functools
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from scripts.places import ROOT
from scripts.studies import finished_runs
from scripts.studies.formats.training import final_loss
from scripts.studies.judge.page import page
from scripts.studies.judge.study import Setting, rate_runs, settings_of, study_runs
from scripts.studies.judge.training import Run, Training
from scripts.studies.pool import train_all

FINISHED = ROOT / "build" / "judge"
REPORT = ROOT / "docs" / "studies" / "judge"
PAGE = "README.md"

Outcomes = dict[Run, dict[str, Any]]


def train(device: str, run: Run) -> dict[str, Any]:
    torch.set_num_threads(1)
    torch.backends.cudnn.allow_tf32 = False
    return asdict(Training(run, device).train())


def path_of(run: Run, folder: Path) -> Path:
    """Of its outcome, once it is finished."""
    return finished_runs.path_of(run, folder, "task", "optimizer", "seed")


def _wanted(run: Run, options: argparse.Namespace) -> bool:
    title = Setting.of(run).title
    return title in (options.setting or [title]) and run.seed <= options.seeds


def finish(runs: Sequence[Run], options: argparse.Namespace) -> None:
    """Trains those that are missing."""
    options.folder.mkdir(parents=True, exist_ok=True)
    paths = {run: path_of(run, options.folder) for run in runs}
    missing = {run: path for run, path in paths.items() if not path.exists()}
    train_all(missing, functools.partial(train, options.device), options.processes, _said)


def _said(run: Run, outcome: Mapping[str, Any]) -> str:
    return f"{Setting.of(run).title}, {run.arm}, seed {run.seed}: {loss_of(outcome):.4f}"


def loss_of(outcome: Mapping[str, Any]) -> float:
    return final_loss(outcome["losses"])


def finished(runs: Iterable[Run], folder: Path) -> Outcomes:
    """As far as they are."""
    return finished_runs.finished({run: path_of(run, folder) for run in runs})


def keep(outcomes: Mapping[Run, Mapping[str, Any]], path: Path) -> None:
    """Those that were kept before and are not among these stay."""
    finished_runs.keep({**kept(path), **outcomes}, path)


def kept(path: Path) -> Outcomes:
    """What :func:`keep` wrote; nothing if there is no such file."""
    return finished_runs.kept(path, Run)


def restore(outcomes: Mapping[Run, Mapping[str, Any]], folder: Path) -> None:
    """Takes them as finished; but a file that is there may be newer."""
    paths = {run: path_of(run, folder) for run in outcomes}
    finished_runs.restore({p: outcomes[run] for run, p in paths.items() if not p.exists()})


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("stage", choices=["rates", "study", "report"])
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--setting", action="append", help="train these only, by their titles")
    parser.add_argument("--seeds", type=int, default=99, help="train no more of a setting")
    parser.add_argument("--folder", type=Path, default=FINISHED, help="of finished runs")
    parser.add_argument("--report", type=Path, default=REPORT, help="folder of page and data")
    parser.add_argument(
        "--restore", action="store_true", help="take the runs of the kept data as finished"
    )
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    options = parse(arguments)
    rates_file, study_file = options.report / "rates.json", options.report / "study.json"
    if options.restore:
        restore({**kept(rates_file), **kept(study_file)}, options.folder)
    if options.stage == "rates":
        finish(rate_runs(), options)
    tried = {**kept(rates_file), **finished(rate_runs(), options.folder)}
    settings = settings_of({run: loss_of(outcome) for run, outcome in tried.items()})
    runs = study_runs(settings)
    if options.stage == "study":
        finish([run for run in runs if _wanted(run, options)], options)
    if options.stage == "report":
        options.report.mkdir(parents=True, exist_ok=True)
        keep(tried, rates_file)
        keep(finished(runs, options.folder), study_file)
        (options.report / PAGE).write_text(page(kept(study_file), settings), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
