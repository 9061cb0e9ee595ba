import json
import sys

import pytest

from deft_horovod.policies import registry
from tests.unit.support.example import fails, saved, succeeds

ALL = ["stock", *sorted({*registry()} - {"auto", "stock"})]
QUICK = ("--policy", "stock,bucket")


def outlooks(*arguments):
    return json.loads(succeeds("simulate", *arguments, "--json").stdout)["outlooks"]


def test_every_policy_but_auto_is_simulated(tmp_path):
    found = outlooks(saved(tmp_path), "--ranks", "16")
    assert [one["policy"] for one in found] == ALL
    assert {*ALL, "auto"} == set(registry())


def test_there_is_a_row_for_each_policy_rank_and_link(tmp_path):
    found = outlooks(saved(tmp_path), "--ranks", "4,64", "--link", "1gbit,500mbit", *QUICK)
    assert [(one["link"], one["ranks"], one["policy"]) for one in found] == [
        (link, ranks, policy)
        for link in ("1gbit", "500mbit")
        for ranks in (4, 64)
        for policy in ("stock", "bucket")
    ]
    for one in found:
        assert one["step_us"] == pytest.approx(one["compute_us"] + one["exposed_us"])
        assert one["efficiency"] == one["compute_us"] / one["step_us"]
        assert one["speedup"] == one["stock_us"] / one["step_us"]
        assert one["compute_us"] <= one["floor_us"] <= one["step_us"]


def test_policies_may_be_given_several_times(tmp_path):
    path = saved(tmp_path)
    found = outlooks(path, "--ranks", "4", "--policy", "wfbp", "--policy", "bucket,wfbp")
    assert [one["policy"] for one in found] == ["wfbp", "bucket"]


def test_limits_reach_the_policies(tmp_path):
    path = saved(tmp_path)
    arguments = (path, "--ranks", "64", "--link", "500mbit", "--policy", "least_stale")
    exact, late = outlooks(*arguments)[0], outlooks(*arguments, "--max-delay", "1")[0]
    assert (exact["staleness_steps"], exact["updates_per_step"]) == (0.0, 1.0)
    assert late["staleness_steps"] > 0.0
    assert late["step_us"] < exact["step_us"]
    assert late["floor_us"] < exact["floor_us"]


def test_more_latency_costs_more(tmp_path):
    arguments = (saved(tmp_path), "--ranks", "1024", "--policy", "stock", "--latency")
    times = [outlooks(*arguments, latency)[0]["step_us"] for latency in (0, 5, 20)]
    assert times == sorted(set(times))


def test_what_the_options_rule_out_is_left_out_of_all(tmp_path):
    path = saved(tmp_path)
    result = succeeds("simulate", path, "--ranks", "4", "--max-delay", "0")
    assert "left out: policy 'deft'" in result.stderr
    assert "deft" not in result.stdout
    said = fails(1, "simulate", path, "--policy", "deft", "--ranks", "4", "--max-delay", "0")
    assert "max_delay forbids it" in said


def test_the_table_fits_into_80_columns(tmp_path):
    arguments = ("--ranks", "4,1024", "--link", "100gbit,2.5gbit")
    text = succeeds("simulate", saved(tmp_path), *arguments).stdout
    assert max(map(len, text.splitlines())) <= 80
    assert "\u2026" not in text
    rows = [line.split() for line in text.splitlines() if line.startswith("least_stale")]
    assert [row[1:3] for row in rows] == [
        ["4", "100gbit"],
        ["1024", "100gbit"],
        ["4", "2.5gbit"],
        ["1024", "2.5gbit"],
    ]


def test_measured_links_are_taken_without_rates(tmp_path):
    found = outlooks(saved(tmp_path), "--ranks", "4", *QUICK)
    assert {one["link"] for one in found} == {"measured"}


def test_a_profile_of_one_rank_needs_a_rate(tmp_path):
    path = saved(tmp_path, links=(), size=1)
    assert "--link 10gbit" in fails(1, "simulate", path)
    assert len(outlooks(path, "--ranks", "4", "--link", "10gbit", *QUICK)) == 2


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--ranks", "1"), "one rank alone sends nothing"),
        (("--ranks", "0"), "that is no cluster"),
        (("--ranks", "4,x"), "'x' is not a number of ranks"),
        (("--ranks", "-4"), "is not a number of ranks"),
        (("--ranks", ""), "names nothing"),
        (("--ranks", "99999999"), "give 2 to 1000000"),
        (("--link", "10"), "is not a rate such as 10gbit"),
        (("--link", "fast"), "is not a rate such as 10gbit"),
        (("--link", "0gbit"), "carries nothing"),
        (("--policy", "auto"), "keeps the fastest"),
        (("--policy", "stok"), "there is no policy 'stok'; choose from all, stock"),
        (("--latency", "-1"), "--latency"),
        (("--max-merge", "0"), "--max-merge"),
        (("--plot", "x.gif"), ".png, .svg, .pdf"),
    ],
)
def test_mistakes_are_told(tmp_path, arguments, said):
    assert said in fails(2, "simulate", saved(tmp_path), *arguments)


def test_efficiency_is_drawn_and_nothing_overwritten(tmp_path):
    path, plot = saved(tmp_path), tmp_path / "scaling.png"
    arguments = ("simulate", path, "--ranks", "4,16", *QUICK, "--plot", plot)
    succeeds(*arguments)
    content = plot.read_bytes()
    assert content.startswith(b"\x89PNG")
    assert "--force" in fails(2, *arguments)
    assert plot.read_bytes() == content
    succeeds(*arguments, "--force")


def test_without_matplotlib_the_extra_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    plot = tmp_path / "scaling.png"
    said = fails(1, "simulate", saved(tmp_path), "--ranks", "4", *QUICK, "--plot", plot)
    assert "pip install 'deft_horovod[plot]'" in said
    assert not plot.exists()


def test_progress_is_for_terminals_only(tmp_path):
    assert succeeds("simulate", saved(tmp_path), "--ranks", "4", *QUICK).stderr == ""
