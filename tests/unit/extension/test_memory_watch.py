"""Operations on certain tensors, as torch announces them."""

import gc
import sys
import threading
import weakref

import pytest
import torch

from deft_horovod.runtime.extension import native


@pytest.fixture
def parameter():
    return torch.nn.Parameter(torch.ones(4))


@pytest.fixture
def watch(parameter):
    """With what `told` has been written into the parameter by the first use."""

    def on_use():
        with torch.no_grad():
            parameter.fill_(2.0)

    made = native.MemoryWatch(on_use)
    yield made
    made.end()


USES = {
    "read": lambda p: p.detach().clone(),
    "data": lambda p: p.data.clone(),
    "item": lambda p: p[0].expand(4),
    "add": lambda p: p + 0.0,
    "second argument": lambda p: torch.zeros(4) + p,
    "keyword": lambda p: torch.add(torch.zeros(4), other=p),
    "list": lambda p: torch.cat([torch.zeros(0), p]),
    "foreach": lambda p: torch._foreach_add([torch.zeros(4), p], 0.0)[1],
    "out": lambda p: torch.zeros(4).copy_(p),
    "functional": torch.nn.functional.relu,
    "vector": lambda p: torch.nn.utils.parameters_to_vector([p]),
    "vmap": torch.vmap(lambda x: x + 0.0),
    "inference": lambda p: torch.inference_mode()(lambda: p + 0.0)(),
}


@pytest.mark.parametrize("use", USES.values(), ids=USES)
def test_an_operation_sees_what_was_done_before_it(watch, parameter, use):
    watch.begin([parameter])
    assert use(parameter).tolist() == [2.0] * 4


def test_a_write_comes_after_it(watch, parameter):
    watch.begin([parameter])
    with torch.no_grad():
        parameter.mul_(10.0)
    assert parameter.tolist() == [20.0] * 4


def test_a_view_shares_memory(watch, parameter):
    view = parameter.data[1:3]
    watch.begin([parameter])
    view.clamp_(max=1.5)
    assert parameter.tolist() == [2.0, 1.5, 1.5, 2.0]


def test_other_tensors_are_no_concern(watch, parameter):
    other = torch.nn.Parameter(torch.ones(4))
    watch.begin([parameter])
    torch.cat([other * 2, other.sigmoid()]).sum().backward()
    torch.optim.SGD([other], lr=0.1).step()
    watch.end()
    assert parameter.tolist() == [1.0] * 4


def test_it_tells_once(parameter):
    told = []
    watch = native.MemoryWatch(lambda: told.append(parameter.sum().item()))
    watch.begin([parameter])
    for _ in range(3):
        parameter.clone()
    assert told == [4.0]
    watch.begin([parameter])
    watch.begin([parameter])
    parameter.clone()
    assert told == [4.0, 4.0]


def test_what_has_ended_tells_nothing(parameter):
    told = []
    watch = native.MemoryWatch(lambda: told.append(1))
    watch.begin([parameter])
    watch.end()
    watch.end()
    parameter.clone()
    assert not told
    watch.begin([])
    torch.ones(3).sum()
    assert not told


def test_several_watches_tell_each_of_its_own(parameter):
    told = []
    other = torch.ones(2)
    watches = [native.MemoryWatch(lambda i=i: told.append(i)) for i in range(3)]
    for watch, tensors in zip(watches, ([parameter], [other], [other, parameter]), strict=True):
        watch.begin(tensors)
    parameter.clone()
    assert sorted(told) == [0, 2]
    other.clone()
    assert sorted(told) == [0, 1, 2]


def test_another_thread_is_not_watched_but_may_end_it(parameter):
    told = []
    watch = native.MemoryWatch(lambda: told.append(1))
    watch.begin([parameter])
    thread = threading.Thread(target=parameter.clone)
    thread.start()
    thread.join()
    assert not told
    thread = threading.Thread(target=watch.end)
    thread.start()
    thread.join()
    parameter.clone()
    assert not told


def test_watches_that_other_threads_end_do_not_pile_up(parameter):
    told = []
    watch = native.MemoryWatch(lambda: told.append(1))
    for _ in range(50):
        watch.begin([parameter])
        thread = threading.Thread(target=watch.end)
        thread.start()
        thread.join()
    watch.begin([parameter])
    parameter.clone()
    assert told == [1]


def test_a_use_in_backward_leaves_nothing_behind(parameter):
    told = []
    watch = native.MemoryWatch(lambda: told.append(1))
    for _ in range(3):
        x = torch.ones(2, requires_grad=True)
        x.register_hook(lambda _: watch.begin([parameter]))
        x.sum().backward()
        parameter.clone()
    assert told == [1, 1, 1]


def test_an_error_does_not_pass_through_torch(parameter, monkeypatch):
    def fails():
        raise ValueError("on purpose")

    seen = []
    monkeypatch.setattr(sys, "unraisablehook", lambda error: seen.append(str(error.exc_value)))
    watch = native.MemoryWatch(fails)
    watch.begin([parameter])
    assert parameter.clone().tolist() == [1.0] * 4
    assert seen == ["on purpose"]


def test_nothing_is_kept_alive(parameter):
    class Owner:
        pass

    owner = Owner()
    gone = weakref.ref(owner)
    watch = native.MemoryWatch(lambda owner=owner: owner)
    watch.begin([parameter])
    del watch, owner
    gc.collect()
    assert gone() is None
    parameter.clone()
