"""Runs tests/gpu, or a part of it, and counts: also what was skipped, and why."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

from scripts.gpu import results as gpu_results
from scripts.places import ROOT

RANKS = "_ranks.py"
SHOWN = 5
DEVICE_VARIABLE = "DEFT_TEST_DEVICE"


def chosen(folder: Path, which: str) -> list[Path]:
    """The test file of ranks that has this name, or all that have none."""
    if which == "kernels":
        return sorted(path for path in folder.glob("test_*.py") if not path.name.endswith(RANKS))
    return sorted(folder.glob(f"test_{which}{RANKS}"))


def count(report: Path) -> dict[str, Any]:
    """Of a JUnit file."""
    found: dict[str, Any] = {"passed": 0, "failed": [], "skipped": [], "seconds": {}}
    for case in ET.parse(report).iter("testcase"):  # noqa: S314  (pytest has just written it)
        name = f"{case.get('classname', '').rsplit('.', 1)[-1]}::{case.get('name')}"
        found["seconds"][name] = float(case.get("time") or 0)
        problem = next((child for child in case if child.tag in ("failure", "error")), None)
        skipped = case.find("skipped")
        if problem is not None:
            said = f"{problem.get('message') or ''}\n{problem.text or ''}"
            found["failed"].append({"name": name, "said": said[:4000]})
        elif skipped is not None:
            found["skipped"].append({"name": name, "why": skipped.get("message")})
        else:
            found["passed"] += 1
    return found


def headline(found: dict[str, Any]) -> str:
    failed, skipped = found["failed"], found["skipped"]
    text = f"{found['passed']} passed, {len(failed)} failed, {len(skipped)} skipped"
    if failed:
        text += f"; failed: {', '.join(entry['name'] for entry in failed[:SHOWN])}"
    elif skipped:
        text += f"; skipped: {skipped[0]['why']}"
    return text


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--which", required=True, help="kernels, or NAME of test_NAME_ranks.py")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cuda")
    options = parser.parse_args(arguments)
    files = chosen(ROOT / "tests" / "gpu", options.which)
    if not files:
        gpu_results.leave_out(f"tests/gpu has no tests of {options.which}")
    environment = {**os.environ, DEVICE_VARIABLE: options.device}
    with tempfile.TemporaryDirectory(prefix="gpu-tests-") as folder:
        report = Path(folder) / "tests.xml"
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
        command += [f"--junitxml={report}", *map(str, files)]
        status = subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode
        if not report.is_file():
            gpu_results.report(f"pytest ended with status {status} and no report")
            return 1
        found = count(report)
    if not found["passed"] and not found["failed"] and status == 0:
        gpu_results.leave_out(headline(found), **found)
    gpu_results.report(headline(found), **found)
    return 0 if status == 0 else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
