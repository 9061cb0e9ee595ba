"""What was measured while candidates took turns, of all ranks together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from deft_horovod.comparison import Arm, Comparison
from deft_horovod.peers import BASELINE
from deft_horovod.plan import Plan
from deft_horovod.profile import Profile
from deft_horovod.runtime.decide.phases import choose
from deft_horovod.runtime.decide.trials.contenders import StepTime, Who, contenders
from deft_horovod.runtime.decide.trials.far_behind import FEWEST_STEPS, StepRange, far_behind
from deft_horovod.runtime.ranks.agreement import Agreement, largest

Rounds = Sequence[Sequence[float]]


def slow(
    agreement: Agreement, rounds: Mapping[Who, Rounds], untried: Mapping[Who, StepRange]
) -> frozenset[Who]:
    """Those that need no further turn. All ranks ask for it together. `untried`: what is known of
    some that had none; a link may have been measured in a bad moment, so that it only counts if
    the baseline turns out to be as slow."""
    steps = {who: [us for one in mine for us in one] for who, mine in rounds.items()}
    # A rank that ran out of data has seen fewer than others.
    (missing,) = largest(agreement, [FEWEST_STEPS - min(map(len, steps.values()))])
    if missing > 0:
        return frozenset()
    shortest = largest(agreement, [min(mine) for mine in steps.values()])
    longest = largest(agreement, [max(mine) for mine in steps.values()])
    ranges = {who: StepRange(*pair) for who, *pair in zip(steps, shortest, longest, strict=True)}
    found = far_behind({**ranges, **untried})
    return found if (BASELINE, False) in found else found - set(untried)


def fastest(
    agreement: Agreement, rounds: Mapping[Who, Rounds], min_gain: float
) -> tuple[Who, list[Who]]:
    """The one to keep, and those that have to take turns once more before that is sure. All ranks
    ask for it together: a synchronous step is as slow as its slowest rank."""
    mine = [StepTime.of(one) for one in rounds.values()]
    medians = largest(agreement, [time.us for time in mine])
    errors = largest(agreement, [time.error_us for time in mine])
    times = {who: StepTime(*pair) for who, *pair in zip(rounds, medians, errors, strict=True)}
    chosen = choose({who: time.us for who, time in times.items()}, min_gain)
    return chosen, contenders(times, min_gain)


def comparison(
    agreement: Agreement,
    asked: str,
    min_gain: float,
    rounds: Mapping[Who, Rounds],
    plans: Mapping[Who, Plan],
    profile: Profile,
) -> Comparison:
    """All ranks ask for it together. `asked`: the policy; `auto` leaves the choice to the trials,
    and any other is what the answer is about."""
    arms = [
        Arm(
            policy=policy,
            late=late,
            rounds_us=_of_slowest(agreement, rounds[policy, late]),
            plan=plans.get((policy, late)),
        )
        for policy, late in rounds
    ]
    fastest = choose({(arm.policy, arm.late): arm.step_us for arm in arms}, min_gain)
    return Comparison(
        policy=asked,
        chosen=list(rounds).index(fastest) if asked == "auto" else len(rounds) - 1,
        profile=profile,
        arms=tuple(arms),
    )


def _of_slowest(agreement: Agreement, rounds: Rounds) -> tuple[tuple[float, ...], ...]:
    """A synchronous step is as slow as its slowest rank."""
    flat = [us for one in rounds for us in one]
    slowest = iter(largest(agreement, flat))
    return tuple(tuple(next(slowest) for _ in one) for one in rounds)
