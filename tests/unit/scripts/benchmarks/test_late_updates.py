"""The cost of prediction, on a model that is over in no time."""

import json
from pathlib import Path

import pytest

from scripts.benchmarks import late_updates as bench_prediction


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"WIDTH": 16, "DEPTH": 1, "VOCABULARY": 20, "LENGTH": 8}.items():
        monkeypatch.setattr(bench_prediction, name, value)


def test_it_measures_each_optimizer_with_more_and_more_that_is_late(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    output = tmp_path / "out.json"
    bench_prediction.main(["--steps", "2", "--batch", "2", "--output", str(output)])
    said = capsys.readouterr().out
    assert said.count("parameters late") == 6
    rows = json.loads(output.read_text())
    shares = [row["late_share"] for row in rows if row["optimizer"] == "adamw"]
    assert shares == sorted(shares)
    assert shares[-1] == 1.0
    assert all(row["extra_ms"] > 0.0 for row in rows)


def test_what_is_late_is_what_forward_uses_first() -> None:
    model = bench_prediction.Model()
    late = bench_prediction.late_parameters(model, 0.01)
    assert late == [model.embedding.weight]
