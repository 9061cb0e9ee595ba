"""EncodedLink: all-reduces in wire formats, against sums computed by hand from the same codec."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import horovod.torch as stock
import torch

import deft_horovod.torch as hvd
from deft_horovod.runtime.extension import native
from tests.parallel.scripts.patience import wait_patiently
from tests.parallel.scripts.reporting import cases_in, run_cases

_FORMATS = ("f32", "f16", "bf16", "e4m3", "int8", "int4")
_SIZES = (1, 7, 255, 257, 1023, 65537)
_STEPS = 5
_WAIT_S = 20.0


def _values(rank: int, elements: int, step: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(1000 * elements + 10 * step + rank)
    return torch.randn(elements, generator=generator)


def _link(encodings: dict[str, Any], ranks: Sequence[int], process_set_id: int = 0) -> Any:
    inner = native.HorovodLink(process_set_id=process_set_id, average=False)
    return native.EncodedLink(inner, len(ranks), 1 / len(ranks), encodings)


def _average(
    codec: str, ranks: Sequence[int], elements: int, step: int, rests: Sequence[torch.Tensor]
) -> torch.Tensor:
    """In the order of ranks; their rests become those of the next step."""
    total = torch.zeros(elements)
    for place, rank in enumerate(ranks):
        data = native.wire_encode(codec, _values(rank, elements, step), rests[place])
        if place == 0:
            native.wire_decode(codec, data, elements, out=total)
        else:
            native.wire_decode_add(codec, data, total)
    return total * torch.tensor(1 / len(ranks), dtype=torch.float32)


def _compare(ranks: Sequence[int], label: str, process_set_id: int = 0) -> None:
    shapes = {f"{label}.{codec}.{n}": (codec, n) for codec in _FORMATS for n in _SIZES}
    encodings = {name: native.Encoding(*shape) for name, shape in shapes.items()}
    link = _link(encodings, ranks, process_set_id)
    rests = {name: [torch.zeros(n) for _ in ranks] for name, (_, n) in shapes.items()}
    for step in range(_STEPS):
        outs = {name: _values(stock.rank(), n, step) for name, (_, n) in shapes.items()}
        sent = {name: link.send(name, "all_reduce", out, out) for name, out in outs.items()}
        for name, (codec, elements) in shapes.items():
            assert (reason := sent[name].wait(_WAIT_S)) == "", f"{name}: {reason}"
            expected = _average(codec, ranks, elements, step, rests[name])
            assert torch.equal(outs[name], expected), f"{name}, step {step}"
    mine = ranks.index(stock.rank())
    for name, (codec, _) in shapes.items():
        if codec != "f32":
            assert torch.equal(encodings[name].rest, rests[name][mine]), name


def case_each_format_gives_the_sum_of_what_ranks_sent() -> None:
    _compare(list(range(stock.size())), "all")


def case_process_sets(sets: Sequence[Any] = ()) -> None:
    for number, process_set in enumerate(sets):
        if process_set.included():
            _compare(process_set.ranks, f"set{number}", process_set.process_set_id)
    stock.barrier()


def case_nothing_is_lost_but_what_waits_in_rests() -> None:
    """Over many steps the averages add up to what was produced, less the rests."""
    ranks, elements = list(range(stock.size())), 1000
    for codec in _FORMATS[1:]:
        encoding = native.Encoding(codec, elements)
        link = _link({f"kept.{codec}": encoding}, ranks)
        applied, produced = (torch.zeros(elements, dtype=torch.float64) for _ in range(2))
        for step in range(200):
            out = _values(stock.rank(), elements, step)
            produced += torch.stack([_values(r, elements, step) for r in ranks]).double().mean(0)
            assert link.send(f"kept.{codec}", "all_reduce", out, out).wait(_WAIT_S) == ""
            applied += out
        rests = stock.allgather(encoding.rest.reshape(1, -1), name=f"rest.{codec}").double().mean(0)
        torch.testing.assert_close(applied + rests, produced, rtol=0, atol=1e-3)


def case_headers_travel_as_they_are() -> None:
    ranks = list(range(stock.size()))
    link = _link({"headed": native.Encoding("int4", 600, [(0, 4), (300, 4)])}, ranks)
    out = torch.full((600,), 1e-3)
    out[0] = out[300] = float(stock.rank())
    out[5] = 1e3
    assert link.send("headed", "all_reduce", out, out).wait(_WAIT_S) == ""
    mean = torch.tensor(float(sum(ranks))) * torch.tensor(1 / len(ranks), dtype=torch.float32)
    assert out[0] == out[300] == mean
    assert out[6] == 0.0, "beside a large value little is left of a small one"


def case_what_is_not_finite_arrives_on_all_ranks() -> None:
    link = _link({"inf": native.Encoding("int8", 512)}, range(stock.size()))
    out = torch.ones(512)
    if stock.rank() == 0:
        out[3] = float("inf")
    assert link.send("inf", "all_reduce", out, out).wait(_WAIT_S) == ""
    assert not torch.isfinite(out[3])
    assert torch.isfinite(out[256:]).all()


def main() -> None:
    size = int(os.environ["HOROVOD_SIZE"])
    sets = [stock.ProcessSet([0]), stock.ProcessSet(list(range(1, size)))]
    hvd.init(process_sets=sets)
    torch.set_num_threads(1)
    wait_patiently()
    cases = cases_in(globals())
    run_cases({**cases, "process_sets": lambda: case_process_sets(sets)})


if __name__ == "__main__":
    main()
