import click
import pytest

from deft_horovod.cli.inputs import (
    ProfileFile,
    parameters_for,
    parameters_of,
    plan_of_file,
    request_of,
)
from deft_horovod.config import Config
from deft_horovod.errors import NotSupportedError, PlanError
from deft_horovod.plan import Plan
from deft_horovod.policies import get
from deft_horovod.profile import Profile, Tensor
from tests.unit.support.example import profile, saved


def test_profiles_are_read_from_files(tmp_path):
    read = ProfileFile().convert(saved(tmp_path), None, None)
    assert read == profile()
    assert ProfileFile().convert(read, None, None) is read


def test_a_missing_file_is_a_mistake_in_the_command(tmp_path):
    with pytest.raises(click.BadParameter, match="there is no file"):
        ProfileFile().convert(str(tmp_path / "none.json"), None, None)
    with pytest.raises(click.BadParameter, match="there is no file"):
        ProfileFile().convert(str(tmp_path), None, None)


def test_parameters_have_the_sizes_of_their_tensors():
    found = parameters_of(profile(), "cuda")
    assert [one.name for one in found] == [tensor.name for tensor in profile().tensors]
    assert (found[0].elements, found[-1].elements) == (4_000_000, 1)
    assert {(one.wire, one.device) for one in found} == {("float32", "cuda")}


def test_bfloat16_travels_as_float32():
    tensor = Tensor(name="w", shape=(2, 3), dtype="bfloat16")
    one = Profile.assumed(1).model_copy(update={"tensors": (tensor,)})
    assert parameters_of(one)[0].bytes == 24


def test_what_cannot_travel_is_refused_by_name():
    tensor = Tensor(name="odd.weight", shape=(2,), dtype="complex64")
    one = Profile.assumed(1).model_copy(update={"tensors": (tensor,)})
    with pytest.raises(NotSupportedError, match=r"odd\.weight"):
        parameters_of(one)


def test_a_profile_without_tensors_says_nothing_about_sizes():
    with pytest.raises(PlanError, match="deft-profile run"):
        parameters_of(Profile.assumed(3))
    assert parameters_of(Profile.assumed(0)) == ()


def test_requests_hold_all_of_it():
    config = Config(max_delay=1)
    request = request_of(profile(), config)
    assert (request.profile, request.config) == (profile(), config)
    assert len(request.parameters) == len(profile().tensors)


def test_a_plan_knows_devices_and_compression():
    plan = get("bucket").plan(request_of(profile(), Config(), "cuda"))
    arenas = tuple(arena.model_copy(update={"wire": "float16"}) for arena in plan.arenas)
    compressed = plan.model_copy(update={"arenas": arenas})
    found = parameters_for(profile(), compressed)
    assert {(one.wire, one.device) for one in found} == {("float16", "cuda")}
    assert parameters_for(profile(), None) == parameters_of(profile())
    less = plan.model_copy(update={"slots": plan.slots[1:]})
    assert parameters_for(profile(), less) == parameters_of(profile())


def test_a_plan_keeps_what_was_predicted_from_these_measurements_alone(tmp_path):
    one, path = profile(), tmp_path / "plan.json"
    plan = get("deft").plan(request_of(one, Config()))
    plan.save(path)
    assert plan.prediction is not None
    assert plan_of_file(path, one) == plan
    slower = one.model_copy(update={"forward_us": 2 * one.forward_us})
    assert plan_of_file(path, slower) == plan.model_copy(update={"prediction": None})
    with pytest.raises(PlanError, match="not made for this model"):
        plan_of_file(path, one.model_copy(update={"tensors": one.tensors[::-1]}))


def test_a_file_of_horovods_own_calls_has_no_plan(tmp_path):
    path = tmp_path / "plan.json"
    Plan(policy="stock").save(path)
    assert plan_of_file(path, profile()) is None
