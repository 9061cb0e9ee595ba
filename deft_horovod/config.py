"""Config: every option, from keyword arguments, environment and file, in one frozen record.

This is the only place of the package that reads the environment.
"""

from __future__ import annotations

import os
import textwrap
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import yaml
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic.fields import FieldInfo
from typing_extensions import Self

from deft_horovod.base.option_text import allowed_text, value_text
from deft_horovod.base.period import LONGEST_PERIOD
from deft_horovod.base.policy_name import POLICIES, known_policy
from deft_horovod.base.size import parse_size
from deft_horovod.errors import ConfigError, explain

_PREFIX: Final = "DEFT_"
_TOLD: Final = ("HOROVOD_", _PREFIX, "OMP_NUM_THREADS", "GLOO_", "NCCL_")
_INDENT: Final = "    "
_TEXT_WIDTH: Final = 96
_WIDE: Final = 36  # what is longer than this stands below the table's row
_FILE_VARIABLE: Final = "DEFT_CONFIG"
_RANK_VARIABLES: Final = ("HOROVOD_RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK")
# Read when the extension is built, so they may be around without meaning anything here.
_BUILD_VARIABLES: Final = frozenset({"DEFT_FORCE_CPU", "DEFT_FORCE_CUDA"})
# Whatever the dtype, the elements of a message can be counted in 31 bits, as MPI does.
_LARGEST_MESSAGE: Final = 2 * 1024**3


_PolicyName = Annotated[str, AfterValidator(known_policy)]
_Size = Annotated[int, BeforeValidator(parse_size)]


class Config(BaseModel):
    """The options of one optimizer. Make it with :meth:`load`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    policy: _PolicyName = Field("auto", description="Which scheduler makes the plan.")
    bucket_bytes: _Size = Field(
        25 * 1024**2,
        ge=1024,
        le=_LARGEST_MESSAGE,
        description="bucket, ddp, dear without `tune`: gradients are fused up to this size.",
    )
    first_bucket_bytes: _Size = Field(
        1024**2,
        ge=1024,
        le=_LARGEST_MESSAGE,
        description="bucket, ddp: the first one is smaller, so that the link starts early.",
    )
    partition_bytes: _Size = Field(
        4_000_000,
        ge=1024,
        le=_LARGEST_MESSAGE,
        description="priority: larger gradients are cut, smaller ones share a message. "
        "p3, bytescheduler, sapipe, usbyte, dcredit without `tune`: the size of a piece.",
    )
    credit_bytes: _Size = Field(
        16_000_000,
        ge=0,
        le=64 * 1024**3,
        description="priority, usbyte, and bytescheduler, sapipe without `tune`: bytes in flight; "
        "a larger message travels alone; 0: no limit.",
    )
    credit_messages: int = Field(
        0,
        ge=0,
        le=1_000_000,
        description="priority, usbyte: messages in flight; 0: as many as can be kept apart (8).",
    )
    tune: bool = Field(
        True,
        description="Published schedulers choose their sizes by the profile; false: those above.",
    )
    accuracy: Literal["exact", "equal", "fast"] | None = Field(
        None,
        description="What may be done to gradients so that they arrive in time. exact: nothing, "
        "the bits of Horovod; equal: 16 and 8 bits, with what rounding leaves sent later; fast: "
        "also 4 bits (not with Muon), or late. Unset: equal for auto with torch's SGD with "
        "momentum, Adam, AdamW and Muon; else all bits.",
    )
    exact: str = Field(
        "",
        description="Parameters that travel as they are, whatever `accuracy` says: patterns of "
        "names with * and ?, separated by commas. Vectors and small tensors do anyway.",
    )
    max_delay: int | None = Field(
        None,
        ge=0,
        le=LONGEST_PERIOD,
        description="Steps that an update may come late. Unset: 1 for deft, sapipe and accuracy "
        "fast; for auto with an `accuracy_budget` 1 once the learning rate is at most 0.75 of its "
        "highest; else 0.",
    )
    max_merge: int | None = Field(
        None,
        ge=1,
        le=LONGEST_PERIOD,
        description="Steps that may travel as one sum. Unset: 4 for deft and covap, else 1.",
    )
    late_share: float = Field(
        1.0, ge=0.0, le=1.0, description="auto, least_stale: share of the bytes that may be late."
    )
    accuracy_budget: float | None = Field(
        None,
        ge=0.0,
        le=1000.0,
        description="What late updates may be expected to cost, as a share of the loss; of a plan "
        "that costs more less is late. Whoever sets it lets auto be late once the learning rate is "
        "low. Unset: 0.02 for auto where something else allows late updates, else no limit.",
    )
    merge: Literal["auto", "sum", "mean"] = Field(
        "auto",
        description="How several steps become one update. auto: their sum for SGD; for all others "
        "the mean, where it is predicted with as many times the learning rate.",
    )
    correction: Literal[
        "auto", "none", "momentum", "previous", "own_share", "local", "own_and_previous"
    ] = Field(
        "auto",
        description="What late gradients are guessed to be while they are in flight, so that the "
        "next ones are computed where the parameters would be. auto: local; of sapipe "
        "own_and_previous, of covap none.",
    )
    profile_warmup_steps: int = Field(
        3, ge=0, le=100_000, description="Steps before the profile; nothing is measured in them."
    )
    profile_steps: int = Field(
        10,
        ge=1,
        le=100_000,
        description="Steps that are measured, at most, before anything is planned.",
    )
    probe_s: float = Field(
        2.0,
        ge=0.01,
        le=600,
        allow_inf_nan=False,
        description="Time for measuring each link, at most, once the steps are measured.",
    )
    warmup_steps: int = Field(
        100,
        ge=0,
        le=100_000_000,
        description="Steps of synchronous training before the first update may come late.",
    )
    trial_steps: int = Field(
        5, ge=1, le=10_000, description="auto: steps of each candidate in each round of trials."
    )
    trial_rounds: int = Field(
        2, ge=1, le=100, description="auto: rounds in which the candidates take turns."
    )
    min_gain: float = Field(
        0.02,
        ge=0.0,
        le=1.0,
        allow_inf_nan=False,
        description="auto: share of the step that has to be gained, or stock Horovod is kept.",
    )
    drift: float = Field(
        0.25,
        ge=0.01,
        le=100.0,
        allow_inf_nan=False,
        description="Change of the step time, as a share, that calls for a new plan.",
    )
    drift_steps: int = Field(
        100, ge=1, le=100_000_000, description="Steps for which the change has to last."
    )
    second_interface: str = Field(
        "",
        description="Network interface of a second link, used where measuring says that it helps.",
    )
    plan_file: str = Field("", description="Run the plan in this file instead of making one.")
    deadline_s: float = Field(
        300.0,
        ge=0.1,
        le=86_400,
        allow_inf_nan=False,
        description="How long a wait lasts before it ends with an error that says who is missing.",
    )
    disable: bool = Field(False, description="Run plain Horovod, as if nothing were installed.")
    trace: str = Field(
        "", description="Folder into which every rank writes a trace of its steps and messages."
    )
    trace_steps: int = Field(
        200, ge=1, le=100_000_000, description="Steps of each optimizer that are traced."
    )
    metrics: str = Field(
        "",
        description="Where rank 0 writes `stats()` while it trains: a file that ends with .csv, "
        ".jsonl or .prom (Prometheus), or a folder for TensorBoard.",
    )
    metrics_steps: int = Field(
        50, ge=1, le=100_000_000, description="Steps from one entry in `metrics` to the next."
    )
    verbose: bool = Field(False, description="Rank 0 writes a summary of each plan to its log.")

    # Hidden from type checkers, which then keep the constructor generated from the fields.
    if not TYPE_CHECKING:

        def __init__(self, **fields: Any) -> None:
            try:
                super().__init__(**fields)
            except ValidationError as error:
                raise _refusal(_problems("argument", "", error)) from None

    @classmethod
    def load(
        cls,
        overrides: Mapping[str, object] | Config | None = None,
        policy: str | None = None,
        environ: Mapping[str, str] | None = None,
    ) -> Self:
        """Arguments win over DEFT_* variables, and these over the file that DEFT_CONFIG names.

        Everything that is wrong in any of them, overridden or not, is in one ConfigError. Of a
        Config given as `overrides` the fields that were set count.
        """
        environ = os.environ if environ is None else environ
        arguments = _arguments(overrides)
        problems: list[str] = []
        if policy is not None:
            if arguments.get("policy", policy) != policy:
                problems.append(
                    f"argument policy: two values, {policy!r} and {arguments['policy']!r} in config"
                )
            arguments["policy"] = policy
        in_environment, unknown = _read_environment(environ)
        in_file, unreadable = _read_file(environ.get(_FILE_VARIABLE, ""))
        problems += _check("argument", "", arguments)
        problems += _check("environment variable", _PREFIX, in_environment) + unknown
        problems += _check(f"file {environ.get(_FILE_VARIABLE)}:", "", in_file) + unreadable
        if problems:
            raise _refusal(problems)
        return cls.model_validate({**in_file, **in_environment, **arguments})

    @staticmethod
    def elastic(environ: Mapping[str, str] | None = None) -> bool:
        """Whether Horovod's launcher started this process for elastic training."""
        return (os.environ if environ is None else environ).get("HOROVOD_ELASTIC") == "1"

    @staticmethod
    def environment(environ: Mapping[str, str] | None = None) -> dict[str, str]:
        """The variables that change how communication works, ours and Horovod's."""
        environ = os.environ if environ is None else environ
        return {name: value for name, value in sorted(environ.items()) if name.startswith(_TOLD)}

    @staticmethod
    def launched_rank(environ: Mapping[str, str] | None = None) -> int | None:
        """The rank that a launcher gave this process; None: there is none."""
        environ = os.environ if environ is None else environ
        torchrun = ("RANK",) if "TORCHELASTIC_RUN_ID" in environ else ()
        ranks = (environ.get(variable, "") for variable in (*_RANK_VARIABLES, *torchrun))
        return next((int(rank) for rank in ranks if rank.isdigit()), None)

    @staticmethod
    def launched_attempt() -> int:
        """How often torchrun has started this job again."""
        return int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0"))

    @staticmethod
    def gloo_interface() -> str:
        """The network interface that Horovod's Gloo was told to use; empty: none."""
        return os.environ.get("HOROVOD_GLOO_IFACE", "")

    @staticmethod
    def set_in_environment(option: str, value: str) -> None:
        """For all optimizers of this process that are made from now on."""
        os.environ[_PREFIX + option.upper()] = value

    @classmethod
    def documentation(cls) -> str:
        """The table of all options, for the command line and for the documentation."""
        rows = [("option", "environment", "default", "allowed")]
        rows += [
            (name, _PREFIX + name.upper(), value_text(name, field.default), _allowed(name, field))
            for name, field in cls.model_fields.items()
        ]
        widths = [max(len(row[column]) for row in rows) for column in range(3)]
        meanings = ["", *(field.description or "" for field in cls.model_fields.values())]
        lines = []
        for row, meaning in zip(rows, meanings, strict=True):
            cells = [cell.ljust(width) for cell, width in zip(row[:3], widths, strict=True)]
            lines.append("  ".join([*cells, row[3] if len(row[3]) < _WIDE else "a name"]))
            allowed = "" if len(row[3]) < _WIDE else f" One of {row[3]}."
            text = f"{meaning}{allowed}" if meaning else ""
            lines += textwrap.indent(textwrap.fill(text, _TEXT_WIDTH), _INDENT).splitlines()
        return "\n".join(lines)


def _arguments(overrides: object) -> dict[str, object]:
    if isinstance(overrides, Config):
        return overrides.model_dump(exclude_unset=True)
    if overrides is None:
        return {}
    if not isinstance(overrides, Mapping):
        kind = type(overrides).__name__
        raise _refusal([f"argument config: a {kind} (allowed: a mapping or a Config)"])
    return {str(name): value for name, value in overrides.items()}


def _refusal(problems: list[str]) -> ConfigError:
    many = "1 problem" if len(problems) == 1 else f"{len(problems)} problems"
    return ConfigError(
        explain(
            f"the configuration is refused: {many}",
            observed="\n".join(problems),
            action="correct these; `python -m deft_horovod --help` lists all options",
        )
    )


def _check(source: str, prefix: str, values: Mapping[str, object]) -> list[str]:
    try:
        BaseModel.__init__(Config.model_construct(), **values)
    except ValidationError as error:
        return _problems(source, prefix, error)
    return []


def _problems(source: str, prefix: str, error: ValidationError) -> list[str]:
    lines = []
    for problem in error.errors(include_url=False):
        name = str(problem["loc"][0])
        shown = f"{source} {prefix + name.upper() if prefix else name}"
        if problem["type"] == "extra_forbidden":
            lines.append(f"{shown}: no such option{_suggestion(name, prefix)}")
            continue
        allowed = _allowed(name, Config.model_fields[name])
        reason = problem["msg"].removeprefix("Value error, ")
        lines.append(f"{shown} = {problem['input']!r}: {reason} (allowed: {allowed})")
    return lines


def _suggestion(name: str, prefix: str) -> str:
    close = get_close_matches(name.lower(), Config.model_fields, n=1)
    if not close:
        return f" (known: {', '.join(Config.model_fields)})"
    return f"; did you mean {prefix + close[0].upper() if prefix else close[0]}?"


def _read_environment(environ: Mapping[str, str]) -> tuple[dict[str, object], list[str]]:
    """Values by field, and a line for each variable that means nothing. Empty counts as unset."""
    values: dict[str, object] = {}
    problems = []
    for variable in sorted(environ):
        if not variable.startswith(_PREFIX) or not environ[variable]:
            continue
        name = variable.removeprefix(_PREFIX).lower()
        if variable == variable.upper() and name in Config.model_fields:
            values[name] = environ[variable]
        elif variable != _FILE_VARIABLE and variable not in _BUILD_VARIABLES:
            hint = _suggestion(name, _PREFIX)
            problems.append(f"environment variable {variable}: no such option{hint}")
    return values, problems


def _read_file(path: str) -> tuple[dict[str, object], list[str]]:
    if not path:
        return {}, []
    try:
        content = yaml.safe_load(Path(path).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        reason = " ".join(str(error).split())
        return {}, [f"file {path} (named by {_FILE_VARIABLE}): cannot be read: {reason}"]
    if content is None:
        return {}, []
    if not isinstance(content, dict):
        kind = type(content).__name__
        return {}, [f"file {path}: holds a {kind} (allowed: 'option: value' lines)"]
    return {str(name): value for name, value in content.items()}, []


def _allowed(name: str, field: FieldInfo) -> str:
    return ", ".join(POLICIES) if name == "policy" else allowed_text(name, field)
