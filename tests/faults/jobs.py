"""Starts the jobs of the campaign: many seeds in one, as starting ranks takes seconds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tests.faults.scripts.draw import RANKS
from tests.parallel.launch import JobHungError, Result, run_ranks

SCRIPTS: Final = Path(__file__).parent / "scripts"
DEADLINE_S: Final = 15.0

# Policies that measure get to their plan within a few steps, and updates may be late from then on.
QUICK: Final = {
    "DEFT_DEADLINE_S": f"{DEADLINE_S:g}",
    "DEFT_PROFILE_WARMUP_STEPS": "1",
    "DEFT_PROFILE_STEPS": "1",
    "DEFT_PROBE_S": "0.02",
    "DEFT_WARMUP_STEPS": "0",
    "DEFT_TRIAL_STEPS": "1",
    "DEFT_TRIAL_ROUNDS": "1",
    "HOROVOD_CYCLE_TIME": "1",
    "HOROVOD_STALL_CHECK_TIME_SECONDS": "60",
}


def environment(more: Mapping[str, str] | None = None) -> dict[str, str]:
    """Of a job of the campaign."""
    return {**QUICK, **(more or {})}


@dataclass(frozen=True)
class Outcome:
    """What became of one seed, on all ranks."""

    seed: int
    troubles: tuple[str, ...]
    by_rank: tuple[Mapping[str, Any], ...]

    @property
    def command(self) -> str:
        """Repeats it."""
        return f".venv/bin/python -m scripts.faults.campaign --seeds {self.seed}"

    def text(self) -> str:
        said = "\n".join(self.troubles)
        return f"seed {self.seed} failed; repeat it with\n  {self.command}\n{said}"


def run_seeds(seeds: Sequence[int], limit_s: float) -> list[Outcome]:
    """One job with these; those that it did not reach are not in the answer."""
    try:
        result = run_ranks(
            SCRIPTS / "campaign_ranks.py",
            RANKS,
            timeout_s=limit_s,
            options={"seeds": list(seeds)},
            env=environment(),
        )
        hung = ""
    except JobHungError as error:
        result, hung = error.result, f"the job was killed after {limit_s:g} s"
    return outcomes_of(result, hung)


def outcomes_of(result: Result, hung: str = "") -> list[Outcome]:
    """What became of the seeds of a job."""
    by_rank = [{found["seed"]: found for found in said or []} for said in result.results]
    seeds = list(dict.fromkeys(seed for found in by_rank for seed in found))
    outcomes = []
    for seed in seeds:
        rows = tuple(found.get(seed, {"seed": seed, "error": "did not begin"}) for found in by_rank)
        troubles: list[str] = []
        for rank, row in enumerate(rows):
            troubles += [f"rank {rank}: {line}" for line in row.get("failures", [])]
            if "error" in row:
                troubles.append(f"rank {rank}: {row['error']}")
        if any("error" in row for row in rows):
            troubles += [hung, result.output[-2000:]] if hung else []
        outcomes.append(Outcome(seed, tuple(filter(None, troubles)), rows))
    return outcomes
