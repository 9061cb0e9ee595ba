"""The rates of formats: each work does what it is called, and only large messages are judged."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from deft_horovod.runtime.extension import native
from scripts.gpu.measure import codec


@pytest.mark.parametrize("name", codec.FORMATS)
def test_each_work_does_what_it_is_called(name: str) -> None:
    made, elements = codec.works(name), 1000
    buffers = codec.Buffers(name, elements, "cpu")
    expected = native.wire_decode(name, buffers.data, elements)
    for kind, (_, work) in made.items():
        before = buffers.out.clone()
        work(buffers)
        if kind == "encode with rest":
            assert torch.allclose(expected + buffers.rest, buffers.values, atol=1e-6)
        if kind == "decode":
            assert torch.equal(buffers.out, expected)
        if kind == "decode and add":
            assert torch.equal(buffers.out, before + expected)


def test_the_slowest_large_message_is_judged() -> None:
    formats = {"f16": {"1": {"encode": 1.0}, "64": {"encode": 70.0, "decode": 59.0}}}
    found = {"ceiling_gb_s": 100.0, "formats": formats}
    assert codec.slowest(found) == (0.59, "f16 decode of 64 MB")
    assert "59% of it; target of 60%: MISSED" in codec.headline(found)
    formats["f16"]["64"]["decode"] = 61.0
    assert "61% of it; target of 60%: met" in codec.headline(found)


def test_a_dry_run_judges_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPU_CHECK_RESULT", str(tmp_path / "answer.json"))
    monkeypatch.setattr(codec.gpu_clock, "repeats_for", lambda *_, **__: 1)
    assert codec.main(["--device", "cpu", "--small", "--rounds", "1"]) == 0
    answer = json.loads((tmp_path / "answer.json").read_text())
    assert "dry run" in answer["headline"]
    rates = answer["numbers"]["formats"]
    assert set(rates) == set(codec.FORMATS)
    assert all(rate > 0 for sizes in rates.values() for rate in sizes["1"].values())
