"""Operations of ours in the middle of the user's: nothing that transforms theirs sees them.

A gate may open while a model is traced or exported, under fake tensors, or inside a transform such
as `torch.func.jacrev`. An update that became part of that would be lost, refused or repeated.
"""

# ruff: noqa: SLF001  torch has no public way out of what its user has switched on
from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch


@contextmanager
def plain_torch() -> Iterator[None]:
    """Without the caller's modes, transforms and tracing. Cheap where there are none."""
    torch_c: Any = torch._C  # its stubs lack some, and know of no tracing
    tracing = torch_c._get_tracing_state()
    modes = torch_c._len_torch_dispatch_stack() + torch_c._len_torch_function_stack()
    if tracing is None and not modes and torch_c._functorch.peek_interpreter_stack() is None:
        yield
        return
    # Private to torch, and not cheap to import.
    from torch._functorch.pyfunctorch import temporarily_clear_interpreter_stack
    from torch.utils._python_dispatch import _disable_current_modes

    torch_c._set_tracing_state(None)
    try:
        with (
            _disable_current_modes(),
            torch_c.DisableTorchFunction(),
            temporarily_clear_interpreter_stack(),
        ):
            yield
    finally:
        torch_c._set_tracing_state(tracing)
