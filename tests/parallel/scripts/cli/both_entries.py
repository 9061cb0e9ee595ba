"""What ``import deft_horovod.torch as hvd`` gives, with and without DEFT_DISABLE."""

import torch

import deft_horovod.torch as hvd
from tests.parallel.scripts.reporting import report

if __name__ == "__main__":
    hvd.init()
    model = torch.nn.Linear(3, 2)
    optimizer = hvd.DistributedOptimizer(
        torch.optim.SGD(model.parameters(), lr=0.1), named_parameters=model.named_parameters()
    )
    model(torch.ones(1, 3)).sum().backward()
    optimizer.step()
    with optimizer:
        optimizer.flush()
    assert "policy" in optimizer.stats()
    assert optimizer.profile is None
    report({"module": type(optimizer).__module__, "made_by": type(optimizer).step.__module__})
