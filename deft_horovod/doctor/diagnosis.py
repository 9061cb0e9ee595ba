"""What is wrong with a set-up, or could be better, and what to do about it. Rules, without I/O."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, Literal

from deft_horovod.doctor.machine import Checkup, Machine
from deft_horovod.profile import LinkProfile

Level = Literal["ok", "note", "problem"]

_OF_SPEED: Final = 0.6  # of an interface, that a link should reach
_FAST_MBIT: Final = 10_000
_JUMBO: Final = 8_900
_SLOW_START_US: Final = 5_000.0
_LONG_CYCLE_MS: Final = 5.0
_BITS: Final = 8.0


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at."""

    level: Level
    subject: str
    text: str
    advice: str = ""


def diagnose(checkup: Checkup) -> list[Finding]:
    """The problems first, then what could be better, then what is well."""
    found = [
        *_versions(checkup),
        *_extension(checkup),
        *_cores(checkup),
        *_interfaces(checkup),
        *_settings(checkup),
        *(finding for link in checkup.links for finding in _link(checkup, link)),
    ]
    order: tuple[Level, ...] = ("problem", "note", "ok")
    return sorted(found, key=lambda finding: order.index(finding.level))


def wire_mbit(link: LinkProfile, ranks: int) -> float:
    """What a rank sends while a large message travels, if it goes round a ring."""
    rounds = 2.0 * (ranks - 1) / ranks if ranks > 1 else 0.0
    return _BITS * rounds / max(link.cost.beta_us_per_byte, 1e-12)


def _of_ranks(machines: Iterable[Machine]) -> str:
    numbers = sorted(machine.rank for machine in machines)
    return f"rank{'' if len(numbers) == 1 else 's'} {', '.join(map(str, numbers))}"


def _versions(checkup: Checkup) -> Iterator[Finding]:
    first = checkup.machines[0].versions
    told = ", ".join(f"{name} {version or '(missing)'}" for name, version in first.items())
    others = [m for m in checkup.machines if m.versions != first]
    if others:
        differing = sorted(
            {name for m in others for name in first if m.versions.get(name) != first[name]}
        )
        yield Finding(
            "problem",
            "versions",
            f"{', '.join(differing)} differ between rank {checkup.machines[0].rank} and "
            f"{_of_ranks(others)}",
            "install the same versions everywhere",
        )
        return
    missing = [name for name, version in first.items() if not version]
    if missing:
        advice = "set up with scripts/setup.sh, or pip install deft_horovod"
        yield Finding("problem", "versions", f"not installed: {', '.join(missing)}", advice)
        return
    yield Finding("ok", "versions", told)


def _extension(checkup: Checkup) -> Iterator[Finding]:
    broken = [m for m in checkup.machines if m.extension]
    if broken:
        yield Finding("problem", "extension", f"{_of_ranks(broken)}: {broken[0].extension}")
        return
    transports = sorted({t for m in checkup.machines for t in m.transports})
    yield Finding(
        "ok", "extension", f"fits Horovod and torch; Horovod has {', '.join(transports) or 'none'}"
    )


def _cores(checkup: Checkup) -> Iterator[Finding]:
    by_host = Counter(m.host for m in checkup.machines)
    for machine in {m.host: m for m in checkup.machines}.values():
        ranks = max(by_host[machine.host], machine.ranks_on_host)
        wanted = ranks * machine.threads
        text = (
            f"{machine.host}: {ranks} rank{'' if ranks == 1 else 's'} with {machine.threads} "
            f"thread{'' if machine.threads == 1 else 's'} each on {machine.cores} cores"
        )
        if wanted > machine.cores:
            each = max(1, machine.cores // ranks)
            advice = (
                f"OMP_NUM_THREADS={each}: threads that wait for a core delay Horovod's own"
                if each < machine.threads
                else "start fewer ranks on this host: Horovod's threads wait for a core"
            )
            yield Finding("note", "cores", text, advice)
        else:
            yield Finding("ok", "cores", text)
        if machine.load - ranks > machine.cores / 2:
            yield Finding(
                "note",
                "cores",
                f"{machine.host}: {machine.load:.1f} processes wanted a core in the last minute",
                "measure when nothing else runs",
            )


def _interfaces(checkup: Checkup) -> Iterator[Finding]:
    carriers = {m.rank: m.carrier for m in checkup.machines if m.carrier is not None}
    sizes = {nic.mtu for nic in carriers.values() if not nic.loopback}
    if len(sizes) > 1:
        text = f"packets of {', '.join(map(str, sorted(sizes)))} bytes on different ranks"
        yield Finding("problem", "MTU", text, "set the same MTU on all hosts and switches")
    for machine in {m.host: m for m in checkup.machines}.values():
        nic = carriers.get(machine.rank)
        if nic is None:
            continue
        speed = f"{nic.speed_mbit} Mbit/s" if nic.speed_mbit else "speed unknown"
        text = f"{machine.host}: traffic goes over {nic.name} ({speed}, MTU {nic.mtu})"
        faster = [
            other.name
            for other in machine.nics
            if not other.loopback and other.speed_mbit > max(1, nic.speed_mbit) > 1
        ]
        if faster and not nic.loopback:
            advice = f"{faster[0]} is faster: horovodrun --network-interfaces {faster[0]}"
            yield Finding("note", "interface", text, advice)
        elif nic.speed_mbit >= _FAST_MBIT and nic.mtu < _JUMBO and not nic.loopback:
            advice = "packets of 9000 bytes cost the processor less, if all switches take them"
            yield Finding("note", "interface", text, advice)
        else:
            yield Finding("ok", "interface", text)


def _settings(checkup: Checkup) -> Iterator[Finding]:
    first = checkup.machines[0].environment
    shared = {n: v for n, v in first.items() if not n.startswith(_OF_A_RANK)}
    for machine in checkup.machines[1:]:
        others = {n: v for n, v in machine.environment.items() if not n.startswith(_OF_A_RANK)}
        differing = sorted(n for n in {*shared, *others} if shared.get(n) != others.get(n))
        if differing:
            text = f"{', '.join(differing)} differ on rank {machine.rank}"
            yield Finding("problem", "settings", text, "set the same on all ranks")
            return
    cycle_ms = _number(first.get("HOROVOD_CYCLE_TIME"))
    if cycle_ms is not None and cycle_ms > _LONG_CYCLE_MS:
        text = f"HOROVOD_CYCLE_TIME is {cycle_ms:g} ms, and every message waits for a cycle"
        yield Finding("note", "settings", text, "leave it out: Horovod's default is 1 ms")
    if first.get("HOROVOD_CACHE_CAPACITY") == "0":
        text = "HOROVOD_CACHE_CAPACITY is 0, so every message is negotiated anew"
        yield Finding("problem", "settings", text, "leave it out")
    if first.get("HOROVOD_AUTOTUNE", "0") not in ("", "0"):
        text = "HOROVOD_AUTOTUNE changes Horovod's fusion while plans count on it"
        yield Finding("note", "settings", text, "leave it out where deft_horovod plans")


# Horovod's launcher tells each rank who it is and where to meet.
_OF_A_RANK: Final = (
    "HOROVOD_RANK",
    "HOROVOD_LOCAL_",
    "HOROVOD_CROSS_",
    "HOROVOD_SIZE",
    "HOROVOD_HOSTNAME",
    "HOROVOD_GLOO_",
    "HOROVOD_CONTROLLER",
    "HOROVOD_CPU_OPERATIONS",
)


def _link(checkup: Checkup, link: LinkProfile) -> Iterator[Finding]:
    ranks = len(checkup.machines)
    mbit = wire_mbit(link, ranks)
    text = (
        f"{link.cost.alpha_us / 1e3:.2f} ms a message, then {mbit:.0f} Mbit/s sent by each of "
        f"{ranks} ranks ({link.residual:.0%} off that line)"
    )
    carriers = [m.carrier for m in checkup.machines]
    speeds = [nic.speed_mbit for nic in carriers if nic is not None and not nic.loopback]
    slowest = min((speed for speed in speeds if speed), default=0)
    if slowest and mbit < _OF_SPEED * slowest:
        advice = (
            f"the interface has {slowest} Mbit/s: look for other traffic, a busy processor, or a "
            "slower switch on the way"
        )
        yield Finding("note", f"link {link.name}", text, advice)
    elif link.cost.alpha_us > _SLOW_START_US:
        advice = "a message should start within a few ms: look for waiting threads or a long cycle"
        yield Finding("note", f"link {link.name}", text, advice)
    else:
        yield Finding("ok", f"link {link.name}", text)


def _number(text: str | None) -> float | None:
    try:
        return None if text is None else float(text)
    except ValueError:
        return None
