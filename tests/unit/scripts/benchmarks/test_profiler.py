"""The benchmark of the profiler, on a model that is over in no time."""

import json
from pathlib import Path

import pytest

from scripts.benchmarks import profiler as bench_profiler

SMALL = ["--layers", "3", "--width", "8", "--batch", "4", "--blocks", "3", "--steps", "4"]


def test_it_measures_both_kinds_of_blocks(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    output = tmp_path / "out.json"
    bench_profiler.main([*SMALL, "--output", str(output)])
    said = capsys.readouterr().out
    assert "6 parameters in 3 modules" in said
    assert "measuring adds" in said
    written = json.loads(output.read_text())
    assert len(written["pairs_s"]) == 3
    assert set(written["ratios"]) == {"clock", "training thread"}


@pytest.mark.parametrize(
    ("measured_s", "strict", "status"), [(1.5, True, 1), (1.5, False, 0), (1.01, True, 0)]
)
def test_targets(
    monkeypatch: pytest.MonkeyPatch,
    measured_s: float,
    strict: bool,
    status: int,
) -> None:
    pairs = [((1.0, 1.0), (measured_s, measured_s))] * 3
    monkeypatch.setattr(bench_profiler, "measure", lambda _: pairs)
    assert bench_profiler.main(["--strict"] if strict else []) == status
