"""Figures that belong to no window; they need matplotlib, which the extra ``plot`` installs."""

from __future__ import annotations

from io import BytesIO
from typing import TYPE_CHECKING, Final

from deft_horovod.errors import NotSupportedError, explain

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DPI: Final = 120
FORMATS: Final = ("png", "svg", "pdf")


def new_figure(width_inches: float, height_inches: float) -> Figure:
    """An empty one; `savefig` writes it."""
    require_matplotlib()
    from matplotlib.figure import Figure

    return Figure(figsize=(width_inches, height_inches), dpi=DPI)


def require_matplotlib() -> None:
    """Says what to install where it is missing."""
    try:
        import matplotlib.figure  # noqa: F401
    except ModuleNotFoundError as error:
        raise NotSupportedError(
            explain(
                "pictures need matplotlib",
                observed=error,
                expected="matplotlib 3.8 or later",
                action="pip install 'deft_horovod[plot]'",
            )
        ) from None


def picture(figure: Figure, kind: str) -> bytes:
    """The content of a file of one of `FORMATS`."""
    content = BytesIO()
    figure.savefig(content, format=kind)
    return content.getvalue()
