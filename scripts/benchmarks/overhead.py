"""What the optimizer itself costs: ours against Horovod's, in one job, block by block in turn.

Three copies of one model train in the same processes: with Horovod's own DistributedOptimizer
(stock), with ours (policy bucket), and with no distributed optimizer at all (alone). Two things are
measured:

  step time  steps as they are, back to back; the ratio ours/stock is taken per pair of blocks.
  CPU time   steps of a fixed length with a pause before step(), long enough for everything to
             arrive: no rank waits, so Horovod's busy waiting is not counted as work. What `alone`
             takes in the same pattern (also the idle cycles of Horovod's thread) is subtracted.

Run it without horovodrun; it starts the job itself.
"""

from __future__ import annotations

import argparse
import cProfile
import io
import json
import os
import platform
import pstats
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from scripts.cluster import jobs

ARMS = ("stock", "ours", "alone")
CPU_LIMIT = 0.5
STEP_LIMIT = 1.01
PAUSE_FACTOR = 2.5


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--tensors", type=int, default=300)
    parser.add_argument("--width", type=int, default=96, help="of each of the tensors/2 layers")
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--blocks", type=int, default=7)
    parser.add_argument("--steps", type=int, default=20, help="steps of a block")
    parser.add_argument("--message", type=int, default=1 << 20, help="bytes of a fused message")
    parser.add_argument("--policy", default="bucket", help="of ours; stock compares two twins")
    parser.add_argument("--profile", action="store_true", help="say where the time goes instead")
    parser.add_argument("--output", type=Path, help="write all numbers as JSON")
    parser.add_argument("--strict", action="store_true", help="fail when a target is missed")
    return parser.parse_args(arguments)


# --- the job -------------------------------------------------------------------------------------
@dataclass
class Arm:
    """One copy of the model with its optimizer."""

    model: Any
    optimizer: Any
    inputs: Any
    targets: Any

    def backward(self) -> None:
        self.optimizer.zero_grad()
        ((self.model(self.inputs) - self.targets) ** 2).mean().backward()

    def update(self) -> None:
        self.optimizer.step()


@dataclass
class Sample:
    """Seconds of one step."""

    wall: float
    thread: float
    process: float
    backward: float  # thread time of forward and backward, hooks included


def make_arm(kind: str, options: argparse.Namespace, rank: int) -> Arm:
    import horovod.torch as stock
    import torch

    import deft_horovod.torch as ours

    torch.manual_seed(0)
    layers: list[Any] = []
    for _ in range(options.tensors // 2):
        layers += [torch.nn.Linear(options.width, options.width), torch.nn.ReLU()]
    model = torch.nn.Sequential(*layers)
    optimizer: Any = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)
    if kind == "stock":
        optimizer = stock.DistributedOptimizer(optimizer, model.named_parameters())
    elif kind == "ours":
        size = {"bucket_bytes": options.message, "first_bucket_bytes": options.message}
        optimizer = ours.DistributedOptimizer(
            optimizer, model.named_parameters(), policy=options.policy, config=size
        )
    generator = torch.Generator().manual_seed(1 + rank)
    shape = (options.batch, options.width)
    inputs = torch.randn(shape, generator=generator)
    return Arm(model, optimizer, inputs, torch.randn(shape, generator=generator))


def timed_step(arm: Arm, period_s: float) -> Sample:
    """One step; with a period, paused before the update until that much time has passed."""
    process, thread, wall = time.process_time(), time.thread_time(), time.perf_counter()
    arm.backward()
    backward = time.thread_time() - thread
    if period_s:
        time.sleep(max(0.0, wall + period_s - time.perf_counter()))
    arm.update()
    return Sample(
        wall=time.perf_counter() - wall,
        thread=time.thread_time() - thread,
        process=time.process_time() - process,
        backward=backward,
    )


def block(arm: Arm, steps: int, period_s: float, barrier: Callable[[], None]) -> dict[str, float]:
    """Medians over the steps of a block."""
    barrier()
    timed_step(arm, period_s)
    samples = [timed_step(arm, period_s) for _ in range(steps)]
    names = ("wall", "thread", "process", "backward")
    return {name: median(getattr(s, name) for s in samples) for name in names}


def measure(arms: dict[str, Arm], options: argparse.Namespace) -> dict[str, Any]:
    import horovod.torch as stock

    def blocks(period_s: float) -> list[dict[str, dict[str, float]]]:
        rounds = []
        for number in range(options.blocks):
            turn = number % len(ARMS)
            order = ARMS[turn:] + ARMS[:turn]
            rounds.append(
                {k: block(arms[k], options.steps, period_s, stock.barrier) for k in order}
            )
        return rounds

    for arm in arms.values():
        for _ in range(5):
            timed_step(arm, 0.0)
    stock.barrier()
    free = blocks(0.0)
    slowest_s = max(entry[kind]["wall"] for entry in free for kind in ARMS)
    period_s = max(stock.allgather_object(slowest_s)) * PAUSE_FACTOR
    return {"free": free, "paused": blocks(period_s), "period_s": period_s}


def profiled(arms: dict[str, Arm], options: argparse.Namespace) -> str:
    """The Python functions (and the extension's methods) that take the time of each arm."""
    import horovod.torch as stock

    texts = []
    for kind, arm in arms.items():
        for _ in range(5):
            timed_step(arm, 0.0)
        period_s = max(stock.allgather_object(timed_step(arm, 0.0).wall)) * PAUSE_FACTOR
        profiler = cProfile.Profile(time.thread_time)
        profiler.enable()
        for _ in range(options.steps):
            timed_step(arm, period_s)
        profiler.disable()
        text = io.StringIO()
        pstats.Stats(profiler, stream=text).sort_stats("tottime").print_stats(22)
        texts.append(f"--- {kind}: thread CPU of {options.steps} steps\n{text.getvalue()}")
    return "\n".join(texts)


def worker(options: argparse.Namespace) -> None:
    import horovod.torch as stock
    import torch

    import deft_horovod.torch as hvd

    torch.set_num_threads(1)
    hvd.init()
    arms = {kind: make_arm(kind, options, hvd.rank()) for kind in ARMS}
    if options.profile:
        text = profiled(arms, options)
        if hvd.rank() == 0:
            print(text, flush=True)
        return
    per_rank = stock.allgather_object(measure(arms, options))
    same = all(
        torch.equal(a, b)
        for a, b in zip(
            arms["stock"].model.parameters(), arms["ours"].model.parameters(), strict=True
        )
    )
    if hvd.rank() == 0:
        stats = arms["ours"].optimizer.stats()
        parameters = sum(p.numel() * 4 for p in arms["ours"].model.parameters())
        raw = {"ranks": per_rank, "same_parameters": same, "parameter_bytes": parameters}
        raw["messages_per_step"] = stats.get("messages", 0) / max(1, stats.get("steps", 1))
        summary = summarise(raw, options)
        report(summary)
        if options.output:
            document = {"summary": summary, "options": vars(options), **raw}
            options.output.write_text(json.dumps(document, indent=1, default=str), encoding="utf-8")
        if options.strict and not all(summary["targets"].values()):
            sys.exit(1)


# --- the report ----------------------------------------------------------------------------------
def series(raw: dict[str, Any], mode: str, kind: str, what: str) -> list[float]:
    """Per block, the mean over ranks, in milliseconds."""
    ranks = raw["ranks"]
    count = len(ranks[0][mode])
    return [1e3 * sum(r[mode][i][kind][what] for r in ranks) / len(ranks) for i in range(count)]


def spread(values: list[float]) -> dict[str, float]:
    return {"median": median(values), "min": min(values), "max": max(values)}


def summarise(raw: dict[str, Any], options: argparse.Namespace) -> dict[str, Any]:
    walls = {kind: series(raw, "free", kind, "wall") for kind in ARMS}
    summary: dict[str, Any] = {
        "machine": f"{os.cpu_count()} cores, {platform.platform()}",
        "model": f"{options.tensors} tensors, {raw['parameter_bytes'] / 1e6:.1f} MB",
        "message_bytes": options.message,
        "policy": options.policy,
        "messages_per_step": raw["messages_per_step"],
        "blocks": f"{options.blocks} x {options.steps} steps of each, {options.ranks} ranks",
        "same_parameters": raw["same_parameters"],
        "step_ms": {kind: spread(walls[kind]) for kind in ARMS},
        "step_ratio": spread([b / a for a, b in zip(walls["stock"], walls["ours"], strict=True)]),
    }
    for what in ("thread", "backward", "process"):
        alone = series(raw, "paused", "alone", what)
        extra = {
            kind: [a - b for a, b in zip(series(raw, "paused", kind, what), alone, strict=True)]
            for kind in ("stock", "ours")
        }
        summary[f"cpu_{what}_ms"] = {kind: spread(values) for kind, values in extra.items()}
        ratios = [b / a if a > 0 else float("inf") for a, b in zip(*extra.values(), strict=True)]
        summary[f"cpu_{what}_ratio"] = spread(ratios)
    summary["targets"] = {
        "cpu": summary["cpu_thread_ratio"]["median"] <= CPU_LIMIT,
        "step": summary["step_ratio"]["median"] <= STEP_LIMIT,
    }
    return summary


def report(summary: dict[str, Any]) -> None:
    def text(values: dict[str, float], unit: str = " ms") -> str:
        median_text = f"{values['median']:8.3f}{unit}"
        return f"{median_text}  ({values['min']:.3f} .. {values['max']:.3f})"

    def verdict(met: bool, limit: float) -> str:
        return f"target <= {limit:g}: {'met' if met else 'MISSED'}"

    print(
        f"{summary['model']}, messages of up to {summary['message_bytes']} bytes "
        f"({summary['messages_per_step']:.1f} a step in policy {summary['policy']})"
    )
    print(f"{summary['blocks']}, interleaved; {summary['machine']}")
    print("each number: median over blocks (smallest .. largest)\n")
    print("step time")
    for kind in ARMS:
        print(f"  {kind:<6}{text(summary['step_ms'][kind])}")
    ratio = text(summary["step_ratio"], "   ")
    print(f"  ratio {ratio}  {verdict(summary['targets']['step'], STEP_LIMIT)}\n")
    labels = {
        "thread": "CPU a step, training thread (hooks, synchronize, executor), without waiting",
        "backward": "  of that in backward (the hooks)",
        "process": "CPU a step, whole process (also Horovod's thread: negotiation, reduction)",
    }
    for what, label in labels.items():
        print(label)
        for kind in ("stock", "ours"):
            print(f"  {kind:<6}{text(summary[f'cpu_{what}_ms'][kind])}")
        if what != "process":  # too noisy: a ratio of small differences between large numbers
            note = verdict(summary["targets"]["cpu"], CPU_LIMIT) if what == "thread" else ""
            print(f"  ratio {text(summary[f'cpu_{what}_ratio'], '   ')}  {note}".rstrip())
    print(f"\nparameters of stock and ours equal, bit for bit: {summary['same_parameters']}")


# --- starting it ---------------------------------------------------------------------------------
def launch(options: argparse.Namespace) -> int:
    if options.output:
        options.output = options.output.resolve()
    command = jobs.program("scripts.benchmarks.overhead")
    environment = jobs.environment(vars(options), HOROVOD_FUSION_THRESHOLD=str(options.message))
    return jobs.stream(jobs.horovodrun(options.ranks, command), environment)


def main() -> int:
    given = jobs.given_options()
    if given is None:
        return launch(parse(sys.argv[1:]))
    options = argparse.Namespace(**given)
    options.output = Path(options.output) if options.output else None
    worker(options)
    return 0


if __name__ == "__main__":
    sys.exit(main())
