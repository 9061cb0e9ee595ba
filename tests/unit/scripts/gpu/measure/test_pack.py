"""The benchmark of packing: what it moves, that wrong results fail, that nothing is made up."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from scripts.gpu.measure import pack as bench


def honest(gradients: list, slots: list, scale: float, accumulate: bool) -> None:
    for gradient, slot in zip(gradients, slots, strict=True):
        scaled = gradient.double() * scale
        slot.copy_(slot.double() + scaled if accumulate else scaled)


def test_slots_are_aligned_and_do_not_overlap() -> None:
    made = bench.pieces([3, 5, 8], torch.float64, torch.float16, "cpu")
    begins = [slot.data_ptr() - made.flat.data_ptr() for slot in made.slots]
    assert begins == [0, 16, 32]
    assert made.moved_bytes == 16 * (8 + 2)
    close = bench.pieces([3, 5, 8], torch.float32, torch.float32, "cpu", gaps=False)
    assert close.flat.numel() == 16


@pytest.mark.parametrize("accumulate", [False, True])
def test_what_packs_wrongly_is_found(accumulate: bool) -> None:
    sample = bench.pieces([9, 17], torch.float32, torch.float16, "cpu")
    bench.check(honest, sample, accumulate)

    def forgets_one(gradients: list, slots: list, scale: float, accumulates: bool) -> None:
        honest(gradients[:-1], slots[:-1], scale, accumulates)

    def forgets_to_scale(gradients: list, slots: list, _: float, accumulates: bool) -> None:
        honest(gradients, slots, 1.0, accumulates)

    for wrong in (forgets_one, forgets_to_scale):
        with pytest.raises(AssertionError):
            bench.check(wrong, sample, accumulate)


def test_ours_is_timed_beside_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench, "native", lambda name: honest if name == "pack_all" else None)
    sets = [bench.pieces([64, 64], torch.float32, torch.float32, "cpu")]
    found = bench.compare(sets, "cpu", rounds=1)
    assert set(found["us"]) == {"foreach", "one by one", "cat", "pack", "accumulate"}
    for name, times in found["us"].items():
        more = 512 if name == "accumulate" else 0
        expected = (1024 + more) / times["median"] / 1e3
        assert found["gb_s"][name] == pytest.approx(expected, abs=0.06)


def test_pairs_of_dtypes_have_no_cat(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench, "native", lambda _: None)
    sets = [bench.pieces([64], torch.float32, torch.float16, "cpu")]
    assert set(bench.compare(sets, "cpu", rounds=1)["us"]) == {"foreach", "one by one"}


def run(folder: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[int, dict]:
    path = folder / "answer.json"
    monkeypatch.setenv("GPU_CHECK_RESULT", str(path))
    monkeypatch.setattr(bench.gpu_clock, "repeats_for", lambda *_: 1)
    try:
        status = bench.main(["--device", "cpu", "--small", "--rounds", "1"])
    except SystemExit as left:
        status = left.code
    return status, json.loads(path.read_text())


def test_without_ours_it_is_no_success(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench, "native", lambda _: None)
    status, answer = run(tmp_path, monkeypatch)
    assert status == 77
    assert "no pack_all" in answer["headline"]
    assert len(answer["numbers"]["buckets"]) == len(bench.DTYPES) * len(bench.WIRES)
    assert answer["numbers"]["ceiling_gb_s"] > 0


def test_one_wrong_pair_fails_and_hides_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuses_bfloat16(gradients: list, slots: list, scale: float, accumulate: bool) -> None:
        if gradients[0].dtype == torch.bfloat16:
            raise TypeError("no bfloat16")
        honest(gradients, slots, scale, accumulate)

    monkeypatch.setattr(bench, "native", lambda n: refuses_bfloat16 if n == "pack_all" else None)
    status, answer = run(tmp_path, monkeypatch)
    assert status == 1
    wrong = {name for name, entry in answer["numbers"]["buckets"].items() if "error" in entry}
    assert wrong == {f"1 MB bfloat16 -> {str(wire)[6:]}" for wire in bench.WIRES}
    assert "WRONG: 1 MB bfloat16" in answer["headline"]
