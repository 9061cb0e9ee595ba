"""What rank programs share: their options, and one JSON report per rank."""

from __future__ import annotations

import functools
import gc
import inspect
import json
import os
import sys
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from unittest import SkipTest

from tests.parallel.scripts import launched

Case = Callable[[], Any]


def options() -> Any:
    """What the test passed to ``run_ranks(options=...)``."""
    return json.loads(os.environ.get("PARALLEL_OPTIONS", "null"))


def python() -> list[str]:
    """What this rank was started with: Python, or what stands in its place."""
    return list(json.loads(os.environ.get("PARALLEL_PYTHON", "null")) or [sys.executable])


def chosen(cases: Mapping[str, Case]) -> dict[str, Case]:
    """All cases, or those that the test has named: ``options={"cases": [...]}``."""
    names = (options() or {}).get("cases") or list(cases)
    return {name: cases[name] for name in names}


def report(result: Any) -> None:
    """Leaves this rank's result for the test; the last one counts, and it is whole or absent."""
    folder = Path(os.environ["PARALLEL_RESULTS"])
    path = folder / f"rank.{launched.rank()}.json"
    temporary = path.with_suffix(f".{os.getpid()}.tmp")
    temporary.write_text(json.dumps(result))
    temporary.replace(path)


# A case that takes a policy runs with each of these ("auto" lets some of them take turns).
POLICIES = ("stock", "wfbp", "bucket", "priority", "least_stale")


def cases_in(namespace: Mapping[str, Any]) -> dict[str, Case]:
    """The functions ``case_...`` of a program, in the order in which they are written."""
    cases: dict[str, Case] = {}
    for name, function in namespace.items():
        if not name.startswith("case_"):
            continue
        short = name.removeprefix("case_")
        if "policy" in inspect.signature(function).parameters:
            for policy in POLICIES:
                cases[f"{short}-{policy}"] = functools.partial(function, policy)
        else:
            cases[short] = function
    return cases


def run_cases(cases: Mapping[str, Case]) -> None:
    """Runs every case and reports {"case": {"error": traceback or None, "value": ...}}.

    The report is rewritten before and after every case: after a hang it shows how far a rank came.
    """
    # What has been imported is hundreds of thousands of objects, among them torch's compiler; a
    # collection between two cases need not look at them again.
    gc.freeze()
    done: dict[str, Any] = {}
    for name, case in cases.items():
        report({**done, name: {"error": "did not end", "value": None}})
        try:
            done[name] = {"error": None, "value": case()}
        except SkipTest as reason:
            done[name] = {"error": None, "value": None, "skipped": str(reason)}
        except Exception:  # noqa: BLE001  (whatever it is, the test shows it)
            done[name] = {"error": traceback.format_exc(), "value": None}
        report(done)
