"""``python -m deft_horovod script``: an unmodified Horovod script with ours in the place."""

from __future__ import annotations

import functools
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from deft_horovod.config import Config
from tests.parallel.launch import SCRIPTS, Result, run_ranks
from tests.places import ROOT

pytestmark = pytest.mark.timeout(100)

OURS = "deft_horovod.runtime.wrapper"
STOCK = "horovod.torch.optimizer"
SCRIPT = str(SCRIPTS / "cli/plain_script.py")
MAIN = ("-m", "deft_horovod")


def run_alone(
    *words: str, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """`python -m deft_horovod WORDS`, as one process without a launcher."""
    return subprocess.run(
        [sys.executable, *MAIN, *words],
        capture_output=True,
        text=True,
        timeout=60,
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(ROOT), **(env or {})},
        cwd=SCRIPTS / "cli",
        check=False,
    )


@functools.cache
def substituted() -> list[dict[str, Any]]:
    job = run_ranks(SCRIPT, 2, "first", "second words", interpreter=MAIN)
    return job.require_success().results


@functools.cache
def disabled() -> list[dict[str, Any]]:
    job = run_ranks(SCRIPT, 2, interpreter=MAIN, env={"DEFT_DISABLE": "1"})
    return job.require_success().results


def test_every_import_gives_ours() -> None:
    for rank in substituted():
        assert rank["modules"] == [OURS, OURS]
        assert rank["is_torch"]
        assert all(count > 0 for count in rank["steps"])
        assert rank["state"] == "deft_horovod.torch.elastic"
        assert rank["same_module"]
        assert rank["elastic"]
        assert rank["mean"] == 0.5


def test_the_script_is_the_main_program_with_its_arguments() -> None:
    for rank in substituted():
        assert rank["arguments"] == ["first", "second words"]
        assert rank["name"] == "__main__"
        assert rank["argv0"] == SCRIPT


def test_disabled_it_is_plain_horovod() -> None:
    for rank in disabled():
        assert rank["modules"] == [STOCK, STOCK]
        assert rank["steps"] == [None, None]
        assert rank["state"] == "horovod.torch.elastic.state"


def test_both_train_the_same() -> None:
    assert substituted()[0]["parameters"] == disabled()[0]["parameters"]
    assert substituted()[0]["parameters"] == substituted()[1]["parameters"]


@pytest.mark.parametrize(("disable", "module"), [("0", OURS), ("1", STOCK)])
def test_the_other_entry_knows_the_switch_too(disable: str, module: str) -> None:
    job = run_ranks("cli/both_entries.py", 2, env={"DEFT_DISABLE": disable})
    for rank in job.require_success().results:
        assert rank["module"] == module


def alone(tmp_path: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """The script on one rank, without a launcher."""
    env = {"PARALLEL_RESULTS": str(tmp_path), "HOROVOD_RANK": "0", "HOROVOD_SIZE": "1"}
    return run_alone(*words, env=env)


@pytest.mark.parametrize("status", [0, 7])
def test_the_exit_status_is_the_scripts(tmp_path: Path, status: int) -> None:
    ended = alone(tmp_path, SCRIPT, str(status))
    assert ended.returncode == status, ended.stderr


def test_an_exception_of_the_script_is_shown_as_ever(tmp_path: Path) -> None:
    ended = alone(tmp_path, SCRIPT, "raise")
    assert ended.returncode == 1
    assert "LookupError: a mistake of the user" in ended.stderr
    assert 'plain_script.py", line' in ended.stderr


def test_a_module_runs_like_a_script(tmp_path: Path) -> None:
    ended = alone(tmp_path, "-m", "plain_script", "0", "more")
    assert ended.returncode == 0, ended.stderr
    assert '"name": "__main__"' in (tmp_path / "rank.0.json").read_text()
    assert '["0", "more"]' in (tmp_path / "rank.0.json").read_text()
    assert OURS in (tmp_path / "rank.0.json").read_text()
    assert f'"argv0": "{SCRIPT}"' in (tmp_path / "rank.0.json").read_text()


@pytest.mark.parametrize("flag", ["--help", "-h"])
def test_help_lists_every_option(flag: str) -> None:
    ended = run_alone(flag)
    assert ended.returncode == 0
    for name, field in Config.model_fields.items():
        assert f"DEFT_{name.upper()}" in ended.stdout
        assert field.description in " ".join(ended.stdout.split())
    assert "usage: horovodrun" in ended.stdout


@pytest.mark.parametrize(
    ("words", "env", "message"),
    [
        ((), {}, None),
        (("-m",), {}, "-m needs the name of a module"),
        (("absent.py",), {}, "there is no script absent.py"),
        ((SCRIPT,), {"DEFT_POLICY": "none"}, "DEFT_POLICY = 'none'"),
        ((SCRIPT,), {"DEFT_BUKET_BYTES": "1"}, "did you mean DEFT_BUCKET_BYTES?"),
        ((SCRIPT,), {"DEFT_CONFIG": "/absent.yaml"}, "/absent.yaml"),
        (("-m", "no_such_module_at_all"), {}, "no module no_such_module_at_all"),
        (("-m", "no_such_package.module"), {}, "no module no_such_package.module"),
    ],
)
def test_what_cannot_run_ends_with_a_message(
    words: tuple[str, ...], env: dict[str, str], message: str | None
) -> None:
    ended = run_alone(*words, env=env)
    assert ended.returncode == 2, ended.stderr
    assert "Traceback" not in ended.stderr
    if message is not None:
        assert message in ended.stderr
    else:
        assert "usage:" in ended.stdout


def test_a_job_with_a_bad_variable_ends_on_all_ranks_with_the_message() -> None:
    job: Result = run_ranks(SCRIPT, 2, interpreter=MAIN, env={"DEFT_DEADLINE_S": "soon"})
    assert job.returncode != 0
    assert "DEFT_DEADLINE_S = 'soon'" in job.output
    assert 'plain_script.py", line' not in job.output
