"""Names of parameters from the modules that use them, where the script gives none."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

import torch
from torch import nn

from deft_horovod.profile import Profile

_COMPILED: Final = "_orig_mod."  # what torch.compile() puts before the names of a module


def renamed(
    profile: Profile, tensors: Sequence[torch.Tensor], roots: Sequence[nn.Module]
) -> Profile:
    """The profile with names as seen from the outermost modules; `tensors` are its parameters.

    With several of those the module's class comes first. What is in none keeps its name.
    """
    names = _names(roots)
    return profile.model_copy(
        update={
            "tensors": tuple(
                part.model_copy(update={"name": names.get(id(tensor), part.name)})
                for part, tensor in zip(profile.tensors, tensors, strict=True)
            )
        }
    )


def _names(roots: Sequence[nn.Module]) -> dict[int, str]:
    found: dict[int, str] = {}
    for root, prefix in zip(roots, _prefixes(roots), strict=True):
        for name, parameter in root.named_parameters():
            found.setdefault(id(parameter), prefix + name.replace(_COMPILED, ""))
    return found


def _prefixes(roots: Sequence[nn.Module]) -> list[str]:
    if len(roots) == 1:
        return [""]
    kinds = [type(getattr(root, "_orig_mod", root)).__name__ for root in roots]
    repeated = Counter(kinds)
    seen: Counter[str] = Counter()
    prefixes = []
    for kind in kinds:
        seen[kind] += 1
        number = str(seen[kind]) if repeated[kind] > 1 else ""
        prefixes.append(f"{kind}{number}.")
    return prefixes
