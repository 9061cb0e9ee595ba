#!/usr/bin/env python3
"""One machine as a small cluster: hosts h1..hN with links of a given rate. Needs root and iproute2.

  cluster.py up --hosts 2 --rate 500        make the hosts; rate in Mbit/s, in each direction
  cluster.py run [--hosts 2] -- COMMAND     COMMAND under horovodrun, one rank on each host
  cluster.py down                           remove everything, also what still runs in there

A host is a network namespace; its eth0 (10.77.0.i) ends at a bridge in a namespace of its own, and
both ends of the cable are shaped. horovodrun is the unmodified one: a stand-in for ssh enters the
namespaces. There is no added latency and no loss.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PREFIX = "deft-"
SWITCH = PREFIX + "switch"
NETWORK = "10.77.0."
MOST_HOSTS = 64
CANNOT = 3  # exit status: this machine cannot be a cluster

# Horovod's synchronize() spins on sched_yield: with more ranks than cores the spinning takes the
# processor from those who work. Sleeping instead is what a rank on a machine of its own would see.
CALM_SOURCE = """\
#include <sys/prctl.h>
#include <time.h>
__attribute__((constructor)) static void precise_sleep(void) { prctl(PR_SET_TIMERSLACK, 1000UL); }
int sched_yield(void) {
  const struct timespec pause = {0, 200000};
  nanosleep(&pause, 0);
  return 0;
}
"""

SSH = """\
#!/bin/sh
# Stands in for ssh: the "remote" host is a network namespace of this machine. Horovod gives options
# before and after the host.
host=
while [ $# -gt 0 ]; do
  case "$1" in
    -o | -p | -i | -l | -F) shift 2 ;;
    -*) shift ;;
    *) [ -z "$host" ] || break; host=$1; shift ;;
  esac
done
exec nsenter --net="/run/netns/{prefix}$host" unshare --uts --mount sh -c '
  hostname "$1" && mount --bind {hosts} /etc/hosts && shift && exec sh -c "$*"' sh "$host" "$@"
"""


class ClusterError(RuntimeError):
    """Something is missing or refused; the message says what to do."""


@dataclass(frozen=True)
class Shape:
    """How a cable end is shaped.

    The bucket must hold the largest packet that segmentation offload hands over, headers included;
    else the shaper cuts it into single frames and the processor becomes the limit.
    """

    rate_mbit: int

    @property
    def offload_bytes(self) -> int:
        """What the line carries in 262 us, within the bounds of offloading."""
        return max(3028, min(65536, self.rate_mbit * 262 // 8))

    @property
    def burst_bytes(self) -> int:
        return self.offload_bytes * 12 // 10 + 600

    def commands(self, namespace: str, device: str) -> list[str]:
        size = self.offload_bytes
        bucket = f"rate {self.rate_mbit}mbit burst {self.burst_bytes} limit 1048576"
        return [
            f"ip -n {namespace} link set dev {device} gso_max_size {size} gro_max_size {size}",
            f"tc -n {namespace} qdisc replace dev {device} root tbf {bucket}",
        ]


def run(command: str, *, check: bool = True) -> str:
    words = shlex.split(command)
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if check and done.returncode != 0:
        raise ClusterError(f"`{command}` failed: {done.stderr.strip()}")
    return done.stdout


def require_tools() -> None:
    missing = [tool for tool in ("ip", "tc", "nsenter", "unshare") if shutil.which(tool) is None]
    if missing:
        raise ClusterError(f"missing: {', '.join(missing)}: apt-get install -y iproute2 util-linux")
    if os.geteuid() != 0:
        raise ClusterError("network namespaces need root")


def namespaces() -> list[str]:
    names = [line.split()[0] for line in run("ip netns list").splitlines() if line.strip()]
    return sorted(name for name in names if name.startswith(PREFIX))


def host_count() -> int:
    return sum(name != SWITCH for name in namespaces())


def up_commands(hosts: int, shape: Shape) -> list[str]:
    commands = [
        f"ip netns add {SWITCH}",
        f"ip -n {SWITCH} link add bridge type bridge",
        f"ip -n {SWITCH} link set bridge up",
    ]
    for number in range(1, hosts + 1):
        host, port = f"{PREFIX}h{number}", f"port{number}"
        commands += [
            f"ip netns add {host}",
            f"ip -n {SWITCH} link add {port} type veth peer name eth0 netns {host}",
            f"ip -n {SWITCH} link set {port} master bridge up",
            f"ip -n {host} link set lo up",
            f"ip -n {host} addr add {NETWORK}{number}/24 dev eth0",
            f"ip -n {host} link set eth0 up",
            *shape.commands(SWITCH, port),
            *shape.commands(host, "eth0"),
        ]
    return commands


def up(hosts: int, rate_mbit: int) -> None:
    require_tools()
    if namespaces():
        raise ClusterError("a cluster is up already; `cluster.py down` removes it")
    try:
        for command in up_commands(hosts, Shape(rate_mbit)):
            run(command)
    except ClusterError:
        down()
        raise


def down() -> None:
    """Ends what runs in the namespaces, and removes them."""
    for kind in (signal.SIGTERM, signal.SIGKILL):
        inside = [int(pid) for name in namespaces() for pid in run(f"ip netns pids {name}").split()]
        for pid in inside:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, kind)
        if inside:
            time.sleep(0.5)
    for name in namespaces():
        run(f"ip netns delete {name}", check=False)


def calm_library(folder: Path) -> Path | None:
    """The library that makes waiting ranks sleep, if there is a compiler."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        return None
    source, library = folder / "calm.c", folder / "calm.so"
    source.write_text(CALM_SOURCE, encoding="utf-8")
    run(f"{compiler} -O1 -shared -fPIC -o {library} {source}")
    return library


def launch(hosts: int, command: list[str], calm: bool) -> int:
    require_tools()
    if not 1 <= hosts <= host_count():
        raise ClusterError(f"{host_count()} hosts are up, {hosts} are asked for")
    with tempfile.TemporaryDirectory(prefix="deft-cluster-") as name:
        folder = Path(name)
        table = ["127.0.0.1 localhost"]
        table += [f"{NETWORK}{number} h{number}" for number in range(1, hosts + 1)]
        (folder / "hosts").write_text("\n".join(table) + "\n", encoding="utf-8")
        ssh = folder / "ssh"
        ssh.write_text(SSH.format(prefix=PREFIX, hosts=folder / "hosts"), encoding="utf-8")
        ssh.chmod(0o755)
        environment = dict(os.environ)
        environment["PATH"] = os.pathsep.join(
            [str(folder), str(Path(sys.executable).parent), environment.get("PATH", "")]
        )
        library = calm_library(folder) if calm else None
        words = ["horovodrun", "--disable-cache", "--network-interfaces", "eth0"]
        words += ["-np", str(hosts), "-H", ",".join(f"h{i}:1" for i in range(1, hosts + 1))]
        # Only the ranks are calmed: env comes after horovodrun.
        words += ["env", f"LD_PRELOAD={library}"] if library else []
        inside = shlex.join([*words, *command])
        done = subprocess.run([str(ssh), "h1", inside], env=environment, check=False)
        return done.returncode


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    actions = parser.add_subparsers(dest="action", required=True)
    make = actions.add_parser("up", help="make the hosts")
    make.add_argument("--hosts", type=int, default=2, choices=range(1, MOST_HOSTS + 1), metavar="N")
    make.add_argument("--rate", type=int, default=500, help="Mbit/s in each direction")
    start = actions.add_parser("run", help="run a command under horovodrun")
    start.add_argument("--hosts", type=int, help="use the first N hosts; default: all")
    start.add_argument("--spin", action="store_true", help="let waiting ranks spin, as they come")
    start.add_argument("command", nargs=argparse.REMAINDER)
    actions.add_parser("down", help="remove everything")
    options = parser.parse_args(arguments)
    try:
        if options.action == "up":
            up(options.hosts, options.rate)
        elif options.action == "down":
            require_tools()
            down()
        else:
            command = [word for i, word in enumerate(options.command) if i or word != "--"]
            if not command:
                parser.error("run needs a command")
            return launch(options.hosts or host_count(), command, calm=not options.spin)
    except ClusterError as error:
        print(f"cluster: {error}", file=sys.stderr)
        return CANNOT
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
