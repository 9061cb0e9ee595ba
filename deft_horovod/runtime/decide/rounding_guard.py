"""Rounding guard: takes a wire format away once its errors are no longer small, or from a few
gradients alone if only theirs are not.

It holds what rounding leaves of gradients, which sending them measures anyway, against the noise of
batches. A format that adds too much to that is left out of the next plan, which then sends finer;
gradients of buckets that are worse than their format's travel exact from then on.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from deft_horovod.base.wire_format import WireFormat, error_of
from deft_horovod.policies.base import Request
from deft_horovod.preserver.cost import Gradients
from deft_horovod.preserver.rounding import RoundingError, added_noise, by_format

_LOG: Final = logging.getLogger("deft_horovod")
# A plan stays until a format adds twice what is tolerated, for that many windows in a row; but for
# one that was made when nothing was known of the gradients.
_OVER: Final = 2.0
_IN_A_ROW: Final = 2


class RoundingGuard:
    """Of one optimizer, at work on the deciding rank alone. `tolerated`: see `TOLERATED`."""

    def __init__(self, tolerated: float) -> None:
        self._tolerated = tolerated
        self._errors: dict[WireFormat, float] = {}  # the latest that were measured
        self._added: dict[WireFormat, float] = {}
        self._vetoed: tuple[WireFormat, ...] = ()
        self._unjudged: tuple[WireFormat, ...] = ()  # that the plan may use
        self._strikes = 0
        self._rough: Counter[str] = Counter()  # gradients, and windows in a row
        self._exact: set[str] = set()  # gradients that were too rough

    def narrow(self, request: Request, gradients: Gradients | None) -> Request:
        """The request without formats that would add too much, and with what did as it is."""
        self._strikes = 0
        self._rough.clear()
        if request.limits is None:
            return request
        allowed = request.limits.formats
        self._unjudged = allowed if gradients is None else ()
        if gradients is None:
            return self.narrowed(request)
        self._added = {one: self._noise_of(one, gradients) for one in allowed}
        vetoed = tuple(one for one in allowed if self._added[one] > self._tolerated)
        for one in vetoed:
            if one not in self._vetoed:
                _LOG.warning(
                    "deft_horovod: accuracy: %s would add %.2g %% to the noise of batches, and "
                    "%.2g %% is tolerated: gradients travel in finer formats",
                    one,
                    100.0 * self._added[one],
                    100.0 * self._tolerated,
                )
        self._vetoed = vetoed
        return self.narrowed(request)

    def narrowed(self, request: Request) -> Request:
        """The same by what is known already."""
        limits = request.limits
        if limits is None:
            return request
        exact = (replace(p, exact=p.exact or p.name in self._exact) for p in request.parameters)
        kept = tuple(one for one in limits.formats if one not in self._vetoed)
        limits = replace(limits, formats=kept)
        return replace(request, parameters=tuple(exact), limits=limits)

    def wants(self, errors: Sequence[RoundingError], gradients: Gradients) -> bool:
        """Whether the formats that run call for another plan. `errors`: of all buckets."""
        measured = by_format(errors)
        self._errors.update(measured)
        unjudged, self._unjudged = self._unjudged, ()
        seen = {one: self._noise_of(one, gradients) for one in (*unjudged, *measured)}
        self._added.update(seen)
        limit, windows = (1.0, 1) if unjudged else (_OVER, _IN_A_ROW)
        over = any(added > limit * self._tolerated for added in seen.values())
        self._strikes = self._strikes + 1 if over else 0
        return self._single_out(errors, gradients) or self._strikes >= windows

    def _single_out(self, errors: Sequence[RoundingError], gradients: Gradients) -> bool:
        """Whether gradients were found that have to be exact, while their format is good enough for
        others. As if all gradients were rounded as they are: their own noise is not known."""
        fine = {one for one, added in self._added.items() if added <= self._tolerated}
        rough = {
            name: added
            for one in errors
            if one.format in fine
            and (added := added_noise(one.error, gradients)) > _OVER * self._tolerated
            for name in one.gradients
        }
        self._rough = Counter({name: self._rough[name] + 1 for name in rough})
        found = [name for name, windows in self._rough.items() if windows >= _IN_A_ROW]
        self._exact.update(found)
        if found:
            _LOG.warning(
                "deft_horovod: accuracy: rounding would add up to %.2g %% to the noise of batches "
                "in %s, and %.2g %% is tolerated: exact from now on",
                100.0 * max(rough[name] for name in found),
                ", ".join(found),
                100.0 * self._tolerated,
            )
        return bool(found)

    def stats(self) -> dict[str, Any]:
        """As the deciding rank knows it."""
        return {
            "tolerated": self._tolerated,
            "added_noise": dict(self._added),
            "vetoed": list(self._vetoed),
            "exact": sorted(self._exact),
        }

    def _noise_of(self, wire_format: WireFormat, gradients: Gradients) -> float:
        return added_noise(self._errors.get(wire_format, error_of(wire_format)), gradients)
