"""Files with results: whole, or not there."""

from __future__ import annotations

import contextlib
from pathlib import Path

import click


def write(path: Path, content: str | bytes) -> None:
    """Writes a file whole or not at all, and says so on stderr."""
    draft = path.with_name(f".{path.name}.part")
    try:
        draft.write_bytes(content if isinstance(content, bytes) else content.encode())
        draft.replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            draft.unlink(missing_ok=True)
        raise click.ClickException(f"{path} could not be written: {error.strerror}") from error
    click.echo(f"wrote {path}", err=True)
