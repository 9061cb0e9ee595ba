"""The scripts: parts and whole, verdicts, and the reports that are committed."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.places import ROOT

NAMES = ("ddl_benchmarks", "deft", "dear", "usbyte", "dcredit")
REPORTS = ROOT / "docs" / "studies" / "reproduced"


def committed(name: str) -> dict[str, Any]:
    return dict(json.loads((REPORTS / f"{name}.json").read_text(encoding="utf-8")))


@pytest.mark.parametrize("name", NAMES)
def test_pages_say_what_the_data_say(reproduction: SimpleNamespace, name: str) -> None:
    data = committed(name)
    page = (REPORTS / f"{name}.md").read_text(encoding="utf-8")
    assert reproduction.reproduction_page.page(data) == page
    assert reproduction.reproduction_script.written(data) + "\n" == (
        REPORTS / f"{name}.json"
    ).read_text(encoding="utf-8")
    assert all(fact["mark"] in reproduction.facts.MARKS for fact in data["inputs"])
    assert {fact["source"] for fact in data["inputs"]} == set(data["sources"])


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_reports_are_what_is_simulated_now(reproduction: SimpleNamespace, name: str) -> None:
    """One cell of each; what was published is that of the data now."""
    data, facts = committed(name), reproduction.facts.load()
    expected = dict(data["cells"][0])
    module = getattr(reproduction, f"reproduce_{name}")
    job = next(one for one in module.COMPARISON.jobs(facts) if one.name == expected["model"])
    networks = {one.name: one for one in module.COMPARISON.networks(facts)}
    assert list(networks) == list(data["networks"])
    arms = {arm: reproduction.reproduction.ARMS[arm] for arm in data["arms"]}
    found = reproduction.reproduction.cell(job, networks[expected["network"]], arms)
    for arm, step in expected.pop("arms").items():
        assert found["arms"][arm] == pytest.approx(step, rel=1e-3, abs=2e-3), arm
    found.pop("arms")
    for key, value in expected.items():
        same = value if isinstance(value, str) else pytest.approx(value, rel=1e-4, abs=2e-3)
        assert found[key] == same, key
    claims = module.COMPARISON.claims(data["cells"], facts)
    assert claims == data["claims"]


@pytest.mark.parametrize("name", NAMES)
def test_nothing_is_hidden(name: str) -> None:
    """Every cell has every arm, and what nobody can beat is not beaten."""
    data = committed(name)
    assert len(data["cells"]) == len(data["models"]) * len(data["networks"])
    for cell in data["cells"]:
        assert set(cell["arms"]) == set(data["arms"])
        for arm, step in cell["arms"].items():
            assert step["step_ms"] >= cell["compute_ms"] - 2e-3
            about = data["arms"][arm]
            if about["kind"] == "exact" and about["start_up_share"] == 1.0:
                assert step["step_ms"] >= cell["exact_floor_ms"] - 2e-3, arm


def test_late_plans_lead_where_communication_is_long() -> None:
    """No exact policy is ahead of `deft` or `least_stale` where CCR is 1 or more."""
    count = 0
    for data in map(committed, NAMES):
        for cell in (cell for cell in data["cells"] if cell["ccr"] >= 1.0):
            exact = [a for a, about in data["arms"].items() if about["kind"] == "exact"]
            best_ms = min(cell["arms"][arm]["step_ms"] for arm in exact)
            for late in ("deft", "least_stale_late"):
                assert cell["arms"][late]["step_ms"] <= best_ms, cell["network"]
            count += 1
    assert count > 20


def run(reproduction: SimpleNamespace, name: str, *arguments: str) -> int:
    module = getattr(reproduction, f"reproduce_{name}")
    return int(reproduction.reproduction_script.main(module.COMPARISON, arguments))


PART = (
    "--models",
    "resnet50",
    "--networks",
    "56gbps.64",
    "--policies",
    "stock",
    "ddp",
    "dear_half",
)


def test_a_part_is_printed(reproduction: SimpleNamespace, capsys: Any) -> None:
    assert run(reproduction, "dear", *PART) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("# DeAR on 64 GPUs\n")
    assert "| DDP | exact |" in printed
    assert "not simulated: there is no such policy here" in printed  # MG-WFBP was left out
    assert "`least_stale`, exact, was not simulated." in printed


def test_the_same_twice(reproduction: SimpleNamespace, tmp_path: Path, capsys: Any) -> None:
    assert run(reproduction, "dear", *PART, "--json") == 0
    first = capsys.readouterr().out
    assert run(reproduction, "dear", *PART, "--output", str(tmp_path / "new")) == 0
    assert (tmp_path / "new" / "dear.json").read_text(encoding="utf-8") == first
    page = (tmp_path / "new" / "dear.md").read_text(encoding="utf-8")
    assert page == reproduction.reproduction_page.page(json.loads(first))


def test_what_there_is_not_is_refused(reproduction: SimpleNamespace, capsys: Any) -> None:
    with pytest.raises(SystemExit):
        run(reproduction, "dear", "--models", "resnet5")
    assert "resnet5: not part of it; there are resnet50" in capsys.readouterr().err


def test_verdicts(reproduction: SimpleNamespace) -> None:
    script = reproduction.reproduction_script
    assert script.verdict(1.3, 1.26).startswith("met")
    assert script.verdict(1.5, 1.26) == "more than published"
    assert script.verdict(1.1, 1.26) == "less than published"
    steps = {"a": {"step_ms": 100.0}, "b": {"step_ms": 125.0}}
    cells = [{"model": "m", "network": "n", "arms": steps}]
    claim = script.up_to(cells, "a", "b", 1.26, "x")
    assert claim["ours"] == "up to 1.25x (m, n)"
    assert claim["verdict"].startswith("met")
    assert script.up_to(cells, "a", "b", 1.26, "x", stand_in=True)["verdict"] == script.STAND_IN
    assert script.up_to(cells, "a", "c", 1.26, "x")["ours"] == "-"


def test_bands_of_a_sweep(reproduction: SimpleNamespace) -> None:
    def cell(rate: int, rival_ms: float) -> dict[str, Any]:
        arms = {"deft": {"step_ms": 100.0}, "bytescheduler": {"step_ms": rival_ms}}
        return {"model": "vgg19", "network": f"{rate}gbit", "ccr": 10 / rate, "arms": arms}

    facts = reproduction.facts.load()
    cells = [cell(5, 300.0), cell(10, 200.0), cell(20, 130.0), cell(40, 101.0)]
    slow = {**cell(10, 500.0), "network": "10gbit.slow"}
    claims = reproduction.reproduce_deft.claims([*cells, slow], facts)
    assert claims[0]["verdict"] == "met at 10, 20 Gb/s (CCR 0.50 to 1.00)"
    assert claims[0]["ours"] == "1.01x to 3.00x over all rates"
    assert claims[1]["verdict"] == "not simulated: there is no such policy here"
    assert reproduction.reproduce_deft.claims([cells[0]], facts)[0]["verdict"] == (
        "met at none of these rates"
    )


def test_throughputs_and_orders(reproduction: SimpleNamespace) -> None:
    facts, module = reproduction.facts.load(), reproduction.reproduce_ddl_benchmarks
    arms = {name: {"step_ms": ms} for name, ms in (("wfbp", 400.0), ("mgwfbp", 300.0))}
    cell = {
        "model": "resnet50",
        "network": "10gbe.line",
        "ranks": 32,
        "compute_ms": 250.0,
        "alpha_us": 1000.0,
        "ccr": 0.6,
        "arms": arms,
    }
    assert module.predicted(cell, "wfbp", facts) == pytest.approx(32 * 64 / 0.4)
    # Computing, then everything as one message.
    assert module.predicted(cell, "none", facts) == pytest.approx(32 * 64 / 0.401)
    rows = module.compared([cell], facts)
    assert [(method, theirs) for _, method, theirs, _ in rows] == [
        ("none", 4920.8),
        ("wfbp", 5113.2),
        ("mgwfbp", 6883.6),
    ]
    assert module.claims([cell], facts)[0]["verdict"].endswith("right for 1 of 1 pairs")


def test_calibrated_links_are_near_what_was_measured(reproduction: SimpleNamespace) -> None:
    """WFBP on the link that is fitted to it: two parameters for three figures."""
    data = committed("ddl_benchmarks")
    rows = data["tables"][0]["rows"]
    off = [row[5] for row in rows if row[5].endswith("(fitted)")]
    assert len(off) == 9
    assert all(abs(int(text.split("%")[0])) <= 10 for text in off)
