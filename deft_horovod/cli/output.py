"""What all subcommands have in common: where results go, and in which form."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar

import click
from rich.console import Console, RenderableType

from deft_horovod.job.result_file import write
from deft_horovod.picture.figure import FORMATS

_Command = TypeVar("_Command", bound=Callable[..., Any])

PLAIN_WIDTH = 160  # columns of a table that goes to a file


@dataclass(frozen=True)
class Output:
    """Where the result of a subcommand goes."""

    as_json: bool = False
    path: Path | None = None  # None: to the terminal
    force: bool = False

    def require_free(self, *others: Path | None) -> None:
        """Before any work: refuses to overwrite what is there."""
        for path in (self.path, *others):
            require_free(path, force=self.force)

    def show(self, data: object, *renderables: RenderableType) -> None:
        """The data as JSON, or what stands for them for a person."""
        if self.path is None:
            if self.as_json:
                click.echo(json_text(data), nl=False)
            else:
                Console(highlight=False).print(*renderables, sep="\n")
            return
        text = json_text(data) if self.as_json else plain_text(*renderables)
        write(self.path, text)


def require_free(path: Path | None, *, force: bool) -> None:
    """Refuses to overwrite a file unless that was asked for."""
    if path is None:
        return
    if not path.parent.is_dir():
        raise click.UsageError(f"there is no folder {path.parent} to write {path.name} to")
    if path.exists() and not force:
        raise click.UsageError(f"{path} exists; give another name, or --force to overwrite it")


def json_text(data: object) -> str:
    return json.dumps(data, indent=2, allow_nan=False) + "\n"


def plain_text(*renderables: RenderableType) -> str:
    """As in a terminal that is wide and has no colours."""
    console = Console(width=PLAIN_WIDTH, no_color=True, highlight=False)
    with console.capture() as captured:
        console.print(*renderables, sep="\n")
    return "\n".join(line.rstrip() for line in captured.get().splitlines()) + "\n"


def output_options(command: _Command) -> Callable[..., Any]:
    """Adds --json, --output and --force; the command gets one `output`."""

    @click.option("--json", "as_json", is_flag=True, help="The result as JSON.")
    @click.option(
        "-o",
        "--output",
        "path",
        type=click.Path(dir_okay=False, path_type=Path),
        help="Write the result to a file instead of the terminal.",
    )
    @click.option("--force", is_flag=True, help="Overwrite files that are there.")
    @wraps(command)
    def with_output(*, as_json: bool, path: Path | None, force: bool, **rest: Any) -> Any:
        return command(output=Output(as_json, path, force), **rest)

    return with_output


def plot_option(what: str) -> Callable[[_Command], _Command]:
    """Adds --plot; the command gets a `plot` that is None or a name that can be drawn to."""
    endings = ", ".join(f".{kind}" for kind in FORMATS)

    def checked(_: click.Context, __: click.Parameter, value: Path | None) -> Path | None:
        if value is not None and value.suffix[1:] not in FORMATS:
            raise click.BadParameter(f"the name has to end in one of {endings}")
        return value

    return click.option(
        "--plot",
        type=click.Path(dir_okay=False, path_type=Path),
        callback=checked,
        help=f"{what} ({endings}); needs the extra `plot`.",
    )
