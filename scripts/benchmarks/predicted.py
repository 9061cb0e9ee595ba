"""How well are step times predicted? Arms of a report of scripts/benchmarks/cluster.py, simulated.

    python -m scripts.benchmarks.predicted cluster

reads docs/studies/benchmarks/cluster.json and writes cluster-predicted.md beside it. What the
emulated accelerator computes is known exactly; what its links cost is what the jobs have measured,
or, where they have not, fitted to the times that the all-reduce of all gradients, alone, took.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from deft_horovod import policies
from deft_horovod.base.parameter import Parameter
from deft_horovod.config import Config
from deft_horovod.policies import Request
from deft_horovod.policies.limits import FORMATS
from deft_horovod.profile import HOROVOD_LINK, LinkCost, LinkProfile, Profile
from deft_horovod.simulate.outlook import step_us
from deft_horovod.simulate.stock import simulate_stock
from scripts.benchmarks.arms import KINDS
from scripts.cluster.workloads import WORKLOADS
from scripts.places import ROOT

FOLDER = ROOT / "docs" / "studies" / "benchmarks"
KEPT_UP = 1.01  # of what computing alone should take; where it takes longer, the machine was busy
CLOSE = 0.05

Cell = Mapping[str, Any]


def link_of(cells: Sequence[Cell], hosts: int) -> LinkProfile:
    """Between so many hosts: as the jobs have measured it, if they have."""
    seen = [cell for cell in cells if cell["hosts"] == hosts]
    measured = [cell["link"] for cell in seen if cell.get("link")]
    if not measured:
        sizes, times_ms = ([c[key] for c in seen] for key in ("gradient_bytes", "communication_ms"))
        return LinkProfile(name=HOROVOD_LINK, cost=fitted(sizes, times_ms))
    costs = {
        kind: LinkCost(**{key: median(link[kind][key] for link in measured) for key in values})
        for kind, values in measured[0].items()
    }
    return LinkProfile(
        name=HOROVOD_LINK,
        cost=costs["cost"],
        scatter_cost=costs.get("scatter_cost"),
        gather_cost=costs.get("gather_cost"),
    )


def fitted(sizes: Sequence[float], times_ms: Sequence[float]) -> LinkCost:
    """Of all-reduces of everything."""
    x, y = np.array(sizes, dtype=float), np.array(times_ms, dtype=float)
    if len(set(sizes)) == 1:
        return LinkCost(alpha_us=0.0, beta_us_per_byte=float((y / x).mean()) * 1e3)
    beta_ms, alpha_ms = np.polyfit(x, y, 1, w=1 / y)
    return LinkCost(alpha_us=max(0.0, float(alpha_ms)) * 1e3, beta_us_per_byte=float(beta_ms) * 1e3)


def profile_of(cell: Cell, link: LinkProfile) -> tuple[tuple[Parameter, ...], Profile]:
    """The model of a cell as a perfect profiler would see it."""
    model = WORKLOADS[cell["profile"]]().scaled(cell["gradient_bytes"])
    stages = model.stage_s(cell["compute_ms"] / 1e3)
    parameters: list[Parameter] = []
    use_us: list[float] = []
    ready_us: list[float] = []
    forward_us = sum(forward for forward, _ in stages) * 1e6
    backward_us = sum(backward for _, backward in stages) * 1e6
    used_us, left_us = 0.0, backward_us
    for layer, (forward, backward) in zip(model.layers, stages, strict=True):
        for tensor in layer.tensors:
            name = f"{layer.name}.{tensor.name}"
            parameters.append(Parameter(name, tensor.elements, "float32", "float32", "cpu"))
            use_us.append(used_us)
            ready_us.append(left_us)
        used_us += forward * 1e6
        left_us = max(0.0, left_us - backward * 1e6)
    profile = Profile(
        ready_order=tuple(sorted(range(len(ready_us)), key=lambda i: (ready_us[i], -i))),
        ready_us=tuple(ready_us),
        first_use_us=tuple(use_us),
        forward_us=forward_us,
        backward_us=backward_us,
        steps=10,
        size=cell["hosts"],
        links=(link,),
    )
    return tuple(parameters), profile


def predicted_ms(arm: str, cell: Cell, link: LinkProfile) -> float | None:
    """None: the simulation does not know this arm."""
    kind = KINDS[arm]
    parameters, profile = profile_of(cell, link)
    if arm == "stock":
        return simulate_stock(parameters, profile).step_us / 1e3
    if kind.policy is None or kind.second_link:
        return None
    config = Config.model_validate(dict(kind.config(cell["gradient_bytes"])))
    if FORMATS.get(config.accuracy) and not link.formats:
        return None
    plan = policies.get(kind.policy).plan(Request(parameters, profile, config))
    return step_us(plan, profile) / 1e3


def kept_up(cell: Cell) -> bool:
    """Whether the machine that played the cluster was fast enough for it."""
    alone_ms: float = cell["arms"]["alone"]["step_ms"]["median"]
    return alone_ms <= KEPT_UP * float(cell["compute_ms"])


@dataclass(frozen=True)
class Pair:
    """One arm of one cell."""

    predicted_ms: float
    measured_ms: float
    counts: bool

    @property
    def off(self) -> float:
        return self.predicted_ms / self.measured_ms - 1.0

    def __str__(self) -> str:
        text = f"{self.predicted_ms:.1f} / {self.measured_ms:.1f} ({self.off:+.1%})"
        return text if self.counts else f"{text} \\*"


def compare(cells: Sequence[Cell]) -> list[dict[str, Pair]]:
    """Of each cell, all arms that are simulated."""
    links = {hosts: link_of(cells, hosts) for hosts in {cell["hosts"] for cell in cells}}
    found: list[dict[str, Pair]] = []
    for cell in cells:
        found.append({})
        for arm, measured in cell["arms"].items():
            predicted = predicted_ms(arm, cell, links[cell["hosts"]])
            if predicted is not None:
                found[-1][arm] = Pair(predicted, measured["step_ms"]["median"], kept_up(cell))
    return found


def report(cells: Sequence[Cell], name: str) -> str:
    """Markdown."""
    pairs = compare(cells)
    arms = [arm for arm in KINDS if any(arm in of_cell for of_cell in pairs)]
    rows = [
        [cell["hosts"], cell["profile"], cell["ccr"], *(of_cell.get(arm, "-") for arm in arms)]
        for cell, of_cell in zip(cells, pairs, strict=True)
    ]
    summary = []
    for arm in arms:
        off = [p[arm].off for p in pairs if arm in p and p[arm].counts]
        close = sum(abs(share) <= CLOSE for share in off)
        farthest = f"{max(off, key=abs):+.1%}" if off else "-"
        summary.append([KINDS[arm].title, f"{close} of {len(off)}", farthest])
    return "\n".join(
        [
            f"# Predicted and measured: {name}",
            "",
            f"Made by `scripts/benchmarks/predicted.py` from [{name}.md]({name}.md). The",
            "profile is what the emulated accelerator computes; the link is what the jobs have",
            "measured, or fitted to the all-reduces of all gradients where none has:",
            "",
            *_links(cells),
            "",
            "Plans are those that the solver makes now from this profile. They need not be the",
            "ones that were measured, which came from measured profiles.",
            "",
            *_table(["arm", f"within {CLOSE:.0%}", "farthest off"], summary),
            "",
            "Milliseconds of a step, predicted / measured. Cells with a \\* do not count: there",
            "computing alone took over 1 % too long, so the machine was too busy for a cluster.",
            "",
            *_table(["hosts", "model", "CCR", *(KINDS[arm].title for arm in arms)], rows),
            "",
        ]
    )


def _links(cells: Sequence[Cell]) -> list[str]:
    lines = []
    for hosts in sorted({cell["hosts"] for cell in cells}):
        cost = link_of(cells, hosts).cost
        alpha_ms, beta_ms = cost.alpha_us / 1e3, cost.beta_us_per_byte * 1e3
        lines.append(f"- {hosts} hosts: {alpha_ms:.2f} ms a message, {beta_ms:.2f} ms a megabyte")
    return lines


def _table(head: Sequence[object], rows: Sequence[Sequence[object]]) -> list[str]:
    lines = [head, ["---"] * len(head), *rows]
    return [f"| {' | '.join(map(str, line))} |" for line in lines]


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description="Predicts the step times of a report.")
    parser.add_argument("name", help="of the report in docs/studies/benchmarks")
    parser.add_argument("--folder", type=Path, default=FOLDER, help="where reports are")
    options = parser.parse_args(arguments)
    source = options.folder / f"{options.name}.json"
    if not source.is_file():
        parser.error(f"there is no report {source}; scripts/benchmarks/cluster.py makes one")
    cells = json.loads(source.read_text(encoding="utf-8"))["cells"]
    target = options.folder / f"{options.name}-predicted.md"
    target.write_text(report(cells, options.name), encoding="utf-8")
    print(f"wrote {target}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
