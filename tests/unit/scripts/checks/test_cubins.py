"""The report on CUDA kernels: what ptxas printed is read rightly, and a spill is an error."""

from collections.abc import Callable
from pathlib import Path

import pytest

from scripts.checks import cubins as cubin_report

# As ptxas of CUDA 13.0 (V13.0.88) printed it, for two kernels on two architectures.
TEXT = """\
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function '_Z5smallPf' for 'sm_80'
ptxas info    : Function properties for _Z5smallPf
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 8 registers, used 0 barriers, 360 bytes cmem[0]
ptxas info    : Compile time = 19.560 ms
ptxas info    : Compiling entry function '_Z3sumPf' for 'sm_80'
ptxas info    : Function properties for _Z3sumPf
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 64 registers, used 1 barriers, 320 bytes smem, 39312 bytes cmem[0]
ptxas info    : Compile time = 217.034 ms
"""
SPILLS = """\
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function '_Z3bigPf' for 'sm_90'
ptxas info    : Function properties for _Z3bigPf
    568 bytes stack frame, 1476 bytes spill stores, 1504 bytes spill loads
ptxas info    : Used 32 registers, used 1 barriers, 568 bytes cumulative stack size
ptxas info    : Compile time = 96.849 ms
"""


def test_every_kernel_is_read() -> None:
    small, total = cubin_report.parse(TEXT)
    assert (small.name, small.architecture, small.registers) == ("_Z5smallPf", "sm_80", 8)
    assert (small.shared_bytes, small.stack_bytes, small.spilled_bytes) == (0, 0, 0)
    assert (total.registers, total.shared_bytes) == (64, 320)
    (big,) = cubin_report.parse(SPILLS)
    assert (big.stack_bytes, big.spilled_bytes) == (568, 1476 + 1504)


def test_a_spill_is_an_error_and_named() -> None:
    fine = cubin_report.parse(TEXT)
    assert cubin_report.verdict(fine) == (
        0,
        "cubin report: 2 kernels, no spills, at most 64 registers",
    )
    status, why = cubin_report.verdict(fine + cubin_report.parse(SPILLS))
    assert status == 1
    assert "1 of 3 kernels spill, the most 2980 bytes: _Z3bigPf (sm_90)" in why


def test_no_kernel_is_no_proof() -> None:
    status, why = cubin_report.verdict(cubin_report.parse("nvcc warning : something else"))
    assert status == 2
    assert "expected those of csrc/cuda" in why


def test_a_kernel_without_its_numbers_is_an_error() -> None:
    with pytest.raises(ValueError, match="_Z5smallPf"):
        cubin_report.parse("Compiling entry function '_Z5smallPf' for 'sm_80'\n")


def test_the_table_has_a_row_for_each() -> None:
    rows = cubin_report.table(cubin_report.parse(TEXT + SPILLS)).splitlines()
    assert len(rows) == 4
    assert rows[2].split() == ["sm_80", "64", "320", "0", "0", "_Z3sumPf"]


@pytest.fixture
def fake_nvcc(tmp_path: Path) -> Callable[[str, int], str]:
    def make(text: str, status: int) -> str:
        nvcc = tmp_path / "nvcc"
        nvcc.write_text(f"#!/bin/sh\ncat >&2 <<'END'\n{text}END\nexit {status}\n", encoding="utf-8")
        nvcc.chmod(0o755)
        return str(nvcc)

    return make


def test_what_the_process_ends_with(
    fake_nvcc: Callable[[str, int], str],
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert cubin_report.main(["--nvcc", fake_nvcc(TEXT, 0)]) == 0
    assert "no spills" in capsys.readouterr().out
    assert cubin_report.main(["--nvcc", fake_nvcc(SPILLS, 0)]) == 1
    with pytest.raises(SystemExit, match=r"nvcc failed on .*\n.*no such header"):
        cubin_report.main(["--nvcc", fake_nvcc("no such header\n", 1)])
