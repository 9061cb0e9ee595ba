"""Runs one script, step by step, with ours and with the reference, and checks what must hold."""

from __future__ import annotations

import gc
from typing import Any, Final

import horovod.torch as stock
import torch
from disturb import disturb
from draw import RANKS, Event, Script
from ledger import DIGITS, Books
from ours import Ours
from party import Party
from reference import Reference

import deft_horovod.torch as hvd
from tests.parallel.scripts.training import digest, equal_on_all_ranks

SPOILED: Final = {"inf gradient": float("inf"), "nan gradient": float("nan")}
FROM_OUTSIDE: Final = ("stop", "late rank", "fork that evaluates", "fork that loads data")
MOST_FAILURES: Final = 6


def drops_by_itself(script: Script) -> bool:
    """A generator's backward reaches its critic, which throws these gradients away. And what was
    made with several loss scales cannot travel as one sum."""
    scales = script.scaler != "none" and script.may_be_late and script.max_merge != 1
    return script.family == "gan" or scales


class Run:
    """One script on this rank."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self.ours = Ours(script)
        self.reference = Reference(script, stock.rank())
        self.failures: list[str] = []
        self.exact = True  # no update was ever late, so the reference has to be met
        self.checks = {"replicas": 0, "reference": 0, "conservation": 0}
        self.thrown_away = int(drops_by_itself(script))
        self.loads = 0  # what is on its way when a state is loaded is gone, and was never due
        self.books: Books | None = None
        self._books_saved: Any = None
        if script.family == "ledger":
            self.books = Books(self.ours.players[0].model)

    def all(self) -> dict[str, Any]:
        """From the first step to the last check."""
        for step in range(self.script.steps):
            self._between(step)
            self._step(step, range(RANKS))
            if self.books is not None and step % DIGITS == DIGITS - 1:
                self._close_books(step)
            if step % self.script.check_every == self.script.check_every - 1:
                self._check(f"after step {step}")
            if len(self.failures) >= MOST_FAILURES:
                break
        if self.script.uneven:
            self._uneven_epoch()
        self.ours.flush()
        self._end()
        return self._outcome()

    def _outcome(self) -> dict[str, Any]:
        outcome = {
            "seed": self.script.seed,
            "steps": self.script.steps + max(self.script.uneven, default=0),
            "failures": self.failures[:MOST_FAILURES],
            "exact": self.exact,
            "checks": self.checks,
            "dropped": self.ours.dropped,
            "thrown_away": self.thrown_away,
        }
        self.ours.players.clear()
        gc.collect()
        return outcome

    # --- between two steps -------------------------------------------------------------------
    def _between(self, step: int) -> None:
        for event in self.script.at(step):
            if event.rank in (None, stock.rank()) and not event.place:
                self._act(event, step)

    def _act(self, event: Event, step: int) -> None:
        kind = event.kind
        try:
            if kind in FROM_OUTSIDE:
                disturb(kind, self.ours, step)
            elif kind == "flush":
                self.ours.flush()
            elif kind in ("freeze", "unfreeze"):
                for party in self._parties():
                    party.freeze(kind == "freeze")
            elif kind in ("evaluate", "copy"):
                self._see(kind, step)
            elif kind in ("save", "load", "resume"):
                self._keep(kind)
        except AssertionError as error:
            self.failures.append(f"step {step}, {kind}: {error}")

    def _parties(self) -> tuple[Party, Party]:
        return self.ours, self.reference

    def _keep(self, kind: str) -> None:
        if self.books is not None and kind == "save":
            self._books_saved = self.books.state()
        if self.books is not None and kind == "load":
            self.books.load(self._books_saved)
        self.loads += kind == "load"
        for party in self._parties():
            getattr(party, kind)()

    def _see(self, kind: str, step: int) -> None:
        self.reference.take_buffers(self.ours)
        see = "evaluate" if kind == "evaluate" else "copies"
        found, expected = (getattr(party, see)(step) for party in self._parties())
        if self._is_exact():
            self._same(found, expected, f"losses of '{kind}' before step {step}")

    # --- steps -------------------------------------------------------------------------------
    def _step(self, step: int, ranks: Any) -> None:
        events = self.script.at(step)
        spoiled = {
            event.rank: SPOILED[event.kind]
            for event in events
            if event.kind in SPOILED and event.rank is not None
        }
        if any(event.kind == "skip before backward" for event in events):
            self.thrown_away += 1
            return
        kept = [True] * len(self.ours.players)
        if stock.rank() in ranks:
            kept = self.ours.step(step, events, spoiled)
        self.reference.step(step, ranks, spoiled, kept)
        self.thrown_away += not all(kept)
        overflow = bool(spoiled) and self.script.scaler != "none"
        self.thrown_away += overflow
        if self.books is not None and kept[0] and not overflow:
            model = self.ours.players[0].model
            self.books.enter(step, [p.requires_grad for p in model.parameters()])
        for party in self._parties():
            party.follow()

    def _uneven_epoch(self) -> None:
        """Ranks that have no more batches wait in join(); then all begin where the last one is."""
        begin, counts = self.script.steps, self.script.uneven
        for step in range(begin, begin + max(counts)):
            ranks = [rank for rank in range(RANKS) if step - begin < counts[rank]]
            self._step(step, ranks)
        last = hvd.join()
        for player in self.ours.players:
            stock.broadcast_parameters(player.model.state_dict(), root_rank=last)
            hvd.broadcast_optimizer_state(player.optimizer, root_rank=last)
        self._check("after uneven data")
        self.books = None  # ranks that waited have dropped what they had not sent
        self.thrown_away += 1

    # --- checks ------------------------------------------------------------------------------
    def _is_exact(self) -> bool:
        if self.exact and self.ours.late:
            self.exact = False
            if not self.script.may_be_late:
                self.failures.append("updates are late, which no option allows")
        return self.exact

    def _check(self, when: str) -> None:
        ours = self._true_parameters()
        if not equal_on_all_ranks(ours):
            self.failures.append(f"{when}: replicas differ")
        self.checks["replicas"] += 1
        if self._is_exact():
            names = [n for p in self.ours.players for n, _ in p.model.named_parameters()]
            self._same(ours, self.reference.parameters(), f"{when}: parameters", names)
            self.checks["reference"] += 1

    def _true_parameters(self) -> list[torch.Tensor]:
        """A critic has been called since its step: until its next one, where updates are late, it
        has the parameters that it was called with, and its state_dict() has the true ones."""
        if self.script.family != "gan":
            return [p.detach() for p in self.ours.parameters()]
        states = [(player.model, player.model.state_dict()) for player in self.ours.players]
        return [state[name] for model, state in states for name, _ in model.named_parameters()]

    def _same(
        self, ours: list[Any], expected: list[Any], what: str, names: list[str] | None = None
    ) -> None:
        for i, (a, b) in enumerate(zip(ours, expected, strict=True)):
            if digest([a]) != digest([b]):
                apart = float((a.detach().double() - b.detach().double()).abs().max())
                name = names[i] if names else f"number {i}"
                self.failures.append(f"{what}: {name} is {apart:.3g} from the reference")
                return

    def _close_books(self, step: int) -> None:
        if self.books is None:
            return
        self.ours.flush()
        model = self.ours.players[0].model
        lost = self.ours.dropped if self.thrown_away else 0
        wrong = self.books.check(model, lost)
        self.failures += [f"books after step {step}: {line}" for line in wrong[:2]]
        self.checks["conservation"] += 1
        self.books.open(model)

    def _end(self) -> None:
        self._close_books(self.script.steps - 1)
        self._check("at the end")
        if self.ours.dropped and not self.thrown_away and not self.loads:
            self.failures.append(f"{self.ours.dropped} gradients were dropped, none thrown away")
        states = [
            value
            for player in self.ours.players
            for held in player.inner.state.values()
            for value in held.values()
            if isinstance(value, torch.Tensor)
        ]
        if not equal_on_all_ranks(states):
            self.failures.append("at the end: states of the optimizers differ between ranks")
        if not self._is_exact():
            return
        for mine, theirs in zip(self.ours.averages, self.reference.averages, strict=True):
            pair = (list(mine.parameters()), list(theirs.parameters()))
            self._same(*pair, "at the end: averages of weights")
