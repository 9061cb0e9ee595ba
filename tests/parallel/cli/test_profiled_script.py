"""``deft-profile run`` on real scripts, on one rank and on two: what is written, how it ends."""

from __future__ import annotations

import json
import signal
import sys
from pathlib import Path

import pytest

from deft_horovod.profile import Profile
from tests.parallel.ended import LIMIT_S, SCRIPT, Ended

STEPS = 6

pytestmark = pytest.mark.timeout(LIMIT_S + 20)


def profile_of(ended: Ended, folder: Path) -> Profile:
    assert ended.status == 0, ended.output
    assert ended.left == ["profile.json"]
    return Profile.load(folder / "profile.json")


def run(
    folder: Path, kind: str, *words: str, np: int = 1, how: tuple[str, ...] = (), **options: object
) -> Ended:
    ranks = ("-np", str(np)) if np > 1 else ()
    asked = ("run", *ranks, *how, "--steps", str(STEPS), "--", "python", SCRIPT, kind, *words)
    return Ended(folder, *asked, **options)  # type: ignore[arg-type]


def sane(profile: Profile, size: int) -> Profile:
    assert (profile.steps, profile.size) == (STEPS, size)
    assert [link.name for link in profile.links] == (["horovod"] if size > 1 else [])
    assert len(profile.modules) == 2
    assert len(profile.tensors) == 4
    assert profile.tensors[0].shape == (32, 8)
    assert 0 < profile.compute_us <= profile.step_us * 1.001
    return profile


def test_plain_torch_on_one_rank_and_what_was_measured_as_json(tmp_path: Path) -> None:
    ended = run(tmp_path, "trains", how=("--json",))
    profile = sane(profile_of(ended, tmp_path), 1)
    assert [tensor.name for tensor in profile.tensors][:2] == ["0.weight", "0.bias"]
    assert ended.said("left the loop in step 9")
    assert ended.said("this is the profile of AdamW (4 tensors")
    text = ended.output[ended.output.index("\n{\n") :]
    assert len(json.loads(text)["layers"]) == 2


def test_horovod_scripts_on_one_rank(tmp_path: Path) -> None:
    ended = run(tmp_path, "trains", "1000", "horovod")
    sane(profile_of(ended, tmp_path), 1)
    assert ended.said("initialised at exit: True")


def check_two_ranks(ended: Ended, folder: Path) -> None:
    profile = sane(profile_of(ended, folder), 2)
    assert profile.tensors[0].name == "model0.0.weight"
    assert len(profile.links[0].samples) >= 8
    assert ended.said("left the loop in step 9") == 2
    assert ended.said("initialised at exit: True") == 2
    assert not ended.said("Traceback")
    assert not ended.said("exit with status code")


def test_scripts_of_ours_on_two_ranks(tmp_path: Path) -> None:
    check_two_ranks(run(tmp_path, "trains", "1000", "deft_horovod", np=2), tmp_path)


def test_the_larger_of_two_optimizers_with_groups(tmp_path: Path) -> None:
    profile = sane(profile_of(run(tmp_path, "two", "1000", "horovod", np=2), tmp_path), 2)
    assert profile.tensors[0].name == "model1.0.weight"


def test_under_horovodrun_it_is_the_program_of_a_rank_of_a_horovod_script(tmp_path: Path) -> None:
    launcher = (str(Path(sys.executable).with_name("horovodrun")), "-np", "2")
    ended = run(tmp_path, "trains", "1000", "horovod", launcher=launcher)
    check_two_ranks(ended, tmp_path)
    assert ended.said("this is the profile of SGD (4 tensors") == 1


def test_a_script_that_ends_too_early(tmp_path: Path) -> None:
    ended = run(tmp_path, "trains", "5")
    assert (ended.status, ended.left) == (1, [])
    assert ended.said("after 5 steps, profiled.py ended; 9 are needed (3 to warm up, 6 to")
    assert not ended.said("Traceback")


def test_a_script_without_a_step(tmp_path: Path) -> None:
    (tmp_path / "script").mkdir()
    script = tmp_path / "script" / "empty.py"
    script.write_text("import horovod.torch as hvd; hvd.init()")
    ended = Ended(tmp_path, "run", "-np", "2", "python", str(script))
    assert (ended.status, ended.left) == (1, ["script"])
    assert ended.said("empty.py ended without a step of an optimizer; 13 are needed")


def test_a_script_that_raises(tmp_path: Path) -> None:
    ended = run(tmp_path, "raises")
    assert (ended.status, ended.left) == (1, [])
    assert ended.said("LookupError: a mistake of the user") == 1
    assert ended.said("after 5 steps, profiled.py failed: LookupError; no profile was written")
    files = [line for line in ended.lines if line.lstrip().startswith("File ")]
    assert files
    assert all("cli/profiled.py" in line for line in files)


def test_the_status_is_that_of_the_script(tmp_path: Path) -> None:
    ended = run(tmp_path, "exits")
    assert (ended.status, ended.left) == (7, [])
    assert ended.said("after 5 steps, profiled.py ended with status 7; no profile was written")


def test_a_script_that_is_killed(tmp_path: Path) -> None:
    ended = run(tmp_path, "killed")
    assert (ended.status, ended.left) == (128 + signal.SIGKILL, [])
    assert ended.said("was ended by signal 9 and left no word")


def test_one_rank_that_fails(tmp_path: Path) -> None:
    ended = run(tmp_path, "fails", "1000", "horovod", np=2)
    assert (ended.status, ended.left) == (1, [])
    assert ended.said("LookupError: a mistake of the user") == 1
    assert ended.said("on rank 1, after 5 steps, profiled.py failed: LookupError")


def test_ctrl_c(tmp_path: Path) -> None:
    ended = run(tmp_path, "interrupted", interrupt_at="interrupt now")
    assert (ended.status, ended.left) == (130, [])
    assert ended.said("profiled.py was interrupted; no profile was written") == 1
