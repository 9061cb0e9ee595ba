"""Does a late update cost accuracy, and which correction gives it back? Real training says.

    .venv/bin/python -m scripts.studies.convergence.run all

Finished runs are kept (build/convergence), so that it goes on where it was interrupted. Runs are
deterministic: with the same torch and processor they end with the same losses. --restore takes what
the committed tables have as finished.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import torch

from scripts.places import ROOT
from scripts.studies import finished_runs
from scripts.studies.convergence.calm import calm_section
from scripts.studies.convergence.kept import rates_of, restored, to_data
from scripts.studies.convergence.lateness import Arm
from scripts.studies.convergence.preserver_report import preserver_report
from scripts.studies.convergence.report import cells, draw, summary, tables
from scripts.studies.convergence.study import (
    SEEDS,
    best_rates,
    final_runs,
    key,
    rate_runs,
    screen_runs,
)
from scripts.studies.convergence.tasks import TASKS
from scripts.studies.convergence.training import Run, Training
from scripts.studies.pool import train_all

FINISHED = ROOT / "build" / "convergence"
_INTRODUCTION = """\
Made by `scripts/studies/convergence/run.py {name}`; what is compared and how is in
[convergence.md](../convergence.md). Seeds of an arm: {least} to {most}. Losses are those of
validation with 95 % intervals of the mean; *worse* and *better* are beyond the 95 % interval of the
difference of logarithms between runs of the same seed. Where even synchronous training diverges
nothing is compared."""
REPORT = ROOT / "docs" / "studies" / "convergence"


def train(run: Run) -> dict[str, Any]:
    torch.set_num_threads(1)
    began = time.perf_counter()
    outcome = Training(run).train().to_data()
    return {**outcome, "seconds": time.perf_counter() - began}


def path_of(run: Run, folder: Path) -> Path:
    """Of its outcome, once it is finished."""
    return folder / f"{key(run)}.json"


def finish(runs: Iterable[Run], folder: Path, processes: int) -> list[dict[str, Any]]:
    """The outcomes of all of these; trains those that are missing."""
    folder.mkdir(parents=True, exist_ok=True)
    wanted = list(dict.fromkeys(runs))
    paths = {run: path_of(run, folder) for run in wanted}
    missing = {run: path for run, path in paths.items() if not path.exists()}
    train_all(missing, train, processes, _said)
    return [json.loads(path_of(run, folder).read_text("utf-8")) for run in wanted]


def _said(run: Run, outcome: dict[str, Any]) -> str:
    name = f"{run.task} {run.optimizer} {run.lr:g} seed {run.seed}, {run.arm.name}"
    return f"{name}: {outcome['loss']:.3f}"


def restore(runs: Iterable[Run], folder: Path, data: Sequence[dict[str, Any]]) -> None:
    """Makes finished runs of what the data have."""
    missing = [run for run in dict.fromkeys(runs) if not path_of(run, folder).exists()]
    found = restored(missing, data)
    finished_runs.restore({path_of(run, folder): outcome for run, outcome in found.items()})
    print(f"convergence: restored {len(found)} of {len(missing)} runs")


def kept_data(folder: Path, name: str) -> list[dict[str, Any]]:
    """Of a report that was written; none if there is no such report."""
    path = folder / f"{name}.json"
    found: list[dict[str, Any]] = json.loads(path.read_text("utf-8")) if path.exists() else []
    return found


def report(runs: Iterable[Run], finished: Path, folder: Path, name: str) -> None:
    """Of those of the runs that are finished."""
    paths = {run: path_of(run, finished) for run in dict.fromkeys(runs)}
    outcomes = [*finished_runs.finished(paths).items()]
    found = cells(outcomes)
    folder.mkdir(parents=True, exist_ok=True)
    seeds = {len(cell.losses) for row in found.values() for cell in row}
    text = [
        f"# Convergence: {name}",
        _INTRODUCTION.format(name=name, least=min(seeds), most=max(seeds)),
        "## How close each correction comes to synchronous training",
        summary(found),
        calm_section(outcomes),
        "## All arms",
        tables(found),
    ]
    (folder / f"{name}.md").write_text("\n\n".join(filter(None, text)) + "\n", encoding="utf-8")
    data = json.dumps(to_data(outcomes), separators=(",", ":")).replace('{"task"', '\n{"task"')
    (folder / f"{name}.json").write_text(data + "\n", encoding="utf-8")
    if name == "final":
        draw(found, folder)
        (folder / "preserver.md").write_text(preserver_report(outcomes), encoding="utf-8")
    print(f"convergence: wrote {folder / name}.md")


def run_of(outcome: dict[str, Any]) -> Run:
    fields = outcome["run"]
    return Run(**{**fields, "arm": Arm(**fields["arm"])})


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("stage", choices=["rates", "screen", "final", "all"])
    parser.add_argument("--tasks", nargs="+", choices=[*TASKS], default=[*TASKS])
    parser.add_argument("--seeds", type=int, nargs="+", default=[*SEEDS], help="of the finalists")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--folder", type=Path, default=FINISHED, help="of finished runs")
    parser.add_argument("--report", type=Path, default=REPORT, help="folder of the tables")
    parser.add_argument(
        "--restore", action="store_true", help="take the runs of the report's data as finished"
    )
    parser.add_argument("--only-report", action="store_true", help="of what is finished")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    options = parse(arguments)
    best = rates_of(kept_data(options.report, "final")) if options.restore else {}
    if not best:
        rated = finish(rate_runs(options.tasks), options.folder, options.processes)
        best = best_rates({run_of(outcome): outcome["loss"] for outcome in rated})
    best = {key: lr for key, lr in best.items() if key[0] in options.tasks}
    for (task, optimizer), lr in best.items():
        print(f"best rate of {task} with {optimizer}: {lr:g}")
    stages = {"screen": screen_runs(best), "final": final_runs(best, options.seeds)}
    for name, runs in stages.items():
        if options.stage in {name, "all"}:
            if options.restore:
                restore(runs, options.folder, kept_data(options.report, name))
            if not options.only_report:
                finish(runs, options.folder, options.processes)
            report(runs, options.folder, options.report, name)
    return 0


if __name__ == "__main__":
    sys.exit(main())
