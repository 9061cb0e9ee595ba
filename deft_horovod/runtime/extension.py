"""Loads the compiled extension, after making sure that it fits this Horovod and this torch.

Horovod's class layouts depend on how it was built, so a mismatch would corrupt memory instead of
failing. Every runtime module takes the extension from here: ``from ...extension import native``.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, Protocol

import torch

from deft_horovod.errors import BuildMismatchError, explain
from deft_horovod.peers import HOROVOD_VERSION, OVER_TORCH

if TYPE_CHECKING:
    from deft_horovod import _C as native

__all__ = ["native"]

REBUILD: Final = (
    "rebuild it in this environment: pip install --force-reinstall --no-deps "
    "--no-build-isolation deft_horovod (in a checkout: scripts/setup.sh)"
)


class Fact(Protocol):
    """One property of the build: as compiled, and as loaded now."""

    @property
    def what(self) -> str: ...
    @property
    def compiled(self) -> str: ...
    @property
    def loaded(self) -> str: ...
    @property
    def matches(self) -> bool: ...


def require_match(facts: Sequence[Fact]) -> None:
    """Refuses an extension that was compiled for another Horovod or torch."""
    wrong = [fact for fact in facts if not fact.matches]
    if wrong:
        raise BuildMismatchError(
            explain(
                "deft_horovod was compiled for another Horovod or torch than is installed",
                observed="\n".join(f"{fact.what}: {fact.loaded}" for fact in wrong),
                expected="\n".join(f"{fact.what}: {fact.compiled}" for fact in wrong),
                action=REBUILD,
            )
        )


def require_horovod_link(extension: object) -> None:
    """Refuses to train over Horovod with an extension that was built without it."""
    if not hasattr(extension, "HorovodLink"):
        raise BuildMismatchError(
            explain(
                "deft_horovod was compiled without Horovod",
                observed=f"Horovod {HOROVOD_VERSION} has been installed since",
                expected="Horovod at the time of the build",
                action=REBUILD,
            )
        )


def import_extension(importer: Callable[[str], object] = importlib.import_module) -> object:
    """Imports ``deft_horovod._C``; an undefined symbol means a build for something else."""
    try:
        return importer("deft_horovod._C")
    except ImportError as error:
        raise BuildMismatchError(
            explain(
                "the compiled extension deft_horovod._C does not load",
                observed=error,
                expected=f"one compiled for Horovod {HOROVOD_VERSION or '(none)'} "
                f"and torch {torch.__version__}",
                action=REBUILD,
            )
        ) from error


if not TYPE_CHECKING:
    native = import_extension()
    require_match(native.abi_facts(HOROVOD_VERSION, torch.__version__))
    if not OVER_TORCH:
        require_horovod_link(native)
