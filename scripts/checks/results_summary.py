"""The last line of scripts/test.sh: what the JUnit reports in a folder add up to."""

from __future__ import annotations

import sys
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_CTEST: Final = ".ctest.xml"


@dataclass
class Summary:
    """Of all reports."""

    passed: int = 0
    failed: int = 0
    skipped: int = 0

    @property
    def green(self) -> bool:
        return self.passed > 0 and not self.failed

    def __str__(self) -> str:
        return f"{self.passed} passed, {self.failed} failed, {self.skipped} skipped"


def testcases(report: Path) -> Iterator[ET.Element]:
    """Of a report that our own tools have just written."""
    return ET.parse(report).iter("testcase")  # noqa: S314


def summarise(results: Path, broken: int) -> Summary:
    """`broken`: suites that could not even run."""
    found = Summary(failed=broken)
    for report in sorted(results.rglob("*.xml")):
        if report.name.endswith(_CTEST):
            found.failed += _crashed(results, report)
        else:
            _add(found, report)
    return found


def _add(found: Summary, report: Path) -> None:
    for case in testcases(report):
        outcomes = {child.tag for child in case}
        if outcomes & {"failure", "error"}:
            found.failed += 1
        elif "skipped" in outcomes or case.get("status") == "notrun":
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
    print(found)
    return 0 if found.green else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
