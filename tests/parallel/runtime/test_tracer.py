"""What DEFT_TRACE leaves behind on two ranks, and what `deft-profile trace` makes of it."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from deft_horovod.cli.main import main
from deft_horovod.cli.trace import merged
from tests.parallel.launch import Result, run_ranks

pytestmark = pytest.mark.timeout(150)

STEPS = 40
DIRECT = {"policy": "bucket", "config": {"bucket_bytes": 20_000, "first_bucket_bytes": 20_000}}
LATE = {
    "policy": "deft",
    "config": {
        "max_delay": 1,
        "max_merge": 2,
        "warmup_steps": 0,
        "probe_s": 0.05,
        "profile_steps": 3,
    },
}
Event = dict[str, Any]


def traced(folder: Path, arguments: dict[str, Any], **env: str) -> Result:
    options = {"steps": STEPS, "arguments": arguments}
    environment = {"DEFT_TRACE": str(folder), **env}
    return run_ranks("runtime/traced.py", 2, env=environment, options=options).require_success()


def require_nested(slices: list[Event]) -> None:
    """Slices of one track lie beside each other or inside each other, or viewers drop them."""
    open_until: list[float] = []
    for event in sorted(slices, key=lambda e: (e["ts"], -e["dur"])):
        assert event["dur"] >= 0
        while open_until and open_until[-1] <= event["ts"]:
            open_until.pop()
        end = event["ts"] + event["dur"]
        assert not open_until or end <= open_until[-1] + 1e-3, event
        open_until.append(end)


def require_well_formed(events: list[Event]) -> None:
    tracks: dict[tuple[int, int], list[Event]] = defaultdict(list)
    arrows: dict[str, dict[str, float]] = defaultdict(dict)
    for event in events:
        assert event["ph"] in {"M", "X", "b", "e", "s", "t", "f"}
        if event["ph"] == "X":
            tracks[event["pid"], event["tid"]].append(event)
        if event["ph"] in "stf":
            assert event["ph"] not in arrows[event["id"]]
            arrows[event["id"]][event["ph"]] = event["ts"]
    for slices in tracks.values():
        require_nested(slices)
    assert arrows
    for arrow in arrows.values():
        assert {"s", "t"} <= arrow.keys()
        assert arrow["s"] <= arrow["t"] <= arrow.get("f", arrow["t"])
    named = {(e["pid"], e["tid"]) for e in events if e["name"] == "thread_name"}
    assert tracks.keys() <= named


def of(events: list[Event], rank: int, kind: str, category: str) -> list[Event]:
    return [e for e in events if (e["pid"], e["ph"], e.get("cat")) == (rank, kind, category)]


@pytest.fixture(scope="module")
def direct(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder: Path = tmp_path_factory.mktemp("direct") / "trace"
    traced(folder, DIRECT)
    return folder


def test_every_step_and_message_of_every_rank_is_there(direct: Path) -> None:
    events = merged(direct)
    require_well_formed(events)
    for rank in range(2):
        steps = of(events, rank, "X", "step")
        # The first boundary only begins a step.
        assert [e["name"] for e in steps] == [f"step {n}" for n in range(2, STEPS + 1)]
        for step in steps[1:]:
            inside = [
                e["name"]
                for e in of(events, rank, "X", "stage")
                if step["ts"] <= e["ts"] < step["ts"] + step["dur"]
            ]
            assert inside == ["optimizer", "forward", "backward", "waiting"]
        messages = of(events, rank, "X", "message")
        assert {t for e in messages for t in e["args"]["tensors"]} == {
            "0.weight",
            "0.bias",
            "2.weight",
            "2.bias",
        }
        # Every arrow has led to an update when training ends, but for what came last.
        assert len(of(events, rank, "f", "gradient")) >= len(messages) - 4
    both = [{e["name"] for e in of(events, rank, "X", "message")} for rank in range(2)]
    assert both[0] == both[1]


def test_a_message_is_on_its_way_within_its_step(direct: Path) -> None:
    events = merged(direct)
    steps = {e["name"]: e for e in of(events, 0, "X", "step")}
    looked_at = 0
    for message in of(events, 0, "X", "message"):
        number = message["args"]["steps"][1]
        step = steps.get(f"step {number}")
        if step is not None:
            assert step["ts"] <= message["ts"]
            assert message["ts"] + message["dur"] <= step["ts"] + step["dur"] + 1e-3
            looked_at += 1
    assert looked_at >= STEPS // 2


def test_late_updates_have_longer_arrows(tmp_path: Path) -> None:
    traced(tmp_path / "trace", LATE)
    events = merged(tmp_path / "trace")
    require_well_formed(events)
    last = {e["name"]: e["args"]["steps"] for e in of(events, 0, "X", "message")}
    assert all(first <= until for first, until in last.values())
    assert of(events, 0, "f", "gradient")


def test_so_many_steps_are_traced(tmp_path: Path) -> None:
    traced(tmp_path / "trace", DIRECT, DEFT_TRACE_STEPS="5")
    assert len(of(merged(tmp_path / "trace"), 1, "X", "step")) == 4


def test_an_old_trace_is_kept(direct: Path) -> None:
    before = (direct / "rank.0.json").read_bytes()
    options = {"steps": 3, "arguments": DIRECT}
    job = run_ranks("runtime/traced.py", 2, env={"DEFT_TRACE": str(direct)}, options=options)
    assert job.returncode != 0
    assert "the folder of the trace already has one" in job.output
    assert (direct / "rank.0.json").read_bytes() == before


def test_the_ranks_become_one_trace(direct: Path, tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    result = CliRunner().invoke(main, ["trace", str(direct), "-o", str(path), "--json"])
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert (found["ranks"], found["steps"], found["clock_error_us"]) == (2, STEPS - 1, 0.0)
    document = json.loads(path.read_text())
    assert document["traceEvents"] == merged(direct)
