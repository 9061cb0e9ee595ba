import logging
from types import SimpleNamespace

import horovod.torch as stock
import pytest
import torch

from deft_horovod import policies
from deft_horovod.config import Config
from deft_horovod.errors import NotSupportedError
from deft_horovod.runtime.decide import first_brief as module
from deft_horovod.runtime.decide.first_brief import first_brief
from deft_horovod.runtime.ranks.groups import Groups
from deft_horovod.runtime.ranks.reduction import Reduction

PARAMETERS = [torch.nn.Parameter(torch.zeros(2)) for _ in range(3)]
REDUCTION = Reduction(stock.Average, stock.Compression.none, 1.0, False, None)
HALVED = Reduction(stock.Average, stock.Compression.fp16, 1.0, False, None)
ADAMW, LBFGS = torch.optim.AdamW(PARAMETERS), torch.optim.LBFGS(PARAMETERS)


def brief(policy, groups=None, optimizer=ADAMW, reduction=REDUCTION):
    return first_brief(Config(policy=policy), reduction, Groups.parse(groups), optimizer)


def test_a_policy_is_the_one_asked_for():
    assert {name: brief(name).policy.name for name in policies.registry()} == {
        name: name for name in policies.registry()
    }


def test_auto_rounds_for_adam_and_the_other_policies_for_nobody():
    rounding = [name for name in policies.registry() if brief(name).limits.formats]
    assert rounding == ["auto"]
    assert brief("auto", optimizer=torch.optim.SGD(PARAMETERS)).limits.formats == ()
    elsewhere = [torch.nn.Parameter(torch.zeros(2, device="meta"))]
    assert brief("auto", optimizer=torch.optim.AdamW(elsewhere)).limits.formats == ()
    assert brief("auto", reduction=HALVED).limits.formats == ()


def test_formats_that_harm_are_left_out_and_that_is_said(monkeypatch, caplog):
    monkeypatch.setattr(stock, "rank", lambda: 0)
    matrices = [torch.nn.Parameter(torch.zeros(2, 2))]
    said, found = [], []
    for optimizer in (torch.optim.Muon(matrices), ADAMW):
        for word in ("equal", "fast"):
            with caplog.at_level(logging.WARNING, "deft_horovod"):
                caplog.clear()
                made = first_brief(Config(accuracy=word), REDUCTION, Groups.parse(None), optimizer)
            found.append(made.limits.formats)
            said.append("loses too much by int4" in caplog.text)
    assert found == [("f16", "int8")] * 3 + [("f16", "int8", "int4")]
    assert said == [False, True, False, False]


@pytest.mark.parametrize("nccl", [False, True])
def test_beside_nccl_nothing_is_rounded_unasked(monkeypatch, nccl):
    monkeypatch.setattr(stock, "nccl_built", lambda: nccl)
    there = SimpleNamespace(device=torch.device("cuda"))
    optimizer = SimpleNamespace(param_groups=[{"params": [there]}])
    assert module._rounds_unasked(optimizer) == (not nccl)
    assert module._rounds_unasked(ADAMW)


def test_auto_keeps_groups_together():
    together = brief("auto", [PARAMETERS[:2]])
    assert (together.policy.name, together.limits.formats) == ("bucket", ())


def test_auto_updates_one_by_one_only_where_that_changes_nothing(monkeypatch, caplog):
    monkeypatch.setattr(stock, "rank", lambda: 0)
    with caplog.at_level(logging.WARNING, "deft_horovod"):
        assert brief("auto", optimizer=LBFGS).policy.name == "bucket"
    assert "LBFGS does not treat each parameter on its own" in caplog.text


@pytest.mark.parametrize(
    ("policy", "groups", "optimizer", "said"),
    [
        ("least_stale", 2, ADAMW, "does not keep groups of gradients together"),
        ("least_stale", None, LBFGS, "LBFGS"),
    ],
)
def test_what_a_policy_cannot_do_is_refused(policy, groups, optimizer, said):
    with pytest.raises(NotSupportedError, match=said):
        brief(policy, groups, optimizer)


def test_over_torch_there_is_no_reduce_scatter(monkeypatch):
    monkeypatch.setattr(module, "OVER_TORCH", True)
    with pytest.raises(NotSupportedError, match="'dear' sends reduce-scatters"):
        brief("dear")


def test_a_job_that_is_profiled_trains_the_stock_way(monkeypatch):
    request = SimpleNamespace(purpose="profile", over_config=lambda config: config)
    monkeypatch.setattr(module, "this_process", lambda: SimpleNamespace(job_request=request))
    found = brief("least_stale")
    assert (found.policy.name, found.purpose) == ("stock", "profile")
