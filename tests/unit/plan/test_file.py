"""A plan from a file runs only on the model that it was made for."""

from dataclasses import replace

import pytest

from deft_horovod.base.parameter import Parameter
from deft_horovod.config import Config
from deft_horovod.errors import PlanError
from deft_horovod.plan.file import require_fit
from deft_horovod.policies import get
from deft_horovod.policies.base import Request
from deft_horovod.profile import Profile

MODEL = tuple(Parameter(f"p{i}", 10 * i + 3, "float32", "float32", "cpu") for i in range(3))
PLAN = get("bucket").plan(Request(MODEL, Profile.assumed(3), Config()))


def test_its_own_model_fits():
    require_fit(PLAN, MODEL, "plan.json")


@pytest.mark.parametrize(
    ("model", "said"),
    [
        ((*MODEL[:2], replace(MODEL[2], elements=7)), "in the model: 'p2', 7 elements"),
        ((replace(MODEL[0], name="other"), *MODEL[1:]), "in the file: 'p0', 3 elements"),
        (MODEL[:2], "in the model: no such parameter"),
        ((*MODEL, replace(MODEL[0], name="more")), "in the file: no such parameter"),
        ((replace(MODEL[0], dtype="float64", wire="float64"), *MODEL[1:]), "of float64"),
        ((MODEL[1], MODEL[0], MODEL[2]), "in the model: 'p1'"),
    ],
)
def test_the_first_difference_is_named(model, said):
    with pytest.raises(PlanError, match="was not made for this model") as raised:
        require_fit(PLAN, model, "plan.json")
    assert said in str(raised.value)
    assert "plan.json" in str(raised.value)
