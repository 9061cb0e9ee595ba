import json

import pytest

from scripts.benchmarks.target import report as target_report

STATS = {"policy": "auto", "running": "least_stale", "late": True, "accuracy": {"verdict": "kept"}}


def training(name, curve, ccr=1.0, seed=1, stats=None):
    options = {
        "name": name,
        "ccr": ccr,
        "seed": seed,
        "steps": 800,
        "compute_ms": 80.0,
        "hosts": 2,
        "optimizer": "adamw",
        "lr": 0.01,
        "schedule": "cosine",
        "output": "somewhere",
    }
    return {"options": options, "alone_ms": [79.5, 80.5], "curve": curve, "stats": stats or {}}


STOCK = training("stock", [(100, 10.0, 3.0), (200, 20.0, 2.0)])
FAST = training("fast", [(100, 5.0, 3.0), (200, 10.0, 1.9)], stats=STATS)
WORSE = training("auto", [(100, 5.0, 3.0), (200, 10.0, 2.1)])


def test_the_table_tells_what_was_not_reached_and_what_ran():
    text = target_report.table([STOCK, FAST, WORSE])
    cells = [cells_of(row) for row in text.splitlines()]
    assert [row[5] for row in cells if row[1] == "ours"] == ["not reached by 1 of 1, at most 2.00"]
    assert "least_stale, late (kept)" in text
    assert len(text.splitlines()) == 5


def test_it_says_whether_all_arms_had_the_same_pace():
    assert target_report.pace([STOCK, {**WORSE, "alone_ms": [79.0, 82.0]}]) == (
        "Just before and just after a training, a step without communication took "
        "80.0 (79.5 .. 80.5) ms for stock Horovod and 80.5 (79.0 .. 82.0) ms for ours."
    )


def test_without_stock_horovod_there_is_no_target():
    assert not target_report.by_point([FAST])


def test_a_report_has_table_numbers_and_picture(tmp_path):
    other = training("stock", [(100, 30.0, 3.0), (200, 60.0, 2.0)], ccr=2.0)
    path = target_report.write([STOCK, FAST, WORSE, other], "target", "command", tmp_path)
    text = path.read_text(encoding="utf-8")
    assert "| 2 | stock Horovod |" in text
    assert "a step without communication took" in text
    rows = json.loads((tmp_path / "target.json").read_text(encoding="utf-8"))
    assert len(rows) == 4
    assert all("output" not in row["options"] for row in rows)
    assert (tmp_path / "target.png").stat().st_size > 1000


def falling(times=1.0, better=1.0):
    """From 2.9 to 2.0 in a hundred seconds, or so many times that."""
    return [(10 * i, 10.0 * i * times, better * (3.0 - 0.1 * i)) for i in range(1, 11)]


def cells_of(row):
    return [cell.strip() for cell in row.strip("|").split("|")]


def test_what_ours_trains_beyond_is_told_and_counts_for_the_target_only(tmp_path):
    worse = falling(0.5, 1.1)
    beyond = training("auto", [*worse, *[(10 * i, 5.0 * i, 1.9) for i in range(11, 16)]])
    beyond["options"]["steps"] = 1200
    done = [training("stock", falling()), beyond]
    path = target_report.write(done, "target", "command", tmp_path)
    text = path.read_text(encoding="utf-8")
    assert "800 steps of 80 ms" in text
    assert "Ours trains up to 1200 steps" in text
    assert "halves" not in text
    (cells,) = (cells_of(row) for row in text.splitlines() if "| ours |" in row)
    assert cells[3:5] == ["500", "+10.0%"]
    assert 1.0 < float(cells[5]) < 2.0


def test_a_report_says_that_the_link_was_restless(tmp_path):
    one = training("stock", falling())
    one["options"]["restless_s"] = 20.0
    text = target_report.write([one], "target", "command", tmp_path).read_text("utf-8")
    assert "halves, or is the full one again, every 20 s" in text


def test_seeds_make_an_interval_and_the_fastest_and_the_slowest_are_left_out():
    done = []
    for seed in (1, 2, 3, 4):
        done.append(training("stock", falling(), seed=seed))
        done.append(training("fp16", falling(0.8), seed=seed))
        done.append(training("auto", falling(0.4 + 0.05 * seed, 1.001), seed=seed))
    cells = cells_of(next(r for r in target_report.table(done).splitlines() if "| ours |" in r))
    assert cells[4] == "+0.1% (+0.1% .. +0.1%)"
    mean, low, high = (float(c.strip("(")) for c in cells[5].strip(")").replace("..", "").split())
    assert 1.0 < low < mean < high
    assert low < float(cells[6]) < high
    assert float(cells[8]) == pytest.approx(0.8 * float(cells[6]), abs=0.01)


def test_a_single_lucky_validation_counts_in_a_column_of_its_own():
    lucky = falling(0.5)
    lucky[2] = (*lucky[2][:2], 1.9)
    rows = target_report.table([training("stock", falling()), training("fast", lucky)]).splitlines()
    cells = cells_of(rows[3])
    over_stock, over_fp16 = cells[9].split(", ")
    assert float(over_stock) > 6.0
    assert over_fp16 == "-"
    assert float(cells[5]) == pytest.approx(2.0, abs=0.2)
