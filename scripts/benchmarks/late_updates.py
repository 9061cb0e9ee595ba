"""What late updates cost a step: time and memory, for a model of 25 million parameters.

A transformer trains; before each forward the late parameters are moved to where they will be, and
afterwards back, as in a job; and the gradients are looked at, as the guard does. Both are timed in
every step, and so is the rest. Needs no cluster.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import torch
from torch import nn

from deft_horovod import policies
from deft_horovod.base.parameter import Parameter
from deft_horovod.config import Config
from deft_horovod.profile import Profile
from deft_horovod.runtime.correct.lookahead import Lookahead
from deft_horovod.runtime.measure.gradient_statistics import GradientStatistics
from deft_horovod.runtime.ranks.named_parameters import NamedParameter
from deft_horovod.runtime.reduce.updates import options_of

WIDTH, DEPTH, VOCABULARY, LENGTH = 512, 6, 6000, 256
SHARES = (0.1, 0.25, 1.0)  # of the bytes that are late
OPTIMIZERS: dict[str, Callable[[Iterable[torch.Tensor]], torch.optim.Optimizer]] = {
    "sgd": lambda p: torch.optim.SGD(p, lr=0.01, momentum=0.9),
    "adamw": lambda p: torch.optim.AdamW(p, lr=1e-4),
}


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, WIDTH)
        layer = nn.TransformerEncoderLayer(WIDTH, 8, 4 * WIDTH, dropout=0.0, batch_first=True)
        self.layers = nn.TransformerEncoder(layer, DEPTH, enable_nested_tensor=False)
        self.head = nn.Linear(WIDTH, VOCABULARY)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        scores: torch.Tensor = self.head(self.layers(self.embedding(tokens)))
        return scores


def late_parameters(model: nn.Module, share: float) -> list[torch.Tensor]:
    """What forward uses first, up to such a share of all."""
    parameters = list(model.parameters())
    limit = share * sum(p.numel() for p in parameters)
    chosen: list[torch.Tensor] = []
    for p in parameters:
        if sum(q.numel() for q in chosen) >= limit:
            break
        chosen.append(p)
    return chosen


def watch_of(model: nn.Module) -> GradientStatistics:
    """As it is on the deciding rank of four."""
    members = [NamedParameter(name, p) for name, p in model.named_parameters()]
    parameters = [Parameter(m.name, m.tensor.numel(), "float32", "float32", "cpu") for m in members]
    request = policies.Request(tuple(parameters), Profile.assumed(len(parameters)), Config.load())
    watch = GradientStatistics(4, summed=False)
    watch.follow(members, policies.get("bucket").plan(request))
    return watch


def look(watch: GradientStatistics, step: int, model: nn.Module) -> float:
    """Seconds that it takes to look at the gradients of a step, own and averaged."""
    gradients = [p.grad for p in model.parameters()]
    began = time.perf_counter()
    watch.note_own(step, gradients)
    watch.arrived(step, gradients, watch.pieces)
    return time.perf_counter() - began


def measure(name: str, share: float, options: argparse.Namespace) -> dict[str, Any]:
    torch.manual_seed(0)
    model = Model()
    optimizer = OPTIMIZERS[name](model.parameters())
    late = late_parameters(model, share)
    lookahead, own = Lookahead(optimizer), [torch.randn_like(p) * 1e-3 for p in late]
    tokens = torch.randint(VOCABULARY, (options.batch, LENGTH))
    watch = watch_of(model)
    steps_s, extra_s, look_s = [], [], []
    for step in range(options.steps + 1):
        began = time.perf_counter()
        estimates = {p: gradient * 1.0 for p, gradient in zip(late, own, strict=True)}
        lookahead.cast([(estimates, options_of(optimizer))] if step else [])
        cast = time.perf_counter()
        loss = nn.functional.cross_entropy(model(tokens).flatten(0, 1), tokens.flatten())
        loss.backward()
        trained = time.perf_counter()
        lookahead.lift()
        lifted = time.perf_counter()
        looked = look(watch, step, model)
        optimizer.step()
        optimizer.zero_grad()
        ended = time.perf_counter()
        if step:  # the first one makes the optimizer's state
            extra_s.append(cast - began + lifted - trained)
            steps_s.append(ended - began - extra_s[-1] - looked)
            look_s.append(looked)
    state = sum(
        t.numel() * t.element_size()
        for p in late
        for t in optimizer.state[p].values()
        if isinstance(t, torch.Tensor)
    )
    bytes_late = sum(p.numel() * p.element_size() for p in late)
    return {
        "optimizer": name,
        "late_share": bytes_late / sum(p.numel() * p.element_size() for p in model.parameters()),
        "parameters": sum(p.numel() for p in model.parameters()),
        "step_ms": 1e3 * statistics.median(steps_s),
        "extra_ms": 1e3 * statistics.median(extra_s),
        "extra_share": statistics.median(extra_s) / statistics.median(steps_s),
        "look_ms": 1e3 * statistics.median(look_s),
        "look_share": statistics.median(look_s) / statistics.median(steps_s),
        # The copy of the parameters and this rank's gradient stay; copies of state and guesses go.
        "kept_mb": 2 * bytes_late / 1e6,
        "for_a_moment_mb": (state + bytes_late) / 1e6,
    }


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--steps", type=int, default=7)
    parser.add_argument("--batch", type=int, default=8, help=f"sequences of {LENGTH} tokens")
    parser.add_argument("--output", type=Path, help="write all numbers as JSON")
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> int:
    options = parse(sys.argv[1:] if arguments is None else arguments)
    rows = []
    for name in OPTIMIZERS:
        for share in SHARES:
            row = measure(name, share, options)
            rows.append(row)
            print(
                f"{name}, {100 * row['late_share']:.0f} % of {row['parameters'] / 1e6:.1f} M "
                f"parameters late: {row['extra_ms']:.0f} ms of a step of {row['step_ms']:.0f} ms "
                f"({100 * row['extra_share']:.1f} %), {row['kept_mb']:.0f} MB kept, "
                f"{row['for_a_moment_mb']:.0f} MB for a moment; looking at gradients "
                f"{row['look_ms']:.1f} ms ({100 * row['look_share']:.2f} %)",
                flush=True,
            )
    if options.output is not None:
        options.output.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
