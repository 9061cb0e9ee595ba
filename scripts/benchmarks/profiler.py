"""What measuring costs a training step, in one process, block by block in turn.

One model trains; in every other block a profiler measures the steps, as at the beginning of a job.
What is compared is the mean step of a block, as a profiler does not do the same in all steps; its
warm-up is not part of the block. Both kinds of blocks have the gradient hooks of our optimizer.
Besides the time on the clock there is the time of the training thread, which depends less on what
else the machine does; run it with OMP_NUM_THREADS=1, so that this thread does all the work.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from statistics import mean, median
from typing import Any

LIMIT = 1.02
KINDS = ("clock", "training thread")
Seconds = tuple[float, float]  # one for each kind


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--layers", type=int, default=150, help="each with two parameters")
    parser.add_argument("--width", type=int, default=96)
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--blocks", type=int, default=20, help="of each kind")
    parser.add_argument("--steps", type=int, default=10, help="steps of a block")
    parser.add_argument("--output", type=Path, help="write all numbers as JSON")
    parser.add_argument("--strict", action="store_true", help="fail when the target is missed")
    return parser.parse_args(arguments)


class Training:
    """A model and its optimizer, in one process."""

    def __init__(self, options: argparse.Namespace) -> None:
        import torch

        from deft_horovod.runtime.ranks.named_parameters import NamedParameter

        torch.manual_seed(0)
        layers: list[Any] = []
        for _ in range(options.layers):
            layers += [torch.nn.Linear(options.width, options.width), torch.nn.ReLU()]
        self.model = torch.nn.Sequential(*layers)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=1e-3, momentum=0.9)
        self.members = tuple(NamedParameter(*pair) for pair in self.model.named_parameters())
        self.inputs = torch.randn(options.batch, options.width)

    def step_s(self, observer: Any, profiler: Any) -> Seconds:
        """One training step, without communication."""
        clock_s, thread_s = time.perf_counter(), time.thread_time()
        self.optimizer.zero_grad()
        self.model(self.inputs).square().mean().backward()
        if profiler is not None:
            profiler.begin_boundary()
        observer.end_step()
        if profiler is not None:
            profiler.end_boundary(None)
        self.optimizer.step()
        return time.perf_counter() - clock_s, time.thread_time() - thread_s

    def block_s(self, steps: int, measured: bool) -> Seconds:
        """The mean over the steps, after one more to warm up."""
        from deft_horovod.runtime.measure.observer import Observer
        from deft_horovod.runtime.measure.profiler import Profiler

        observer = Observer(self.members, 1, watch_forward=measured)
        profiler = Profiler(observer, self.optimizer, 1, steps) if measured else None
        self.step_s(observer, profiler)
        times_s = [self.step_s(observer, profiler) for _ in range(steps)]
        observer.detach()
        if profiler is not None and not profiler.complete:
            raise SystemExit("benchmarks.profiler: the profiler did not see every step")
        clock_s, thread_s = (mean(column) for column in zip(*times_s, strict=True))
        return clock_s, thread_s


def measure(options: argparse.Namespace) -> list[tuple[Seconds, Seconds]]:
    """The mean steps of each pair of blocks: (plain, measured), in seconds."""
    training = Training(options)
    for measured in (True, False):
        training.block_s(options.steps, measured)
    pairs = []
    for number in range(options.blocks):
        order = (False, True) if number % 2 else (True, False)
        times_s = {measured: training.block_s(options.steps, measured) for measured in order}
        pairs.append((times_s[False], times_s[True]))
    return pairs


def main(arguments: list[str]) -> int:
    options = parse(arguments)
    pairs = measure(options)
    print(f"{2 * options.layers} parameters in {options.layers} modules")
    ratios = {}
    for i, kind in enumerate(KINDS):
        step_ms = median(plain[i] for plain, _ in pairs) * 1e3
        added_us = median(measured[i] - plain[i] for plain, measured in pairs) * 1e6
        ratios[kind] = median(measured[i] / plain[i] for plain, measured in pairs)
        print(
            f"{kind + ':':<16} step {step_ms:.2f} ms, measuring adds {added_us:.0f} us, "
            f"{ratios[kind] - 1:+.2%}"
        )
    if options.output:
        options.output.write_text(json.dumps({"pairs_s": pairs, "ratios": ratios}) + "\n")
    if min(ratios.values()) > LIMIT:
        print(f"more than {LIMIT - 1:.0%}")
        return 1 if options.strict else 0
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
