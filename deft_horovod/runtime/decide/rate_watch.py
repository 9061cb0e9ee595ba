"""Whether the learning rate has fallen far enough for `auto` to try late updates. Ours.

Late updates do harm where gradients turn fast, and they turn least once the learning rate is low;
docs/studies/convergence.md has what training says about it. Who sets a budget allows them there.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import torch

from deft_horovod.runtime.decide.brief import Brief
from deft_horovod.runtime.follower import Follower, Wish
from deft_horovod.runtime.ranks.agreement import Agreement
from deft_horovod.runtime.reduce.installed import Boundary
from deft_horovod.runtime.reduce.loss_scale import LossScales

# Of the highest learning rate. Late updates are tried at the first, and where any were refused
# there, at the second.
CALM: Final = 0.75, 0.5
_RISEN: Final = 1.2  # times the rate at which it was calm first
_LOG: Final = logging.getLogger("deft_horovod")


class RateWatch(Follower[Boundary]):
    """Of one optimizer. Its rates are thought to be equal on all ranks; what was seen of them is
    not, as a rank may have come later."""

    def __init__(self, inner: torch.optim.Optimizer, brief: Brief, scales: LossScales) -> None:
        self._passed = 0  # of `CALM`, as all ranks have agreed
        self._inner = inner
        self._brief = brief
        self._scales = scales
        self._acts = may_become_late(brief)
        self._highest: list[float] = []  # of each group, that was seen
        self._ranks = 0  # that there were in the latest step
        self._shrunk = 1.0  # to this part of the most ranks
        self._agreed: list[float] = []  # when it became calm
        self._late = False  # whether what runs may be
        self._over = False  # it cannot be, or was and the rate rose again: that happens but once

    @property
    def calm(self) -> bool:
        """Whether late updates may be tried, as all ranks have agreed."""
        return self._passed > 0

    @property
    def brief(self) -> Brief:
        """The user's options, and late updates where no option forbids them."""
        return replace(self._brief, calm=self.calm)

    def end_boundary(self, at: Boundary) -> Wish:
        agree = self._ought_to_agree(late=at.late)
        return Wish.ANOTHER_PLAN if agree and at.settled else Wish.NOTHING

    def _ought_to_agree(self, *, late: bool) -> bool:
        """Whether the ranks have to agree anew. `late`: what runs may be."""
        self._late = late
        if not self._acts or self._over:
            return False
        rates = self._rates()
        self._follow_ranks()
        self._highest += rates[len(self._highest) :]
        highest = [max(pair) for pair in zip(self._highest, rates, strict=False)]
        self._highest[: len(highest)] = highest
        if self.calm and self._risen(rates):
            return True
        lower = _passed(self._share(rates)) > self._passed
        return lower and not late and not self._scales.asked

    def agree(self, agreement: Agreement, *, corrected: bool) -> bool:
        """Decides anew, on all ranks alike; whether late updates are to be tried, or no longer.
        `corrected`: they would be, without which they do too much harm."""
        if not self._acts:
            return False
        # With a loss scaler the user may unscale gradients, which late updates do not bear.
        able = corrected and not self._scales.asked
        rates = self._rates()
        (over,) = agreement.union([self._over or not able or (self.calm and self._risen(rates))])
        share = min(row[0] for row in agreement.gather([self._share(rates)]))
        was, self._over = self._passed, over
        lowest = was if self._late else max(was, _passed(share))
        self._passed = 0 if over else lowest
        if self._passed == was:
            return False
        if not was:
            self._agreed = rates
        if agreement.deciding:
            _LOG.warning(
                "deft_horovod: accuracy: the learning rate %s",
                f"has fallen to {share:.0%} of its highest, so late updates are tried "
                "(max_delay=0 keeps them in time)"
                if self.calm
                else "rises again, so all updates come in time",
            )
        return True

    def gained_nothing(self) -> None:
        """Late updates were tried, and none was refused. They are no faster at a lower rate."""
        if self.calm:
            self._passed = len(CALM)

    def resume(self) -> None:
        """A late plan was restored: it was calm."""
        self._passed, self._agreed = int(self._acts), self._rates()

    def forget(self) -> None:
        """The ranks have to agree anew."""
        self._passed = 0

    def _follow_ranks(self) -> None:
        """Elastic scripts fit the rate to the number of ranks: with fewer of them it falls, which
        says nothing of its schedule. Where it does not follow, it is its own highest soon."""
        ranks = self._brief.reduction.process_set.size()
        if ranks < self._ranks:
            self._shrunk *= ranks / self._ranks
            self._highest = [rate * ranks / self._ranks for rate in self._highest]
        self._ranks = ranks

    def _risen(self, rates: Sequence[float]) -> bool:
        pairs = zip(rates, self._agreed, strict=False)
        return any(now > _RISEN * then for now, then in pairs)

    def _share(self, rates: Sequence[float]) -> float:
        """Of the highest rate, in the group where it is largest."""
        shares = []
        groups = self._inner.param_groups
        for group, now, highest in zip(groups, rates, self._highest, strict=False):
            # A job that was resumed has not seen where its schedule began. While a rate rises, that
            # is where it will get to, and says nothing.
            began = float(group.get("initial_lr", 0.0)) * self._shrunk if now < highest else 0.0
            if (most := max(highest, began)) > 0.0:
                shares.append(now / most)
        return max(shares, default=1.0)

    def _rates(self) -> list[float]:
        """None at all where they cannot be read without waiting for an accelerator."""
        rates = [group.get("lr") for group in self._inner.param_groups]
        if any(isinstance(rate, torch.Tensor) and rate.device.type != "cpu" for rate in rates):
            return []
        return [0.0 if rate is None else float(rate) for rate in rates]


def _passed(share: float) -> int:
    return sum(share <= level for level in CALM)


def may_become_late(brief: Brief) -> bool:
    """Whether the user has left it to `auto`, and has said what it may cost."""
    config = brief.config
    left = brief.policy.name == "auto" and brief.purpose == "train" and config.max_delay is None
    # hvd.join() is refused where late updates use a second link.
    told = bool(config.plan_file or config.second_interface)
    told = told or config.accuracy in ("exact", "fast")  # never late, or late from the beginning
    return left and not told and bool(config.accuracy_budget)
