"""The small cluster on one machine: what can be checked without being root."""

from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

LARGEST_PACKET_BYTES = 65536
HEADER_BYTES = 100


def test_shaper_never_cuts_a_packet(cluster: ModuleType) -> None:
    @given(rate_mbit=st.integers(1, 100_000))
    def check(rate_mbit: int) -> None:
        shape = cluster.Shape(rate_mbit)
        assert 3028 <= shape.offload_bytes <= LARGEST_PACKET_BYTES
        assert shape.burst_bytes > shape.offload_bytes + HEADER_BYTES

    check()


def test_every_host_has_a_cable_shaped_at_both_ends(cluster: ModuleType) -> None:
    commands = cluster.up_commands(3, cluster.Shape(200))
    shaped = [command for command in commands if "tbf rate 200mbit" in command]
    assert len(shaped) == 6
    assert len([c for c in commands if c.startswith("ip netns add")]) == 4
    assert len({c.split(" addr add ")[1].split()[0] for c in commands if " addr add " in c}) == 3


def test_failing_up_leaves_nothing_behind(
    cluster: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[str] = []

    def run(command: str, *, check: bool = True) -> str:
        if command.startswith("ip netns add"):
            made.append(command.rsplit(maxsplit=1)[-1])
        if command.startswith("ip netns delete"):
            made.remove(command.rsplit(maxsplit=1)[-1])
        if command == "ip netns list":
            return "".join(f"{name} (id: 1)\n" for name in made)
        if command.startswith("tc") and check:
            raise cluster.ClusterError("no tbf here")
        return ""

    monkeypatch.setattr(cluster, "run", run)
    monkeypatch.setattr(cluster, "require_tools", lambda: None)
    with pytest.raises(cluster.ClusterError, match="no tbf here"):
        cluster.up(2, 100)
    assert made == []


def test_missing_tools_are_named(cluster: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster.shutil, "which", lambda tool: None if tool == "tc" else tool)
    with pytest.raises(cluster.ClusterError, match="missing: tc: apt-get install"):
        cluster.require_tools()
