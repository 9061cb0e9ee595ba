"""The brief of an optimizer that is being made, from what its user has asked for."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Final

import torch

from deft_horovod import policies
from deft_horovod.config import Config
from deft_horovod.errors import NotSupportedError, explain
from deft_horovod.peers import OVER_TORCH, stock
from deft_horovod.policies.unasked import formats_that_harm, with_unasked_accuracy
from deft_horovod.runtime.decide.brief import Brief
from deft_horovod.runtime.job_request import Purpose
from deft_horovod.runtime.process import this_process
from deft_horovod.runtime.ranks.agreement import device_of_zeros
from deft_horovod.runtime.ranks.groups import Groups
from deft_horovod.runtime.ranks.reduction import Reduction
from deft_horovod.runtime.reduce.coupling import is_partial, require_partial
from deft_horovod.runtime.reduce.encoded import may_encode

_LOG: Final = logging.getLogger("deft_horovod")


def first_brief(
    settings: Config, reduction: Reduction, groups: Groups, optimizer: torch.optim.Optimizer
) -> Brief:
    """`auto` tries what cannot keep groups together, and updates parameters one by one; where that
    is asked for, or not possible, it means the policy that can.

    Raises:
        NotSupportedError: the policy cannot do what is asked for.
    """
    request = this_process().job_request
    purpose: Purpose = "train"
    if request is not None:
        settings, purpose = request.over_config(settings), request.purpose
    if purpose == "profile":
        return Brief(policies.get("stock"), settings, reduction, groups, purpose)
    plain = reduction.compression is stock.Compression.none
    if plain and _rounds_unasked(optimizer):  # nothing else is rounded, nor has to be watched
        settings = with_unasked_accuracy(settings, type(optimizer), optimizer.param_groups)
    name = settings.policy
    if name == "auto" and groups.given:
        name = "bucket"
    if name == "auto" and not is_partial(optimizer):
        name = "bucket"
        if stock.rank() == 0:
            _LOG.warning(
                "deft_horovod: %s does not treat each parameter on its own, so nothing is gated or "
                "late: policy 'bucket'",
                type(optimizer).__name__,
            )
    brief = Brief(policies.get(name), settings, reduction, groups, purpose)
    _check(brief, optimizer)
    return _without_harmful_formats(brief, optimizer)


def _without_harmful_formats(brief: Brief, optimizer: torch.optim.Optimizer) -> Brief:
    harmful = formats_that_harm(type(optimizer))
    if not set(brief.limits.formats).isdisjoint(harmful) and stock.rank() == 0:
        _LOG.warning(
            "deft_horovod: accuracy: training with %s loses too much by %s, so nothing travels in "
            "it, though accuracy='%s' allows it",
            type(optimizer).__name__,
            ", ".join(harmful),
            brief.config.accuracy,
        )
    return replace(brief, harmful=harmful)


def _rounds_unasked(optimizer: torch.optim.Optimizer) -> bool:
    """Only where all that travels is in one kind of memory. A rank in hvd.join() gives its zeros in
    one kind, and beside NCCL what is encoded would be in another."""
    devices = [p.device for group in optimizer.param_groups for p in group["params"]]
    in_host_memory = device_of_zeros(devices).type == "cpu"
    return in_host_memory and all(may_encode(device) for device in devices)


def _check(brief: Brief, optimizer: torch.optim.Optimizer) -> None:
    if brief.groups.given and not brief.policy.supports_groups:
        raise NotSupportedError(
            explain(
                f"policy '{brief.policy.name}' does not keep groups of gradients together",
                observed="groups or num_groups was given",
                action="use policy 'bucket' or 'stock', or no groups",
            )
        )
    if brief.policy.splits and OVER_TORCH:
        raise NotSupportedError(
            explain(
                f"policy '{brief.policy.name}' sends reduce-scatters, which Gloo has none of",
                observed="a job over torch.distributed",
                action="choose another policy",
            )
        )
    if brief.policy.gates or brief.policy.measures or brief.config.plan_file:
        require_partial(optimizer, brief.policy.name)
