"""Versions of NCCL, and from which on ranks share a GPU."""

from __future__ import annotations

import ctypes
from types import SimpleNamespace

import pytest

from scripts.gpu.measure import nccl


def test_versions_in_words() -> None:
    assert nccl.in_words(22_809) == "2.28.9"
    assert nccl.in_words(23_007) == "2.30.7"
    assert nccl.in_words(None) == "none"


def test_what_is_no_nccl_has_no_version() -> None:
    assert nccl.version_in(ctypes.CDLL("libc.so.6")) is None


def test_a_library_is_asked() -> None:
    def answer(found: object) -> int:
        ctypes.cast(found, ctypes.POINTER(ctypes.c_int))[0] = 23_007
        return 0

    assert nccl.version_in(SimpleNamespace(ncclGetVersion=answer)) == 23_007
    assert nccl.version_in(SimpleNamespace(ncclGetVersion=lambda _: 3)) is None


@pytest.mark.parametrize("version", [None, 22_809])
def test_an_old_one_is_no_success(
    version: int | None,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(nccl, "loaded", lambda: version)
    with pytest.raises(SystemExit) as left:
        nccl.main([])
    assert left.value.code == 77
    assert "ranks share a GPU from 2.30 on" in capsys.readouterr().out
    monkeypatch.setattr(nccl, "loaded", lambda: 23_007)
    assert nccl.main([]) == 0
