"""JobEntry: a job as a user writes it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Final

from deft_horovod.capacity.input.duration import duration_text
from deft_horovod.capacity.input.entry import Entry
from deft_horovod.capacity.input.values import count, duration_s, duration_us, positive, size_bytes
from deft_horovod.capacity.times.profiles import profile_of
from deft_horovod.errors import PlanError
from deft_horovod.profile import Profile
from deft_horovod.workloads.catalogue import SHAPES

FIELDS: Final = (
    "name",
    "profile",
    "model",
    "compute",
    "batch",
    "samples",
    "steps",
    "throughput",
    "start",
    "deadline",
    "min_ranks",
    "max_ranks",
    "memory",
    "accuracy",
)
_ACCURACIES: Final = ("exact", "equal", "fast")
_MANY: Final = 1 << 20  # ranks, where nothing limits them


@dataclass(frozen=True)
class JobEntry:
    """`samples` or `steps` are to be done until the deadline, or so many samples a second."""

    entry: Entry
    name: str
    profile: Profile
    batch: int  # samples of a rank in a step
    min_ranks: int
    max_ranks: int
    memory_bytes: int  # of a rank
    accuracy: str
    samples: int | None = None
    steps: int | None = None
    throughput: float | None = None
    release_s: int = 0
    deadline_s: int = 0

    def steps_on(self, ranks: int) -> int:
        """What has to be done with so many ranks."""
        if self.steps is not None:
            return self.steps
        return -(-(self.samples or 0) // (self.batch * ranks))


def scheduled_job(entry: Entry) -> JobEntry:
    """One with a deadline."""
    job = _job(entry)
    if entry.has("throughput"):
        entry.fail("a throughput is for `deft-profile consolidate`", "throughput")
    if entry.has("samples") == entry.has("steps"):
        entry.fail(f"{entry.what} needs either samples or steps", action="give one of them")
    samples = entry.read("samples", count) if entry.has("samples") else None
    if samples and not entry.has("batch"):
        entry.fail(f"{entry.what} needs 'batch'", action="say how many samples a rank's step has")
    release_s = entry.read("start", duration_s, 0)
    deadline_s = entry.read("deadline", duration_s)
    if deadline_s <= release_s:
        entry.fail(
            f"the deadline of {entry.what} is not after its start",
            "deadline",
            observed=f"start {duration_text(release_s)}, deadline {duration_text(deadline_s)}",
            action="move one of them",
        )
    steps = entry.read("steps", count) if entry.has("steps") else None
    return replace(job, samples=samples, steps=steps, release_s=release_s, deadline_s=deadline_s)


def kept_job(entry: Entry) -> JobEntry:
    """One that must keep a throughput."""
    job = _job(entry)
    for name in ("samples", "steps", "start", "deadline"):
        if entry.has(name):
            entry.fail(f"'{name}' is for `deft-profile capacity`", name, action="remove it")
    if not entry.has("batch"):
        entry.fail(f"{entry.what} needs 'batch'", action="say how many samples a rank's step has")
    return replace(job, throughput=entry.read("throughput", positive))


def _job(entry: Entry) -> JobEntry:
    name = entry.text("name")
    entry.what = f"job {name}"
    entry.require_known(FIELDS)
    least = entry.read("min_ranks", count, 1)
    most = entry.read("max_ranks", count, max(least, _MANY))
    if most < least:
        observed = f"min_ranks {least}, max_ranks {most}"
        entry.fail("min_ranks is more than max_ranks", "max_ranks", observed=observed)
    return JobEntry(
        entry=entry,
        name=name,
        profile=_profile(entry),
        batch=entry.read("batch", count, 1),
        min_ranks=least,
        max_ranks=most,
        memory_bytes=entry.read("memory", size_bytes, 0),
        accuracy=entry.read("accuracy", _accuracy, "exact"),
    )


def _accuracy(text: str) -> str:
    if text not in _ACCURACIES:
        raise ValueError(f"not one of {', '.join(_ACCURACIES)}")
    return text


def _profile(entry: Entry) -> Profile:
    """Of a file, by its place beside this one, or of a model that is known."""
    if entry.has("profile") == entry.has("model"):
        entry.fail(
            f"{entry.what} needs either profile or model",
            expected=f"the file of a profile, or one of {', '.join(SHAPES)}",
        )
    if entry.has("model"):
        model = entry.text("model")
        if model not in SHAPES:
            close = get_close_matches(model, SHAPES, n=1)
            entry.fail(
                f"there is no model '{model}'",
                "model",
                expected=", ".join(SHAPES),
                action=f"did you mean '{close[0]}'?" if close else "give a profile instead",
            )
        return profile_of(SHAPES[model](), entry.read("compute", duration_us))
    if entry.has("compute"):
        entry.fail("a profile says how long a step computes", "compute", action="remove it")
    path = entry.path.parent / entry.text("profile")
    if not path.is_file():
        action = "`deft-profile run` writes one; its place is relative to this file"
        entry.fail(f"there is no file {path}", "profile", action=action)
    try:
        return Profile.load(path)
    except PlanError as error:
        entry.fail(f"the profile of {entry.what} cannot be used", "profile", observed=error)
