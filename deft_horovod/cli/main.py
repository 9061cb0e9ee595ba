"""The command ``deft-profile``."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

import click

from deft_horovod import __version__
from deft_horovod.errors import DeftError

# In the order in which one uses them, each with the module that has it.
SUBCOMMANDS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "run": "deft_horovod.cli.run",
        "compare": "deft_horovod.cli.compare",
        "layers": "deft_horovod.cli.layers",
        "plan": "deft_horovod.cli.plan",
        "simulate": "deft_horovod.cli.simulate",
        "report": "deft_horovod.cli.report",
        "trace": "deft_horovod.cli.trace",
        "capacity": "deft_horovod.cli.capacity.schedule",
        "consolidate": "deft_horovod.cli.capacity.consolidate",
        "doctor": "deft_horovod.cli.doctor",
    }
)


class _Commands(click.Group):
    """Loads a subcommand when it is needed, and tells a user's mistakes without a traceback."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return list(SUBCOMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in SUBCOMMANDS:
            return None
        command: click.Command = importlib.import_module(SUBCOMMANDS[cmd_name]).command
        return command

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except DeftError as error:
            raise click.ClickException(str(error)) from error


@click.command(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, message="%(prog)s %(version)s")
def main() -> None:
    """What would deft_horovod gain in your training job, and where does the time go?

    Exit status: 0 when all went well, 1 when something could not be done, 2 for a mistake in the
    command.
    """


if __name__ == "__main__":
    main(prog_name="deft-profile")
