"""The project's own rules find what was planted, and nothing else."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from scripts.checks import rules
from tests.places import ROOT

SCRIPTS = ROOT / "scripts"
# Spelled so that the rules do not find them here.
LATER = "".join(["TO", "DO"])
MEND = "".join(["FIX", "ME"])
LONG_FUNCTION = "def f() -> None:\n" + "    pass\n" * 60
WIDE_FUNCTION = "def f(a, b, c, d, e, g, h, i, j):{marker}\n    pass\n"
LONG_CPP = 'int f(int a) {\n  // } "\n  const char* s = "}";\n' + "  a++;\n" * 58 + "}\n"


def findings(root: Path, name: str, text: str) -> list[str]:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return [str(finding) for finding in rules.check_tree(root)]


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("scripts/a.py", "x = 1\n" * 401, "scripts/a.py:401: file of 401 lines"),
        ("csrc/core/a.h", "\n" * 401, "csrc/core/a.h:401: file of 401 lines"),
        ("scripts/a.py", LONG_FUNCTION, "scripts/a.py:1: function f of 61 lines"),
        ("tests/a.py", WIDE_FUNCTION.format(marker=""), "function f with 9 parameters"),
        ("csrc/core/a.cpp", LONG_CPP, "csrc/core/a.cpp:1: function of 62 lines: int f(int a)"),
        ("tests/cpp/a.cpp", "TEST(A, B) {\n" + ";\n" * 60 + "}", "function of 62 lines"),
        ("deft_horovod/plan/plan.py", "import os\nos.environ['A']\n", "plan.py:2: reads the env"),
        ("deft_horovod/plan/plan.py", "from os import getenv\n", "plan.py:1: reads the env"),
        ("deft_horovod/x/plan.py", "A = 1\n", "limit: tests/unit/x/test_plan.py"),
        ("csrc/core/a.h", "#include <torch/torch.h>\n", "a.h:1: includes torch/torch.h"),
        ("csrc/wire/a.h", "#include <ATen/ATen.h>\n", "a.h:1: includes ATen/ATen.h"),
        ("csrc/core/a.h", "\n# include <pybind11/cast.h>\n", "a.h:2: includes pybind11/cast.h"),
        ("csrc/torch/a.h", '#include "horovod/common/common.h"\n', "Horovod only in"),
        ("csrc/torch/a.h", "#include <torch/extension.h>\n", "pybind only in csrc/bindings"),
        ("csrc/torch/a.cpp", f"// {LATER}: x\n", f"csrc/torch/a.cpp:1: unfinished: {LATER}"),
        ("scripts/a.sh", f"# {MEND}\n", f"scripts/a.sh:1: unfinished: {MEND}"),
        ("scripts/a.py", "def f(:\n", "scripts/a.py:1: does not parse"),
    ],
)
def test_finds(tmp_path: Path, name: str, text: str, expected: str) -> None:
    assert expected in "\n".join(findings(tmp_path, name, text))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("scripts/a.py", "x = 1\n" * 400),
        ("scripts/a.py", WIDE_FUNCTION.format(marker="  # rule: stock signature")),
        ("scripts/a.py", "def f(self, a, b, c, d, e, g, h, i): ...\n"),
        ("csrc/core/a.cpp", "namespace a {\n" + "int g();\n" * 100 + "}\n"),
        ("csrc/core/a.h", "class A : public B<C()> {\n" + "  void g() { }\n" * 80 + "};\n"),
        ("csrc/core/a.cpp", LONG_CPP.replace("  a++;\n", "", 3)),
        ("csrc/horovod/a.h", '#include "horovod/common/common.h"\n'),
        ("csrc/torch/a.h", '#include "horovod/horovod_link.h"\n#include <ATen/ATen.h>\n'),
        ("csrc/bindings/a.cpp", "#include <torch/extension.h>\n"),
        ("deft_horovod/__init__.py", "A = 1\n"),
        ("tests/a.py", "import os\nos.environ['A']\n"),
    ],
)
def test_lets_pass(tmp_path: Path, name: str, text: str) -> None:
    assert findings(tmp_path, name, text) == []


def test_same_named_test_satisfies(tmp_path: Path) -> None:
    test = tmp_path / "tests" / "parallel" / "test_main.py"
    test.parent.mkdir(parents=True)
    test.write_text("")
    assert findings(tmp_path, "deft_horovod/__main__.py", "A = 1\n") == []


def test_a_test_elsewhere_does_not(tmp_path: Path) -> None:
    test = tmp_path / "tests" / "unit" / "y" / "test_plan.py"
    test.parent.mkdir(parents=True)
    test.write_text("")
    (found,) = findings(tmp_path, "deft_horovod/x/plan.py", "A = 1\n")
    assert "module without a test" in found


@pytest.mark.parametrize("folder", ["csrc/core", "docs/guide", "tests/unit/plan"])
def test_a_room_has_few_files(tmp_path: Path, folder: str) -> None:
    for number in range(15):
        assert findings(tmp_path, f"{folder}/{number}.txt", "") == []
    assert findings(tmp_path, f"{folder}/made.so", "") == []
    said = [f"{folder}:1: folder of 16 files; limit: 15 files"]
    assert findings(tmp_path, f"{folder}/15.txt", "") == said


def test_a_class_name_is_there_once(tmp_path: Path) -> None:
    tests = tmp_path / "tests" / "parallel"
    tests.mkdir(parents=True)
    (tests / "test_a.py").write_text("")
    (tests / "test_b.py").write_text("")
    assert findings(tmp_path, "deft_horovod/a.py", "class Bar: ...\n") == []
    assert findings(tmp_path, "scripts/b.py", "class Bar: ...\n") == []
    said = "class Bar, as in deft_horovod/a.py:1; limit: one class of a name in deft_horovod"
    inner = "def f():\n    class _Bar: ...\n"
    found = findings(tmp_path, "deft_horovod/b.py", inner)
    assert found == [f"deft_horovod/b.py:2: {said}"]


def test_a_collection_may_have_more(tmp_path: Path) -> None:
    for number in range(16):
        assert findings(tmp_path, f"docs/studies/benchmarks/{number}.md", "") == []


def test_exit_status(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "scripts.checks.rules", str(tmp_path)]
    assert subprocess.run(command, check=False).returncode == 0
    (tmp_path / "a.py").write_text("x = 1\n" * 401)
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stdout == "a.py:401: file of 401 lines; limit: 400 lines\n"
