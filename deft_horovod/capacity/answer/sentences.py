"""Answers in sentences, for a terminal and for a page."""

from __future__ import annotations

from deft_horovod.capacity.answer.packings import ConsolidationAnswer, ToldPacking
from deft_horovod.capacity.answer.schedules import CapacityAnswer, MissedRow, Told
from deft_horovod.capacity.input.duration import duration_text
from deft_horovod.capacity.schedule.remedy import Remedy
from deft_horovod.plan.words import many


def money(amount: float) -> str:
    return f"{amount:,.2f}"


def rent_text(told: Told) -> str:
    gap = told.found.gap
    if gap is None:
        return f"rent {money(told.rent)}; whether fewer jobs could be missed is not known"
    if not gap:
        return f"rent {money(told.rent)}, which no schedule can go below"
    least = money(float(told.found.bound.rent))
    return f"rent {money(told.rent)}; none can go below {least}, so at most {gap:.1%} is too much"


def use_text(told: Told) -> str:
    schedule = told.found.schedule
    text = f"own machines work {schedule.own_use():.0%} of the time up to the last deadline"
    if schedule.rentals:
        text += f", rented ones {schedule.paid_use():.0%} of the time that is paid"
    return text


def missed_text(told: Told, row: MissedRow) -> str:
    if not row.remedies:
        return f"{row.job} is missed, and no later deadline would help"
    ways = ", or ".join(remedy_text(told, one) for one in row.remedies)
    return f"{row.job} is missed; it would not be with {ways}"


def remedy_text(told: Told, remedy: Remedy) -> str:
    cost = f"rent +{money(float(remedy.rent))}"
    if remedy.kind is None:
        return f"a deadline of {duration_text(remedy.deadline_s or 0)} ({cost})"
    name = told.demand.kinds[remedy.kind].name
    return f"{remedy.machines} more of {name} ({cost})"


def capacity_sentences(answer: CapacityAnswer) -> list[str]:
    """Missed jobs come first."""
    ours = answer.ours
    found = [missed_text(ours, row) for row in ours.missed]
    found += [rent_text(ours), use_text(ours)]
    if answer.stock is None:
        return found
    stock = answer.stock
    text = f"with stock Horovod: {rent_text(stock)}"
    if stock.missed:
        text += f"; missed: {', '.join(row.job for row in stock.missed)}"
    found += [text, f"with stock Horovod: {use_text(stock)}"]
    if answer.saved is not None:
        share = f" ({answer.saved / stock.rent:.0%})" if stock.rent else ""
        found.append(f"our plans save {money(answer.saved)} of the rent{share}")
    return found


def packing_text(told: ToldPacking) -> str:
    text = many(told.machines, "machine")
    gap, bound = told.found.gap, told.found.bound
    if told.without_room:
        text += f"; no room for {', '.join(told.without_room)}: list more machines"
    elif gap is None or bound is None:
        text += "; whether fewer would do is not known"
    elif gap:
        text += f"; fewer than {bound} cannot do"
    else:
        text += ", and fewer cannot do"
    if told.rent_per_hour:
        text += f"; rent {money(told.rent_per_hour)} an hour"
    return text


def consolidation_sentences(answer: ConsolidationAnswer) -> list[str]:
    found = [packing_text(answer.ours)]
    if answer.stock is not None:
        found.append(f"with stock Horovod: {packing_text(answer.stock)}")
    return found
