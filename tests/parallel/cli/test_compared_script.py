"""``deft-profile compare`` on real scripts, on two ranks: who takes turns, how it ends."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from deft_horovod.comparison import Comparison
from tests.parallel.ended import LIMIT_S, SCRIPT, Ended

STEPS, ROUNDS = 3, 2
pytestmark = pytest.mark.timeout(LIMIT_S + 20)


def compare(
    folder: Path,
    kind: str,
    *options: str,
    steps: str = "1000",
    package: str = "horovod",
    interrupt_at: str = "",
) -> Ended:
    turns = ("--steps", str(STEPS), "--rounds", str(ROUNDS))
    words = ("compare", "-np", "2", *turns, *options, "--", "python", SCRIPT, kind, steps, package)
    return Ended(folder, *words, interrupt_at=interrupt_at)


def comparison_of(ended: Ended, folder: Path) -> Comparison:
    assert ended.status == 0, ended.output
    assert ended.left == ["comparison.json"]
    comparison = Comparison.load(folder / "comparison.json")
    for arm in comparison.arms:
        assert [len(one) for one in arm.rounds_us] == [STEPS] * ROUNDS
        assert all(us > 0 for one in arm.rounds_us for us in one)
        assert (arm.plan is None) == (arm.policy == "stock")
    assert comparison.profile.size == 2
    assert len(comparison.profile.links[0].samples) >= 8
    return comparison


def check_candidates_of_auto(ended: Ended, folder: Path) -> None:
    names = [arm.name for arm in comparison_of(ended, folder).arms]
    assert names == ["stock", "bucket", "priority", "least_stale"]
    last = 3 + 10 + len(names) * ROUNDS * (STEPS + 1)
    assert ended.said(f"left the loop in step {last}") == 2
    assert ended.said("deft-profile: compared with SGD (4 tensors") == 1
    assert not ended.said("Traceback")


def test_candidates_of_auto_take_turns_with_stock_horovod(tmp_path: Path) -> None:
    check_candidates_of_auto(compare(tmp_path, "trains", package="deft_horovod"), tmp_path)


def test_a_policy_that_is_late_leaves_nothing_behind_and_the_verdict_as_json(
    tmp_path: Path,
) -> None:
    ended = compare(tmp_path, "trains", "--policy", "deft", "--max-merge", "2", "--json")
    comparison = comparison_of(ended, tmp_path)
    assert [arm.name for arm in comparison.arms] == ["stock", "deft (late)"]
    assert comparison.ours.policy == "deft"
    assert not ended.said("were never applied")
    data = json.loads(ended.output[ended.output.index("\n{\n") :])
    assert data["verdict"].startswith("deft (late): communication exposed ")


def test_the_larger_of_two_optimizers_in_the_only_way_that_keeps_its_groups(
    tmp_path: Path,
) -> None:
    ended = compare(tmp_path, "two")
    comparison = comparison_of(ended, tmp_path)
    assert [arm.name for arm in comparison.arms] == ["stock", "bucket"]
    assert comparison.profile.tensors[0].name == "model1.0.weight"
    assert ended.said("beside it ran SGD (4 tensors") == 1


def test_under_horovodrun_it_is_the_program_of_a_rank(tmp_path: Path) -> None:
    launcher = (str(Path(sys.executable).with_name("horovodrun")), "-np", "2")
    turns = ("--steps", str(STEPS), "--rounds", str(ROUNDS))
    words = ("compare", *turns, "--", "python", SCRIPT, "trains", "1000", "horovod")
    ended = Ended(tmp_path, *words, launcher=launcher)
    check_candidates_of_auto(ended, tmp_path)


def test_a_script_that_ends_too_early(tmp_path: Path) -> None:
    ended = compare(tmp_path, "trains", "--policy", "bucket", steps="20")
    assert (ended.status, ended.left) == (1, [])
    needed = 3 + 10 + 2 * ROUNDS * (STEPS + 1)
    assert ended.said(f"after 20 steps, profiled.py ended; {needed} are needed (3 to warm up, 10 ")
    assert not ended.said("Traceback")


def test_ctrl_c(tmp_path: Path) -> None:
    ended = compare(tmp_path, "hangs", interrupt_at="interrupt now")
    assert (ended.status, ended.left) == (130, [])
    assert ended.said("profiled.py was interrupted; no comparison was written") == 1
