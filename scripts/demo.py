"""Stock Horovod and deft_horovod train the same network on the same data, in turn, in one job.

The data are the handwritten digits that scikit-learn ships. Two ranks are joined by a link of a
given rate where the machine allows it (root and network namespaces, see
scripts/cluster/cluster.py), else by loopback. Every optimizer has its own copy of the network and
runs one epoch at a time.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from scripts.cluster import cluster, jobs

RANKS = 2
SAME = 0.02  # ratios that differ less from 1 are called equal
# auto measures, and lets candidates take turns, within the epochs that are not counted. Sizes are
# meant for models of hundreds of megabytes by default; this one has 4, so they are scaled.
_AUTO = {
    "bucket_bytes": "1MiB",
    "first_bucket_bytes": "1MiB",
    "partition_bytes": "512KiB",
    "credit_bytes": "1MiB",
    "profile_steps": 4,
    "trial_steps": 2,
    "probe_s": 1,
}
OURS: dict[str, dict[str, Any]] = {"auto": _AUTO, "equal": {**_AUTO, "accuracy": "equal"}}
TITLES = {
    "stock": "stock Horovod",
    "fp16": "stock Horovod, Compression.fp16",
    "auto": "ours",
    "equal": "ours, accuracy='equal'",
}
WARMING = 4  # epochs


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rate", type=int, default=500, help="of the link, in Mbit/s")
    parser.add_argument("--epochs", type=int, default=15, help=f"of each; {WARMING} warm up")
    parser.add_argument("--batch", type=int, default=64, help="of each rank")
    parser.add_argument("--loopback", action="store_true", help="do without the slow link")
    parser.add_argument("--output", type=Path, help="write the numbers as JSON")
    return parser.parse_args(arguments)


# --- training ------------------------------------------------------------------------------------
@dataclass
class Digits:
    """This rank's share of the training data, and all of the test data."""

    inputs: Any
    labels: Any
    test_inputs: Any
    test_labels: Any
    batch: int

    @classmethod
    def load(cls, rank: int, batch: int) -> Digits:
        import torch
        from sklearn.datasets import load_digits
        from sklearn.model_selection import train_test_split

        bunch = load_digits()
        images = torch.tensor(bunch.images, dtype=torch.float32).unsqueeze(1) / 16.0
        labels = torch.tensor(bunch.target)
        train, test = train_test_split(range(len(labels)), test_size=0.2, random_state=0)
        mine = train[rank::RANKS][: len(train) // RANKS]
        return cls(images[mine], labels[mine], images[test], labels[test], batch)

    def epoch(self, number: int) -> list[Any]:
        """The batches of an epoch: the same ones for every optimizer."""
        import torch

        order = torch.randperm(
            len(self.labels), generator=torch.Generator().manual_seed(number)
        ).split(self.batch)
        return [(self.inputs[i], self.labels[i]) for i in order if len(i) == self.batch]


@dataclass
class Arm:
    """One optimizer with its own copy of the network."""

    name: str
    network: Any
    optimizer: Any
    step_s: list[float] = field(default_factory=list)  # median of each epoch

    def train(self, batches: list[Any]) -> float:
        """One epoch; the median of its steps but the first, which starts with nothing in flight."""
        import torch

        times = []
        self.network.train()
        for inputs, labels in batches:
            began_s = time.perf_counter()
            self.optimizer.zero_grad()
            torch.nn.functional.cross_entropy(self.network(inputs), labels).backward()
            self.optimizer.step()
            times.append(time.perf_counter() - began_s)
        if hasattr(self.optimizer, "flush"):
            self.optimizer.flush()
        return median(times[1:])

    def accuracy(self, digits: Digits) -> float:
        import torch

        self.network.eval()
        with torch.no_grad():
            guesses = self.network(digits.test_inputs).argmax(1)
        return float((guesses == digits.test_labels).float().mean())


def network() -> Any:
    from torch import manual_seed, nn

    manual_seed(0)
    layers: list[Any] = []
    for channels in (1, 64, 64, 64):
        layers += [nn.Conv2d(channels, 64, 3, padding=1), nn.ReLU()]
    return nn.Sequential(
        *layers,
        nn.Flatten(),
        nn.Linear(64 * 8 * 8, 192),
        nn.ReLU(),
        nn.Linear(192, 10),
    )


def make_arms() -> list[Arm]:
    import horovod.torch as stock
    import torch

    import deft_horovod.torch as hvd

    arms = []
    for name in (*TITLES, "alone"):
        copy = network()
        optimizer: Any = torch.optim.SGD(copy.parameters(), lr=0.02, momentum=0.9)
        if name in OURS:
            config = OURS[name]
            optimizer = hvd.DistributedOptimizer(optimizer, copy.named_parameters(), config=config)
        elif name != "alone":
            wire = stock.Compression.fp16 if name == "fp16" else stock.Compression.none
            optimizer = stock.DistributedOptimizer(
                optimizer, copy.named_parameters(), compression=wire
            )
        arms.append(Arm(name, copy, optimizer))
    return arms


def difference(a: Any, b: Any) -> float:
    pairs = zip(a.parameters(), b.parameters(), strict=True)
    return max(float((p - q).detach().abs().max()) for p, q in pairs)


def replicas_equal(arm: Arm) -> bool:
    import horovod.torch as stock
    import torch

    mine = torch.cat([p.detach().flatten() for p in arm.network.parameters()])
    first = stock.broadcast(mine, root_rank=0, name=f"demo.replica.{arm.name}")
    return all(stock.allgather_object(bool(torch.equal(mine, first))))


def worker(options: dict[str, Any]) -> None:
    import horovod.torch as stock
    import torch

    import deft_horovod.torch as hvd

    torch.set_num_threads(1)
    hvd.init()
    rank = hvd.rank()
    digits = Digits.load(rank, options["batch"])
    arms = make_arms()
    for number in range(options["epochs"]):
        batches = digits.epoch(number)
        turn = number % len(arms)
        for arm in arms[turn:] + arms[:turn]:
            stock.barrier()
            arm.step_s.append(max(stock.allgather_object(arm.train(batches))))
        if rank == 0:
            times = ", ".join(f"{arm.name} {1e3 * arm.step_s[-1]:.0f}" for arm in arms)
            note = " (warming up, not counted)" if number < WARMING else ""
            print(f"epoch {number + 1:2}/{options['epochs']}, ms a step: {times}{note}", flush=True)
    results = {
        arm.name: {
            "accuracy": arm.accuracy(digits),
            "difference": max(stock.allgather_object(difference(arm.network, arms[0].network))),
            "replicas_equal": replicas_equal(arm),
            "step_ms": [1e3 * s for s in arm.step_s[WARMING:]],
            "runs": arm.optimizer.stats()["running"] if arm.name in OURS else "",
        }
        for arm in arms
    }
    if rank == 0:
        results["parameter_bytes"] = sum(4 * p.numel() for p in arms[0].network.parameters())
        report(results, options)
        if options["output"]:
            Path(options["output"]).write_text(json.dumps(results, indent=1), encoding="utf-8")


# --- the report ----------------------------------------------------------------------------------
def _title(name: str, runs: str) -> str:
    return TITLES[name] + (f" (chose {runs})" if runs else "")


def report(results: dict[str, Any], options: dict[str, Any]) -> None:
    alone = median(results["alone"]["step_ms"])
    rows = [("optimizer", "test accuracy", "difference", "step", "exposed", "step / stock")]
    ratios = {}
    for name in TITLES:
        result = results[name]
        steps = result["step_ms"]
        pairs = [b / a for a, b in zip(results["stock"]["step_ms"], steps, strict=True)]
        ratios[name] = median(pairs)
        spread = f"{ratios[name]:.3f} ({min(pairs):.3f} .. {max(pairs):.3f})"
        rows.append(
            (
                _title(name, result["runs"]),
                f"{100 * result['accuracy']:.1f} %",
                f"{result['difference']:g}" if result["replicas_equal"] else "REPLICAS DIFFER",
                f"{median(steps):.1f} ms",
                f"{median(steps) - alone:.1f} ms",
                "1" if name == "stock" else spread,
            )
        )
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    print(
        f"\nlink: {options['link']}; {RANKS} ranks; "
        f"{results['parameter_bytes'] / 1e6:.1f} MB of gradients a step"
    )
    print()
    for row in rows:
        print(
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        )
    print(f"""
difference: of the trained parameters to those of stock Horovod, largest; 0 is bit for bit.
            Compression.fp16 and accuracy='equal' round gradients, 'equal' sends the rest later
step, step / stock: median over {options["epochs"] - WARMING} epochs, in turn; (smallest .. largest)
exposed: step time less {alone:.1f} ms, the step of the same network that sends nothing
""")
    print(verdict(results, ratios))


def verdict(results: dict[str, Any], ratios: dict[str, float]) -> str:
    if results["auto"]["difference"] != 0.0:
        return "Verdict: the parameters differ from stock Horovod's. On two ranks that is a bug."
    points = 100.0 * (results["equal"]["accuracy"] - results["stock"]["accuracy"])
    same = "the same test accuracy" if not points else f"{points:+.1f} points of test accuracy"
    return (
        f"Verdict: with the same parameters, bit for bit, ours {_time(ratios['auto'])}; "
        f"with accuracy='equal' it {_time(ratios['equal'])}, with {same}. "
        f"Compression.fp16 {_time(ratios['fp16'])}."
    )


def _time(ratio: float) -> str:
    if abs(ratio - 1) < SAME:
        return "takes as long as stock Horovod"
    word = "less" if ratio < 1 else "MORE"
    return f"takes {100 * abs(ratio - 1):.0f} % {word} time a step than stock Horovod"


# --- starting it ---------------------------------------------------------------------------------
@contextlib.contextmanager
def slow_link(options: argparse.Namespace) -> Iterator[bool]:
    """Whether there is one; it is gone afterwards."""
    with contextlib.ExitStack() as made:
        slow = False
        try:
            if not options.loopback:
                made.enter_context(cluster.standing(RANKS, options.rate))
                slow = True
        except cluster.ClusterError as error:
            print(f"demo: no slow link here ({error}); using loopback, with little to hide")
        yield slow


def run_job(options: argparse.Namespace, slow: bool) -> int:
    link = f"{options.rate} Mbit/s (network namespaces)" if slow else "loopback"
    given = {**vars(options), "link": link, "output": str(options.output or "")}
    environment = jobs.environment(given)
    me = jobs.program("scripts.demo")
    if not slow:
        return jobs.stream(jobs.horovodrun(RANKS, me), environment)
    return jobs.stream(*cluster.job(RANKS, me, environment), end=cluster.clear)


def main() -> int:
    given = jobs.given_options()
    if given is not None:
        worker(given)
        return 0
    options = parse(sys.argv[1:])
    if options.epochs <= WARMING:
        print(f"demo: --epochs has to be more than the {WARMING} that warm up", file=sys.stderr)
        return 2
    if options.output:
        options.output = options.output.resolve()
    jobs.exit_on_sigterm()
    try:
        with slow_link(options) as slow:
            print(f"demo: training on {RANKS} ranks, {options.epochs} epochs of each optimizer ...")
            return run_job(options, slow)
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
