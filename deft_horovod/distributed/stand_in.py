"""What a script gets that asks for torch's ``DistributedDataParallel`` and is run with ours.

The optimizers average; this has the parts of DDP that scripts use, and refuses the others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, NoReturn

import torch
import torch.distributed
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
from torch.nn.parallel.scatter_gather import scatter_kwargs

from deft_horovod.distributed.replicas import begin_forward, make_equal
from deft_horovod.errors import NotSupportedError, explain

if TYPE_CHECKING:
    from deft_horovod.distributed.takeover import Takeover

# They say how DDP forms its buckets, or finds out what is in them. Plans do that here.
_OF_BUCKETS: Final = frozenset(
    {
        "batched_grad_copy",
        "bucket_cap_mb",
        "bucket_cap_mb_list",
        "check_reduction",
        "dim",
        "find_unused_parameters",
        "gradient_as_bucket_view",
        "output_device",
        "static_graph",
    }
)
_UNUSED: Final = ("find_unused_parameters", "static_graph")
_HOOKS: Final[Mapping[Any, Literal["none", "fp16"]]] = MappingProxyType(
    {default_hooks.allreduce_hook: "none", default_hooks.fp16_compress_hook: "fp16"}
)


class StandIn(torch.nn.Module):
    """Of one model."""

    takeover: ClassVar[Takeover]
    _active_ddp_module: ClassVar[Any] = None  # torch's compiler and torch's own DDP look here
    module: torch.nn.Module
    compression: Literal["none", "fp16"]
    finds_unused: bool
    require_backward_grad_sync: bool  # as DDP calls it

    def __init__(
        self,
        module: torch.nn.Module,
        device_ids: list[Any] | None = None,
        *hints: Any,  # output_device, dim
        broadcast_buffers: bool | None = None,
        forward_sync_buffers: bool | None = None,  # what torch calls the same since 2.13
        init_sync: bool = True,
        **options: Any,
    ) -> None:
        super().__init__()
        _check(len(hints), options)
        self.module = module
        self.compression = "none"
        self.finds_unused = any(options.get(name) for name in _UNUSED)
        self.require_backward_grad_sync = True
        self._device_ids = device_ids
        self._broadcasts = False not in (broadcast_buffers, forward_sync_buffers)
        self._quiet = ExitStack()  # while backward passes only add
        self._adding = False
        if init_sync:
            make_equal(module, buffers=broadcast_buffers is not False)
        self.takeover.add_model(self)

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        """That of the model."""
        self.takeover.take()
        if torch.is_grad_enabled():
            self._count_passes(self.require_backward_grad_sync)
        if self._broadcasts and self.require_backward_grad_sync:
            begin_forward(self.module)
        if self._device_ids:
            moved, named = scatter_kwargs(inputs, kwargs, self._device_ids)
            inputs, kwargs = moved[0], named[0]
        return self.module(*inputs, **kwargs)

    @contextmanager
    def no_sync(self) -> Iterator[None]:
        """Backward passes of forwards inside only add to ``p.grad``."""
        before = self.require_backward_grad_sync
        self.require_backward_grad_sync = False
        try:
            yield
        finally:
            self.require_backward_grad_sync = before

    def register_comm_hook(self, state: object, hook: Any) -> None:  # noqa: ARG002  as DDP's
        """Which one says in how many bits gradients travel.

        Raises:
            NotSupportedError: it says anything else.
        """
        if hook not in _HOOKS:
            raise NotSupportedError(
                explain(
                    "this communication hook cannot run inside a plan",
                    observed=getattr(hook, "__name__", repr(hook)),
                    expected=" or ".join(known.__name__ for known in _HOOKS),
                    action="remove it; accuracy='equal' sends fewer bits than fp16",
                )
            )
        self.compression = _HOOKS[hook]

    @classmethod
    def _get_active_ddp_module(cls) -> Any:
        return cls._active_ddp_module

    def join(self, *_: object, **__: object) -> NoReturn:
        """Every rank takes as many steps.

        Raises:
            NotSupportedError: always.
        """
        raise NotSupportedError(
            explain(
                "there is no join() in a job of torch.distributed",
                action="give each rank as many batches, as DistributedSampler does",
            )
        )

    def _count_passes(self, count: bool) -> None:
        """As DDP, the forward decides what becomes of its backward."""
        if self._adding is not count:
            return
        self._adding = not count
        self._quiet.close()
        if self._adding:
            for optimizer in self.takeover.optimizers_of(self):
                self._quiet.enter_context(optimizer.no_sync())


def _check(hints: int, options: Mapping[str, Any]) -> None:
    group = options.get("process_group")
    everyone = group is None or group is torch.distributed.group.WORLD
    plain = {"process_group": None} if everyone else {}
    refused = [
        name
        for name, value in {**options, **plain}.items()
        if name not in _OF_BUCKETS and value not in (None, False)
    ]
    if refused or hints > 2:  # noqa: PLR2004  output_device and dim
        raise NotSupportedError(
            explain(
                "DistributedDataParallel was given what has no meaning here",
                observed=", ".join(sorted(refused)) or "more than three arguments without a name",
                action="leave it out, or run this script with torch's own (DEFT_DISABLE=1)",
            )
        )
