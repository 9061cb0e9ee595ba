"""Stock Horovod and deft_horovod train the same small GPT, in turn, over a slow link.

The text is what Python's own help says. Two ranks are joined by a link of a given rate where the
machine allows it (root and network namespaces, see scripts/cluster/cluster.py). Elsewhere they use
loopback, where little is to be gained, and the simulator says what such a link would do.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path

from deft_horovod import policies
from deft_horovod.cli.inputs import request_of
from deft_horovod.comparison import Comparison
from deft_horovod.config import Config
from deft_horovod.simulate.cluster import Cluster
from deft_horovod.simulate.outlook import Scenario
from scripts.cluster import cluster, jobs
from scripts.demo import outcome, pictures
from scripts.demo.outcome import COMPARISON_FILE, OUTCOME_FILE
from scripts.places import ROOT

RANKS = 2
LIMIT_S = 900.0


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="scripts/demo.sh",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--rate", type=int, default=500, help="of the link, in Mbit/s")
    parser.add_argument("--rounds", type=int, default=9, help="in which all take turns")
    parser.add_argument("--steps", type=int, default=7, help="of a turn; the first is not counted")
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--length", type=int, default=64, help="of a text, in bytes")
    parser.add_argument("--batch", type=int, default=8, help="of each rank")
    parser.add_argument("--lr", type=float, default=1e-3, help="learning rate")
    parser.add_argument("--loopback", action="store_true", help="do without the slow link")
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "demo", help="for results")
    options = parser.parse_args(arguments)
    if options.rounds < 1 or options.steps < 2:
        parser.error("it takes one round or more, of two steps or more")
    options.folder = options.folder.resolve()
    return options


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


def train(options: argparse.Namespace) -> tuple[int, bool]:
    """(exit status, whether the link was slow)"""
    with slow_link(options) as slow:
        link = f"{options.rate} Mbit/s (network namespaces)" if slow else "loopback"
        environment = jobs.environment({**vars(options), "link": link})
        me = jobs.program("scripts.demo")
        print(f"demo: {RANKS} ranks, {link}; takes about three minutes", flush=True)
        if slow:
            words, environment = cluster.job(RANKS, me, environment, calm=False)
            return jobs.stream(words, environment, limit_s=LIMIT_S, end=cluster.clear), True
        return jobs.stream(jobs.horovodrun(RANKS, me), environment, limit_s=LIMIT_S), False


def show(folder: Path) -> None:
    """The table, the pictures, the verdict."""
    found = outcome.Outcome.from_json((folder / OUTCOME_FILE).read_text(encoding="utf-8"))
    size = f"{found.gradient_bytes / 1e6:.1f} MB of gradients a step"
    print(f"\nlink: {found.link}; {found.ranks} ranks; {size}\n")
    print(f"{outcome.table(found)}\n\n{outcome.legend(found)}\n")
    pictures.draw(found, folder / "demo.png")
    print(f"picture: {folder / 'demo.png'}")
    if (folder / COMPARISON_FILE).is_file():
        pictures.write_report(Comparison.load(folder / COMPARISON_FILE), folder / "report.html")
        print(f"report: {folder / 'report.html'}")
    print(f"\n{outcome.verdict(found)}")


def forecast(folder: Path, rate_mbit: int) -> str:
    """What a slow link would do, by what was measured here."""
    if not (folder / COMPARISON_FILE).is_file():
        return "Forecast: none, for nothing was measured."
    profile = Comparison.load(folder / COMPARISON_FILE).profile
    found = {}
    for accuracy in ("exact", "equal"):
        request = request_of(profile, Config.model_validate({"accuracy": accuracy}))
        scenario = Scenario(request, Cluster(RANKS, 1e6 * rate_mbit))
        found[accuracy] = scenario.outlook(policies.get("least_stale"))
    exact, equal = found["exact"], found["equal"]
    return (
        f"Forecast for a link of {rate_mbit} Mbit/s, by the simulator: stock Horovod "
        f"{1e-3 * equal.stock_us:.0f} ms a step, ours {1e-3 * equal.step_us:.0f} ms "
        f"({equal.speedup:.2f} times as fast), with accuracy='exact' {1e-3 * exact.step_us:.0f} ms "
        f"({exact.speedup:.2f})"
    )


def main(arguments: list[str]) -> int:
    options = parse(arguments)
    options.folder.mkdir(parents=True, exist_ok=True)
    for stale in (COMPARISON_FILE, OUTCOME_FILE):
        (options.folder / stale).unlink(missing_ok=True)
    jobs.exit_on_sigterm()
    try:
        status, slow = train(options)
        if status == 0:
            show(options.folder)
        if status == 0 and not slow:
            print(forecast(options.folder, options.rate))
    except KeyboardInterrupt:
        return 130
    return status


if __name__ == "__main__":
    told = jobs.given_options()
    if told is None:
        sys.exit(main(sys.argv[1:]))
    from scripts.demo import training

    training.run(told)
