"""What the benchmark runs, in which order, and what it takes for done."""

import json
from pathlib import Path

import pytest

from deft_horovod.policies import registry
from scripts.benchmarks import arms
from scripts.benchmarks import cluster as bench


def planned(folder: Path, *words: str) -> list:
    return bench.plan(bench.parse([*words, "--folder", str(folder)]))


def test_everything_is_planned_and_a_part_is_worth_something(tmp_path: Path) -> None:
    jobs = planned(tmp_path)
    points = 2 * 3 * 5
    assert len(jobs) == points * (3 + len(bench.GRID))
    assert len({job.path for job in jobs}) == len(jobs)
    # All points once, with their grids, before any of them a second time.
    first = jobs[: points * (1 + len(bench.GRID))]
    assert {job.options["run"] for job in first} == {0}
    assert all(job.options["run"] > 0 for job in jobs[len(first) :])


def test_smaller_choices(tmp_path: Path) -> None:
    (quick,) = planned(tmp_path, "--quick")
    assert (quick.options["hosts"], quick.options["profile"]) == (2, "vgg19")
    subset = planned(tmp_path, "--subset", "--no-grid")
    assert len(subset) == 2 * 3 * 3


def test_grid_scales_the_threshold_with_the_model(tmp_path: Path) -> None:
    jobs = planned(tmp_path, "--hosts", "2", "--ccr", "1", "--profiles", "gpt2", "--runs", "1")
    settings = {tuple(sorted(j.horovod.items())) for j in jobs if j.horovod}
    threshold = ("HOROVOD_FUSION_THRESHOLD", str(int(11.85e6 / 8)))
    assert settings == {
        (("HOROVOD_CYCLE_TIME", "1"), threshold),
        (("HOROVOD_CYCLE_TIME", "3.5"), threshold),
        (("HOROVOD_CYCLE_TIME", "3.5"),),
    }
    assert all(j.options["arms"] == ["stock"] for j in jobs if j.horovod)


def test_second_link_adds_arms(tmp_path: Path) -> None:
    (job,) = planned(tmp_path, "--quick", "--second-rate", "200")
    assert job.options["second_rate_mbit"] == 200
    assert {"deft_two", "least_stale_two"} <= set(job.options["arms"])


def test_options_may_be_given_several_times() -> None:
    words = ["--config", "deft.max_merge=2", "priority.drift=1", "--config", "deft.max_delay=0"]
    given = bench.parse(words).config
    assert given == ["deft.max_merge=2", "priority.drift=1", "deft.max_delay=0"]


def test_options_reach_the_arm() -> None:
    settings = ["deft.max_merge=2", "deft.drift=0.5", "priority.credit_bytes=1MiB"]
    assert bench.overrides(settings) == {
        "deft": {"max_merge": "2", "drift": "0.5"},
        "priority": {"credit_bytes": "1MiB"},
    }
    for wrong in ("deft=2", "nothing.max_merge=2", "deft.max_merge"):
        with pytest.raises(bench.BenchError, match=r"ARM\.OPTION=VALUE"):
            bench.overrides([wrong])


def test_a_finished_run_counts_only_for_the_same_options(tmp_path: Path) -> None:
    (job,) = planned(tmp_path, "--quick")
    assert not job.done()
    job.path.write_text(json.dumps({"options": job.options}))
    assert job.done()
    (elsewhere,) = planned(tmp_path, "--quick", "--rate", "100")
    with pytest.raises(bench.BenchError, match="rate_mbit = 500, now it is 100"):
        elsewhere.done()


def test_time_left_comes_from_jobs_of_the_same_kind(tmp_path: Path) -> None:
    jobs = planned(tmp_path, "--hosts", "2", "--profiles", "gpt2", "--ccr", "1", "4")
    fast, slow = ([j for j in jobs if j.options["ccr"] == c and not j.horovod] for c in (1, 4))
    took = [(fast[0], 20.0), (slow[0], 60.0)]
    assert bench.left_s([fast[1], slow[1]], took) == pytest.approx(80.0)
    assert bench.left_s([fast[1]], took[1:]) == pytest.approx(60.0)
    assert bench.left_s([fast[1]], []) > 0


def test_nothing_of_the_callers_settings_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOROVOD_CYCLE_TIME", "7")
    monkeypatch.setenv("DEFT_POLICY", "wfbp")
    monkeypatch.setenv("KEPT", "1")
    kept = bench.clean_environment()
    assert kept["KEPT"] == "1"
    # Only the benchmark's own: room for the names of every arm in one job.
    ours = [name for name in kept if name.startswith(("HOROVOD_", "DEFT_"))]
    assert ours == ["HOROVOD_CACHE_CAPACITY"]


def test_rivals_are_all_published_schedulers_in_longer_runs(tmp_path: Path) -> None:
    jobs = planned(tmp_path, "--rivals", "--runs", "1")
    assert len(jobs) == 2 * 3 * 3
    assert bench.parse(["--rivals"]).name == "rivals"
    named = set(jobs[0].options["arms"])
    policies = {kind.policy for kind in (arms.KINDS[name] for name in named)} - {None}
    assert {*registry()} - policies == {"auto", "bucket", "stock"}


def test_hosts_of_ones_own(tmp_path: Path) -> None:
    words = ["-H", "a:1,b:2", "--interface", "ib0", "--profiles", "vgg19", "--ccr", "1", "--runs"]
    (job,) = planned(tmp_path, *words, "1", "--no-grid")
    assert job.options["hosts"] == 3
    assert job.options["meeting"].startswith("a:")
    assert job.options["interface"] == "ib0"


@pytest.mark.parametrize("hosts", ["a", "a:0", "a:1,,b:1", ":2"])
def test_hosts_that_cannot_be_read(hosts: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        bench.parse(["-H", hosts])
    assert "host:slots" in capsys.readouterr().err
