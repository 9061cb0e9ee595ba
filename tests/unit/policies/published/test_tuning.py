from hypothesis import given
from hypothesis import strategies as st

from deft_horovod import policies
from deft_horovod.policies.published.tuning import fastest, piece_sizes_bytes, sizes_bytes
from deft_horovod.solver.predict.timeline import simulate
from tests.unit.support.models import request as model


@given(st.integers(1, 10**12))
def test_sizes_halve_from_the_whole_model_down(total_bytes):
    sizes = sizes_bytes(total_bytes)
    assert sizes[0] == max(4096, total_bytes)
    assert 1 <= len(sizes) <= 7
    assert sizes == sorted(set(sizes), reverse=True)
    assert all(size >= 4096 for size in sizes)


def test_the_fastest_is_the_first_that_no_other_beats():
    request = model("vgg19", 1.0)
    plans = [policies.get(name).plan(request) for name in ("wfbp", "mgwfbp", "dear", "dear")]
    chosen = fastest(plans, request.profile)
    assert simulate(chosen, request.profile).step_us == min(
        simulate(plan, request.profile).step_us for plan in plans
    )
    assert fastest([plans[2], plans[3]], request.profile) is plans[2]


@given(st.lists(st.integers(1, 10**9), min_size=1, max_size=50))
def test_sizes_of_pieces_are_those_that_cut_and_one_that_does_not(gradients_bytes):
    sizes, largest = piece_sizes_bytes(gradients_bytes), max(gradients_bytes)
    cutting = [size for size in sizes_bytes(sum(gradients_bytes)) if size < largest]
    assert sizes == [largest, *cutting]
