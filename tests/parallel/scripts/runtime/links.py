"""HorovodLink: messages of ours through Horovod's queue, against sums computed by hand."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

import horovod.torch as stock
import torch

import deft_horovod.torch as hvd
from deft_horovod.runtime.extension import native
from tests.parallel.scripts import launched
from tests.parallel.scripts.patience import wait_patiently
from tests.parallel.scripts.reporting import cases_in, run_cases

_SIZES = (1, 2, 3, 7, 1023, 65537)
_WAIT_S = 20.0
_DTYPES = (torch.float32, torch.float64, torch.float16)


def _input(rank: int, elements: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """Small whole numbers: sums of them are exact in every dtype and order."""
    generator = torch.Generator().manual_seed(100 * elements + rank)
    return torch.randint(-8, 9, (elements,), generator=generator).to(dtype)


def _sum(ranks: Sequence[int], elements: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.stack([_input(rank, elements, dtype) for rank in ranks]).sum(0)


def _all() -> list[int]:
    return list(range(stock.size()))


def _expect(ticket: Any, output: torch.Tensor, expected: torch.Tensor, what: str) -> None:
    reason = ticket.wait(_WAIT_S)
    assert reason == "", f"{what}: {reason}"
    assert torch.equal(output, expected), f"{what}: {output[:8]} is not {expected[:8]}"


def case_all_reduce() -> None:
    link = native.HorovodLink(average=False)
    for dtype in _DTYPES:
        for elements in _SIZES:
            what = f"{dtype}, {elements} elements"
            mine, out = _input(stock.rank(), elements, dtype), torch.empty(elements, dtype=dtype)
            ticket = link.send(f"sum.{what}", "all_reduce", mine, out)
            _expect(ticket, out, _sum(_all(), elements, dtype), what)
            assert torch.equal(mine, _input(stock.rank(), elements, dtype)), "the input changed"


def case_all_reduce_in_place() -> None:
    link = native.HorovodLink(average=False)
    for repeat in range(3):  # the same name again: Horovod answers from its cache
        for elements in _SIZES:
            both = _input(stock.rank(), elements)
            ticket = link.send(f"place.{elements}", "all_reduce", both, both)
            _expect(ticket, both, _sum(_all(), elements), f"{elements}, {repeat}")


def case_average_and_scales() -> None:
    size = stock.size()
    for average, pre, post in ((True, 1.0, 1.0), (True, 0.5, 4.0), (False, 0.25, 8.0)):
        link = native.HorovodLink(average=average, prescale=pre, postscale=post)
        out = torch.empty(64, dtype=torch.float64)
        mine = _input(stock.rank(), 64, torch.float64)
        ticket = link.send(f"scale.{average}.{pre}", "all_reduce", mine, out)
        assert ticket.wait(_WAIT_S) == ""
        expected = _sum(_all(), 64, torch.float64) * pre * post / (size if average else 1)
        torch.testing.assert_close(out, expected, rtol=1e-15, atol=0)


def case_reduce_scatter() -> None:
    """Each rank gets its share; the first ranks get one element more where it does not divide."""
    link = native.HorovodLink(average=False)
    for elements in (2 * stock.size(), *_SIZES[2:]):
        begin, length = native.shard_of(elements, stock.rank(), stock.size())
        mine, out = _input(stock.rank(), elements), torch.empty(length)
        ticket = link.send(f"scatter.{elements}", "reduce_scatter", mine, out)
        expected = _sum(_all(), elements)[begin : begin + length]
        _expect(ticket, out, expected, f"{elements} elements")


def case_all_gather() -> None:
    link = native.HorovodLink()
    for elements in (2 * stock.size(), *_SIZES[2:]):
        whole = _input(5, elements)
        begin, length = native.shard_of(elements, stock.rank(), stock.size())
        out = torch.full((elements,), float("nan"))
        ticket = link.send(
            f"gather.{elements}", "all_gather", whole[begin : begin + length].clone(), out
        )
        _expect(ticket, out, whole, f"{elements} elements")


def case_all_gather_of_unlike_parts() -> None:
    """The last rank has none."""
    link = native.HorovodLink()
    counts = [5 * rank + 1 for rank in _all()[:-1]] + [0]
    mine = _input(stock.rank(), counts[stock.rank()])
    out = torch.empty(sum(counts))
    ticket = link.send("unlike", "all_gather", mine, out, from_ranks=counts)
    _expect(ticket, out, torch.cat([_input(r, n) for r, n in enumerate(counts)]), "unlike parts")


def _exchanged(link: Any, parts: Callable[[int, int], int], name: str) -> None:
    """`parts`: how many elements go from one rank to another."""
    me = stock.rank()
    to, of = [parts(me, r) for r in _all()], [parts(r, me) for r in _all()]
    mine, out = _input(me, sum(to)), torch.full((sum(of),), float("nan"))
    ticket = link.send(name, "all_to_all", mine, out, to_ranks=to, from_ranks=of)
    expected = []
    for rank in _all():
        sent = [parts(rank, r) for r in _all()]
        expected.append(_input(rank, sum(sent)).split(sent)[me])
    _expect(ticket, out, torch.cat(expected), name)


def case_all_to_all() -> None:
    link = native.HorovodLink()
    for elements in _SIZES:
        for repeat in range(2):
            _exchanged(link, lambda _a, _b, n=elements: n, f"equal.{elements}")
            _exchanged(link, lambda a, b, n=elements: a * n + b, f"unlike.{elements}")
            _exchanged(link, lambda a, b, n=elements: n * (a != b), f"others.{elements}.{repeat}")
    mine = _input(stock.rank(), 4 * stock.size())
    out = torch.empty_like(mine)
    ticket = link.send("without counts", "all_to_all", mine, out)
    expected = [_input(r, 4 * stock.size()).split(4)[stock.rank()] for r in _all()]
    _expect(ticket, out, torch.cat(expected), "without counts")


def case_scatter_then_gather_is_all_reduce_in_place() -> None:
    """As a sharded all-reduce does it: each rank's shard lies inside the buffer of all."""
    link = native.HorovodLink(average=False)
    for elements in (2 * stock.size(), *_SIZES[2:]):
        buffer = _input(stock.rank(), elements)
        begin, length = native.shard_of(elements, stock.rank(), stock.size())
        shard = buffer[begin : begin + length]
        first = link.send(f"rs.{elements}", "reduce_scatter", buffer, shard)
        assert first.wait(_WAIT_S) == ""
        second = link.send(f"ag.{elements}", "all_gather", shard, buffer)
        _expect(second, buffer, _sum(_all(), elements), f"{elements} elements")


def case_broadcast() -> None:
    link = native.HorovodLink()
    for root in _all():
        for elements in _SIZES:
            mine = _input(stock.rank(), elements)
            out = torch.empty(elements)
            ticket = link.send(f"broadcast.{root}.{elements}", "broadcast", mine, out, root)
            _expect(ticket, out, _input(root, elements), f"root {root}, {elements} elements")
            ticket = link.send(f"broadcast.{root}.{elements}.in", "broadcast", mine, mine, root)
            _expect(ticket, mine, _input(root, elements), f"root {root}, in place")


def case_many_in_flight_in_another_order_on_each_rank() -> None:
    link = native.HorovodLink(average=False)
    order = list(range(60))
    random.Random(stock.rank()).shuffle(order)
    waiting = {}
    for number in order:
        elements = 10 + number * 37
        out = torch.empty(elements)
        waiting[number] = (
            link.send(f"many.{number}", "all_reduce", _input(stock.rank(), elements), out),
            out,
            elements,
        )
    for number, (ticket, out, elements) in sorted(waiting.items()):
        _expect(ticket, out, _sum(_all(), elements), f"message {number}")


def case_process_set(sets: Sequence[Any] = ()) -> None:
    for number, process_set in enumerate(sets):
        if not process_set.included():
            continue
        ranks = process_set.ranks
        link = native.HorovodLink(process_set_id=process_set.process_set_id, average=True)
        out = torch.empty(101)
        ticket = link.send(f"set.{number}", "all_reduce", _input(stock.rank(), 101), out)
        _expect(ticket, out, _sum(ranks, 101) / len(ranks), f"ranks {ranks}")
        copied = torch.empty(11)
        ticket = link.send(
            f"set.b.{number}", "broadcast", _input(stock.rank(), 11), copied, ranks[-1]
        )
        _expect(ticket, copied, _input(ranks[-1], 11), f"broadcast in ranks {ranks}")
    stock.barrier()


def _reason(send: Callable[[], Any]) -> str:
    """Why a message failed, whether at once or later."""
    try:
        return str(send().wait(_WAIT_S))
    except Exception as error:  # noqa: BLE001  (either way is a refusal)
        return str(error)


def case_another_shape_on_a_rank_is_an_error_on_all() -> None:
    link = native.HorovodLink()
    wrong = torch.ones(5 + stock.rank())
    reason = _reason(lambda: link.send("shapes", "all_reduce", wrong, wrong))
    assert "shape" in reason.lower(), reason


def case_another_dtype_on_a_rank_is_an_error_on_all() -> None:
    link = native.HorovodLink()
    wrong = torch.ones(5, dtype=torch.float32 if stock.rank() == 0 else torch.float64)
    reason = _reason(lambda: link.send("dtypes", "all_reduce", wrong, wrong))
    assert "type" in reason.lower(), reason


def case_a_name_twice_in_flight_is_an_error() -> None:
    link = native.HorovodLink(average=False)
    first, second = torch.ones(3), torch.ones(3)
    if stock.rank() == 0:
        ticket = link.send("twice", "all_reduce", first, first)
        reason = _reason(lambda: link.send("twice", "all_reduce", second, second))
        assert "same name" in reason.lower(), reason
        stock.barrier()
    else:
        stock.barrier()
        ticket = link.send("twice", "all_reduce", first, first)
    _expect(ticket, first, torch.full((3,), float(stock.size())), "the first of that name")


def case_an_unknown_process_set_is_an_error() -> None:
    link = native.HorovodLink(process_set_id=99)
    reason = _reason(lambda: link.send("nowhere", "all_reduce", torch.ones(2), torch.ones(2)))
    assert "process set" in reason.lower(), reason


def case_memory_outlives_the_sender() -> None:
    """Nobody but the message holds the buffer or the ticket."""
    for number in range(20):
        link = native.HorovodLink(average=False)
        link.send(f"gone.{number}", "all_reduce", torch.ones(5000), torch.empty(5000))
        del link
    stock.barrier()


def main() -> None:
    size = launched.size()
    ranks = {2: [[0], [1]], 3: [[0, 2], [1]]}[size]
    sets = [stock.ProcessSet(some) for some in ranks]
    hvd.init(process_sets=sets)
    torch.set_num_threads(1)
    wait_patiently()
    cases = cases_in(globals())
    run_cases({**cases, "process_set": lambda: case_process_set(sets)})


if __name__ == "__main__":
    main()
