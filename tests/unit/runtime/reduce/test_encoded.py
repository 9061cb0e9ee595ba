"""Which links know how to encode which messages."""

import horovod.torch as stock
import pytest

from deft_horovod.runtime.extension import native
from deft_horovod.runtime.ranks.reduction import Reduction
from deft_horovod.runtime.reduce.encoded import encodings_of, links_of
from deft_horovod.runtime.reduce.planned import open_link
from tests.unit.plan.test_formats import plan_of


@pytest.fixture(scope="module", autouse=True)
def horovod():
    stock.init()


def reduction():
    return Reduction(stock.Average, stock.Compression.none, 1.0, False, stock.global_process_set)


@pytest.mark.parametrize(("wire_format", "encodes"), [("f32", False), ("int8", True)])
def test_only_plans_with_formats_need_an_encoded_link(wire_format, encodes):
    plan = plan_of([700, 30], [False, True], [0.5], wire_format)
    encodings = encodings_of(plan, 0, 2)
    assert sorted(encodings) == ([0, 1] if encodes else [])
    opened = {"horovod": open_link(reduction())}
    (link,) = links_of(plan, opened, "unit.encoded", reduction(), encodings)
    assert isinstance(link, native.EncodedLink) == encodes
    assert encodes or link is opened["horovod"]
