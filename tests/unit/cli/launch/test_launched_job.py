"""Real jobs: their status, their output, their end by a signal."""

import os
import pty
import signal
import subprocess
import sys
import time

import pytest

from deft_horovod.cli.launch.launched_job import run_job
from tests.places import ROOT

RUN = """
import sys
from pathlib import Path
from deft_horovod.cli.launch.launched_job import run_job
sys.exit(run_job([sys.executable, "-u", "-c", sys.argv[2]], Path(sys.argv[1])))
"""
SLOW = """
import os, signal, sys, time
try:
    print("ready")
    time.sleep(30)
except KeyboardInterrupt:
    print("cleaned up")
"""
STEPS = """
import sys, time
from pathlib import Path
from deft_horovod.job.exit_report import tell_progress
for step in range(1, 5):
    tell_progress(Path.cwd(), step, 4)
    time.sleep(0.3)
print("said on stdout")
print("said on stderr", file=sys.stderr)
"""


def started(folder, code, **options):
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TERM": "xterm", "COLUMNS": "100"}
    command = [sys.executable, "-c", RUN, str(folder), code]
    return subprocess.Popen(command, cwd=folder, env=environment, **options)


@pytest.mark.parametrize("status", [0, 7])
def test_its_status(tmp_path, status):
    assert run_job([sys.executable, "-c", f"import sys; sys.exit({status})"], tmp_path) == status


def test_a_signal_is_a_negative_status(tmp_path):
    code = "import os; os.kill(os.getpid(), 9)"
    assert run_job([sys.executable, "-c", code], tmp_path) == -9


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_reaches_it_once_and_lets_it_clean_up(tmp_path, number):
    with started(tmp_path, SLOW, stdout=subprocess.PIPE, text=True) as job:
        assert job.stdout.readline() == "ready\n"
        began_s = time.monotonic()
        job.send_signal(number)
        rest, _ = job.communicate(timeout=30)
    assert job.returncode == 130
    assert rest == "cleaned up\n"
    assert time.monotonic() - began_s < 10


def test_it_can_be_interrupted_also_where_interrupts_are_ignored(tmp_path):
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with started(tmp_path, SLOW, stdout=subprocess.PIPE, text=True) as job:
            assert job.stdout.readline() == "ready\n"
            job.terminate()
            rest, _ = job.communicate(timeout=30)
    finally:
        signal.signal(signal.SIGINT, before)
    assert (job.returncode, rest) == (130, "cleaned up\n")


def test_stdout_can_be_kept_free(tmp_path, capfd):
    assert run_job([sys.executable, "-c", "print('said')"], tmp_path, quiet_stdout=True) == 0
    assert capfd.readouterr() == ("", "said\n")


def test_a_terminal_shows_progress_and_every_line(tmp_path):
    ours, theirs = pty.openpty()
    with started(tmp_path, STEPS, stdout=subprocess.PIPE, stderr=theirs, text=True) as job:
        os.close(theirs)
        shown = b""
        while True:
            try:
                part = os.read(ours, 1 << 16)
            except OSError:  # the terminal is closed
                break
            if not part:
                break
            shown += part
        stdout = job.stdout.read()
    os.close(ours)
    assert job.returncode == 0
    assert stdout == "said on stdout\n"
    assert b"said on stderr" in shown
    assert b"profiling" in shown
    assert b"2/4" in shown
