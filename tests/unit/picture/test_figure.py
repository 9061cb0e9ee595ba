import sys

import pytest

from deft_horovod.errors import NotSupportedError
from deft_horovod.picture.figure import FORMATS, new_figure, picture

BEGINNINGS = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}


@pytest.mark.parametrize("kind", FORMATS)
def test_pictures_are_of_their_kind(kind):
    assert picture(new_figure(2.0, 1.0), kind).startswith(BEGINNINGS[kind])


def test_figures_have_the_size_that_was_asked_for():
    assert tuple(new_figure(3.0, 2.0).get_size_inches()) == (3.0, 2.0)


def test_without_matplotlib_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(NotSupportedError, match=r"pip install 'deft_horovod\[plot\]'"):
        new_figure(1.0, 1.0)
