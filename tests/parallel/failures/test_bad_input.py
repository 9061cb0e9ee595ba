"""What is refused, with which words. One job tries everything."""

from __future__ import annotations

import functools
from typing import Any

import pytest

from tests.parallel.launch import run_ranks

pytestmark = pytest.mark.timeout(120)

# case: the error, and what its message says
REFUSED = {
    "not initialised": ("NotSupportedError", ["hvd.init()", "not initialised"]),
    "missing": ("ConfigError", ["not in named_parameters", "1 without a name", "shape (2,)"]),
    "duplicate": ("ConfigError", ["must be unique", "'same'", "prefix"]),
    "unnamed": ("ConfigError", ["tuples (name, parameter)", "Parameter", "named_parameters()"]),
    "option": ("ConfigError", ["bucket_byte", "no such option", "did you mean bucket_bytes?"]),
    "policy": ("ConfigError", ["prioritty", "did you mean 'priority'?", "auto, bucket"]),
    "values": ("ConfigError", ["3 problems", "bucket_bytes", "deadline_s = -1", "verbose"]),
    "environment": (
        "ConfigError",
        ["2 problems", "DEFT_POLICY = 'none'", "DEFT_DEADLINE:", "DEFT_DEADLINE_S?"],
    ),
    "two policies": ("ConfigError", ["two values", "'wfbp'", "'bucket'"]),
    "groups with priority": ("NotSupportedError", ["'priority'", "'bucket' or 'stock'"]),
    "num_groups with priority": ("NotSupportedError", ["'priority'", "num_groups"]),
    "groups": ("ConfigError", ["groups must be", "'all'"]),
    "LBFGS with priority": ("NotSupportedError", ["LBFGS", "'bucket' or 'stock'"]),
    "Adasum with a process set": ("NotSupportedError", ["Adasum", "process_set"]),
    "predivision of a sum": ("NotSupportedError", ["gradient_predivide_factor", "hvd.Average"]),
    "no passes": ("NotSupportedError", ["backward_passes_per_step must be > 0", "0"]),
    "no passes later": ("NotSupportedError", ["backward_passes_per_step must be > 0", "-1"]),
    "skip": ("DeftError", ["skip_synchronize()", "synchronize() after the last backward()"]),
    "passes in the first step": (None, ["backward_passes_per_step = 2", "step()"]),
    "passes in a later step": (None, ["backward_passes_per_step = 2", "step()"]),
    "passes, priority": (None, ["backward_passes_per_step = 2", "step()"]),
    "passes, stock": (None, ["backward_passes_per_step", "step()"]),
}
STOCK_WOULD_RAISE = {"ConfigError": "ValueError", "NotSupportedError": "ValueError"}


@functools.cache
def results() -> list[dict[str, Any]]:
    env = {"HOROVOD_DYNAMIC_PROCESS_SETS": "1"}
    return (
        run_ranks("failures/fail_bad_input.py", 2, timeout_s=100, env=env).require_success().results
    )


@pytest.mark.parametrize("case", REFUSED)
def test_it_is_refused_on_every_rank(case: str) -> None:
    kind, words = REFUSED[case]
    for found in results():
        error = found[case]
        assert error["type"] is not None, "nothing was raised"
        if kind is not None:
            assert error["type"] == kind, error
            assert "DeftError" in error["kinds"]
            assert STOCK_WOULD_RAISE.get(kind, "DeftError") in error["kinds"]
        for word in words:
            assert word in error["message"]
        assert error["seconds"] < 5.0


def test_the_job_goes_on_after_all_of_it() -> None:
    for found in results():
        assert found["after all"]["type"] is None, found["after all"]
        assert found["after all"]["equal"]
