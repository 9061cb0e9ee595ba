"""The small cluster on one machine: what can be checked without being root."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scripts.cluster import cluster

LARGEST_PACKET_BYTES = 65536
HEADER_BYTES = 100


def test_shaper_never_cuts_a_packet() -> None:
    @given(rate_mbit=st.integers(1, 100_000))
    def check(rate_mbit: int) -> None:
        shape = cluster.Shape(rate_mbit)
        assert 3028 <= shape.offload_bytes <= LARGEST_PACKET_BYTES
        assert shape.burst_bytes > shape.offload_bytes + HEADER_BYTES

    check()


def test_every_host_has_a_cable_shaped_at_both_ends() -> None:
    commands = cluster.up_commands(3, [cluster.Shape(200), cluster.Shape(50)])
    for rate in (200, 50):
        assert len([c for c in commands if f"tbf rate {rate}mbit" in c]) == 6
    assert len([c for c in commands if c.startswith("ip netns add")]) == 4
    assert len({c.split(" addr add ")[1].split()[0] for c in commands if " addr add " in c}) == 6
    ends = [c.split(" dev ")[1].split()[0] for c in commands if " addr add " in c]
    assert ends == ["eth0"] * 3 + ["eth1"] * 3


def test_every_route_names_its_congestion_control() -> None:
    commands = cluster.up_commands(2, [cluster.Shape(200)])
    assert len([c for c in commands if c.endswith("congctl cubic")]) == 2


def test_failing_up_leaves_nothing_behind(monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_missing_tools_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster.shutil, "which", lambda tool: None if tool == "tc" else tool)
    with pytest.raises(cluster.ClusterError, match="missing: tc: apt-get install"):
        cluster.require_tools()


def test_without_root_it_refuses_with_the_reason(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(cluster.shutil, "which", lambda tool: tool)
    monkeypatch.setattr(cluster.os, "geteuid", lambda: 1000)
    monkeypatch.setattr(cluster, "IN_USE", cluster.IN_USE + "-test")
    for action in ("up", "down", "rate"):
        assert cluster.main([action]) == cluster.CANNOT
        assert "network namespaces need root" in capsys.readouterr().err


def test_one_user_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "IN_USE", cluster.IN_USE + "-test")
    refused = pytest.raises(cluster.ClusterError, match="another command")
    with cluster.claimed(), refused, cluster.claimed():
        pass
    with cluster.claimed():
        pass


def test_urgent_ranks_are_calm(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(cluster, "STATE", tmp_path)
    with pytest.raises(cluster.ClusterError, match="never lets go"):
        cluster.rank_prefix(calm=False, urgent=True)
    words = cluster.rank_prefix(calm=True, urgent=True)
    assert words == ["env", f"LD_PRELOAD={tmp_path / 'calm.so'}", "chrt", "-r", "5"]
    monkeypatch.setattr(cluster.shutil, "which", lambda _: None)
    with pytest.raises(cluster.ClusterError, match="calm library"):
        cluster.rank_prefix(calm=True, urgent=True)
    assert cluster.rank_prefix(calm=True, urgent=False) == []


def test_hosts_may_have_several_ranks(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(cluster, "STATE", tmp_path)
    monkeypatch.setattr(cluster, "require_tools", lambda: None)
    monkeypatch.setattr(cluster, "host_count", lambda: 3)
    words, _ = cluster.job(2, ["train"], {}, ranks_per_host=4, calm=False)
    assert "-np 8 -H h1:4,h2:4" in words[-1]
    words, _ = cluster.job(3, ["train"], {}, calm=False)
    assert "-np 3 -H h1:1,h2:1,h3:1" in words[-1]


def test_turns_are_short_for_a_while(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    turns = tmp_path / "turns"
    monkeypatch.setattr(cluster, "TURNS", turns)
    with pytest.raises(cluster.ClusterError, match="cannot be written"), cluster.short_turns():
        pass
    turns.write_text("100\n")
    with pytest.raises(ValueError, match="1"), cluster.short_turns():
        raise ValueError(turns.read_text())
    assert turns.read_text() == "100\n"


def test_rates_change_only_where_there_is_a_link(monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []
    monkeypatch.setattr(cluster, "run", lambda command, **_: done.append(command) or "")
    monkeypatch.setattr(cluster, "require_tools", lambda: None)
    monkeypatch.setattr(cluster, "host_count", lambda: 2)
    monkeypatch.setattr(cluster, "link_count", lambda: 1)
    with pytest.raises(cluster.ClusterError, match="no second link"):
        cluster.change_rate(100, 50)
    assert done == []
    cluster.change_rate(100)
    assert len([c for c in done if "rate 100mbit" in c]) == 4
