"""A Horovod script as anybody would write it: it has never heard of another package."""

import sys

import horovod
import horovod.torch as hvd
import horovod.torch.elastic
import torch
from horovod.torch import DistributedOptimizer
from horovod.torch.elastic import TorchState
from horovod.torch.mpi_ops import Average, allreduce

from tests.parallel.scripts.reporting import report


def main(arguments):
    hvd.init()
    torch.manual_seed(0)
    models = [torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Linear(4, 2)) for _ in "ab"]
    optimizers = []
    for wrap, model in zip((hvd.DistributedOptimizer, DistributedOptimizer), models, strict=True):
        hvd.broadcast_parameters(model.state_dict(), root_rank=0)
        inner = torch.optim.SGD(model.parameters(), lr=0.1)
        optimizer = wrap(inner, model.named_parameters())
        hvd.broadcast_optimizer_state(optimizer, root_rank=0)
        for _ in range(3):
            optimizer.zero_grad()
            model(torch.full((2, 3), 1.0 + hvd.rank())).sum().backward()
            optimizer.step()
        optimizers.append(optimizer)
    flat = torch.cat([p.detach().flatten() for model in models for p in model.parameters()])
    report(
        {
            "arguments": arguments,
            "modules": [type(optimizer).__module__ for optimizer in optimizers],
            "is_torch": all(isinstance(o, torch.optim.Optimizer) for o in optimizers),
            "steps": [getattr(o, "stats", dict)().get("steps") for o in optimizers],
            "state": TorchState.__module__,
            "same_module": horovod.torch is hvd is sys.modules["horovod.torch"],
            "elastic": horovod.torch.elastic.TorchState is TorchState,
            "mean": float(allreduce(torch.tensor(float(hvd.rank())), op=Average)),
            "parameters": flat.tolist(),
            "name": __name__,
            "argv0": sys.argv[0],
        }
    )
    hvd.shutdown()
    if arguments and arguments[0].isdigit():
        sys.exit(int(arguments[0]))
    if arguments and arguments[0] == "raise":
        raise LookupError("a mistake of the user")


if __name__ == "__main__":
    main(sys.argv[1:])
