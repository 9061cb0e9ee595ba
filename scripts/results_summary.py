#!/usr/bin/env python3
"""The last line of scripts/test.sh: what the JUnit reports in a folder add up to.

A test that failed beside all others and passed alone counts as passed, and is named: many measure
time, and something else may have had the cores. More than a few are no accident.
"""

from __future__ import annotations

import sys
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

MOST_UNSTEADY: Final = 3
AGAIN: Final = ".again.xml"  # of those that ran once more
_CTEST: Final = ".ctest.xml"


@dataclass
class Summary:
    """Of all reports."""

    passed: int = 0
    failed: int = 0
    skipped: int = 0
    unsteady: list[str] = field(default_factory=list)

    def settle(self) -> bool:
        """Counts the unsteady ones; whether all is well then."""
        if len(self.unsteady) > MOST_UNSTEADY:
            self.failed += len(self.unsteady)
        else:
            self.passed += len(self.unsteady)
        return self.passed > 0 and not self.failed

    def lines(self) -> Iterator[str]:
        for name in self.unsteady:
            yield f"UNSTEADY: {name} failed among all others and passed alone"
        yield f"{self.passed} passed, {self.failed} failed, {self.skipped} skipped"


def testcases(report: Path) -> Iterator[ET.Element]:
    """Of a report that our own tools have just written."""
    return ET.parse(report).iter("testcase")  # noqa: S314


def cases(report: Path) -> Iterator[tuple[str, set[str]]]:
    """The tests of a report: name and outcomes, none of which means passed."""
    for case in testcases(report):
        outcomes = {child.tag for child in case}
        if case.get("status") == "notrun":
            outcomes.add("skipped")
        yield f"{case.get('classname')}::{case.get('name')}", outcomes


def summarise(results: Path, broken: int) -> Summary:
    """`broken`: suites that could not even run."""
    found = Summary(failed=broken)
    for report in sorted(results.rglob("*.xml")):
        if report.name.endswith(_CTEST):
            found.failed += _crashed(results, report)
        elif not report.name.endswith(AGAIN):
            _add(found, report)
    return found


def _add(found: Summary, report: Path) -> None:
    again = report.with_suffix(AGAIN)
    alone = dict(cases(again)) if again.is_file() else {}
    for name, outcomes in cases(report):
        if outcomes & {"failure", "error"}:
            if name in alone and not alone[name] & {"failure", "error", "skipped"}:
                found.unsteady.append(name)
            else:
                found.failed += 1
        elif "skipped" in outcomes:
            found.skipped += 1
        else:
            found.passed += 1


def _crashed(results: Path, report: Path) -> int:
    """Programs of the C++ tests that ended before their own report could say what failed."""
    failed = 0
    for case in testcases(report):
        own = results / report.name.removesuffix(_CTEST) / f"{case.get('name')}.xml"
        reported = own.is_file() and any(one.find("failure") is not None for one in testcases(own))
        failed += case.find("failure") is not None and not reported
    return failed


def main(arguments: list[str]) -> int:
    found = summarise(Path(arguments[0]), int(arguments[1]))
    well = found.settle()
    print(*found.lines(), sep="\n")
    return 0 if well else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
