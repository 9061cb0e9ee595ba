"""How long the solver takes, in processor time: 1,000 items over 8 windows, by the link's load.

An item is a generation of a block that has to be placed, a window a forward or a backward: 250
blocks over a period of 4 steps. With --formats each may also travel in 16 or 8 bits. `choose` is
everything up to the choice: grid, options, greedy, and CP-SAT within its deterministic limit;
`order` is the order in which all messages leave. Pure: no torch, no Horovod, no cluster.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from deft_horovod.base.wire_format import WireFormat
from deft_horovod.solver.least_stale.exact import improve
from deft_horovod.solver.least_stale.greedy import choose_greedily
from deft_horovod.solver.least_stale.link_time import make_grid
from deft_horovod.solver.least_stale.message_order import sequence
from deft_horovod.solver.least_stale.options import make_options
from deft_horovod.solver.problem import Item, Limits, Problem

LIMIT_S = 1.0
STEP_US = 200_000.0
LOADS = (0.5, 0.9, 1.2, 2.0, 3.0, 4.0)
# Of the time that an exact message takes.
_FORMATS: Final[Mapping[WireFormat, float]] = {"f16": 0.51, "int8": 0.26}
Row = dict[str, float | str]


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--blocks", type=int, default=250)
    parser.add_argument("--period", type=int, default=4, help="steps, of two windows each")
    parser.add_argument("--max-delay", type=int, default=1)
    parser.add_argument("--links", type=int, choices=(1, 2), default=1)
    parser.add_argument("--formats", action="store_true", help="each item may also be encoded")
    parser.add_argument("--load", type=float, nargs="*", default=LOADS, help="of the link")
    parser.add_argument("--output", type=Path, help="write all numbers as JSON")
    parser.add_argument("--strict", action="store_true", help="fail when the limit is missed")
    return parser.parse_args(arguments)


def make_problem(options: argparse.Namespace, load: float) -> Problem:
    """The last layer's gradient is ready first and used last, as in a chain of layers."""
    sizes = [1.0 + index * 7919 % 900 / 100 for index in range(options.blocks)]  # 1 to 10, mixed
    items = []
    formats = _FORMATS if options.formats else {}
    for index, size in enumerate(sizes):
        time_us = load * STEP_US * size / sum(sizes)
        times_us = (time_us, 2.5 * time_us)[: options.links]
        items.append(
            Item(
                ready_us=STEP_US * 2 / 3 * (index + 1) / options.blocks,
                need_us=STEP_US / 3 * (1 - (index + 1) / options.blocks),
                weight=size,
                times_us=(times_us,),
                encoded_us={
                    one: (tuple(share * us for us in times_us),) for one, share in formats.items()
                },
            )
        )
    limits = Limits(options.max_delay, options.period, formats=tuple(formats))
    return Problem(tuple(items), STEP_US / 3, STEP_US * 2 / 3, 0.0, options.links, limits)


def measure(options: argparse.Namespace, load: float) -> Row:
    problem = make_problem(options, load)
    began = time.process_time()
    start = choose_greedily(make_options(make_grid(problem, options.period)))
    chosen = time.process_time()
    best = improve(start.options, start)
    searched = time.process_time()
    choices = [best.options.choices[option] for option in best.chosen]
    messages = sequence(problem, choices, options.period, patient=True)
    ended = time.process_time()
    total = sum(item.weight for item in problem.items)
    return {
        "load": load,
        "messages": len(messages),
        "choose_s": searched - began,
        "greedy_s": chosen - began,
        "order_s": ended - searched,
        "exposed": best.exposed_us / STEP_US,
        "greedy_staleness": start.harm / total,
        "staleness": best.harm / total,
        "status": best.status,
    }


def main(arguments: list[str]) -> int:
    options = parse(arguments)
    rows = [measure(options, load) for load in options.load]
    items = options.blocks * options.period
    print(f"{items:,} items over {2 * options.period} windows, {options.links} link(s)")
    print("load  messages  choose  of it greedy  order  exposed  staleness  (greedy)  status")
    for row in rows:
        print(
            "{load:4.1f}  {messages:8d}  {choose_s:5.2f}s  {greedy_s:11.2f}s  "
            "{order_s:4.2f}s  {exposed:6.1%}  {staleness:9.3f}  {greedy_staleness:8.3f}  "
            "{status}".format_map(row)
        )
    slowest = max(float(row["choose_s"]) for row in rows)
    print(f"slowest choice: {slowest:.2f} s of processor time (limit {LIMIT_S:.0f} s)")
    if options.output:
        options.output.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    return 1 if options.strict and slowest > LIMIT_S else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
