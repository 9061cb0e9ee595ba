"""The second link: equal to Horovod's, at the same time as Horovod's, and opened by all or none."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any
from unittest import mock

import horovod.torch as stock
import torch
import torch.distributed as dist

import deft_horovod.torch as hvd
from deft_horovod.runtime.extension import native
from deft_horovod.runtime.links import rendezvous, second_link
from deft_horovod.runtime.ranks.agreement import Agreement
from deft_horovod.runtime.reduce.planned import open_link, staged
from tests.parallel.scripts import launched
from tests.parallel.scripts.device import DEVICE
from tests.parallel.scripts.failures.failing import caught
from tests.parallel.scripts.patience import wait_patiently
from tests.parallel.scripts.reporting import cases_in, chosen, run_cases
from tests.parallel.scripts.training import (
    Data,
    assert_equal_models,
    digest,
    equal_on_all_ranks,
    loss_of,
    make_model,
)
from tests.parallel.scripts.twins import stock_of
from tests.parallel.scripts.two_links import Trainer, reduction_of

_SIZES = (1, 2, 3, 7, 1023, 65537, 300_001)
_DTYPES = (torch.float32, torch.float64, torch.float16)
_WAIT_S = 20.0
_DEADLINE_S = 8.0


def open_second(reduction: Any = None, interface: str = "lo") -> Any:
    reduction = reduction_of() if reduction is None else reduction
    agreement = Agreement(reduction.process_set, _DEADLINE_S)
    return second_link.open_second_link(reduction, interface, _DEADLINE_S, agreement)


def _values(elements: int, dtype: torch.dtype, seed: int = 0) -> torch.Tensor:
    """Of many magnitudes, down to the smallest of 16 bits. Sums of them stay below 1: the Gloo in
    Horovod 0.28.1 takes some sums of 16 bits for what stood there before (its float16 compares
    bits with the value of an integer), the smallest of which is 1.0."""
    generator = torch.Generator().manual_seed(seed + 1000 * elements + stock.rank())
    exponents = torch.randint(-25, -4, (elements,), generator=generator, dtype=torch.float64)
    values = torch.randn(elements, generator=generator, dtype=torch.float64) * 2.0**exponents
    return values.to(dtype)


def _same(ours: torch.Tensor, theirs: torch.Tensor, what: str) -> None:
    """Bit for bit where two numbers are added; more may be added in another order."""
    if stock.size() == 2:
        assert digest([ours]) == digest([theirs]), f"{what}: {ours[:8]} is not {theirs[:8]}"
    else:
        precision = torch.finfo(ours.dtype).eps
        largest = float(theirs.abs().max())
        torch.testing.assert_close(ours, theirs, rtol=0, atol=8 * precision * largest)


def _send(link: Any, name: str, values: torch.Tensor) -> tuple[Any, torch.Tensor]:
    output = torch.full_like(values, float("nan"))
    return link.send(name, "all_reduce", values, output), output


def case_equal_to_the_link_of_horovod() -> None:
    for op, predivide in ((stock.Average, 1.0), (stock.Sum, 1.0), (stock.Average, 3.0)):
        reduction = reduction_of(op=op, predivide=predivide)
        pair = open_link(reduction), open_second(reduction)
        for dtype in _DTYPES:
            for elements in _SIZES:
                what = f"{op}, {predivide}, {dtype}, {elements} elements"
                values = _values(elements, dtype)
                kept = values.clone()
                results = []
                for link in pair:
                    ticket, output = _send(link, what, values)
                    assert ticket.wait(_WAIT_S) == "", what
                    results.append(output)
                _same(results[1], results[0], what)
                assert torch.equal(values, kept), "the input changed"
                ticket = pair[1].send(what, "all_reduce", values, values)
                assert ticket.wait(_WAIT_S) == ""
                assert torch.equal(values, results[1]), f"{what}, in place"


def case_all_gather_and_broadcast_as_horovod() -> None:
    pair = open_link(reduction_of()), open_second()
    for elements in _SIZES[3:]:
        begin, length = native.shard_of(elements, stock.rank(), stock.size())
        mine = _values(elements, torch.float32)[begin : begin + length].clone()
        for op, values in (("all_gather", mine), ("broadcast", _values(elements, torch.float64))):
            outputs = []
            for link in pair:
                output = torch.empty(elements, dtype=values.dtype)
                name = f"{op}.{elements}"
                root = stock.size() - 1
                assert link.send(name, op, values, output, root).wait(_WAIT_S) == "", name
                outputs.append(output)
            assert torch.equal(*outputs), name


def case_both_links_in_flight_at_once() -> None:
    """The last to be sent is on its way before anybody waits for the first."""
    pair = open_link(reduction_of()), open_second()
    for round_number in range(3):
        values = [_values(100_000 + 7 * i, torch.float32, round_number) for i in range(20)]
        sent = [[_send(link, f"both.{i}", v) for i, v in enumerate(values)] for link in pair]
        for i, (one, other) in enumerate(zip(*sent, strict=True)):
            assert one[0].wait(_WAIT_S) == ""
            assert other[0].wait(_WAIT_S) == ""
            _same(other[1], one[1], f"message {i}, round {round_number}")


def _train(kind: str, steps: int = 12) -> None:
    model, reference = make_model(kind), make_model(kind)
    ours = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    theirs = stock_of(reference)
    for group in theirs.param_groups:
        group.update(lr=0.05, momentum=0.9, weight_decay=0.0)
    links = [open_link(reduction_of(), [DEVICE]), staged(open_second(), [DEVICE])]
    trainer = Trainer(model, links, f"two.{kind}")
    data = Data(kind)
    for _ in range(steps):
        batch = data.next()
        for optimizer in (ours, theirs):
            optimizer.zero_grad()
        trainer.backward(loss_of(model, batch))
        ours.step()
        loss_of(reference, batch).backward()
        theirs.step()
        if stock.size() == 2:
            assert_equal_models(model, reference)
    for a, b in zip(model.parameters(), reference.parameters(), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-3, atol=1e-4)
    assert equal_on_all_ranks(model.parameters()), "replicas differ"
    for stats, expected in zip(trainer.session.link_stats(), trainer.messages, strict=True):
        assert expected > 0
        assert stats.messages == steps * expected


def case_training_on_both_links() -> None:
    _train("mlp")


def case_training_on_both_links_in_three_precisions() -> None:
    _train("mixed")


def case_opened_again_and_again() -> None:
    """As when a plan is replaced: the next one is there before the last one goes, and after."""
    last = open_second()
    for number in range(5):
        link = open_second()
        for one in (last, link):
            ticket, output = _send(one, f"again.{number}", torch.ones(5))
            assert ticket.wait(_WAIT_S) == ""
            assert torch.equal(output, torch.ones(5))
        last = link if number % 2 else None
        del link, one
        last = last or open_second()


def case_only_some_of_the_ranks(sets: Sequence[Any] = ()) -> None:
    for number, process_set in enumerate(sets):
        if not process_set.included():
            continue
        reduction = reduction_of(process_set=process_set)
        link, root = open_second(reduction), process_set.ranks[-1]
        ticket, output = _send(link, f"set.{number}", torch.full((11,), float(stock.rank())))
        assert ticket.wait(_WAIT_S) == ""
        mean = sum(process_set.ranks) / len(process_set.ranks)
        assert torch.equal(output, torch.full((11,), mean))
        value = torch.full((3,), float(stock.rank()))
        assert link.send(f"root.{number}", "broadcast", value, value, root).wait(_WAIT_S) == ""
        assert torch.equal(value, torch.full((3,), float(root)))
    stock.barrier()


def case_beside_a_default_group_of_the_users() -> None:
    store = [None]
    if stock.rank() == 0:
        store[0] = dist.TCPStore("127.0.0.1", 0, None, True, wait_for_workers=False)
    port = stock.broadcast_object(store[0].port if store[0] else None, 0, name="port")
    if stock.rank() > 0:
        store[0] = dist.TCPStore("127.0.0.1", port, None, False, wait_for_workers=False)
    dist.init_process_group("gloo", store=store[0], rank=stock.rank(), world_size=stock.size())
    link = open_second()
    tickets = []
    for number in range(20):
        tickets.append(_send(link, f"users.{number}", torch.ones(1000)))
        theirs = torch.ones(1000)
        dist.all_reduce(theirs)
        assert torch.equal(theirs, torch.full((1000,), float(stock.size())))
    for ticket, output in tickets:
        assert ticket.wait(_WAIT_S) == ""
        assert torch.equal(output, torch.ones(1000))
    stock.barrier()
    dist.destroy_process_group()


def _refusal(action: Callable[[], Any], *words: str, kinds: Sequence[str] = ("DeftError",)) -> None:
    """The same error on all ranks, within the deadline; and the job can go on."""
    error = caught(action)
    for kind in kinds:
        assert kind in error["kinds"], error
    for word in words:
        assert word in error["message"], error
    assert error["seconds"] < _DEADLINE_S, error
    assert len(set(stock.allgather_object(error["message"]))) == 1
    ticket, output = _send(open_second(), "after", torch.ones(3))
    assert ticket.wait(_WAIT_S) == ""
    assert torch.equal(output, torch.ones(3))


def case_an_interface_that_is_nowhere() -> None:
    every = [f"rank {rank}: there is no such interface" for rank in range(stock.size())]
    kinds = ("ConfigError", "ValueError")
    _refusal(lambda: open_second(interface="nope7"), "'nope7'", "lo (127", *every, kinds=kinds)


def case_an_interface_that_one_rank_has_not() -> None:
    last = stock.size() - 1
    real = rendezvous.address_of

    def addresses(interface: str) -> str:
        return real("nope7" if stock.rank() == last else interface)

    with mock.patch.object(rendezvous, "address_of", addresses):
        error = caught(open_second)
    assert error["type"] == "ConfigError", error
    assert f"observed: rank {last}: there is no such interface" in error["message"]
    assert "rank 0:" not in error["message"]
    assert error["seconds"] < _DEADLINE_S


class _Unconnectable:
    """A group that never gets as far as its peers."""

    @staticmethod
    def fail(*_: Any) -> Any:
        raise RuntimeError("no route to host\nand a stack of frames")


def case_a_rank_that_cannot_connect() -> None:
    failing = stock.rank() == 1

    def attempt() -> Any:
        if not failing:
            return open_second()
        with mock.patch.object(rendezvous.Rendezvous, "_connect", _Unconnectable.fail):
            return open_second()

    _refusal(attempt, "rank 1: no route to host\n", "interface 'lo'")


def case_the_deciding_rank_that_cannot_serve() -> None:
    with mock.patch.object(rendezvous, "_serve", _Unconnectable.fail):
        attempt = caught(open_second)
    assert "rank 0: no route to host" in attempt["message"], attempt
    assert attempt["seconds"] < _DEADLINE_S
    _refusal(lambda: open_second(interface=""), "''", kinds=("ConfigError",))


def case_a_torch_without_gloo() -> None:
    without = stock.rank() == 0
    with mock.patch.object(dist, "is_gloo_available", return_value=not without):
        error = caught(open_second)
    assert error["type"] == "NotSupportedError", error
    assert "rank 0: this torch was built without Gloo" in error["message"]


def case_a_rank_that_never_opens_it() -> None:
    """The last case: what the others have asked stays in Horovod's queue, and nobody answers."""
    error = {"type": None}
    if stock.rank() > 0:
        error = caught(open_second)
    time.sleep(_DEADLINE_S + 4 - error.get("seconds", 0.0))  # who ends, ends Horovod for all
    if stock.rank() > 0:
        assert error["type"] == "WaitTimeoutError", error
        assert _DEADLINE_S <= error["seconds"] < _DEADLINE_S + 2


def main() -> None:
    pairs = {2: [[0], [1]], 4: [[0, 2], [1, 3]]}[launched.size()]
    sets = [stock.ProcessSet(ranks) for ranks in pairs]
    hvd.init(process_sets=sets)
    torch.set_num_threads(1)
    wait_patiently()
    cases = cases_in(globals())
    with_sets = {"only_some_of_the_ranks": lambda: case_only_some_of_the_ranks(sets)}
    run_cases(chosen({**cases, **with_sets}))


if __name__ == "__main__":
    main()
