"""What the page says of runs."""

import math

from deft_horovod.base.wire_format import EXACT
from scripts.studies.formats.report import page, pilot_text, seeds_by_task, untrained
from scripts.studies.formats.study import LARGER, SMALL, Setting, pilot_runs, study_runs

SETTINGS = [Setting(task, "sgd", lr) for task in ("text", "photos") for lr in (0.1, 0.2)]


def losses_of(runs, factors, scatter):
    """Constant in training; each seed has a loss of its own, and each arm its factor."""
    found = {}
    for run in runs:
        noise = 0.0 if run.format == EXACT else scatter * math.sin(7.0 * run.seed + len(run.format))
        loss = (2.0 + 0.1 * run.seed) * factors.get(run.format, 1.0) * math.exp(noise)
        found[run] = [loss] * 20
    return found


def test_more_scatter_needs_more_seeds_and_looser_margins_fewer():
    calm = losses_of(pilot_runs(SETTINGS), {}, 0.002)
    wild = losses_of(pilot_runs(SETTINGS), {}, 0.006)
    assert seeds_by_task(calm, SETTINGS)["text"] < seeds_by_task(wild, SETTINGS)["text"]
    assert seeds_by_task(wild, SETTINGS)["photos"] < seeds_by_task(wild, SETTINGS)["text"]
    assert "text: deviation" in pilot_text(calm, SETTINGS)


def test_arms_as_good_pass_and_worse_ones_are_named():
    runs = study_runs(SETTINGS, {"text": 6, "photos": 6})
    said = page(losses_of(runs, {"int8": 1.0, "int4": 1.05}, 0.001), SETTINGS)
    equal, coarse = said.split("## int8")[1].split("## int4")
    assert "Non-inferior: 4 of 4 settings; worse: 0 (Holm)" in equal
    assert "Non-inferior: 0 of 4 settings; worse: 4 (Holm)" in coarse
    assert coarse.count("| worse |") == 4
    assert {*SMALL.arms} == {"int8", "int4"}


def test_too_much_scatter_decides_nothing_and_divergence_is_said():
    runs = study_runs(SETTINGS, {"text": 3, "photos": 3})
    losses = losses_of(runs, {}, 0.05)
    for run in runs:
        if run.lr == 0.2 and run.task == "text":
            losses[run] = [12.0]
    said = page(losses, SETTINGS)
    assert "not decided" in said
    assert "Not compared, as exact training diverged: text, sgd, 0.2." in said


def test_a_study_that_is_cut_short_shows_whole_seeds_alone():
    runs = study_runs(SETTINGS, {"text": 6, "photos": 6})
    losses = losses_of(runs, {}, 0.001)
    cut = dict([*losses.items()][:-20])
    said = page(cut, SETTINGS)
    assert "| text, sgd, 0.1 | 4 |" in said
    assert "| photos, sgd, 0.2 | 4 |" in said


def test_the_larger_tasks_have_a_page_and_margins_of_their_own():
    settings = [Setting("gpt", "muon", 0.01), Setting("resnet", "adamw", 0.001)]
    runs = study_runs(settings, {"gpt": 8, "resnet": 8}, LARGER)
    said = page(losses_of(runs, {"int8": 1.01}, 0.0005), settings, LARGER)
    assert "protocol-larger.md" in said
    assert "Non-inferior: 1 of 2 settings; worse: 2 (Holm)" in said
    assert "| gpt, muon, 0.01 | 8 |" in said


def test_what_is_trained_optimizer_by_optimizer_counts_the_others_as_undecided():
    settings = [Setting(task, one, 0.1) for task in ("text", "photos") for one in ("sgd", "adamw")]
    losses = losses_of(study_runs(settings, {"text": 6, "photos": 6}), {}, 0.0035)
    mine = {run: found for run, found in losses.items() if run.optimizer == "adamw"}
    assert untrained(mine, settings, SMALL) == [s for s in settings if s.optimizer == "sgd"]
    said = page(mine, settings)
    assert "Not trained yet: text, sgd, 0.1; photos, sgd, 0.1.\n" in said
    assert "diverged" not in said
    assert "| text, adamw, 0.1 | 6 |" in said
    assert untrained(losses, settings, SMALL) == []
