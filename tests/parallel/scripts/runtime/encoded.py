"""EncodedLink: all-reduces in wire formats, against sums computed by hand from the same codec."""

from __future__ import annotations

import os
import random
from collections.abc import Sequence
from typing import Any
from unittest import mock

import horovod.torch as stock
import torch

import deft_horovod.torch as hvd
from deft_horovod.runtime.extension import native
from deft_horovod.runtime.links.mesh import open_mesh, open_mesh_beside_horovod
from deft_horovod.runtime.ranks.agreement import Agreement
from tests.parallel.scripts import launched
from tests.parallel.scripts.patience import wait_patiently
from tests.parallel.scripts.reporting import cases_in, run_cases
from tests.parallel.scripts.runtime.second_link import open_second
from tests.parallel.scripts.two_links import reduction_of

_FORMATS = ("f32", "f16", "bf16", "e4m3", "int8", "int4")
_BLOCKS = {"e4m3": 256, "int8": 256, "int4": 64}
_SIZES = (1, 7, 255, 257, 1023, 65537)
_STEPS = 5
_WAIT_S = 20.0


def _values(rank: int, elements: int, step: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(1000 * elements + 10 * step + rank)
    return torch.randn(elements, generator=generator)


def _over(inner: Any, encodings: dict[str, Any], ranks: Sequence[int], mesh: Any = None) -> Any:
    rank, size = ranks.index(stock.rank()), len(ranks)
    return native.EncodedLink(inner, size, rank, 1 / size, encodings, mesh=mesh)


def _mesh(**process_set: Any) -> Any:
    reduction = reduction_of(**process_set)
    return open_mesh(reduction, "lo", _WAIT_S, Agreement(reduction.process_set, _WAIT_S))


def _link(encodings: dict[str, Any], ranks: Sequence[int], process_set_id: int = 0) -> Any:
    return _over(native.HorovodLink(process_set_id, average=False), encodings, ranks)


class _Reference:
    """What arrives of one message, step by step, by the codec alone. One part is summed by all
    ranks at once; several are summed each by its owner, and encoded once more."""

    def __init__(self, codec: str, ranks: Sequence[int], elements: int, owners: int) -> None:
        block = _BLOCKS.get(codec, 1)
        cuts = [elements * owner // owners // block * block for owner in range(owners)]
        self.parts = list(zip(cuts, [*cuts[1:], elements], strict=True))
        self.rests = [torch.zeros(elements) for _ in ranks]
        self.sum_rest = torch.zeros(elements)
        self._shape = codec, ranks, elements

    def average(self, step: int) -> torch.Tensor:
        """In the order of ranks; what rounding leaves becomes that of the next step."""
        codec, ranks, elements = self._shape
        values = [_values(rank, elements, step) for rank in ranks]
        out = torch.zeros(elements)
        for begin, end in self.parts:
            total = out[begin:end]
            for place, value in enumerate(values):
                rest = self.rests[place][begin:end]
                data = native.wire_encode(codec, value[begin:end], rest)
                if place == 0:
                    native.wire_decode(codec, data, end - begin, out=total)
                else:
                    native.wire_decode_add(codec, data, total)
            total *= torch.tensor(1 / len(ranks), dtype=torch.float32)
            if len(self.parts) > 1:
                data = native.wire_encode(codec, total, self.sum_rest[begin:end])
                native.wire_decode(codec, data, end - begin, out=total)
        return out


def _compare(
    ranks: Sequence[int], label: str, inner: Any, formats: Sequence[str], mesh: Any = None
) -> None:
    mine, size = ranks.index(stock.rank()), len(ranks)
    shapes = {
        f"{label}.{owners}.{codec}.{n}": (codec, n, owners)
        for owners in sorted({1, size})
        for codec in formats
        for n in _SIZES
    }
    encodings = {
        name: native.Encoding(codec, n, (), owners, mine if owners > 1 else 0)
        for name, (codec, n, owners) in shapes.items()
    }
    references = {
        name: _Reference(codec, ranks, n, owners) for name, (codec, n, owners) in shapes.items()
    }
    link = _over(inner, encodings, ranks, mesh)
    for step in range(_STEPS):
        outs = {name: _values(stock.rank(), n, step) for name, (_, n, _) in shapes.items()}
        names = list(shapes)
        if mesh is not None:  # its messages meet by their tags
            random.Random(100 * step + mine).shuffle(names)
        sent = {name: link.send(name, "all_reduce", outs[name], outs[name]) for name in names}
        for name, reference in references.items():
            assert (reason := sent[name].wait(_WAIT_S)) == "", f"{name}: {reason}"
            assert torch.equal(outs[name], reference.average(step)), f"{name}, step {step}"
    for name, (codec, _, owners) in shapes.items():
        if codec != "f32":
            reference, encoding = references[name], encodings[name]
            assert torch.equal(encoding.rest, reference.rests[mine]), name
            begin, end = reference.parts[mine if owners > 1 else 0]
            expected = reference.sum_rest[begin:end] if owners > 1 else torch.zeros(0)
            assert torch.equal(encoding.sum_rest, expected), name


def case_each_format_gives_the_sum_of_what_ranks_sent() -> None:
    _compare(list(range(stock.size())), "all", native.HorovodLink(average=False), _FORMATS)


def case_process_sets(sets: Sequence[Any] = ()) -> None:
    for number, process_set in enumerate(sets):
        if process_set.included():
            inner = native.HorovodLink(process_set.process_set_id, average=False)
            _compare(process_set.ranks, f"set{number}", inner, _FORMATS)
            mesh = _mesh(process_set=process_set)
            _compare(process_set.ranks, f"set{number}.mesh", inner, _FORMATS, mesh)
    stock.barrier()


def case_over_a_mesh_the_same_arrives_in_whatever_order_it_was_sent() -> None:
    inner = native.HorovodLink(average=False)
    _compare(list(range(stock.size())), "mesh", inner, _FORMATS, _mesh())


def case_over_the_second_link() -> None:
    """There messages that travel as they are meet by their order alone."""
    ranks, formats = list(range(stock.size())), ("f16", "int8", "int4")
    _compare(ranks, "second", open_second(), formats, _mesh())


def case_all_ranks_have_a_mesh_or_none() -> None:
    reduction = reduction_of()
    agreement = Agreement(reduction.process_set, _WAIT_S)

    def opened() -> Any:
        return open_mesh_beside_horovod(reduction, _WAIT_S, agreement)

    assert isinstance(opened(), native.MeshLink), "horovodrun names the interface"
    last = stock.rank() == stock.size() - 1
    for interface in ("", "nope7"):
        environ = {"HOROVOD_GLOO_IFACE": interface} if last else {}
        with mock.patch.dict(os.environ, environ):
            assert opened() is None, interface


def case_nothing_is_lost_but_what_waits_in_rests() -> None:
    """Over many steps the averages add up to what was produced, less the rests."""
    ranks, elements = list(range(stock.size())), 1000
    for codec in _FORMATS[1:]:
        for owners in (1, stock.size()):
            mine = stock.rank() if owners > 1 else 0
            encoding, name = native.Encoding(codec, elements, (), owners, mine), f"{codec}.{owners}"
            link = _link({name: encoding}, ranks)
            applied, produced = (torch.zeros(elements, dtype=torch.float64) for _ in range(2))
            for step in range(200):
                out = _values(stock.rank(), elements, step)
                given = torch.stack([_values(r, elements, step) for r in ranks]).double()
                produced += given.mean(0)
                assert link.send(name, "all_reduce", out, out).wait(_WAIT_S) == ""
                applied += out
            rests = stock.allgather(encoding.rest.reshape(1, -1), name=f"rest.{name}")
            applied += rests.double().mean(0)
            if owners > 1:
                applied += stock.allgather(encoding.sum_rest, name=f"sums.{name}").double()
            torch.testing.assert_close(applied, produced, rtol=0, atol=1e-3)


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
    ranks = range(stock.size())
    for owners in (1, stock.size()):
        mine = stock.rank() if owners > 1 else 0
        link = _link({f"inf.{owners}": native.Encoding("int8", 2048, (), owners, mine)}, ranks)
        out = torch.ones(2048)
        if stock.rank() == 0:
            out[3] = float("inf")
        assert link.send(f"inf.{owners}", "all_reduce", out, out).wait(_WAIT_S) == ""
        assert not torch.isfinite(out[3])
        assert torch.isfinite(out[256:]).all()


def case_a_rank_in_join() -> None:
    """Two ranks: it gives zeros, as to all all-reduces. More: Horovod refuses new names. (One that
    it has in its cache ends the process of the rank that waits, with stock Horovod's own calls,
    too.)"""
    size, last = stock.size(), stock.size() - 1
    if stock.rank() != last:
        for owners in sorted({1, size}) if size > 2 else [1]:
            mine = stock.rank() if owners > 1 else 0
            encoding, name = native.Encoding("int8", 1000, (), owners, mine), f"joined.{owners}"
            out = torch.full((1000,), 2.0)
            link = _link({name: encoding}, range(size))
            reason = link.send(name, "all_reduce", out, out).wait(_WAIT_S)
            if size == 2:
                assert reason == ""
                assert torch.equal(out, torch.ones(1000))
            else:
                assert "not supported with Join" in reason, reason
    stock.join()


def main() -> None:
    size = launched.size()
    sets = [stock.ProcessSet([0]), stock.ProcessSet(list(range(1, size)))]
    hvd.init(process_sets=sets)
    torch.set_num_threads(1)
    wait_patiently()
    cases = cases_in(globals())
    run_cases({**cases, "process_sets": lambda: case_process_sets(sets)})


if __name__ == "__main__":
    main()
