"""What both subcommands have in common."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, TypeVar

import click
from rich.console import Console
from rich.table import Table

_Command = TypeVar("_Command", bound=Callable[..., Any])
_EFFORT: Final = 5.0


class JobsFile(click.ParamType[Path]):
    """Jobs and machines, by the name of their file."""

    name = "jobs.yaml"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        path = Path(value)
        if not path.is_file():
            self.fail(f"there is no file {path}", param, ctx)
        return path


stock_option = click.option(
    "--stock", "with_stock", is_flag=True, help="The same with stock Horovod, and what that costs."
)
effort_option = click.option(
    "--effort",
    type=click.FloatRange(0.1, 1_000.0),
    default=_EFFORT,
    show_default=True,
    help="How long to search where the optimum is not found at once, in units of a few seconds; "
    "the same effort gives the same answer.",
)
html_option = click.option(
    "--html",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write a page of HTML as well.",
)


@contextmanager
def simulating() -> Iterator[Callable[[str], object]]:
    """Says on a terminal which job is simulated."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda _: None
        return
    with console.status("simulating") as status:
        yield lambda name: status.update(f"simulating {name}")


def table(words: Sequence[str], numbers: Sequence[str]) -> Table:
    """By the titles of its columns."""
    shown = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for title in words:
        shown.add_column(title, no_wrap=True)
    for title in numbers:
        shown.add_column(title, justify="right", no_wrap=True)
    return shown
