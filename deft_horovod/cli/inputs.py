"""What subcommands read: profiles, and requests to a policy made from them."""

from __future__ import annotations

from dataclasses import replace
from math import prod
from pathlib import Path
from typing import Any

import click

from deft_horovod.base.parameter import WIRES, Parameter, stays_exact
from deft_horovod.config import Config
from deft_horovod.errors import NotSupportedError, PlanError, explain
from deft_horovod.plan import Plan
from deft_horovod.plan.file import require_fit
from deft_horovod.policies.base import Request
from deft_horovod.profile import Profile

accuracy_option = click.option(
    "--accuracy",
    type=click.Choice(["exact", "equal", "fast"]),
    help="What may be done to gradients: nothing; 16 and 8 bits; also 4 bits, and a step late. "
    "Formats have to be in the profile.",
)

torchrun_option = click.option(
    "--torchrun", is_flag=True, help="Start ranks with torchrun, for jobs without Horovod."
)


class ProfileFile(click.ParamType[Profile]):
    """A profile, by the name of its file."""

    name = "profile.json"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if isinstance(value, Profile):
            return value
        path = Path(value)
        if not path.is_file():
            self.fail(f"there is no file {path}; `deft-profile run` writes one", param, ctx)
        return Profile.load(path)


def parameters_of(profile: Profile, device: str = "cpu", exact: str = "") -> tuple[Parameter, ...]:
    """The parameters that a profile names, as they travel without compression. `exact`: patterns of
    names that are never rounded."""
    if not profile.tensors and profile.ready_order:
        raise PlanError(
            explain(
                "a profile does not say what its parameters are",
                observed="no tensors",
                expected=f"{len(profile.ready_order)} of them, with shapes and dtypes",
                action="take the profile anew with `deft-profile run`",
            )
        )
    return tuple(
        Parameter(
            name=tensor.name,
            elements=prod(tensor.shape),
            dtype=tensor.dtype,
            wire=_wire(tensor.name, tensor.dtype),
            device=device,
            exact=device != "cpu" or stays_exact(tensor.name, tensor.shape, exact),
        )
        for tensor in profile.tensors
    )


def parameters_for(profile: Profile, plan: Plan | None) -> tuple[Parameter, ...]:
    """The same as they travel under a plan: it knows devices and compression, no profile does."""
    parameters = parameters_of(profile)
    if plan is None or len(plan.slots) != len(parameters):
        return parameters
    arenas = [plan.arenas[slot.arena] for slot in plan.slots]
    return tuple(
        replace(one, device=arena.device, wire=arena.wire) if arena.dtype == one.dtype else one
        for one, arena in zip(parameters, arenas, strict=True)
    )


def plan_of_file(path: Path, profile: Profile) -> Plan | None:
    """The plan in a file. None: it has Horovod's own calls.

    Raises:
        PlanError: it is no plan, or that of another model.
    """
    plan = Plan.load(path)
    if not plan.slots and profile.tensors:
        return None
    require_fit(plan, parameters_for(profile, plan), str(path))
    known = plan.prediction is not None and plan.prediction.profile == profile.hash()
    # What was predicted from other measurements says nothing about these.
    return plan if known else plan.model_copy(update={"prediction": None})


def request_of(profile: Profile, config: Config, device: str = "cpu") -> Request:
    """What a policy is asked when the job has these measurements and options."""
    return Request(parameters_of(profile, device, config.exact), profile, config)


def _wire(name: str, dtype: str) -> str:
    wires = WIRES.get(dtype)
    if wires is None:
        raise NotSupportedError(
            explain(
                "a gradient of this kind cannot travel",
                tensor=name,
                observed=dtype,
                expected=" or ".join(WIRES),
            )
        )
    return wires[0]
