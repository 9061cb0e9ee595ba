"""The GPU check as a command."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from scripts.cluster import jobs
from scripts.gpu import check, stages
from tests.places import ROOT


@pytest.fixture(autouse=True)
def _signals_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "exit_on_sigterm", lambda: None)


def words_for(folder: Path, *more: str) -> list[str]:
    places = [f"--{name}={folder / name}" for name in ("out", "work", "carry")]
    return [*places, "--device=cpu", *more]


def command(code: str) -> tuple[str, ...]:
    return sys.executable, "-c", f"import sys; sys.path.insert(0, {str(ROOT)!r}); {code}"


def with_stages(monkeypatch: pytest.MonkeyPatch, **codes: str) -> None:
    made = [stages.Stage(n, n, command(code), 30, 1) for n, code in codes.items()]
    monkeypatch.setattr(check.gpu_plan, "stages_of", lambda _: made)


GOOD = "from scripts.gpu import results as r; r.report('good')"
BAD = "sys.exit('bad')"
AWAY = "from scripts.gpu import results as r; r.leave_out('no GPU')"


@pytest.mark.parametrize(
    ("codes", "status"),
    [({"a": GOOD}, 0), ({"a": GOOD, "b": AWAY}, 0), ({"a": BAD, "b": GOOD}, 1)],
)
def test_status_and_files(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    codes: dict,
    status: int,
) -> None:
    with_stages(monkeypatch, **codes)
    assert check.main(words_for(tmp_path)) == status
    files = {path.name for path in (tmp_path / "out").iterdir()}
    assert files == {"results.json", "summary.md", "log.txt"}
    summary = (tmp_path / "out" / "summary.md").read_text()
    assert all(f"| {name} |" in summary for name in codes)


def test_a_call_without_time_says_so_and_the_next_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_stages(monkeypatch, a=GOOD)
    assert check.main(words_for(tmp_path, "--budget-s=5")) == check.INCOMPLETE
    assert "no time" in (tmp_path / "out" / "summary.md").read_text()
    assert check.main(words_for(tmp_path)) == 0
    with_stages(monkeypatch, a=BAD)
    assert check.main(words_for(tmp_path)) == 0, "it has its answer"
    assert check.main(words_for(tmp_path, "--again=all")) == 1


def test_results_of_an_earlier_machine_are_carried(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_stages(monkeypatch, a=GOOD)
    check.main(words_for(tmp_path))
    (tmp_path / "out").rename(tmp_path / "carry")
    with_stages(monkeypatch, a=BAD, b=GOOD)
    assert check.main(words_for(tmp_path)) == 0
    found = json.loads((tmp_path / "out" / "results.json").read_text())["stages"]
    assert {name: outcome["headline"] for name, outcome in found.items()} == {
        "a": "good",
        "b": "good",
    }


def test_settings_of_the_caller_do_not_reach_the_stages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DEFT_POLICY", "bucket")
    monkeypatch.setenv("NCCL_DEBUG", "INFO")
    code = f"import os; assert not [k for k in os.environ if k[:5] in ('DEFT_', 'NCCL_')]; {GOOD}"
    with_stages(monkeypatch, a=code)
    assert check.main(words_for(tmp_path)) == 0


def test_chosen_stages_bring_what_they_need(tmp_path: Path) -> None:
    made = [
        stages.Stage("build", "", (), 1, 1),
        stages.Stage("other", "", (), 1, 1),
        stages.Stage("test", "", (), 1, 1, needs=("build",)),
    ]
    assert [s.name for s in check.with_needs(made, ["test"])] == ["build", "test"]
    with pytest.raises(SystemExit, match="no stage nope; there are: build, other, test"):
        check.with_needs(made, ["nope"])


def test_a_dry_run_builds_nothing_unless_asked(tmp_path: Path) -> None:
    def builds(*words: str) -> bool:
        return check.settings_of(check.parse(words)).build

    assert builds("--device", "cuda")
    assert not builds("--device", "cpu")
    assert builds("--device", "cpu", "--build", "always")
    assert not builds("--device", "cuda", "--build", "never")


def run_script(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(ROOT / "scripts" / "gpu_check.sh"), *words_for(folder)[:3], *words],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        env={**os.environ, "GPU_CHECK_PYTHON": sys.executable},
    )


def test_the_plan_shows_every_command_and_runs_none(tmp_path: Path) -> None:
    done = run_script(tmp_path, "--device", "cuda", "--plan")
    assert done.returncode == 0, done.stderr
    for words in ("build-staged", "--gpu staged", "--gpu nccl", "setup.py --quiet build_ext"):
        assert words in done.stdout
    assert "horovod-0.28.1.tar.gz" in done.stdout
    assert "NCCL_MULTI_RANK_GPU_ENABLE=1" in done.stdout
    assert list(tmp_path.iterdir()) == []


def test_help_and_an_unusable_file_of_results(tmp_path: Path) -> None:
    assert "--budget-s" in run_script(tmp_path, "--help").stdout
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "results.json").write_text("{")
    done = run_script(tmp_path, "--device", "cpu")
    assert done.returncode == 2
    assert "is no JSON" in done.stderr
