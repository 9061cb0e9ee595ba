"""The extension refuses what it was not compiled for."""

from dataclasses import dataclass

import horovod
import pytest
import torch

from deft_horovod.errors import BuildMismatchError
from deft_horovod.runtime.extension import (
    import_extension,
    native,
    require_horovod_link,
    require_match,
)


@dataclass(frozen=True)
class FakeFact:
    what: str
    compiled: str
    loaded: str

    @property
    def matches(self):
        return self.compiled == self.loaded


def test_this_build_fits():
    require_match(native.abi_facts(horovod.__version__, torch.__version__))


@pytest.mark.parametrize(
    ("versions", "what", "loaded"),
    [
        (("0.27.0", torch.__version__), "Horovod version", "0.27.0"),
        ((horovod.__version__, "2.3.1+cu121"), "torch version", "2.3.1+cu121"),
    ],
)
def test_another_version_is_refused_with_both_sides(versions, what, loaded):
    facts = native.abi_facts(*versions)
    compiled = next(fact.compiled for fact in facts if fact.what == what)
    with pytest.raises(BuildMismatchError) as caught:
        require_match(facts)
    message = str(caught.value)
    assert f"{what}: {loaded}" in message
    assert f"{what}: {compiled}" in message
    assert "pip install" in message
    assert "scripts/setup.sh" in message


def test_one_that_was_built_without_horovod_is_refused():
    require_horovod_link(native)
    with pytest.raises(BuildMismatchError, match="compiled without Horovod"):
        require_horovod_link(object())


def test_every_difference_is_named_and_nothing_else():
    facts = [
        FakeFact("Horovod version", "0.28.1", "0.28.1"),
        FakeFact("Horovod with CUDA", "no", "yes"),
        FakeFact("Horovod with NCCL", "no", "yes"),
        FakeFact("size of Horovod's ReadyEvent vtable", "absent", "48"),
    ]
    with pytest.raises(BuildMismatchError) as caught:
        require_match(facts)
    message = str(caught.value)
    for line in ("Horovod with CUDA: yes", "Horovod with NCCL: yes", "ReadyEvent vtable: 48"):
        assert line in message
    for line in ("Horovod with CUDA: no", "Horovod with NCCL: no", "ReadyEvent vtable: absent"):
        assert line in message
    assert "Horovod version" not in message


def test_the_facts_cover_what_the_layouts_depend_on():
    facts = {fact.what: fact for fact in native.abi_facts("0.28.1", "2")}
    for what in ("CUDA", "NCCL", "MPI", "Gloo", "NVTX"):
        assert facts[f"Horovod with {what}"].loaded in ("yes", "no")
    sizes = [fact for what, fact in facts.items() if "vtable" in what]
    assert len(sizes) == 3
    assert all(fact.matches for fact in sizes)


def test_an_undefined_symbol_is_explained():
    def importer(name):
        raise ImportError(
            f"{name}.so: undefined symbol: _ZN7horovod6common22EnqueueTensorAllreduce"
        )

    with pytest.raises(BuildMismatchError) as caught:
        import_extension(importer)
    message = str(caught.value)
    assert "undefined symbol: _ZN7horovod6common22EnqueueTensorAllreduce" in message
    assert horovod.__version__ in message
    assert torch.__version__ in message
    assert "pip install" in message
    assert isinstance(caught.value.__cause__, ImportError)


def test_it_is_an_import_error_for_those_who_catch_that():
    assert issubclass(BuildMismatchError, ImportError)
