"""deft-profile layers: the table of a profile, layer by layer."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import click
from rich.table import Table

from deft_horovod.base.format_bytes import FormatShares
from deft_horovod.base.size import size_text
from deft_horovod.base.wire_format import EXACT
from deft_horovod.cli.inputs import ProfileFile, accuracy_option, parameters_for, plan_of_file
from deft_horovod.cli.output import Output, output_options
from deft_horovod.cli.plan import planned
from deft_horovod.plan import Plan
from deft_horovod.plan.slot_formats import slot_formats
from deft_horovod.plan.staleness_text import staleness_text
from deft_horovod.profile import Profile
from deft_horovod.profile.format_text import format_text
from deft_horovod.profile.layer_table import LayerRow, LayerTable, layer_table
from deft_horovod.solver.predict.prediction import predict

_Column = tuple[str, str, Callable[[LayerRow], str]]  # title, total, what a row has there

_MS: Final = 1e-3
_POLICY: Final = "least_stale"  # which `auto` plans with, too
_FORMAT: Final = "format"
_ANEW: Final = "take it anew with `deft-profile run`"
_LEAST_SHARE: Final = 0.01  # of a layer's bytes, from which on their format is named
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
@accuracy_option
@click.option(
    "--plan",
    "plan_path",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Take the plan of this file, instead of making one for --accuracy.",
)
@output_options
def command(
    profile: Profile,
    output: Output,
    sort: str,
    pattern: str | None,
    top: int | None,
    accuracy: str | None,
    plan_path: Path | None,
) -> None:
    """How long each layer computes, when its gradients are ready, what sending them takes.

    With --accuracy or --plan also in which format they travel, and in how many bytes.
    """
    output.require_free()
    plan = _plan(profile, accuracy, plan_path)
    formats = () if plan is None else slot_formats(plan)
    table = layer_table(profile, parameters_for(profile, plan), formats)
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
    said = [summary(table, profile)]
    if plan is not None:
        data["plan"] = plan.hash()
        said += _travelling(table, plan, profile)
    if accuracy not in (None, "exact") and not any(link.formats for link in profile.links):
        said.append(f"formats are not in this profile: {_ANEW}")
    output.show(data, rendered(table, rows), "\n".join(said))


def _plan(profile: Profile, accuracy: str | None, path: Path | None) -> Plan | None:
    """None: gradients travel as they are."""
    if path is None:
        return None if accuracy is None else planned(profile, policy=_POLICY, accuracy=accuracy)
    if accuracy is not None:
        raise click.UsageError("--plan has its plan; --accuracy would make another")
    plan = plan_of_file(path, profile)
    return plan if plan is None or plan.prediction is not None else predict(plan, profile)


def rendered(table: LayerTable, rows: Sequence[LayerRow]) -> Table:
    """For a person."""
    shown = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), show_footer=True)
    shown.add_column("layer", f"{len(table.rows)} layers", overflow="fold", min_width=10)
    shown.add_column("type", overflow="fold", min_width=6)
    columns = [*(_sent_columns(table) if table.formats else _own_columns(table)), *_times(table)]
    for title, total, _ in columns:
        shown.add_column(title, total, justify="right", no_wrap=title != _FORMAT)
    for row in rows:
        shown.add_row(row.name, row.type, *(cell(row) for _, _, cell in columns))
    return shown


def _own_columns(table: LayerTable) -> list[_Column]:
    """How much there is to send."""
    tensors = sum(row.parameters for row in table.rows)
    return [
        ("ten-\nsors", str(tensors), lambda row: str(row.parameters)),
        ("size", size_text(table.bytes), lambda row: size_text(row.bytes)),
        ("share", "", lambda row: f"{row.share:.1%}"),
    ]


def _sent_columns(table: LayerTable) -> list[_Column]:
    """How much there is to send, and how it travels."""
    return [
        ("size", size_text(table.bytes), lambda row: size_text(row.bytes)),
        (_FORMAT, "", _formats_text),
        ("sent", size_text(_sent(table.formats)), lambda row: size_text(_sent(row.formats))),
    ]


def _times(table: LayerTable) -> list[_Column]:
    columns: list[_Column] = [
        ("forward\nms", _ms(table.forward_us), lambda row: _ms(row.forward_us)),
        ("back-\nward ms", _ms(table.backward_us), lambda row: _ms(row.backward_us)),
        ("ready\nms", "", lambda row: _ms(row.ready_us)),
    ]
    for link, total_us in table.communication_us.items():
        columns.append((f"{link}\nms", _ms(total_us), _time_on(link)))
    return columns


def _time_on(link: str) -> Callable[[LayerRow], str]:
    return lambda row: _ms(row.communication_us[link])


def _ms(time_us: float) -> str:
    return f"{time_us * _MS:.2f}"


def _sent(formats: FormatShares) -> int:
    return sum(part.message_bytes for part in formats.values())


def _formats_text(row: LayerRow) -> str:
    """Those that matter: a bias in a layer is next to nothing."""
    named = [one for one, part in row.formats.items() if part.bytes >= _LEAST_SHARE * row.bytes]
    return " ".join("exact" if one == EXACT else one for one in named)


def _travelling(table: LayerTable, plan: Plan, profile: Profile) -> Iterator[str]:
    """What the plan does, and what its formats were measured to take."""
    yield f"plan of {plan.policy}: {staleness_text(plan)}"
    sizes = f"{size_text(table.bytes)} of gradients travel as {size_text(_sent(table.formats))}"
    step_us = 0.0 if plan.prediction is None else plan.prediction.step_us
    yield f"{sizes}; a step is predicted to take {step_us * _MS:.1f} ms" if step_us else sizes
    for link in profile.links:
        for one in link.formats:
            if one.format in table.formats:
                yield format_text(link.name, one)


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
