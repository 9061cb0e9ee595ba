"""What a report says: of a comparison what was measured, of a profile what is predicted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from deft_horovod.base.parameter import Parameter
from deft_horovod.comparison import BASELINES, STOCK, Comparison
from deft_horovod.plan import Plan
from deft_horovod.profile import Profile
from deft_horovod.profile.layer_table import LayerTable, layer_table
from deft_horovod.simulate.outlook import play
from deft_horovod.simulate.stock import StockStep, simulate_stock
from deft_horovod.solver.predict.timeline import Timeline


@dataclass(frozen=True)
class ReportInputs:
    """What is reported on."""

    source: str  # name of the file
    profile: Profile
    parameters: tuple[Parameter, ...]
    plan: Plan | None = None  # None: Horovod's own calls
    comparison: Comparison | None = None  # None: nothing but the profile was measured
    options: Mapping[str, str] = field(default_factory=dict)  # that were given

    @classmethod
    def compared(
        cls, source: str, comparison: Comparison, parameters: tuple[Parameter, ...]
    ) -> ReportInputs:
        return cls(source, comparison.profile, parameters, comparison.ours.plan, comparison)


@dataclass(frozen=True)
class Figures:
    """The step before and after. Before is the baseline."""

    compute_us: float
    before_us: float
    after_us: float | None = None  # None: the baseline is kept
    speedups: tuple[float, ...] = ()  # round by round; empty: predicted

    @property
    def exposed_before_us(self) -> float:
        return max(0.0, self.before_us - self.compute_us)

    @property
    def exposed_after_us(self) -> float | None:
        return None if self.after_us is None else max(0.0, self.after_us - self.compute_us)

    @property
    def speedup(self) -> float:
        if self.after_us is None or self.after_us <= 0.0:
            return 1.0
        return self.before_us / self.after_us


@dataclass(frozen=True)
class Findings:
    """Everything that the sections of the page are made of."""

    inputs: ReportInputs
    layers: LayerTable
    # What the profile makes of both, whatever was measured.
    before: Timeline | StockStep
    after: Timeline | StockStep | None
    figures: Figures

    @property
    def measured(self) -> bool:
        return self.inputs.comparison is not None

    @property
    def baseline(self) -> str:
        """What the job does without us."""
        compared = self.inputs.comparison
        return BASELINES[STOCK] if compared is None else compared.baseline_name

    @property
    def is_kept(self) -> bool:
        """Whether nothing is set beside the baseline."""
        compared = self.inputs.comparison
        return self.policy == STOCK if compared is None else compared.chosen == 0

    @property
    def policy(self) -> str:
        """What is set beside the baseline; the baseline itself where that is kept."""
        if self.inputs.comparison is not None:
            return self.inputs.comparison.ours.name
        return "stock" if self.inputs.plan is None else self.inputs.plan.policy

    @property
    def floor_us(self) -> float | None:
        """No plan within the same limits takes less; None: not known of this profile."""
        plan = self.inputs.plan
        return None if plan is None or plan.prediction is None else plan.prediction.bound_us


def findings(inputs: ReportInputs) -> Findings:
    """Works out what the profile makes of the baseline and of the plan.

    Raises:
        PlanError: the profile does not say what a link of the plan costs.
    """
    profile, plan = inputs.profile, inputs.plan
    old = inputs.comparison.baseline.plan if inputs.comparison is not None else None
    before = simulate_stock(inputs.parameters, profile) if old is None else play(old, profile)
    # Sparse gradients are in no plan; what they take could not be told.
    whole = plan is not None and len(plan.slots) == len(profile.ready_order)
    after = play(plan, profile) if plan is not None and whole else None
    return Findings(
        inputs=inputs,
        layers=layer_table(profile, inputs.parameters),
        before=before,
        after=after,
        figures=_figures(inputs, before, after),
    )


def _figures(
    inputs: ReportInputs, before: Timeline | StockStep, after: Timeline | StockStep | None
) -> Figures:
    compute_us, comparison = inputs.profile.compute_us, inputs.comparison
    if comparison is None:
        return Figures(compute_us, before.step_us, None if after is None else after.step_us)
    old, ours = comparison.baseline, comparison.ours
    if ours is old:
        return Figures(compute_us, old.step_us)
    return Figures(compute_us, old.step_us, ours.step_us, comparison.speedups(ours))
