"""Starting rank programs: what they get, what is heard of them, and that they end."""

import sys
import time

import pytest

from scripts.cluster import jobs

PATIENCE_S = 10


def test_options_arrive_as_they_were_given(monkeypatch: pytest.MonkeyPatch) -> None:
    assert jobs.given_options() is None
    made = jobs.environment({"a": [1, "x"], "path": jobs.ROOT}, {"KEPT": "1"}, MORE="2")
    assert (made["KEPT"], made["MORE"], made["OMP_NUM_THREADS"]) == ("1", "2", "1")
    monkeypatch.setenv(jobs.OPTIONS_VARIABLE, made[jobs.OPTIONS_VARIABLE])
    assert jobs.given_options() == {"a": [1, "x"], "path": str(jobs.ROOT)}


def run(code: str, **more: object) -> tuple[int, list[str], float]:
    lines: list[str] = []
    began_s = time.monotonic()
    status = jobs.stream([sys.executable, "-c", code], {}, lines.append, **more)
    return status, lines, time.monotonic() - began_s


def test_lines_lose_what_horovodrun_puts_before_them() -> None:
    code = "import sys; print('[0]<stdout>:a'); print('b'); sys.stdout.flush(); sys.exit(7)"
    status, lines, _ = run(code)
    assert (status, lines) == (7, ["a\n", "b\n"])


def test_a_job_ends_at_its_limit() -> None:
    status, lines, took_s = run("import time; print(1, flush=True); time.sleep(99)", limit_s=2)
    assert status == jobs.TIMED_OUT
    assert lines == ["1\n"]
    assert took_s < PATIENCE_S


def test_nobody_who_inherits_the_output_keeps_us(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "LAST_WORDS_S", 0.1)
    code = "import subprocess; subprocess.Popen(['sleep', '20'])"
    assert run(code)[2] < PATIENCE_S


def test_what_insists_on_running_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "PATIENCE_S", 0.2)
    asked: list[str] = []
    status, _, took_s = run(
        "import time; time.sleep(99)", limit_s=0.5, end=lambda: asked.append("end")
    )
    assert (status, asked) == (jobs.TIMED_OUT, ["end"])
    assert took_s < PATIENCE_S
