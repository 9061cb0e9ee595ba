"""Messages that a plan keeps apart are not fused by Horovod, as its timeline says."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.parallel.launch import run_ranks

pytestmark = pytest.mark.timeout(150)

INTO_ONE = "MEMCPY_IN_FUSION_BUFFER"  # not for a message that travels alone


def trained(
    folder: Path, ranks: int, wire_format: str, *, fusion: bool
) -> tuple[set[str], set[str]]:
    """The messages that Horovod has put into one with others, and what the ranks have trained."""
    path = folder / f"timeline-{fusion}.json"
    job = run_ranks(
        "formats/apart.py",
        ranks,
        env={"HOROVOD_TIMELINE": str(path)},
        options={"format": wire_format, "fusion": fusion},
    ).require_success()
    text = path.read_text("utf-8")
    events = json.loads(text[: text.rindex("},") + 1] + "]")  # Horovod may leave the last one open
    names = {one["pid"]: one["args"]["name"] for one in events if "name" in one.get("args", {})}
    assert names
    fused = {names[one["pid"]] for one in events if one.get("name") == INTO_ONE}
    return fused, {*job.results}


@pytest.mark.parametrize(("ranks", "wire_format"), [(2, "f32"), (2, "int8"), (3, "int8")])
def test_only_messages_that_may_be_fused_are_and_no_bit_depends_on_it(
    tmp_path: Path, ranks: int, wire_format: str
) -> None:
    fused, parameters = trained(tmp_path, ranks, wire_format, fusion=True)
    assert fused, "else the other half would show nothing"
    assert len(parameters) == 1
    assert trained(tmp_path, ranks, wire_format, fusion=False) == (set(), parameters)
