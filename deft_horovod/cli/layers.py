"""deft-profile layers: the table of a profile, layer by layer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

import click
from rich.table import Table

from deft_horovod.base.size import size_text
from deft_horovod.cli.inputs import ProfileFile, parameters_of
from deft_horovod.cli.output import Output, output_options
from deft_horovod.profile import Profile
from deft_horovod.profile.layer_table import LayerRow, LayerTable, layer_table

_MS: Final = 1e-3
_FIRST: Final[Mapping[str, Any]] = MappingProxyType(
    {
        "model": lambda row: row.number,
        "bytes": lambda row: -row.bytes,
        "forward": lambda row: -row.forward_us,
        "backward": lambda row: -row.backward_us,
        "ready": lambda row: row.ready_us,
        "communication": lambda row: -max(row.communication_us.values(), default=0.0),
    }
)


@click.command(name="layers")
@click.argument("profile", type=ProfileFile())
@click.option(
    "--sort",
    type=click.Choice([*_FIRST]),
    default="model",
    show_default=True,
    help="What comes first: the order of the model, the largest, or the first that is ready.",
)
@click.option("--filter", "pattern", help="Only layers with this text in their name or type.")
@click.option("--top", type=click.IntRange(1), help="Only the first so many.")
@output_options
def command(
    profile: Profile, sort: str, pattern: str | None, top: int | None, output: Output
) -> None:
    """How long each layer computes, when its gradients are ready, what sending them takes."""
    output.require_free()
    table = layer_table(profile, parameters_of(profile))
    rows = sorted(table.rows, key=_FIRST[sort])
    if pattern:
        wanted = pattern.lower()
        rows = [row for row in rows if wanted in row.name.lower() or wanted in row.type.lower()]
        if not rows:
            raise click.UsageError(f"no layer has {pattern!r} in its name or type")
    rows = rows[:top]
    data = table.to_data()
    data["layers"] = [
        entry for row in rows for entry in data["layers"] if entry["number"] == row.number
    ]
    output.show(data, rendered(table, rows), summary(table, profile))


def rendered(table: LayerTable, rows: Sequence[LayerRow]) -> Table:
    """For a person."""
    links = [*table.communication_us]
    shown = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), show_footer=True)
    shown.add_column("layer", f"{len(table.rows)} layers", overflow="fold", min_width=10)
    shown.add_column("type", overflow="fold", min_width=6)
    numbers = [
        ("ten-\nsors", str(sum(row.parameters for row in table.rows))),
        ("size", size_text(table.bytes)),
        ("share", ""),
        ("forward\nms", f"{table.forward_us * _MS:.2f}"),
        ("back-\nward ms", f"{table.backward_us * _MS:.2f}"),
        ("ready\nms", ""),
        *((f"{link}\nms", f"{table.communication_us[link] * _MS:.2f}") for link in links),
    ]
    for title, total in numbers:
        shown.add_column(title, total, justify="right", no_wrap=True)
    for row in rows:
        shown.add_row(
            row.name,
            row.type,
            str(row.parameters),
            size_text(row.bytes),
            f"{row.share:.1%}",
            f"{row.forward_us * _MS:.2f}",
            f"{row.backward_us * _MS:.2f}",
            f"{row.ready_us * _MS:.2f}",
            *(f"{row.communication_us[link] * _MS:.2f}" for link in links),
        )
    return shown


def summary(table: LayerTable, profile: Profile) -> str:
    """What the totals mean."""
    ranks = f"{profile.size} rank{'' if profile.size == 1 else 's'}"
    stages = (
        f"forward {table.forward_us * _MS:.1f}, backward {table.backward_us * _MS:.1f}, "
        f"optimizer {table.optimizer_us * _MS:.1f}"
    )
    computing = f"computing {table.compute_us * _MS:.1f} ms ({stages})"
    lines = ["", f"{ranks}, {profile.steps} steps measured: {computing}"]
    if table.coverage_rate is not None:
        link = next(iter(table.communication_us))
        total_ms = table.communication_us[link] * _MS
        lines.append(
            f"communication on link {link}: {total_ms:.1f} ms, "
            f"{table.coverage_rate:.2f} of the computing time (coverage rate)"
        )
    else:
        lines.append("communication: no link was measured (one rank alone sends nothing)")
    if table.step_us and profile.size > 1:
        share = table.exposed_us / table.step_us
        lines.append(
            f"under stock Horovod: a step took {table.step_us * _MS:.1f} ms, of which "
            f"{table.exposed_us * _MS:.1f} ms ({share:.0%}) were exposed communication"
        )
    return "\n".join(lines)
