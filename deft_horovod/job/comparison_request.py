"""A request to compare the baseline with a policy in the script itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from deft_horovod.comparison import BASELINES, Comparison
from deft_horovod.config import Config
from deft_horovod.runtime.decide.phases import planned_phases
from deft_horovod.runtime.job_request import AskedOptimizer, JobRequest, Purpose


class ComparisonRequest(JobRequest[Comparison]):
    """First the profile, then turns of some steps each, for so many rounds."""

    purpose: ClassVar[Purpose] = "compare"

    def __init__(
        self,
        warmup_steps: int,
        steps: int,
        options: dict[str, Any],
        deliver: Callable[[AskedOptimizer[Comparison], Comparison], str],
        progress: Callable[[int, int], None] = lambda *_: None,
    ) -> None:
        """`options`: in the place of those of the script's optimizer."""
        super().__init__(warmup_steps, steps, deliver, progress)
        self._options = options
        self._needed_steps = 0  # not known before an optimizer is there

    @property
    def needed_steps(self) -> int:
        return self._needed_steps or super().needed_steps

    @property
    def needs(self) -> str:
        turns = self.needed_steps - self.warmup_steps - self.steps
        return f"{super().needs}, {turns} to compare"

    def over_config(self, config: Config) -> Config:
        script = super().over_config(config).model_dump()
        if config.policy in BASELINES:  # compared with itself it would say nothing
            script["policy"] = "auto"
        over = Config.model_validate({**script, **self._options})
        phases = planned_phases(over.policy, over, 0, self.purpose)
        self._needed_steps = sum(phase.steps for phase in phases)
        return over
