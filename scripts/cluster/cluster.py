"""One machine as a small cluster: hosts h1..hN with links of a given rate. Needs root and iproute2.

  cluster.py up --hosts 2 --rate 500        make the hosts; rate in Mbit/s, in each direction
             [--second-rate 200]            a second link for each host, of its own rate
  cluster.py run [--hosts 2] -- COMMAND     COMMAND under horovodrun, one rank on each host
             [--ranks-per-host 4]           or several
  cluster.py rate 250 [--second-rate 100]   other rates from now on, also under a running job
  cluster.py down                           remove everything, also what still runs in there

A host is a network namespace; its eth0 (10.77.0.i), and its eth1 (10.77.1.i) if there is a second
link, end at bridges in a namespace of their own, and both ends of each cable are shaped. horovodrun
is the unmodified one: a stand-in for ssh enters the namespaces. There is no added latency and no
loss. What a killed run has left is removed by the next `up`, or by `down`.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from scripts.cluster import jobs

PREFIX = "deft-"
SWITCH = PREFIX + "switch"
NETWORKS = ("10.77.0.", "10.77.1.")  # of eth0 and of eth1
STATE = Path("/run/deft-cluster")
IN_USE = "\0deft-cluster"  # name of a socket: nothing of it is left when its owner is killed
MOST_HOSTS = 64
PRIORITY = 5
TURNS = Path("/proc/sys/kernel/sched_rr_timeslice_ms")  # of threads of real-time priority
CANNOT = 3  # exit status: this machine cannot be a cluster

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
        raise ClusterError("network namespaces need root; run it as root (sudo)")


@contextlib.contextmanager
def claimed() -> Iterator[None]:
    """No other process makes, changes or uses a cluster meanwhile."""
    with socket.socket(socket.AF_UNIX) as owner:
        try:
            owner.bind(IN_USE)
        except OSError:
            raise ClusterError(
                "another command is using the cluster; wait for it, or end it: `cluster.py down`"
            ) from None
        yield


def namespaces() -> list[str]:
    names = [line.split()[0] for line in run("ip netns list").splitlines() if line.strip()]
    return sorted(name for name in names if name.startswith(PREFIX))


def host_count() -> int:
    return sum(name != SWITCH for name in namespaces())


def link_count() -> int:
    """How many links each host has."""
    return sum(bool(run(f"ip -n {PREFIX}h1 link show eth{i}", check=False)) for i in range(2))


# --- making and changing it ----------------------------------------------------------------------
def cable_ends(link: int, number: int) -> tuple[tuple[str, str], tuple[str, str]]:
    """(namespace, device) at the switch and at the host."""
    return (SWITCH, f"port{link}.{number}"), (f"{PREFIX}h{number}", f"eth{link}")


def rate_commands(hosts: int, link: int, shape: Shape) -> list[str]:
    return [
        command
        for number in range(1, hosts + 1)
        for end in cable_ends(link, number)
        for command in shape.commands(*end)
    ]


def link_commands(hosts: int, link: int, shape: Shape) -> list[str]:
    bridge = f"bridge{link}"
    commands = [
        f"ip -n {SWITCH} link add {bridge} type bridge",
        f"ip -n {SWITCH} link set {bridge} up",
    ]
    for number in range(1, hosts + 1):
        (_, port), (host, device) = cable_ends(link, number)
        network, address = f"{NETWORKS[link]}0/24", f"{NETWORKS[link]}{number}"
        commands += [
            f"ip -n {SWITCH} link add {port} type veth peer name {device} netns {host}",
            f"ip -n {SWITCH} link set {port} master {bridge} up",
            f"ip -n {host} addr add {address}/24 dev {device}",
            f"ip -n {host} link set {device} up",
            # The same on every machine, whatever its default; namespaces cannot set one of theirs.
            f"ip -n {host} route replace {network} dev {device} src {address} congctl cubic",
        ]
    return commands + rate_commands(hosts, link, shape)


def up_commands(hosts: int, shapes: Sequence[Shape]) -> list[str]:
    """`shapes`: one for each link."""
    commands = [f"ip netns add {SWITCH}"]
    for number in range(1, hosts + 1):
        host = f"{PREFIX}h{number}"
        commands += [f"ip netns add {host}", f"ip -n {host} link set lo up"]
    for link, shape in enumerate(shapes):
        commands += link_commands(hosts, link, shape)
    return commands


def up(hosts: int, rate_mbit: int, second_rate_mbit: int | None = None) -> None:
    require_tools()
    down()
    shapes = [Shape(rate) for rate in (rate_mbit, second_rate_mbit) if rate is not None]
    try:
        for command in up_commands(hosts, shapes):
            run(command)
    except ClusterError:
        down()
        raise


def change_rate(rate_mbit: int | None, second_rate_mbit: int | None = None) -> None:
    """Of a cluster that is up; None leaves a link as it is."""
    require_tools()
    hosts, links = host_count(), link_count()
    asked = [(i, r) for i, r in enumerate((rate_mbit, second_rate_mbit)) if r is not None]
    if any(link >= links for link, _ in asked):
        what = "no second link; make one with `up --second-rate`" if links else "no cluster up"
        raise ClusterError(f"there is {what}")
    for link, rate in asked:
        for command in rate_commands(hosts, link, Shape(rate)):
            run(command)


def clear() -> None:
    """Ends what runs in the namespaces. horovodrun alone would not do: asked to end, it waits for
    ranks that it cannot reach behind its ssh."""
    for kind in (signal.SIGTERM, signal.SIGKILL):
        inside = [int(pid) for name in namespaces() for pid in run(f"ip netns pids {name}").split()]
        for pid in inside:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, kind)
        if inside:
            time.sleep(0.5)


def down() -> None:
    """Ends what runs in the namespaces, and removes them and all files."""
    clear()
    for name in namespaces():
        run(f"ip netns delete {name}", check=False)
    shutil.rmtree(STATE, ignore_errors=True)


@contextlib.contextmanager
def standing(hosts: int, rate_mbit: int, second_rate_mbit: int | None = None) -> Iterator[None]:
    """A cluster of one's own for a while; nothing is left of it afterwards."""
    require_tools()
    with claimed():
        try:
            up(hosts, rate_mbit, second_rate_mbit)
            yield
        finally:
            down()


@contextlib.contextmanager
def short_turns() -> Iterator[None]:
    """Urgent threads take turns of a millisecond. In those of the system, a hundred times as long,
    a rank that computes keeps its own communication waiting until it sleeps."""
    try:
        before = TURNS.read_text("utf-8")
        TURNS.write_text("1\n", encoding="utf-8")
    except OSError as error:
        raise ClusterError(f"{TURNS} cannot be written: {error.strerror}") from error
    try:
        yield
    finally:
        TURNS.write_text(before, encoding="utf-8")


# --- using it ------------------------------------------------------------------------------------
def calm_library() -> Path | None:
    """The library that makes waiting ranks sleep, if there is a compiler."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        return None
    source, library = Path(__file__).resolve().with_name("calm.c"), STATE / "calm.so"
    command = f"{compiler} -O1 -shared -fPIC -Wall -Werror -o {library} {shlex.quote(str(source))}"
    run(command)
    return library


def rank_prefix(calm: bool, urgent: bool) -> list[str]:
    """What stands before the command of each rank."""
    if urgent and not calm:
        raise ClusterError("a rank of real-time priority that spins while it waits never lets go")
    library = calm_library() if calm else None
    if urgent and library is None:
        raise ClusterError("real-time priority needs the calm library: apt-get install -y gcc")
    words = ["env", f"LD_PRELOAD={library}"] if library else []
    return [*words, "chrt", "-r", str(PRIORITY)] if urgent else words


def job(
    hosts: int,
    command: Sequence[str],
    environment: dict[str, str],
    *,
    ranks_per_host: int = 1,
    calm: bool = True,
    urgent: bool = False,
) -> tuple[list[str], dict[str, str]]:
    """The words and the environment that run a command on the first hosts."""
    require_tools()
    if not 1 <= hosts <= host_count():
        raise ClusterError(f"{host_count()} hosts are up, {hosts} are asked for")
    STATE.mkdir(mode=0o755, exist_ok=True)
    table = ["127.0.0.1 localhost"]
    table += [f"{NETWORKS[0]}{number} h{number}" for number in range(1, hosts + 1)]
    (STATE / "hosts").write_text("\n".join(table) + "\n", encoding="utf-8")
    ssh = STATE / "ssh"
    ssh.write_text(SSH.format(prefix=PREFIX, hosts=STATE / "hosts"), encoding="utf-8")
    ssh.chmod(0o755)
    path = [str(STATE), str(Path(sys.executable).parent), environment.get("PATH", "")]
    words = ["horovodrun", "--disable-cache", "--network-interfaces", "eth0"]
    slots = ",".join(f"h{number}:{ranks_per_host}" for number in range(1, hosts + 1))
    words += ["-np", str(hosts * ranks_per_host), "-H", slots]
    # Only the ranks are calmed and urgent: this comes after horovodrun.
    words += rank_prefix(calm, urgent)
    inside = "exec " + shlex.join([*words, *command])  # signals reach horovodrun itself
    return [str(ssh), "h1", inside], {**environment, "PATH": os.pathsep.join(path)}


def launch(
    hosts: int, command: Sequence[str], *, ranks_per_host: int, calm: bool, urgent: bool
) -> int:
    words, environment = job(
        hosts,
        command,
        dict(os.environ),
        ranks_per_host=ranks_per_host,
        calm=calm,
        urgent=urgent,
    )
    child = subprocess.Popen(words, env=environment, preexec_fn=jobs.end_with_parent)  # noqa: PLW1509
    try:
        return child.wait()
    finally:
        clear()
        child.wait()


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    actions = made.add_subparsers(dest="action", required=True)
    make = actions.add_parser("up", help="make the hosts")
    make.add_argument("--hosts", type=int, default=2, choices=range(1, MOST_HOSTS + 1), metavar="N")
    make.add_argument("--rate", type=int, default=500, help="Mbit/s in each direction")
    make.add_argument("--second-rate", type=int, help="of a second link, eth1")
    start = actions.add_parser("run", help="run a command under horovodrun")
    start.add_argument("--hosts", type=int, help="use the first N hosts; default: all")
    start.add_argument("--ranks-per-host", type=int, default=1, metavar="N")
    start.add_argument("--spin", action="store_true", help="let waiting ranks spin, as they come")
    start.add_argument("--urgent", action="store_true", help="real-time priority for the ranks")
    start.add_argument("command", nargs=argparse.REMAINDER)
    change = actions.add_parser("rate", help="change the rates of a cluster that is up")
    change.add_argument("rate", type=int, nargs="?", help="of eth0, in Mbit/s")
    change.add_argument("--second-rate", type=int, help="of eth1")
    actions.add_parser("down", help="remove everything")
    return made


def act(options: argparse.Namespace) -> int:
    if options.action == "down":
        require_tools()
        down()
    elif options.action == "rate":
        change_rate(options.rate, options.second_rate)
    elif options.action == "up":
        with claimed():
            up(options.hosts, options.rate, options.second_rate)
    else:
        command = [word for i, word in enumerate(options.command) if i or word != "--"]
        if not command:
            raise ClusterError("run needs a command")
        with claimed():
            hosts = options.hosts or host_count()
            each, calm = options.ranks_per_host, not options.spin
            return launch(hosts, command, ranks_per_host=each, calm=calm, urgent=options.urgent)
    return 0


def main(arguments: list[str]) -> int:
    jobs.exit_on_sigterm()
    try:
        return act(parser().parse_args(arguments))
    except ClusterError as error:
        print(f"cluster: {error}", file=sys.stderr)
        return CANNOT
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
