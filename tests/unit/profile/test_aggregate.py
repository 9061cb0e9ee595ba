import pytest
from hypothesis import given
from hypothesis import strategies as st

from deft_horovod.profile import LinkCost, LinkProfile, ModuleProfile, Tensor
from deft_horovod.profile.aggregate import RankReport, StageTimes, aggregate

STAGES = ("forward", "backward", "optimizer", "step")
MODULES = (("a", "Linear"), ("b", "Norm"))


def stages(**medians_us):
    return tuple(
        StageTimes(
            stage=stage,
            median_us=medians_us[stage],
            p10_us=medians_us[stage] * 0.9,
            p90_us=medians_us[stage] * 1.1,
        )
        for stage in STAGES
    )


def report(rank, *, slowness=1.0, ready_us=(30.0, 10.0), first_use_us=(0.0, 20.0), **changes):
    came = [i for i, us in enumerate(ready_us) if us is not None]
    fields = {
        "rank": rank,
        "steps": 10,
        "stages": stages(
            forward=40.0 * slowness, backward=80.0 * slowness, optimizer=5.0, step=200.0
        ),
        "ready_order": tuple(sorted(came, key=lambda i: ready_us[i])),
        "ready_us": ready_us,
        "first_use_us": first_use_us,
        "modules": (
            ModuleProfile(name="a", type="Linear", forward_us=7.0 * slowness, parameters=(0, 1)),
        ),
    }
    return RankReport(**{**fields, **changes})


def test_the_slowest_rank_counts_and_is_named():
    profile = aggregate([report(0), report(1, slowness=3.0), report(2, slowness=2.0)], ())
    assert (profile.forward_us, profile.backward_us, profile.optimizer_us) == (120.0, 240.0, 5.0)
    assert profile.compute_us == 365.0
    assert (profile.steps, profile.size) == (10, 3)
    forward = profile.spreads[0]
    assert (forward.stage, forward.slowest_rank, forward.fastest_rank_us) == ("forward", 1, 40.0)
    assert (forward.p10_us, forward.p90_us) == (pytest.approx(108.0), pytest.approx(132.0))
    assert profile.spreads[2].slowest_rank == 0  # all are equally slow
    assert profile.modules[0].forward_us == 21.0


def test_tensors_and_links_are_passed_on():
    tensors = tuple(Tensor(name=name, shape=(2,), dtype="float32") for name in "ab")
    link = LinkProfile(name="horovod", cost=LinkCost(alpha_us=1.0, beta_us_per_byte=0.5))
    profile = aggregate([report(0)], tensors, [link])
    assert profile.tensors == tensors
    assert profile.link == link.cost


def test_the_lowest_rank_s_order_wins():
    profile = aggregate([report(2), report(5, ready_us=(10.0, 30.0))], ())
    assert profile.ready_order == (1, 0)
    assert profile.ready_us == (30.0, 30.0)  # on rank 5 parameter 1 was as late as that


def test_what_is_ready_on_another_rank_only_comes_after():
    reports = [
        report(0, ready_us=(None, 10.0, None, None)),
        report(1, ready_us=(40.0, 10.0, None, 30.0)),
    ]
    reports = [r.model_copy(update={"first_use_us": (None,) * 4}) for r in reports]
    profile = aggregate(reports, ())
    assert profile.ready_order == (1, 3, 0, 2)
    assert profile.ready_us == (40.0, 10.0, 80.0, 30.0)


def test_what_one_rank_did_not_see_cannot_be_gated():
    profile = aggregate([report(0), report(1, first_use_us=(5.0, None))], ())
    assert profile.first_use_us == (5.0, None)


def test_a_rank_that_measured_nothing_is_only_counted():
    idle = report(
        0, steps=0, stages=(), ready_us=(None, None), first_use_us=(None, None), modules=()
    )
    profile = aggregate([idle, report(1)], ())
    assert (profile.size, profile.steps) == (2, 10)
    assert profile.first_use_us == (0.0, 20.0)
    assert profile.spreads[0].slowest_rank == 1


@st.composite
def reports(draw):
    """Of 1 to 5 ranks; the generator makes the times, so that examples stay cheap."""
    count, ranks = draw(st.integers(0, 12)), draw(st.integers(1, 5))
    pick = draw(st.randoms(use_true_random=False))

    def time_us():
        return float(pick.choice([0, pick.randint(0, 9), pick.randint(0, 10**6)]))

    def times_us():
        return [pick.choice([None, time_us(), time_us()]) for _ in range(count)]

    result = []
    for rank in range(ranks):
        ready_us = times_us()
        came = [i for i, us in enumerate(ready_us) if us is not None]
        modules = pick.sample(MODULES, pick.randint(0, len(MODULES)))
        result.append(
            RankReport(
                rank=rank,
                steps=pick.randint(1, 50),
                stages=stages(**{stage: time_us() for stage in STAGES}),
                ready_order=tuple(pick.sample(came, len(came))),
                ready_us=tuple(ready_us),
                first_use_us=tuple(times_us()),
                modules=tuple(
                    ModuleProfile(name=name, type=kind, forward_us=time_us(), parameters=())
                    for name, kind in modules
                ),
            )
        )
    return result


@given(reports())
def test_no_rank_is_slower_than_the_profile_says(everyone):
    profile = aggregate(everyone, ())
    for report in everyone:
        medians = {times.stage: times.median_us for times in report.stages}
        assert medians["forward"] <= profile.forward_us
        assert medians["backward"] <= profile.backward_us
        assert medians["optimizer"] <= profile.optimizer_us
        assert medians["step"] <= profile.step_us
        for mine, all_of_them in zip(report.ready_us, profile.ready_us, strict=True):
            assert min(mine or 0.0, profile.backward_us) <= all_of_them


@given(reports())
def test_times_lie_in_their_stage_and_follow_the_order(everyone):
    profile = aggregate(everyone, ())
    times = [profile.ready_us[i] for i in profile.ready_order]
    assert times == sorted(times)
    assert all(us <= profile.backward_us for us in times)
    assert all(us is None or us <= profile.forward_us for us in profile.first_use_us)
    assert all(module.forward_us <= profile.forward_us for module in profile.modules)
    first = everyone[0].ready_order
    assert profile.ready_order[: len(first)] == first
    for i, us in enumerate(profile.ready_us):
        if all(report.ready_us[i] is None for report in everyone):
            assert us == profile.backward_us


@given(reports(), st.randoms(use_true_random=False))
def test_only_the_first_of_the_reports_has_a_say_of_its_own(everyone, pick):
    """Names and order are those of the lowest rank; the others' order does not matter."""
    rest = everyone[1:]
    pick.shuffle(rest)
    one, other = aggregate(everyone, ()), aggregate([everyone[0], *rest], ())
    drop = {"spreads": ()}  # of equally slow ranks the first one is named
    assert one.model_copy(update=drop) == other.model_copy(update=drop)


@given(reports())
def test_spreads_are_those_of_the_slowest_rank(everyone):
    for spread in aggregate(everyone, ()).spreads:
        times = [t for report in everyone for t in report.stages if t.stage == spread.stage]
        slowest = times[spread.slowest_rank]
        assert slowest.median_us == max(t.median_us for t in times)
        assert spread.fastest_rank_us == min(t.median_us for t in times)
        assert (spread.p10_us, spread.p90_us) == (slowest.p10_us, slowest.p90_us)


@given(reports())
def test_reports_survive_json(everyone):
    for report in everyone:
        assert RankReport.from_json(report.to_json()) == report
