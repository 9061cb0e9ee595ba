"""What training in wire formats is held against: the same in plain torch, and loss scalers."""

from __future__ import annotations

import copy
from collections.abc import Sequence

import horovod.torch as stock
import torch
from torch.nn import functional as F  # noqa: N812

from deft_horovod.runtime.extension import native
from deft_horovod.runtime.reduce.in_flight import KEY
from tests.parallel.scripts.device import DEVICE
from tests.parallel.scripts.format_jobs import Job
from tests.parallel.scripts.late_plans import Make
from tests.parallel.scripts.training import Data, loss_of, mlp
from tests.parallel.scripts.twins import stock_of

SUMMED_IN_ORDER = 2  # ranks up to which every rank sums the messages of all
# A step in which the last rank has a loss, or one gradient, that is not finite.
ALL_INFINITE, ONE_INFINITE = 3, 6
INFINITE, BLOCK = (5, 7), 256  # which element of the matrix of wide(), and what shares its scale


class Reference:
    """All ranks in one process."""

    def __init__(self, wire_format: str, make: Make) -> None:
        self.model = mlp()
        self.optimizer = make(self.model)
        self.format = wire_format
        self.data = [Data(rank=rank) for rank in range(stock.size())]
        self.rests: dict[tuple[int, int], torch.Tensor] = {}

    def step(self) -> None:
        gradients: list[list[torch.Tensor]] = []
        for data in self.data:
            self.optimizer.zero_grad()
            loss_of(self.model, data.next()).backward()
            gradients.append([p.grad.clone().flatten() for p in self.model.parameters()])
        for i, p in enumerate(self.model.parameters()):
            mine = [of_rank[i] for of_rank in gradients]
            total = self._sum(i, mine)
            factor = torch.tensor(1 / len(mine), dtype=torch.float32)
            p.grad = (total * factor).reshape(p.shape)
        self.optimizer.step()

    def _sum(self, parameter: int, gradients: list[torch.Tensor]) -> torch.Tensor:
        total = torch.zeros_like(gradients[0])
        for rank, gradient in enumerate(gradients):
            rest = self.rests.setdefault((parameter, rank), torch.zeros_like(gradient))
            message = native.wire_encode(self.format, gradient, rest)
            if rank == 0:
                native.wire_decode(self.format, message, len(total), out=total)
            else:
                native.wire_decode_add(self.format, message, total)
        return total


def padded(rest: torch.Tensor, elements: int) -> torch.Tensor:
    return torch.cat([rest, rest.new_zeros(elements - len(rest))])


def difference(pairs: Sequence[tuple[torch.Tensor, torch.Tensor]]) -> str:
    """The first values that are not equal, of each pair; empty: all are."""
    others = [(ours[ours != theirs], theirs[ours != theirs]) for ours, theirs in pairs]
    return "; ".join(f"{a[:4]} is not {b[:4]}, {len(a)} in all" for a, b in others if len(a))


def mixed_precision_loss(job: Job, step: int) -> torch.Tensor:
    inputs, targets = job.data.next()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        outputs = job.model(inputs)
    loss = F.mse_loss(outputs.float(), targets)
    if stock.rank() == stock.size() - 1:
        infinity = float("inf")
        if step == ALL_INFINITE:
            loss = loss * infinity
        if step == ONE_INFINITE:
            loss = loss + job.model.get_parameter("2.weight")[INFINITE] * infinity
    return loss


def rests_of(job: Job) -> tuple[dict[str, torch.Tensor], dict[str, torch.Tensor]]:
    """Of gradients, and of sums."""
    state = job.optimizer.state_dict()[KEY]["rests"]
    nothing = torch.zeros(0)
    values, sums = (
        {n: padded(state[key].get(n, nothing), p.numel()) for n, p in job.model.named_parameters()}
        for key in ("values", "sums")
    )
    return values, sums


def skip_one(job: Job, scaler: torch.amp.GradScaler, step: int) -> None:
    """Of what is not finite the rests stay, and the others are those of the codec."""
    (values, sums), scale = rests_of(job), scaler.get_scale()
    assert bool(sums["2.weight"].any()) == (stock.size() > SUMMED_IN_ORDER)
    before = copy.deepcopy(job.model.state_dict())
    job.optimizer.zero_grad()
    scaler.scale(mixed_precision_loss(job, step)).backward()
    gradients = {n: p.grad.flatten().clone() for n, p in job.model.named_parameters()}
    expected = {name: rest.clone() for name, rest in values.items()}
    for name, gradient in gradients.items():
        native.wire_encode("int8", gradient, expected[name])
    scaler.step(job.optimizer)
    scaler.update()
    assert scaler.get_scale() == scale / 2
    assert all(torch.equal(p, before[n]) for n, p in job.model.state_dict().items())
    values_now, sums_now = rests_of(job)
    assert all(torch.equal(values_now[name], expected[name]) for name in values)
    if step == ALL_INFINITE:
        for name, gradient in gradients.items():
            assert torch.equal(sums_now[name], sums[name]), f"sums of {name}"
            if stock.rank() == stock.size() - 1:
                assert not gradient.isfinite().any()
                assert torch.equal(values_now[name], values[name]), name
        return
    flat = INFINITE[0] * 640 + INFINITE[1]
    block = slice(flat // BLOCK * BLOCK, flat // BLOCK * BLOCK + BLOCK)
    assert torch.equal(sums_now["2.weight"][block], sums["2.weight"][block])
    if stock.rank() == stock.size() - 1:
        assert not gradients["2.weight"].isfinite().all()
        assert torch.equal(values_now["2.weight"][block], values["2.weight"][block])


class Halves:
    """The same gradients in a plan with f16, and by stock Horovod with its compression."""

    def __init__(self) -> None:
        self.job, self.model = Job("f16"), mlp()
        self.stock = stock_of(self.model, compression=stock.Compression.fp16)

    def step(self, gradients: Sequence[torch.Tensor]) -> list[tuple[torch.Tensor, torch.Tensor]]:
        """The averages of both, by parameter."""
        found = []
        for model, optimizer in ((self.job.model, self.job.optimizer), (self.model, self.stock)):
            optimizer.zero_grad()
            parts = [(p * g).sum() for p, g in zip(model.parameters(), gradients, strict=True)]
            torch.stack(parts).sum().backward()
            optimizer.synchronize()
            found.append([p.grad.clone() for p in model.parameters()])
            with optimizer.skip_synchronize():
                optimizer.step()
        return list(zip(*found, strict=True))

    def clearrests_of(self) -> None:
        state = self.job.optimizer.state_dict()
        assert any(rest.any() for rest in state.pop(KEY)["rests"]["values"].values())
        self.job.optimizer.load_state_dict(state)

    def normal(self, draw: torch.Generator) -> list[torch.Tensor]:
        shapes = [p.shape for p in self.model.parameters()]
        drawn = [torch.randn(shape, generator=draw).to(DEVICE) for shape in shapes]
        if DEVICE.type == "cuda" and stock.nccl_built():
            # NCCL halves values of 16 bits before it adds them up, and half of these is denormal.
            return [values * (values.abs() >= 2**-13) for values in drawn]
        return drawn
