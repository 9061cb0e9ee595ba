"""What is seen in gradients, against plain sums in float64."""

from types import SimpleNamespace

import pytest
import torch

from deft_horovod.plan import Bucket, Slot
from deft_horovod.runtime.measure.gradient_statistics import GradientStatistics
from deft_horovod.runtime.ranks.named_parameters import NamedParameter

RANKS = 3


def members_of(*sizes):
    return [NamedParameter(f"p{i}", torch.zeros(size)) for i, size in enumerate(sizes)]


def plan_of(members, cuts):
    """So many buckets for each parameter."""
    slots, buckets, end = [], [], 0
    for member in members:
        size = cuts * (member.tensor.numel() + 4)
        slots.append(Slot(name=member.name, arena=0, begin=end, end=end + size))
        for _ in range(cuts):
            buckets.append(Bucket(arena=0, begin=end, end=end + size // cuts))
            end += size // cuts
    return SimpleNamespace(slots=slots, buckets=buckets)


def watch_of(members, cuts=1, *, summed=False):
    watch = GradientStatistics(RANKS, summed=summed)
    watch.follow(members, plan_of(members, cuts))
    return watch


def gradients(members, steps, seed=0):
    """[step][rank][slot], and their averages [step][slot]."""
    torch.manual_seed(seed)
    of_ranks = [
        [[torch.randn(m.tensor.shape) for m in members] for _ in range(RANKS)] for _ in range(steps)
    ]
    averages = [
        [torch.stack([own[s] for own in ranks]).mean(0) for s in range(len(members))]
        for ranks in of_ranks
    ]
    return of_ranks, averages


def show(watch, members, steps, *, pieces=1, seed=0, scale=1.0):
    of_ranks, averages = gradients(members, steps, seed)
    for step in range(steps):
        watch.note_own(step, of_ranks[step][0])
        now = [scale * average for average in averages[step]]
        watch.arrived(step, now, dict.fromkeys(range(len(members)), pieces))
    return of_ranks, averages


def expected(of_ranks, averages, slots):
    pairs = range(1, len(averages))
    mean = lambda values: sum(values) / len(pairs)  # noqa: E731
    square = lambda tensor: tensor.double().square().sum().item()  # noqa: E731
    return (
        mean([sum(square(of_ranks[t][0][s]) for s in slots) for t in pairs]),
        mean([sum(square(averages[t][s]) for s in slots) for t in pairs]),
        mean([sum(square(averages[t][s] - averages[t - 1][s]) for s in slots) for t in pairs]),
    )


def squares(found):
    return found.own_square, found.average_square, found.change_square


def test_small_parameters_are_looked_at_whole():
    members = members_of(10, (3, 4), 1)
    watch = watch_of(members)
    seen = show(watch, members, 6)
    found = watch.seen(5)
    assert squares(found) == pytest.approx(expected(*seen, range(3)), rel=1e-5)
    assert (found.ranks, found.steps) == (RANKS, 5)


def test_of_large_ones_a_sample_stands_for_all():
    members = members_of(200_000, 30)
    watch = watch_of(members)
    seen = show(watch, members, 4)
    assert squares(watch.seen(3)) == pytest.approx(expected(*seen, range(2)), rel=0.05)


@pytest.mark.parametrize("size", [4095, 4096, 4097, 4112, 5000, 70_001])
def test_samples_of_all_sizes_stand_for_all(size):
    members = members_of(size)
    watch = watch_of(members)
    seen = show(watch, members, 4)
    whole = size <= 4096
    assert squares(watch.seen(3)) == pytest.approx(expected(*seen, [0]), rel=1e-5 if whole else 0.1)


def test_whoever_rests_looks_at_nothing_until_another_beginning():
    members = members_of(10)
    watch = watch_of(members)
    seen = show(watch, members, 4)
    watch.rest()
    show(watch, members, 5, seed=1)
    assert squares(watch.seen(3)) == pytest.approx(expected(*seen, [0]), rel=1e-5)
    watch.begin_anew()
    again = show(watch, members, 5, seed=2)
    assert squares(watch.seen(4)) == pytest.approx(expected(*again, [0]), rel=1e-5)
    watch.rest()
    watch.follow(members, plan_of(members, 1))
    show(watch, members, 3, seed=3)
    assert watch.seen(6).steps == 6


def test_averages_that_are_sums_count_as_averages():
    members = members_of(10)
    one, other = watch_of(members), watch_of(members, summed=True)
    show(one, members, 4)
    show(other, members, 4, scale=float(RANKS))
    assert one.seen(1).turn == pytest.approx(other.seen(1).turn, rel=1e-4)


def test_too_few_steps_say_nothing_and_go_on_counting():
    members = members_of(10)
    watch = watch_of(members)
    show(watch, members, 5)
    assert watch.seen(5) is None
    watch.follow(members, plan_of(members, 1))
    show(watch, members, 2, seed=1)
    assert watch.seen(5).steps == 5
    watch.begin_anew()
    assert watch.seen(1) is None


def test_of_a_parameter_in_pieces_only_the_whole_counts():
    members = members_of(10)
    watch = watch_of(members, cuts=2)
    show(watch, members, 5, pieces=1)
    assert watch.seen(1) is None
    show(watch, members, 5, pieces=2)
    assert watch.seen(1).steps == 4


def test_steps_that_do_not_follow_each_other_are_no_pair():
    members = members_of(10)
    watch = watch_of(members)
    of_ranks, averages = gradients(members, 4)
    for step in (0, 2):
        watch.note_own(step, of_ranks[step][0])
        watch.arrived(step, averages[step], {0: 1})
    assert watch.seen(1) is None


def test_what_comes_late_belongs_to_its_own_step():
    members = members_of(10)
    watch, late = watch_of(members), watch_of(members)
    of_ranks, averages = show(watch, members, 5)
    for step in range(7):
        if step < 5:
            late.note_own(step, of_ranks[step][0])
        if step >= 2:
            late.arrived(step - 2, averages[step - 2], {0: 1})
    assert squares(late.seen(1)) == pytest.approx(squares(watch.seen(1)))


def test_missing_sparse_and_infinite_gradients_are_left_out():
    members = members_of(10, (4, 3))
    watch = watch_of(members)
    of_ranks, averages = gradients(members, 5)
    for step in range(5):
        sparse = of_ranks[step][0][1].to_sparse()
        watch.note_own(step, [of_ranks[step][0][0], sparse])
        now = averages[step][0] * (float("inf") if step == 2 else 1.0)
        watch.arrived(step, [now, None], {0: 1, 1: 1})
    found = watch.seen(1)
    assert found.average_square > 0.0
    assert found.turn < 1e3


def test_gradients_themselves_are_left_alone():
    members = members_of(20_000, 5)
    of_ranks, averages = show(watch_of(members), members, 3)
    again, same = gradients(members, 3)
    for step in range(3):
        for slot in range(2):
            assert torch.equal(averages[step][slot], same[step][slot])
            assert torch.equal(of_ranks[step][0][slot], again[step][0][slot])
