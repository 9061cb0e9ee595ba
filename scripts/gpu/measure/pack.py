"""How fast gradients get into buckets and out: our kernels, torch's, and the memory's own rate.

Every work of a comparison moves the same elements between the same tensors, which take turns so
that they do not stay in the cache. Rates count the bytes read and the bytes written.
"""

from __future__ import annotations

import argparse
import itertools
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import torch

from scripts.gpu import results as gpu_results
from scripts.gpu.measure import clock as gpu_clock
from scripts.gpu.measure import models as gpu_models

MEGABYTES = (1, 4, 16, 64, 256)
DTYPES = (torch.float32, torch.float16, torch.bfloat16, torch.float64)
WIRES = (torch.float32, torch.float16, torch.float64)  # those that Horovod moves
SEGMENTS = 8  # gradients in a bucket
ALIGNED_BYTES = 16  # a slot's start
UNCACHED_BYTES = 256 << 20  # buffers that take turns are together larger than any cache
MOST_SETS = 64
MODELS = ("resnet101", "gpt2_medium")
SCALE = 0.5

Pack = Callable[[Sequence[torch.Tensor], Sequence[torch.Tensor], float, bool], None]


class Sized(Protocol):
    """What takes turns with others of its kind."""

    @property
    def moved_bytes(self) -> int: ...


Set = TypeVar("Set", bound=Sized)


@dataclass(frozen=True)
class Pieces:
    """Gradients, and where in one flat buffer they belong."""

    gradients: list[torch.Tensor]
    flat: torch.Tensor
    slots: list[torch.Tensor]

    @property
    def moved_bytes(self) -> int:
        return sum(t.nbytes for t in (*self.gradients, *self.slots))


def pieces(
    elements: Sequence[int], dtype: torch.dtype, wire: torch.dtype, device: str, gaps: bool = True
) -> Pieces:
    """`gaps`: slots begin where alignment has them; else they follow each other."""
    step = ALIGNED_BYTES // wire.itemsize if gaps else 1
    begins = list(itertools.accumulate([-(-count // step) * step for count in elements], initial=0))
    flat = torch.zeros(begins[-1], dtype=wire, device=device)
    gradients = [torch.randn(count, device=device).to(dtype) for count in elements]
    slots = [flat[b : b + count] for b, count in zip(begins, elements, strict=False)]
    return Pieces(gradients, flat, slots)


def sets_of(make: Callable[[], Set], device: str) -> list[Set]:
    first = make()
    count = 1 if device == "cpu" else -(-UNCACHED_BYTES // first.moved_bytes)
    return [first, *(make() for _ in range(min(MOST_SETS, count) - 1))]


def in_turn(sets: list[Set], work: Callable[[Set], Any]) -> Callable[[], Any]:
    turn: Iterator[Set] = itertools.cycle(sets)
    return lambda: work(next(turn))


def native(name: str) -> Pack | None:
    """A function of the extension; None: it has none of that name."""
    from deft_horovod.runtime.extension import native as extension

    function: Pack | None = getattr(extension, name, None)
    return function


def check(pack: Pack, sample: Pieces, accumulate: bool) -> None:
    """Raises unless the slots hold what torch makes of the same gradients."""
    for slot in sample.slots:
        slot.fill_(1.0)
    pack(sample.gradients, sample.slots, SCALE, accumulate)
    for gradient, slot in zip(sample.gradients, sample.slots, strict=True):
        expected = gradient.double() * SCALE + (1.0 if accumulate else 0.0)
        precision = torch.finfo(slot.dtype).eps + torch.finfo(gradient.dtype).eps
        torch.testing.assert_close(slot.double(), expected, rtol=4 * precision, atol=4 * precision)


def compare(sets: list[Pieces], device: str, rounds: int) -> dict[str, Any]:
    """Times of ours and of what torch has for it."""
    same = sets[0].gradients[0].dtype == sets[0].flat.dtype
    arms = {
        "foreach": in_turn(sets, lambda s: torch._foreach_copy_(s.slots, s.gradients)),
        "one by one": in_turn(
            sets, lambda s: [a.copy_(b) for a, b in zip(s.slots, s.gradients, strict=True)]
        ),
    }
    if same:
        packed = [sum(g.numel() for g in s.gradients) for s in sets]
        arms["cat"] = in_turn(sets, lambda s: torch.cat(s.gradients, out=s.flat[: packed[0]]))
    pack, unpack = native("pack_all"), native("unpack_all")
    if pack is not None:
        check(pack, sets[0], accumulate=False)
        check(pack, sets[0], accumulate=True)
        run = pack
        arms["pack"] = in_turn(sets, lambda s: run(s.gradients, s.slots, SCALE, False))
        arms["accumulate"] = in_turn(sets, lambda s: run(s.gradients, s.slots, SCALE, True))
    if unpack is not None:
        back = unpack
        arms["unpack"] = in_turn(sets, lambda s: back(s.slots, s.gradients, SCALE, False))
    times = gpu_clock.interleaved(arms, device, rounds)
    rate = {name: rate_gb_s(sets[0], name, t["median"]) for name, t in times.items()}
    return {"us": times, "gb_s": rate, "tensors": len(sets[0].gradients)}


def rate_gb_s(sample: Pieces, arm: str, time_us: float) -> float:
    """Who accumulates also reads what is there."""
    more = sum(slot.nbytes for slot in sample.slots) if arm == "accumulate" else 0
    return round((sample.moved_bytes + more) / time_us / 1e3, 1)


def ceiling_gb_s(device: str, size_bytes: int, rounds: int) -> float:
    """What a plain copy of one large tensor reaches."""
    source = torch.randn(size_bytes // 4, device=device)
    target = torch.empty_like(source)
    times = gpu_clock.interleaved({"copy": lambda: target.copy_(source)}, device, rounds)
    return round(2 * source.nbytes / times["copy"]["median"] / 1e3, 1)


def guarded(work: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """A pair of dtypes that is refused, or wrong, does not end the others."""
    try:
        return work()
    except Exception as error:  # noqa: BLE001  (it becomes the answer, and the check fails)
        return {"error": f"{type(error).__name__}: {error}"[:1000]}


def measure(device: str, small: bool, rounds: int) -> dict[str, Any]:
    found: dict[str, Any] = {"buckets": {}, "models": {}}
    found["ceiling_gb_s"] = ceiling_gb_s(device, (8 if small else 4096) << 20, rounds)
    for size, dtype, wire in itertools.product((1,) if small else MEGABYTES, DTYPES, WIRES):
        each = (size << 20) // wire.itemsize // SEGMENTS

        def one(counts: list[int], kinds: tuple[torch.dtype, torch.dtype]) -> dict[str, Any]:
            sets = sets_of(lambda: pieces(counts, *kinds, device), device)
            return compare(sets, device, rounds)

        name = f"{size} MB {str(dtype)[6:]} -> {str(wire)[6:]}"
        # Odd counts, so that not all ends are aligned.
        counts = [each - 1, *[each] * (SEGMENTS - 2), each + 1]
        found["buckets"][name] = guarded(lambda c=counts, k=(dtype, wire): one(c, k))  # type: ignore[misc]
    for model in gpu_models.TINY if small else MODELS:
        counts = [p.numel() for p in gpu_models.make(model, "meta").parameters()]
        for gaps in (True, False):
            kinds = torch.float32, torch.float32
            sets = [pieces(counts, *kinds, device, gaps)]
            name = f"{model}{'' if gaps else ', no gaps'}"
            found["models"][name] = guarded(lambda s=sets: compare(s, device, rounds))  # type: ignore[misc]
    return found


def headline(found: dict[str, Any]) -> str:
    entries = {**found["buckets"], **found["models"]}
    wrong = [name for name, entry in entries.items() if "error" in entry]
    text = f"a copy moves {found['ceiling_gb_s']:.0f} GB/s"
    for name in list(found["models"])[::2]:
        rates = found["models"][name].get("gb_s", {})
        if rates:
            text += f"; {name}: " + ", ".join(f"{arm} {rate:.0f}" for arm, rate in rates.items())
    return text + (f"; WRONG: {', '.join(wrong)}" if wrong else "")


def parse(description: str | None, arguments: list[str]) -> argparse.Namespace:
    """Of measurements of memory."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cuda")
    parser.add_argument("--small", action="store_true", help="one small size, for a dry run")
    parser.add_argument("--rounds", type=int, default=5)
    return parser.parse_args(arguments)


def main(arguments: list[str]) -> int:
    options = parse(__doc__, arguments)
    torch.set_num_threads(1)
    found = measure(options.device, options.small, options.rounds)
    if native("pack_all") is None:
        gpu_results.leave_out(
            f"this extension has no pack_all, so only torch's was timed: {headline(found)}", **found
        )
    gpu_results.report(headline(found), **found)
    entries = (*found["buckets"].values(), *found["models"].values())
    return 1 if any("error" in entry for entry in entries) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
