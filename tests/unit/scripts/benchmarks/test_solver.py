import json

import pytest

from deft_horovod import policies
from scripts.benchmarks import solver as bench
from tests.timing import timed
from tests.unit.support import large
from tests.unit.support.models import with_formats


def test_it_prints_a_row_for_each_load_and_writes_them(tmp_path, capsys):
    output = tmp_path / "numbers.json"
    arguments = ["--blocks", "12", "--period", "2", "--load", "0.5", "1.5", "--output", str(output)]
    assert bench.main(arguments) == 0
    printed = capsys.readouterr().out
    assert "24 items over 4 windows" in printed
    rows = json.loads(output.read_text())
    assert [row["load"] for row in rows] == [0.5, 1.5]
    assert rows[0]["messages"] == 24
    assert rows[1]["messages"] < 24  # sums
    assert all(row["exposed"] < 0.01 for row in rows)


def test_strict_fails_when_the_limit_is_missed(monkeypatch):
    monkeypatch.setattr(bench, "LIMIT_S", -1.0)
    arguments = ["--blocks", "3", "--period", "1", "--load", "1"]
    assert bench.main([*arguments, "--strict"]) == 1
    assert bench.main(arguments) == 0


def test_a_thousand_items_over_eight_windows_take_about_a_second(capsys):
    """Measured 0.3 to 1.0 s; the bound leaves room for a slower or busy machine."""
    options = bench.parse([])
    for load in (0.9, 2.0, 4.0):
        row = bench.measure(options, load)
        assert row["choose_s"] + row["order_s"] < 5.0
        print(f"load {load}: {row['choose_s']:.2f} s, order {row['order_s']:.2f} s")
    assert "load 2.0" in capsys.readouterr().out


@pytest.mark.alone
@pytest.mark.slow
@pytest.mark.parametrize("max_delay", [0, 1])
@pytest.mark.parametrize("accuracy", ["equal", "fast"])
def test_a_thousand_tensors_in_all_formats_take_seconds(accuracy, max_delay):
    """The bound leaves room for a slower or busy machine; docs/internals/solver.md has times."""
    request = with_formats(large.request(1_000, 2.0, max_delay=max_delay), accuracy)
    took_s, plan = timed(lambda: policies.get("least_stale").plan(request), 6.0)
    print(f"{accuracy}, max_delay {max_delay}: {took_s:.2f} s")
    assert plan.prediction.step_us < 1.05 * plan.prediction.compute_us
    assert took_s < 6.0
