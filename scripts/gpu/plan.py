"""Which stages the GPU check has, in order, and the command of each."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path

from scripts.gpu import build as gpu_build
from scripts.gpu import carried as gpu_carried
from scripts.gpu import mps as gpu_mps
from scripts.gpu.stages import Stage

PROFILED = ("resnet101", "vgg19", "gpt2", "gpt2_medium", "bert_base")
TRAINED = ("resnet50", "gpt2")
RANK_TESTS = ("parity", "late", "formats", "two_links")  # of tests/gpu, what is worth most first
INSTALLED = "installed"  # the kind of a check that builds nothing


@dataclass(frozen=True)
class Settings:
    """Where the check runs, and what it may use."""

    root: Path
    out: Path
    work: Path
    carry: Path
    device: str  # "cuda", or "cpu" for a dry run
    build: bool  # else this Python has all of it

    @property
    def small(self) -> bool:
        """A dry run: small sizes, as it shows no more than that the check itself works."""
        return self.device == "cpu"

    @property
    def kinds(self) -> tuple[str, ...]:
        """The ways in which Horovod is built here."""
        if not self.build:
            return (INSTALLED,)
        return ("none",) if self.device == "cpu" else ("staged", "nccl")

    @property
    def shares(self) -> bool:
        """Whether ranks of NCCL are to share a GPU."""
        return "nccl" in self.kinds


@dataclass(frozen=True)
class Home:
    """What the stages of one kind run with."""

    kind: str
    python: Path
    tree: Path
    preload: Path | None  # a newer NCCL
    tools: Path  # those that the machine may lack

    def environment(self) -> dict[str, str]:
        path = [str(self.python.parent), os.environ.get("PATH", ""), str(self.tools)]
        made = {"PATH": os.pathsep.join(path), "PYTHONPATH": str(self.tree)}
        if self.preload is not None:
            # Several ranks on one GPU; with the default channels more than two of them hang.
            made |= {"NCCL_MULTI_RANK_GPU_ENABLE": "1", "NCCL_MAX_CTAS": "4"}
            made["LD_PRELOAD"] = str(self.preload)
            made |= gpu_mps.variables(self.preload.parent)
        return made


def home_of(settings: Settings, kind: str) -> Home:
    tools = settings.carry / gpu_carried.TOOLS / "bin"
    if kind == INSTALLED:
        return Home(kind, Path(sys.executable), settings.root, None, tools)
    place = gpu_build.Place(settings.work, kind)
    preload = settings.work / gpu_build.NCCL if kind == "nccl" else None
    return Home(kind, place.python, place.tree, preload, tools)


def _build(settings: Settings, kind: str) -> Stage:
    options = ["--kind", kind, "--work", str(settings.work), "--carry", str(settings.carry)]
    command = (sys.executable, "-m", "scripts.gpu.build", *options, "--out", str(settings.out))
    place = gpu_build.Place(settings.work, kind)
    title = "do Horovod and the extension build?"
    home = home_of(settings, INSTALLED)
    return Stage(
        f"build-{kind}",
        title,
        command,
        420,
        60,
        makes=place.done,
        environment=home.environment(),
        folder=home.tree,
    )


class _Kind:
    """Makes the stages of one kind."""

    def __init__(self, settings: Settings, kind: str) -> None:
        self._settings, self._kind = settings, kind
        self._home = home_of(settings, kind)
        self._build = () if kind == INSTALLED else (f"build-{kind}",)

    def stage(
        self,
        name: str,
        title: str,
        words: tuple[str, ...],
        limit_s: float,
        least_s: float,
        needs: tuple[str, ...] = (),
    ) -> Stage:
        """`words`: a script of this room and its arguments."""
        script, *arguments = words
        command = (str(self._home.python), "-m", f"scripts.gpu.{script}", *arguments)
        return Stage(
            name,
            title,
            (*command, "--device", self._settings.device),
            limit_s,
            least_s,
            needs=(*self._build, *needs),
            environment=self._home.environment(),
            folder=self._home.tree,
        )

    def kernels(self) -> list[Stage]:
        tests = ("tests", "--which", "kernels")
        small = ("--small",) if self._settings.small else ()
        return [
            self.stage("kernels", "are the kernels right?", tests, 150, 20),
            self.stage("pack", "how fast is packing?", ("measure.pack", *small), 120, 30),
            self.stage("codec", "how fast are formats?", ("measure.codec", *small), 60, 20),
        ]

    def ranks(self, needs: tuple[str, ...] = ()) -> list[Stage]:
        kind, made = self._kind, []
        for name in RANK_TESTS:  # a stage each: one that hangs must not hide what the others said
            tests = ("tests", "--which", name)
            title = f"do ranks train as with stock Horovod: {name.replace('_', ' ')}?"
            made.append(self.stage(f"ranks-{kind}-{name}", title, tests, 330, 45, needs))
        models = ("tiny_resnet", "tiny_gpt2") if self._settings.small else TRAINED
        for ranks in (2, 4):
            words = ("measure.training", "--ranks", str(ranks), "--models", ",".join(models))
            title = f"{ranks} ranks, real models: the same as stock, replicas equal?"
            made.append(self.stage(f"training-{kind}-{ranks}", title, words, 150, 30, needs))
        return made

    def overhead(self) -> Stage:
        title = "what do hooks and packing cost a step?"
        small = ("--model", "tiny_resnet", "--rows", "2") if self._settings.small else ()
        return self.stage("overhead", title, ("measure.overhead", *small), 120, 30)

    def profiles(self, precision: str) -> Stage:
        models = ("tiny_resnet", "tiny_gpt2") if self._settings.small else PROFILED
        words = ("measure.profiles", "--models", ",".join(models), "--precision", precision)
        title = f"profiles of models, computed in {precision}"
        return self.stage(f"profiles-{precision}", title, words, 200, 40)

    def links(self) -> Stage:
        words = ("measure.links", "--model", "tiny_gpt2" if self._settings.small else "gpt2")
        return self.stage("links", "defaults against stock on slow links", words, 240, 90)

    def version(self) -> Stage:
        title = "may several ranks share a GPU with this NCCL?"
        return self.stage("nccl-version", title, ("measure.nccl",), 60, 10)


def stages_of(settings: Settings) -> list[Stage]:
    """What is worth most comes first: a call may end before the last ones."""
    first = settings.kinds[0]
    one = _Kind(settings, first)
    here = home_of(settings, INSTALLED)
    facts = (sys.executable, "-m", "scripts.gpu.facts", "--device", settings.device)
    about = "what is this machine?"
    made = [Stage("facts", about, facts, 90, 10, environment=here.environment(), folder=here.tree)]
    made += [_build(settings, first)] if settings.build else []
    # A host has no such mode: a dry run computes as it always does.
    usual = one.profiles("float32" if settings.small else "tf32")
    made += [*one.kernels(), *one.ranks(), usual]
    if settings.shares:
        other = _Kind(settings, "nccl")
        # A lone rank may use any NCCL, and the hooks' cost is not to be that of staging.
        made += [_build(settings, "nccl"), other.overhead()]
        made += [other.version(), *other.ranks(("nccl-version",))]
    else:
        made += [one.overhead()]
    made += [one.links()]
    made += [] if settings.small else [one.profiles("bf16")]
    return made
