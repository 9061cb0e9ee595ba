"""What scripts/benchmarks/cluster.py writes: medians with their spread, as Markdown, JSON and a
picture."""

from __future__ import annotations

import json
import os
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, median
from typing import Any

from deft_horovod.picture.figure import picture
from scripts.benchmarks import picture as bench_picture
from scripts.benchmarks import rivals as bench_rivals
from scripts.benchmarks.arms import KINDS
from scripts.benchmarks.rivals import of_best, of_best_exact
from scripts.cluster.workloads import WORKLOADS

Result = dict[str, Any]  # of one process run
Cell = dict[str, Any]  # one model, one number of hosts, one ratio
TUNED = "stock, tuned"
TWO_LINKS = ("deft_two", "least_stale_two")


@dataclass(frozen=True)
class Target:
    """What an arm should reach."""

    arms: tuple[str, ...]
    text: str
    concerns: Callable[[float], bool]  # the ratio of communication to compute
    value: Callable[[Cell, str], float | None]
    limit: float


def _of_compute(cell: Cell, arm: str) -> float | None:
    return float(cell["arms"][arm]["of_compute"]["median"])


def _of_stock(cell: Cell, arm: str) -> float | None:
    of_stock = cell["arms"][arm].get("of_stock")
    return None if of_stock is None else float(of_stock["median"])


def _of_bound(cell: Cell, arm: str) -> float | None:
    entry = cell["arms"][arm]
    bound_ms = entry.get("bound_ms")
    return entry["step_ms"]["median"] / bound_ms if bound_ms else None


def _merged(cell: Cell, arm: str) -> float | None:
    """Steps for each update."""
    updates = cell["arms"][arm].get("updates_per_step")
    return 1.0 / updates["median"] if updates else None


TARGETS = (
    Target(("deft", "least_stale"), "step / compute <= 1.02", lambda c: c <= 1, _of_compute, 1.02),
    Target(("deft", "least_stale"), "step / compute <= 1.05", lambda c: c > 1, _of_compute, 1.05),
    Target(
        ("deft", "least_stale", "sync"),
        "0.99 of stock's speed",
        lambda c: c <= 0.25,
        _of_stock,
        1 / 0.99,
    ),
    Target(TWO_LINKS, "step / compute <= 1.02", lambda c: c <= 1.35, _of_compute, 1.02),
    Target(TWO_LINKS, "no merging", lambda c: c <= 1.35, _merged, 1.001),
    Target(("sync",), "step / proven bound <= 1.05", lambda _: True, _of_bound, 1.05),
    Target(("deft", "least_stale"), "ahead of every rival", lambda c: c >= 1, of_best, 1.0),
    # Medians of the same arm differ by as much from run to run.
    Target(("sync",), "no exact rival over 1 % faster", lambda _: True, of_best_exact, 1.01),
)


# --- numbers -------------------------------------------------------------------------------------
def spread(values: Sequence[float]) -> dict[str, float]:
    return {"median": median(values), "min": min(values), "max": max(values)}


def rounds_ms(result: Result, arm: str) -> list[float]:
    """Milliseconds of a step in each round: the mean over its steps, of the slowest rank. The mean,
    since the steps of a plan's period differ."""
    ranks = result["arms"][arm]["rounds"]
    return [max(mean(r["steps_ms"]) for r in same) for same in zip(*ranks, strict=True)]


def staleness_text(prediction: dict[str, Any]) -> str:
    """Shares of the bytes: how late they are, and of how many steps' gradients each update is."""
    shares: dict[str, float] = defaultdict(float)
    for part in prediction.get("staleness") or ():
        late = f"delay {part['delay']}" if part["delay"] else "gated" if part["gated"] else "sync"
        shares[late + (f" x{part['merged']}" if part["merged"] > 1 else "")] += part["bytes"]
    whole = sum(shares.values())
    ordered = sorted(shares.items(), key=lambda item: -item[1])
    return ", ".join(f"{name} {100 * value / whole:.0f} %" for name, value in ordered if value)


def arm_summary(results: Sequence[Result], arm: str) -> dict[str, Any]:
    """Ratios are taken inside one process run, where the arms took turns."""
    having = [r for r in results if arm in r["arms"]]
    steps = [ms for r in having for ms in rounds_ms(r, arm)]
    entry: dict[str, Any] = {"step_ms": spread(steps), "rounds": len(steps)}
    for key, base in (("of_compute", "alone"), ("of_stock", "stock")):
        ratios = [
            ms / median(rounds_ms(r, base))
            for r in having
            if base in r["arms"]
            for ms in rounds_ms(r, arm)
        ]
        if ratios:
            entry[key] = spread(ratios)
    bases = [median(rounds_ms(r, "alone")) for r in having if "alone" in r["arms"]]
    if bases:
        entry["exposed_ms"] = entry["step_ms"]["median"] - median(bases)
    same = [ranks for r in having for ranks in zip(*r["arms"][arm]["rounds"], strict=True)]
    entry["cores"] = median(sum(rank["cores"] for rank in ranks) for ranks in same)
    # Why the device was idle, on the rank that was so the longest.
    for key in ("waited_ms", "late_ms"):
        entry[key] = median(max(rank[key] for rank in ranks) for ranks in same)
    return entry | planned_summary(having, arm)


def planned_summary(results: Sequence[Result], arm: str) -> dict[str, Any]:
    """What our optimizer says of itself."""
    stats = [r["arms"][arm]["stats"] for r in results if r["arms"][arm]["stats"]]
    if not stats:
        return {}
    entry: dict[str, Any] = {
        "stats_exposed_ms": median(s.get("exposed_us", 0.0) for s in stats) / 1e3,
        "plans": [s.get("plans") for s in stats],
        "policies": sorted({str(s.get("policy")) for s in stats}),
        # The profile's end: links are measured, and the plan is made.
        "longest_warm_up_step_ms": [max(r["arms"][arm]["warm_up_ms"]) for r in results],
    }
    predictions = [s["prediction"] for s in stats if isinstance(s.get("prediction"), dict)]
    if predictions:
        entry["staleness"] = sorted({staleness_text(p) for p in predictions})
        entry["updates_per_step"] = spread([p.get("updates_per_step", 1.0) for p in predictions])
        for key in ("step", "bound"):
            entry[f"{'predicted' if key == 'step' else key}_ms"] = (
                median(p.get(f"{key}_us", 0.0) for p in predictions) / 1e3
            )
    return entry


def summarise(results: Sequence[Result]) -> list[Cell]:
    """One cell for each (hosts, profile, CCR), in this order."""
    cells: dict[tuple[Any, ...], list[Result]] = defaultdict(list)
    tuned: dict[tuple[Any, ...], list[Result]] = defaultdict(list)
    for result in results:
        o = result["options"]
        chosen = tuned if "fusion_share" in o else cells
        chosen[o["hosts"], list(WORKLOADS).index(o["profile"]), o["ccr"]].append(result)
    return [cell_summary(cells[key], tuned[key]) for key in sorted(cells)]


def link_summary(links: Sequence[dict[str, dict[str, float]]]) -> dict[str, dict[str, float]]:
    """What messages cost by operation, as measured in the jobs themselves."""
    return {
        kind: {key: median(link[kind][key] for link in links if kind in link) for key in costs}
        for kind, costs in (links[0] if links else {}).items()
    }


def setting_text(options: dict[str, Any]) -> str:
    share, cycle_ms = options["fusion_share"], options["cycle_ms"]
    fusion = "default" if share is None else f"{share:g} of the model"
    return f"fusion: {fusion}, cycle: {cycle_ms:g} ms"


def cell_summary(results: Sequence[Result], tuned: Iterable[Result]) -> Cell:
    first = results[0]
    o = first["options"]
    names = [name for name in KINDS if any(name in r["arms"] for r in results)]
    cell: Cell = {key: o[key] for key in ("hosts", "profile", "ccr", "rate_mbit", "compute_ms")}
    cell |= {
        "second_rate_mbit": o["second_rate_mbit"],
        "runs": len(results),
        "tensors": first["tensors"],
        "gradient_bytes": first["gradient_bytes"],
        "communication_ms": median(r["communication_ms"] for r in results),
        "link": link_summary([r["link"] for r in results if r.get("link")]),
        "missing": first["missing"],
        "arms": {name: arm_summary(results, name) for name in names},
    }
    grid = {setting_text(r["options"]): median(rounds_ms(r, "stock")) for r in tuned}
    if grid and "stock" in cell["arms"]:
        grid["as it comes"] = cell["arms"]["stock"]["step_ms"]["median"]
        best = min(grid, key=grid.__getitem__)
        cell["tuned"] = {"grid_ms": grid, "best": best, "step_ms": grid[best]}
    return cell


# --- text ----------------------------------------------------------------------------------------
def one_line(result: Result) -> str:
    """For the eyes of who waits."""
    times = ", ".join(f"{name} {median(rounds_ms(result, name)):.0f}" for name in result["arms"])
    return f"{times} ms a step ({result['seconds']:.0f} s, warm after {result['warm_up_s']:.0f} s)"


def table(rows: Sequence[Sequence[str]]) -> str:
    head, *body = rows
    lines = [head, ["---"] * len(head), *body]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _between(values: dict[str, float], digits: int) -> str:
    low, high = (f"{values[key]:.{digits}f}" for key in ("min", "max"))
    middle = f"{values['median']:.{digits}f}"
    return middle if low == high else f"{middle} ({low} .. {high})"


def overview(cells: Sequence[Cell]) -> str:
    names = [name for name in KINDS if name != "alone" and any(name in c["arms"] for c in cells)]
    tuned = any("tuned" in c for c in cells)
    head = ["hosts", "model", "CCR", *(KINDS[name].title for name in names)]
    if tuned:
        head.insert(4, TUNED)
    rows = [head]
    for cell in cells:
        row = [str(cell["hosts"]), cell["profile"], f"{cell['ccr']:g}"]
        for name in names:
            entry = cell["arms"].get(name, {}).get("of_compute")
            row.append(f"{entry['median']:.2f}" if entry else "")
        if tuned:
            alone = cell["arms"].get("alone")
            best = cell.get("tuned")
            row.insert(
                4, f"{best['step_ms'] / alone['step_ms']['median']:.2f}" if alone and best else ""
            )
        rows.append(row)
    return table(rows)


def details(cell: Cell) -> str:
    rows = [
        [
            "arm",
            "step, ms",
            "of compute",
            "of stock",
            "exposed, ms",
            "waited, ms",
            "late, ms",
            "cores",
            "updates a step",
            "staleness",
        ]
    ]
    for name, entry in cell["arms"].items():
        updates = entry.get("updates_per_step")
        rows.append(
            [
                KINDS[name].title,
                _between(entry["step_ms"], 1),
                _between(entry["of_compute"], 3) if "of_compute" in entry else "",
                _between(entry["of_stock"], 3) if "of_stock" in entry else "",
                f"{entry['exposed_ms']:.1f}" if "exposed_ms" in entry else "",
                f"{entry['waited_ms']:.1f}",
                f"{entry['late_ms']:.1f}",
                f"{entry['cores']:.2f}",
                _between(updates, 2) if updates else "",
                "; ".join(entry.get("staleness", ())),
            ]
        )
        if name == "stock" and "tuned" in cell:
            rows.append(
                [TUNED, f"{cell['tuned']['step_ms']:.1f}", *[""] * 7, cell["tuned"]["best"]]
            )
    real = cell["communication_ms"] / cell["compute_ms"]
    head = (
        f"### {cell['profile']}, {cell['hosts']} hosts, CCR {cell['ccr']:g}\n\n"
        f"{cell['gradient_bytes'] / 1e6:.1f} MB in {cell['tensors']} tensors; the all-reduce alone "
        f"takes {cell['communication_ms']:.0f} ms ({real:.2f} of the computing time); "
        f"{cell['runs']} process run{'s' if cell['runs'] > 1 else ''}."
    )
    return f"{head}\n\n{table(rows)}"


def targets(cells: Sequence[Cell]) -> str:
    rows = [["hosts", "model", "CCR", "arm", "target", "measured"]]
    met = 0
    for cell in cells:
        for target in TARGETS:
            for name in target.arms:
                if name not in cell["arms"] or not target.concerns(cell["ccr"]):
                    continue
                value = target.value(cell, name)
                if value is None:
                    continue
                if value <= target.limit:
                    met += 1
                else:
                    rows.append(
                        [
                            str(cell["hosts"]),
                            cell["profile"],
                            f"{cell['ccr']:g}",
                            KINDS[name].title,
                            target.text,
                            f"{value:.3f}",
                        ]
                    )
    missed = len(rows) - 1
    said = f"{met} of {met + missed} targets are met."
    return said + (f" Missed:\n\n{table(rows)}" if missed else "")


def against_rivals(cells: Sequence[Cell], name: str) -> list[str]:
    """Nothing where none took part."""
    rows = bench_rivals.rows(cells)
    if not rows:
        return []
    said = (
        "Step time over computing time, medians. The last columns say how much faster `deft` is "
        "than what its paper compares itself with (there: 29 to 115 %)."
    )
    picture = f"![speed over stock Horovod and over the best rival]({name}.png)"
    return ["## Against the best rival", said, table([bench_rivals.HEAD, *rows]), picture]


def machine(results: Sequence[Result]) -> str:
    versions = results[-1]["versions"]
    model = next(
        (
            line.split(":", 1)[1].strip()
            for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
            if line.startswith("model name")
        ),
        "unknown processor",
    )
    said = ", ".join(f"{name} {version}" for name, version in versions.items() if name != "kernel")
    return f"One machine: {os.cpu_count()} cores ({model}), Linux {versions['kernel']}; {said}."


def markdown(results: Sequence[Result], cells: Sequence[Cell], name: str, command: str) -> str:
    links = f"{cells[0]['rate_mbit']} Mbit/s"
    if cells[0]["second_rate_mbit"]:
        links += f", second link {cells[0]['second_rate_mbit']} Mbit/s"
    missing = {arm: why for cell in cells for arm, why in cell["missing"].items()}
    parts = [
        f"# Side by side on an emulated cluster: {name}",
        "What is emulated, how it is measured and what the columns mean: [README.md](README.md).",
        f"```bash\n{command}\n```",
        f"{machine(results)} Links: {links}. Computing: {cells[0]['compute_ms']:g} ms a step.",
        *(f"Not measured: {KINDS[arm].title} ({why})." for arm, why in sorted(missing.items())),
        "## Step time over computing time",
        overview(cells),
        *against_rivals(cells, name),
        "## Targets",
        targets(cells),
        "## Every point",
        *(details(cell) for cell in cells),
    ]
    return "\n\n".join(parts) + "\n"


def write(results: Sequence[Result], name: str, command: str, folder: Path) -> Path:
    """The files, a picture among them if there are rivals; returns the Markdown one."""
    cells = summarise(results)
    folder.mkdir(parents=True, exist_ok=True)
    document = {"command": command, "versions": results[-1]["versions"], "cells": cells}
    text = json.dumps(document, indent=1, default=str)
    (folder / f"{name}.json").write_text(text + "\n", encoding="utf-8")
    if bench_rivals.rows(cells):
        (folder / f"{name}.png").write_bytes(picture(bench_picture.draw(cells), "png"))
    path = folder / f"{name}.md"
    path.write_text(markdown(results, cells, name, command), encoding="utf-8")
    return path
