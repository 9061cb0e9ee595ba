#!/usr/bin/env python3
"""What measuring costs a training step, in one process, block by block in turn.

Two copies of one model train side by side: one with the gradient hooks that every optimizer of
ours has, the other with a profiler on top, past its warm-up. The ratio is taken per pair of blocks.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

LIMIT = 1.02
WARMUP_STEPS = 3


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--layers", type=int, default=150, help="each with two parameters")
    parser.add_argument("--width", type=int, default=96)
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--blocks", type=int, default=15)
    parser.add_argument("--steps", type=int, default=10, help="steps of a block")
    parser.add_argument("--output", type=Path, help="write all numbers as JSON")
    parser.add_argument("--strict", action="store_true", help="fail when the target is missed")
    return parser.parse_args(arguments)


@dataclass
class Arm:
    """One copy of the model, measured or not."""

    model: Any
    optimizer: Any
    observer: Any
    profiler: Any
    inputs: Any

    def step_s(self) -> float:
        """One training step, without communication."""
        began_s = time.perf_counter()
        self.optimizer.zero_grad()
        self.model(self.inputs).square().mean().backward()
        if self.profiler is not None:
            self.profiler.begin_boundary()
        self.observer.end_step()
        if self.profiler is not None:
            self.profiler.end_boundary()
        self.optimizer.step()
        return time.perf_counter() - began_s


def make_arm(options: argparse.Namespace, profiled: bool) -> Arm:
    import torch

    from deft_horovod.runtime.members import Member
    from deft_horovod.runtime.observation import Observer
    from deft_horovod.runtime.profiler import Profiler

    torch.manual_seed(0)
    layers: list[Any] = []
    for _ in range(options.layers):
        layers += [torch.nn.Linear(options.width, options.width), torch.nn.ReLU()]
    model = torch.nn.Sequential(*layers)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)
    members = tuple(Member(name, tensor) for name, tensor in model.named_parameters())
    observer = Observer(members, 1, watch_forward=profiled)
    total = options.blocks * options.steps + 1
    profiler = Profiler(observer, optimizer, WARMUP_STEPS, total) if profiled else None
    inputs = torch.randn(options.batch, options.width)
    return Arm(model, optimizer, observer, profiler, inputs)


def measure(options: argparse.Namespace) -> list[tuple[float, float]]:
    """Medians of each pair of blocks: (plain, profiled), in seconds."""
    arms = [make_arm(options, profiled) for profiled in (True, False)]
    for arm in arms:  # the watch of the first has to stop before the other is called
        for _ in range(WARMUP_STEPS):
            arm.step_s()
    pairs = []
    for number in range(options.blocks):
        order = arms if number % 2 else arms[::-1]
        times = {id(arm): median(arm.step_s() for _ in range(options.steps)) for arm in order}
        pairs.append((times[id(arms[1])], times[id(arms[0])]))
    arms[0].profiler.detach()
    return pairs


def main(arguments: list[str]) -> int:
    options = parse(arguments)
    pairs = measure(options)
    ratio = median(profiled / plain for plain, profiled in pairs)
    plain_ms = median(plain for plain, _ in pairs) * 1e3
    added_us = median(profiled - plain for plain, profiled in pairs) * 1e6
    print(f"step {plain_ms:.2f} ms, {2 * options.layers} parameters in {options.layers} modules")
    print(f"measuring adds {added_us:.0f} us: {(ratio - 1):+.2%} of the step")
    if options.output:
        options.output.write_text(json.dumps({"pairs_s": pairs, "ratio": ratio}) + "\n")
    if ratio > LIMIT:
        print(f"more than {LIMIT - 1:.0%}")
        return 1 if options.strict else 0
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
