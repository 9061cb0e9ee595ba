"""A few steps of real models on several ranks: ours beside stock Horovod, and equal on all ranks.

Copies train on the same data, one with our optimizer and one with Horovod's. On two ranks they have
to be equal bit for bit. On more, sums in another order round otherwise: there ours is compared with
what Horovod's own groups of tensors change. Another copy trains with late updates, whose replicas
have to be equal as well. Run it without horovodrun.
"""

from __future__ import annotations

import argparse
import hashlib
import math
import sys
from collections.abc import Callable, Iterable
from typing import Any

from scripts.cluster import jobs
from scripts.gpu import results as gpu_results

STEPS = 4
LIMIT_S = 140
ROWS = 4  # several ranks share the device
GROUPS = 4  # of stock Horovod's tensors: other sums, as good as the same
TIMES = 3.0  # so much further from stock than its groups are may be chance
LEAST = 1e-6  # of the way that training has moved; less is rounding in any case
LATE = {"policy": "deft", "max_delay": 1, "max_merge": 2, "warmup_steps": 0}
QUICK = {"profile_warmup_steps": 1, "profile_steps": 2, "probe_s": 0.05, "deadline_s": 60.0}
ARMS = ("stock", "grouped", "bucket", "late")


def digest(tensors: Iterable[Any]) -> str:
    """SHA-256 of the bytes of all tensors."""
    import torch

    state = hashlib.sha256()
    for tensor in tensors:
        flat = tensor.detach().cpu().contiguous().reshape(-1)
        state.update(flat.view(torch.uint8).numpy().tobytes())
    return state.hexdigest()


def optimizer_of(arm: str, name: str, model: Any) -> Any:
    import horovod.torch as stock

    import deft_horovod.torch as hvd
    from scripts.gpu.measure import models as gpu_models

    inner = gpu_models.optimizer_of(name, model)
    named = [(f"{arm}.{name}.{key}", p) for key, p in model.named_parameters()]
    if arm in ("stock", "grouped"):
        groups = GROUPS if arm == "grouped" else None
        return stock.DistributedOptimizer(inner, named, groups=groups)
    config = {**QUICK, **LATE} if arm == "late" else {**QUICK, "policy": arm}
    return hvd.DistributedOptimizer(inner, named, config=config)


def apart(ours: Any, theirs: Any, start: Any) -> float:
    """The distance of two models, as a share of the way that one has moved from the start."""
    distance = _norm(ours, theirs) / max(_norm(theirs, start), 1e-30)
    return distance if math.isfinite(distance) else math.inf


def _norm(one: Any, other: Any) -> float:
    pairs = zip(one.parameters(), other.parameters(), strict=True)
    return math.sqrt(sum((a - b).detach().double().square().sum().item() for a, b in pairs))


def train(arm: str, name: str, options: dict[str, Any], deterministic: Callable[[], None]) -> Any:
    """(the model, what is known of its training)."""
    import horovod.torch as stock

    from scripts.gpu.measure import models as gpu_models

    deterministic()
    model = gpu_models.make(name, options["device"])
    optimizer = optimizer_of(arm, name, model)
    losses = []
    for step in range(STEPS * (3 if arm == "late" else 1)):
        batch = gpu_models.batch_of(name, options["device"], 100 * step + stock.rank(), ROWS)
        optimizer.zero_grad()
        loss = gpu_models.loss_of(model, batch)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    seen: dict[str, Any] = {"losses": losses}
    if arm not in ("stock", "grouped"):
        optimizer.flush()
        stats = optimizer.stats()
        seen |= {key: stats.get(key) for key in ("policy", "messages", "bytes", "max_delay")}
    hashes = stock.allgather_object(digest(model.parameters()), name=f"{arm}.{name}.hash")
    seen |= {"replicas_equal": len(set(hashes)) == 1, "hash": hashes[0]}
    return model, seen


def rank_program(options: dict[str, Any]) -> None:
    import horovod.torch as stock
    import torch

    import deft_horovod.torch as hvd
    from scripts.gpu.measure import models as gpu_models

    hvd.init()
    torch.set_num_threads(1)
    if options["device"] == "cuda":
        torch.cuda.set_device(stock.local_rank() % torch.cuda.device_count())

    def deterministic() -> None:
        torch.backends.cudnn.deterministic = True
        torch.backends.cudnn.benchmark = False
        torch.use_deterministic_algorithms(True, warn_only=True)
        # Of attention's backwards this one alone sums in the same order in every run.
        torch.backends.cuda.enable_math_sdp(True)
        torch.backends.cuda.enable_flash_sdp(False)
        torch.backends.cuda.enable_mem_efficient_sdp(False)
        torch.backends.cuda.enable_cudnn_sdp(False)

    found: dict[str, Any] = {}
    for name in options["models"]:
        start = gpu_models.make(name, options["device"])
        reference, seen = train("stock", name, options, deterministic)
        entry: dict[str, Any] = {"stock": seen}
        for arm in ARMS[1:]:
            model, entry[arm] = train(arm, name, options, deterministic)
            entry[arm]["apart"] = apart(model, reference, start) if arm != "late" else None
            del model
        found[name] = entry
        del reference
    if stock.rank() == 0:
        gpu_results.report(headline(found, stock.size()), ranks=stock.size(), models=found)
    stock.barrier()
    if complaints(found, stock.size()):
        sys.exit(1)


def complaints(found: dict[str, Any], ranks: int) -> list[str]:
    """What is not as it has to be."""
    said = []
    for name, entry in found.items():
        said += [
            f"{name}: replicas of {arm} differ" for arm in ARMS if not entry[arm]["replicas_equal"]
        ]
        distance, most = entry["bucket"]["apart"], 0.0 if ranks == 2 else _by_chance(entry)
        if not distance <= most:  # also where it is not a number
            said.append(f"{name}: ours and stock are {distance:.2g} apart, {most:.2g} may be")
    return said


def _by_chance(entry: dict[str, Any]) -> float:
    """How far apart two trainings may be that add up in another order."""
    return max(LEAST, TIMES * float(entry["grouped"]["apart"]))


def headline(found: dict[str, Any], ranks: int) -> str:
    said = complaints(found, ranks)
    if said:
        return "; ".join(said)
    exact = "bit for bit"
    if ranks > 2:
        each = (f"{entry['bucket']['apart']:.2g}" for entry in found.values())
        theirs = (f"{entry['grouped']['apart']:.2g}" for entry in found.values())
        exact = f"within {', '.join(each)} of the way (its own groups: {', '.join(theirs)})"
    return f"{', '.join(found)} on {ranks} ranks: ours equals stock {exact}, all replicas equal"


def main() -> int:
    given = jobs.given_options()
    if given is not None:
        rank_program(given)
        return 0
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--models", type=lambda text: text.split(","), default=["resnet50", "gpt2"])
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cuda")
    options = vars(parser.parse_args())
    # cuBLAS sums in the same order with a workspace of its own only.
    environment = jobs.environment(options, CUBLAS_WORKSPACE_CONFIG=":4096:8")
    command = jobs.horovodrun(options["ranks"], jobs.program("scripts.gpu.measure.training"))
    return jobs.stream(command, environment, limit_s=LIMIT_S)


if __name__ == "__main__":
    sys.exit(main())
