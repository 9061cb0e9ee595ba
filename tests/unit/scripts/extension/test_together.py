"""scripts/extension/together.py: one file of several."""

from pathlib import Path

import pytest

from scripts.extension.together import together
from tests.places import ROOT


def test_it_includes_all_and_stays_as_it_is(tmp_path):
    sources = [Path("/a/one.cpp"), Path("/a/two.cpp")]
    made = together(sources, tmp_path / "new" / "both.cpp")
    assert made.read_text() == '#include "/a/one.cpp"\n#include "/a/two.cpp"\n'
    written_ns = made.stat().st_mtime_ns
    assert together(sources, made).stat().st_mtime_ns == written_ns
    assert "two.cpp" not in together(sources[:1], made).read_text()


@pytest.mark.parametrize(("room", "header"), [("torch", "libtorch.h"), ("bindings", "bindings.h")])
def test_files_that_are_compiled_together_agree_on_what_comes_first(room, header):
    files = sorted((ROOT / "csrc" / room).rglob("*.cpp"))
    assert files
    for path in files:
        lines = path.read_text(encoding="utf-8").splitlines()
        first = next(line for line in lines if line.startswith("#include"))
        assert first == f'#include "{room}/{header}"', path
