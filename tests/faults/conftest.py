"""Settings of the fault campaign's short form."""

from __future__ import annotations

import importlib.util

import pytest

pytest.importorskip("horovod", reason="these tests run under horovodrun")
if importlib.util.find_spec("deft_horovod._C") is None:
    pytest.skip("deft_horovod._C is not built", allow_module_level=True)
