"""Who has no mesh; opening one is tested under horovodrun."""

import logging

import pytest

from deft_horovod.errors import DeftError
from deft_horovod.runtime.links import mesh
from tests.unit.support.solo import Solo


@pytest.mark.parametrize("interface", ["", "eth0"])
def test_without_an_interface_of_gloo_or_a_connection_there_is_none(monkeypatch, caplog, interface):
    caplog.set_level(logging.WARNING, "deft_horovod")
    tried = []

    def fail(reduction, interface, deadline_s, agreement):
        tried.append(interface)
        raise DeftError("no route to host")

    monkeypatch.setenv("HOROVOD_GLOO_IFACE", interface)
    monkeypatch.setattr(mesh, "open_mesh", fail)
    assert mesh.open_mesh_beside_horovod(None, 10.0, Solo()) is None
    assert tried == [interface] * bool(interface)
    assert ("no route to host" in caplog.text) == bool(interface)
