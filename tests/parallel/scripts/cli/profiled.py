"""Training scripts as anybody would write them; the first word says which, the second how long."""

import atexit
import os
import signal
import sys
import time

import torch
from torch import nn


def network(width=32):
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(8, width), nn.ReLU(), nn.Linear(width, 4))


def train(models, optimizers, steps, after=lambda step: None):
    try:
        for step in range(1, steps + 1):
            for model, optimizer in zip(models, optimizers, strict=True):
                optimizer.zero_grad()
                model(torch.randn(4, 8)).square().sum().backward()
                optimizer.step()
            after(step)
    finally:
        print("left the loop in step", step)


def plain(kind, steps):
    model = network()
    optimizer = torch.optim.AdamW(model.parameters())

    def after(step):
        if step == 5 and kind == "interrupted":
            print("interrupt now", flush=True)
            time.sleep(60)
        if step == 5 and kind == "raises":
            raise LookupError("a mistake of the user")
        if step == 5 and kind == "exits":
            sys.exit(7)
        if step == 5 and kind == "killed":
            os.kill(os.getpid(), signal.SIGKILL)

    train([model], [optimizer], steps, after)


def horovod(hvd, kind, steps):
    hvd.init()
    widths = (4, 32) if kind == "two" else (32,)
    models = [network(width) for width in widths]
    optimizers = []
    for model in models:
        hvd.broadcast_parameters(model.state_dict(), root_rank=0)
        inner = torch.optim.SGD(model.parameters(), lr=0.01)
        groups = {"groups": 2} if kind == "two" and optimizers else {}
        names = model.named_parameters(prefix=f"model{len(optimizers)}")
        optimizers.append(hvd.DistributedOptimizer(inner, names, **groups))
    atexit.register(lambda: print("initialised at exit:", hvd.is_initialized()))

    def after(step):
        if step == 5 and kind == "fails" and hvd.rank() == 1:
            raise LookupError("a mistake of the user")
        if step == 5 and kind == "hangs":
            print("interrupt now", flush=True)
            time.sleep(60)

    train(models, optimizers, steps, after)


def main(kind, steps="1000", package="none"):
    if package == "horovod":
        import horovod.torch as hvd

        horovod(hvd, kind, int(steps))
    elif package == "deft_horovod":
        import deft_horovod.torch as hvd

        horovod(hvd, kind, int(steps))
    else:
        plain(kind, int(steps))


if __name__ == "__main__":
    main(*sys.argv[1:])
