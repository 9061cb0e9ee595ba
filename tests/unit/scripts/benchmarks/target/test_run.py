import json

import pytest

from scripts.benchmarks import cluster as bench
from scripts.benchmarks.target import ranks as target_ranks
from scripts.benchmarks.target import run as bench_target
from scripts.cluster import workloads


@pytest.fixture
def options(tmp_path):
    return bench_target.parse(["--folder", str(tmp_path), "--seeds", "1", "2"])


def test_links_are_as_slow_as_the_ratio_says():
    size_bytes = 4 * sum(p.numel() for p in target_ranks.model().parameters())
    for ccr in (0.5, 1.0, 2.0):
        rate = bench_target.rate_mbit(80.0, ccr)
        carried = workloads.gradient_bytes(bench_target.HOSTS, rate, ccr, 0.08)
        assert carried == pytest.approx(size_bytes, rel=0.01)


def test_every_arm_trains_with_every_seed_and_ratio(options):
    jobs = bench_target.plan(options)
    assert len({job.path for job in jobs}) == len(jobs) == 5 * 2 * 3
    assert [job.options["seed"] for job in jobs] == sorted(job.options["seed"] for job in jobs)
    by_point = {(o["seed"], o["ccr"]): o["rate_mbit"] for o in (job.options for job in jobs)}
    assert len(by_point) == 6


def test_two_arms_are_stock_and_one_of_ours_has_no_word_on_accuracy(options):
    arms = {job.options["name"]: job.options["arm"] for job in bench_target.plan(options)}
    stock = {name: arm["compression"] for name, arm in arms.items() if arm["stock"]}
    assert stock == {"stock": "none", "fp16": "fp16"}
    ours = {n: arm["config"].get("accuracy") for n, arm in arms.items() if not arm["stock"]}
    assert ours == {"exact": "exact", "auto": None, "fast": "fast"}


def test_only_ours_trains_beyond_and_never_with_a_rate_that_falls(tmp_path, capsys):
    words = ["--folder", str(tmp_path), "--steps", "500", "--beyond", "200"]
    made = bench_target.plan(bench_target.parse([*words, "--schedule", "constant"]))
    steps = {job.options["name"]: job.options["steps"] for job in made}
    assert steps == {"stock": 500, "fp16": 500, "exact": 700, "auto": 700, "fast": 700}
    with pytest.raises(SystemExit):
        bench_target.parse(words)
    assert "--beyond needs --schedule constant" in capsys.readouterr().err


def test_what_was_measured_on_a_calm_link_is_none_of_a_restless_one(options):
    (first, *_) = bench_target.plan(options)
    without = {key: value for key, value in first.options.items() if key != "restless_s"}
    first.path.write_text(json.dumps({"options": without}), encoding="utf-8")
    assert first.done()
    words = ["--folder", str(options.folder), "--restless", "20", "--seeds", "1"]
    (same, *_) = bench_target.plan(bench_target.parse(words))
    with pytest.raises(bench.BenchError, match="restless_s"):
        same.done()


def test_what_is_there_is_not_trained_again(options):
    first = bench_target.plan(options)[0]
    assert not first.done()
    first.path.write_text(json.dumps({"options": first.options}), encoding="utf-8")
    assert first.done()


def test_a_training_that_does_not_count_says_why(tmp_path):
    log = tmp_path / "stock.log"
    assert bench_target.refused(log) is None
    log.write_text("[1]<stderr>:a warning\n", encoding="utf-8")
    assert bench_target.refused(log) is None
    log.write_text("[0]<stderr>:benchmarks.target.ranks: too slow\nhorovodrun\n", encoding="utf-8")
    assert bench_target.refused(log) == "too slow"


def test_a_report_of_nothing_is_an_error(options, capsys):
    words = ["--only-report", "--folder", str(options.folder)]
    assert bench_target.main(words) == 1
    assert "nothing was measured" in capsys.readouterr().err


def test_without_stock_horovod_there_is_no_target_and_what_is_there_is_kept(tmp_path, capsys):
    words = ["--seeds", "1", "--ccr", "1", "--arms", "fast", "--folder", str(tmp_path)]
    (job,) = bench_target.plan(bench_target.parse(words))
    job.path.write_text(json.dumps({"options": job.options}), encoding="utf-8")
    assert bench_target.main([*words, "--only-report", "--report", str(tmp_path)]) == 0
    assert "needs stock Horovod" in capsys.readouterr().out
    assert not (tmp_path / "target.md").exists()
