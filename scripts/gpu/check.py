"""Everything that only a GPU can tell, in one command, on a machine without network.

Results go to --out: results.json, summary.md, log.txt, and built.tar.xz with what was compiled. A
stage that has its answer there (or in --carry, where an earlier call's files were put) is not run
again. Exit status: 0 all answered and none failed, 1 some failed, 3 some were not reached.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from scripts.cluster import jobs
from scripts.gpu import build as gpu_build
from scripts.gpu import carried as gpu_carried
from scripts.gpu import mps as gpu_mps
from scripts.gpu import plan as gpu_plan
from scripts.gpu import prepare as gpu_prepare
from scripts.gpu import results as gpu_results
from scripts.gpu import summary as gpu_summary
from scripts.gpu.measure import profiles as gpu_profiles
from scripts.gpu.stages import Runner, Stage, run_due
from scripts.places import ROOT

INCOMPLETE = 3
RESERVE_S = 10  # of the budget, for the files
LOG_BYTES = 4 << 20  # of all stages together
SETTINGS_OF_OTHERS = ("DEFT_", "HOROVOD_", "NCCL_", "CUDA_VISIBLE_DEVICES")


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="gpu_check.sh",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    build = ROOT / "build"
    parser.add_argument("--out", type=Path, default=build / "gpu-check", help="results")
    parser.add_argument("--work", type=Path, default=build / "gpu-work", help="may be thrown away")
    parser.add_argument("--carry", type=Path, default=build / "gpu-carry", help="what was prepared")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda", help="cpu: a dry run")
    parser.add_argument("--build", choices=("auto", "always", "never"), default="auto")
    parser.add_argument("--budget-s", type=float, default=570, help="seconds for this call")
    parser.add_argument("--again", default="", metavar="STAGE,...", help="run these again, or all")
    parser.add_argument("--only", default="", metavar="STAGE,...", help="and what they need")
    modes = parser.add_mutually_exclusive_group()
    modes.add_argument("--plan", action="store_true", help="show the stages and their commands")
    modes.add_argument("--prepare", action="store_true", help="fetch what has to be carried")
    modes.add_argument("--extract", type=Path, metavar="FOLDER", help="profiles of --out as files")
    parser.add_argument("--nccl", metavar="VERSION", help="--prepare: a newer NCCL as well")
    return parser.parse_args(arguments)


def settings_of(options: argparse.Namespace) -> gpu_plan.Settings:
    """`auto` builds on a GPU, and takes for a dry run what is installed."""
    build = options.build == "always" or (options.build == "auto" and options.device == "cuda")
    folders = (options.out, options.work, options.carry)
    out, work, carry = (folder.resolve() for folder in folders)
    return gpu_plan.Settings(ROOT, out, work, carry, options.device, build)


def with_needs(stages: Sequence[Stage], names: Sequence[str]) -> list[Stage]:
    """The named ones and what they need, in order."""
    unknown = sorted(set(names) - {stage.name for stage in stages})
    if unknown:
        known = ", ".join(stage.name for stage in stages)
        raise SystemExit(f"error: no stage {', '.join(unknown)}; there are: {known}")
    wanted = set(names)
    for stage in reversed(stages):
        if stage.name in wanted:
            wanted.update(stage.needs)
    return [stage for stage in stages if stage.name in wanted]


def show(stages: Sequence[Stage], settings: gpu_plan.Settings) -> None:
    """Nothing is run."""
    for stage in stages:
        needs = f", needs {', '.join(stage.needs)}" if stage.needs else ""
        print(f"{stage.name}: {stage.title} (at most {stage.limit_s:.0f} s{needs})")
        for name, value in stage.environment.items():
            print(f"    {name}={value}")
        print(f"    {shlex.join(stage.command)}")
    for kind in settings.kinds if settings.build else ():
        place = gpu_build.Place(settings.work, kind)
        wheels = sorted((settings.carry / gpu_carried.WHEELS).glob("*.whl"))
        print(f"build-{kind} runs, after making {place.python.parent.parent}:")
        for step in gpu_build.steps(place, settings.carry, wheels):
            print(f"    {step.name}: {shlex.join(step.command)}")


def revision() -> str:
    """Of the tree; empty where there is no git."""
    command = ["git", "-C", str(ROOT), "describe", "--always", "--dirty"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
    except OSError:
        return ""


def write_log(out: Path, runner: Runner, stages: Sequence[Stage]) -> None:
    """The end of each stage's output."""
    parts = [part for part in (out / "log.txt",) if part.is_file()]
    earlier = "".join(part.read_text(encoding="utf-8", errors="replace") for part in parts)
    text = earlier
    for stage in stages:
        log = runner.log_of(stage.name)
        if log.is_file():
            said = log.read_text(encoding="utf-8", errors="replace")[-LOG_BYTES // len(stages) :]
            text += f"===== {stage.name}\n{said}\n"
    gpu_results.write_whole(out / "log.txt", text[-LOG_BYTES:])


def check(options: argparse.Namespace) -> int:
    began_s = time.monotonic()
    settings = settings_of(options)
    stages = gpu_plan.stages_of(settings)
    everything = stages
    if options.only:
        stages = with_needs(stages, options.only.split(","))
    if options.plan:
        show(stages, settings)
        return 0
    gpu_carried.unpack(settings.carry)
    if settings.build:
        for line in gpu_prepare.missing(settings.carry):
            print(f"not carried: {line}")
    again = [name for name in options.again.split(",") if name]
    names = {stage.name for stage in stages}
    again = sorted(names) if again == ["all"] else again
    if not set(again) <= names:
        raise SystemExit(f"error: --again {options.again}; there are: {', '.join(sorted(names))}")
    about = {"device": options.device, "revision": revision()}
    earlier = settings.carry / gpu_results.FILE
    results = gpu_results.Results.open(settings.out / gpu_results.FILE, about, earlier)
    results.save()
    kept = {k: v for k, v in os.environ.items() if not k.startswith(SETTINGS_OF_OTHERS)}
    runner = Runner(settings.work, kept)
    budget_s = options.budget_s - (time.monotonic() - began_s) - RESERVE_S
    try:
        with gpu_mps.running(settings.work) if settings.shares else contextlib.nullcontext():
            run_due(stages, results, again, budget_s, runner)
    finally:
        summary = gpu_summary.text(everything, results)
        gpu_results.write_whole(settings.out / "summary.md", summary)
        write_log(settings.out, runner, stages)
    print(summary)
    if gpu_summary.failures(stages, results):
        return 1
    return 0 if gpu_summary.complete(stages, results) else INCOMPLETE


def main(arguments: Sequence[str]) -> int:
    options = parse(arguments)
    jobs.exit_on_sigterm()
    try:
        if options.prepare:
            print(gpu_prepare.prepare(options.carry.resolve(), options.nccl))
            return 0
        if options.extract is not None:
            for path in gpu_profiles.extract(options.out / gpu_results.FILE, options.extract):
                print(path)
            return 0
        return check(options)
    except (gpu_prepare.PrepareError, gpu_results.ResultsError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
