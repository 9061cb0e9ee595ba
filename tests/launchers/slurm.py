"""A Slurm of two nodes, both on this machine."""

from __future__ import annotations

import contextlib
import getpass
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

_HOST: Final = socket.gethostname().split(".")[0]
# Ranks find the first node by its name; of the second none has to.
_NODES: Final = (_HOST, f"{_HOST}-b")
_BEGIN_S: Final = 30
# auth/none and cred/none: all users of it are those of the test.
_CONF: Final = """
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/none
CredType=cred/none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SchedulerType=sched/builtin
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
MpiDefault=none
SlurmctldPort={ports[0]}
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/%n.pid
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool.%n
NodeName={nodes} NodeHostname={host} NodeAddr=127.0.0.1 Port=[{ports[1]},{ports[2]}] CPUs=2
PartitionName=all Nodes=ALL Default=YES MaxTime=10:00 State=UP
"""


def missing() -> str:
    """Why there can be no Slurm here; empty: there can."""
    absent = [name for name in ("slurmctld", "slurmd", "srun") if shutil.which(name) is None]
    return f"no {', '.join(absent)}: apt-get install -y slurm-wlm" if absent else ""


def free_ports(number: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.create_server(("", 0))) for _ in range(number)]
        return [one.getsockname()[1] for one in sockets]


def _wait_until_idle(environment: Mapping[str, str], folder: Path) -> None:
    command = ["sinfo", "--noheader", "--format=%D", "--states=idle"]
    end_s = time.monotonic() + _BEGIN_S
    while time.monotonic() < end_s:
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        if done.stdout.strip() == str(len(_NODES)):
            return
        time.sleep(0.2)
    logs = "\n".join(path.read_text()[-2000:] for path in sorted(folder.glob("*.log")))
    raise AssertionError(f"Slurm has not begun within {_BEGIN_S} s:\n{logs}")


@contextlib.contextmanager
def running(folder: Path) -> Iterator[dict[str, str]]:
    """It runs; gives the environment in which srun and sbatch are its own."""
    (folder / "state").mkdir()
    conf = folder / "slurm.conf"
    conf.write_text(
        _CONF.format(
            folder=folder,
            host=_HOST,
            user=getpass.getuser(),
            nodes=",".join(_NODES),
            ports=sorted(free_ports(3)),
        )
    )
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("HOROVOD_", "DEFT_"))}
    environment = {**kept, "SLURM_CONF": str(conf)}
    commands = {"slurmctld": ["slurmctld", "-D", "-c"]}
    commands |= {node: ["slurmd", "-D", "-N", node] for node in _NODES}
    daemons = []
    try:
        for name, command in commands.items():
            with (folder / f"{name}.log").open("w") as log:
                daemons.append(
                    subprocess.Popen(command, env=environment, stdout=log, stderr=log, cwd=folder)
                )
        _wait_until_idle(environment, folder)
        yield environment
    finally:
        user = ["scancel", "--signal=KILL", f"--user={getpass.getuser()}"]
        with contextlib.suppress(subprocess.TimeoutExpired):  # there is none to cancel
            subprocess.run(user, env=environment, capture_output=True, timeout=5, check=False)
        for daemon in reversed(daemons):
            daemon.terminate()
            daemon.wait(20)


def output_of(batch: list[str], environment: Mapping[str, str], limit_s: float) -> str:
    """What a batch job says, once it has ended well. Its output has to go to NUMBER.out."""

    def said(*words: str) -> str:
        folder = Path(environment["SLURM_CONF"]).parent
        done = subprocess.run(
            words, env=environment, cwd=folder, capture_output=True, text=True, check=True
        )
        return done.stdout

    number = said(*batch[:1], "--parsable", *batch[1:]).strip()
    end_s = time.monotonic() + limit_s
    # `sbatch --wait` looks every few seconds, and then less and less often.
    while said("squeue", "--noheader", f"--jobs={number}") and time.monotonic() < end_s:
        time.sleep(0.2)
    state = said("scontrol", "show", "job", number)
    output = (Path(environment["SLURM_CONF"]).parent / f"{number}.out").read_text()
    assert "JobState=COMPLETED" in state, state + output
    return output
