"""Rounding guard: takes a wire format away once its errors are no longer small.

It holds what rounding leaves of gradients, which sending them measures anyway, against the noise of
batches. Whatever adds too much to that is left out of the next plan, which then sends finer.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from deft_horovod.base.wire_format import WireFormat, error_of
from deft_horovod.policies.base import Request
from deft_horovod.preserver.cost import Gradients
from deft_horovod.preserver.rounding import added_noise

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

    def narrow(self, request: Request, gradients: Gradients | None) -> Request:
        """The request without formats that would add too much."""
        self._strikes = 0
        if request.limits is None:
            return request
        allowed = request.limits.formats
        self._unjudged = allowed if gradients is None else ()
        if gradients is None:
            return request
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
        kept = tuple(one for one in allowed if one not in vetoed)
        return replace(request, limits=replace(request.limits, formats=kept))

    def wants(self, errors: Mapping[WireFormat, float], gradients: Gradients) -> bool:
        """Whether the formats that run call for another plan. `errors`: measured, by format."""
        self._errors.update(errors)
        unjudged, self._unjudged = self._unjudged, ()
        seen = {one: self._noise_of(one, gradients) for one in (*unjudged, *errors)}
        self._added.update(seen)
        limit, windows = (1.0, 1) if unjudged else (_OVER, _IN_A_ROW)
        over = any(added > limit * self._tolerated for added in seen.values())
        self._strikes = self._strikes + 1 if over else 0
        return self._strikes >= windows

    def stats(self) -> dict[str, Any]:
        """As the deciding rank knows it."""
        return {
            "tolerated": self._tolerated,
            "added_noise": dict(self._added),
            "vetoed": list(self._vetoed),
        }

    def _noise_of(self, wire_format: WireFormat, gradients: Gradients) -> float:
        return added_noise(self._errors.get(wire_format, error_of(wire_format)), gradients)
