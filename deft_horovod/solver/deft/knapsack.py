"""Knapsack: what travels in one window, on which link. Solved by OR-Tools.

A window is a stage of compute, whole: one knapsack for each link, which holds as much link time as
the stage lasts. A piece weighs the time that it takes on a link. It is worth the time that it takes
on the first one, times the steps that it carries: that much communication is then covered. (Without
the steps large pieces would travel again and again while small ones wait until all have to go at
once.)

In a backward window a piece that becomes ready at r has no more than the rest of the window:
everything ready at r or later has to fit into what is left from r on. With one constraint for each
r this is what a recursion over the moments of readiness finds ("send or skip, and then the rest").
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from deft_horovod.solver.cp_sat import cp_model

SEED: Final = 1
_LIMIT: Final = 0.004  # of CP-SAT's deterministic time, for one window


@dataclass(frozen=True)
class KnapsackItem:
    """One generation, or what is left of it: buckets that are alike."""

    count: int
    ticks: tuple[int, ...]  # of one bucket on each link
    steps: int = 1  # whose gradients it carries
    ready: int = 0  # ticks since the window began
    whole: bool = True  # all or nothing
    must: bool = False  # in this window, even if it grows too long


@dataclass(frozen=True)
class Knapsack:
    ticks: int
    used: tuple[int, ...]  # of each link, by what leaves before


def fill(pieces: Sequence[KnapsackItem], window: Knapsack) -> list[tuple[int, ...]]:
    """For each piece, how many of its buckets travel on each link. The first pieces win ties."""
    if not pieces:
        return []
    if len(window.used) == 1 and _all_fit(pieces, window):
        return [(piece.count,) for piece in pieces]
    return _solve(pieces, window)


def _all_fit(pieces: Sequence[KnapsackItem], window: Knapsack) -> bool:
    """On the only link, one after the other as they become ready."""
    free = window.used[0]
    for piece in sorted(pieces, key=lambda piece: piece.ready):
        free = max(free, piece.ready) + piece.count * piece.ticks[0]
    return free <= window.ticks


def _solve(pieces: Sequence[KnapsackItem], window: Knapsack) -> list[tuple[int, ...]]:
    model = cp_model.CpModel()
    links = range(len(window.used))
    counts = [[model.new_int_var(0, piece.count, "") for _ in links] for piece in pieces]
    for piece, of_links in zip(pieces, counts, strict=True):
        if piece.must:
            model.add(sum(of_links) == piece.count)
        elif piece.whole:
            model.add(sum(of_links) == piece.count * model.new_bool_var(""))
        else:
            model.add(sum(of_links) <= piece.count)
    most = sum(piece.count * max(piece.ticks) for piece in pieces) + sum(window.used)
    longer = model.new_int_var(0, most, "")  # compute waits for all links alike
    for link in links:
        loads = [
            (piece.ready, piece.ticks[link] * of_links[link])
            for piece, of_links in zip(pieces, counts, strict=True)
        ]
        left = max(0, window.ticks - window.used[link])
        model.add(sum(load for _, load in loads) <= left + longer)
        for ready in sorted({piece.ready for piece in pieces if piece.ready > 0}):
            late = sum(load for at, load in loads if at >= ready)
            model.add(late <= max(0, window.ticks - ready) + longer)
    model.maximize(_worth(pieces, counts) - longer * _price(pieces))
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.random_seed = SEED
    solver.parameters.max_deterministic_time = _LIMIT
    status = solver.solve(model)
    if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return _in_turn(pieces, window)
    return [tuple(solver.value(count) for count in of_links) for of_links in counts]


def _worth(
    pieces: Sequence[KnapsackItem], counts: Sequence[Sequence[cp_model.IntVar]]
) -> cp_model.LinearExpr:
    """Time covered; with ties the pieces listed first, and then the faster links."""
    finer = _finer(pieces)
    terms: list[cp_model.LinearExpr] = []
    for place, (piece, of_links) in enumerate(zip(pieces, counts, strict=True)):
        early = len(pieces) - place
        for link, count in enumerate(of_links):
            worth = piece.ticks[0] * piece.steps * finer + early * len(of_links) - link
            terms.append(worth * count)
    return cp_model.LinearExpr.sum(terms)


def _finer(pieces: Sequence[KnapsackItem]) -> int:
    """What a tick outweighs: everything that the order of pieces and links can add up to."""
    links = len(pieces[0].ticks)
    return 1 + sum(piece.count for piece in pieces) * (len(pieces) + 1) * links


def _price(pieces: Sequence[KnapsackItem]) -> int:
    """Of a tick by which a window is too short: more than anything is worth."""
    most = sum(piece.count * piece.ticks[0] * piece.steps for piece in pieces)
    return 2 * _finer(pieces) * (1 + most)


def _in_turn(pieces: Sequence[KnapsackItem], window: Knapsack) -> list[tuple[int, ...]]:
    """Without an answer in time: each piece on the first link, as long as it fits."""
    free = window.used[0]
    found = []
    for piece in pieces:
        ends = max(free, piece.ready) + piece.count * piece.ticks[0]
        fits = piece.must or ends <= window.ticks
        found.append((piece.count if fits else 0, *[0] * (len(window.used) - 1)))
        free = ends if fits else free
    return found
