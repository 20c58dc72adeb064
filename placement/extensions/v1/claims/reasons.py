"""A cache of reasons for refusals.

In a full cloud, many requests with the same query are refused; one explanation serves them all.
"""

from __future__ import annotations

import time
from dataclasses import replace

from placement.extensions.v1.claims.request import ClaimRequest
from placement.extensions.v1.claims.result import Reason
from placement.extensions.v1.explain.explain import explain
from placement.extensions.v1.pick.allowance import Allowance
from placement.index.snapshot import Snapshot
from placement.search.find import Settings

#: Seconds for which a reason is reused.  An explanation takes several times as long as a search that finds nothing.
_MAX_AGE = 0.5
#: Maximum number of reasons in the cache.
MAX_REASONS = 100


class RecentReasons:
    """The reasons found in the last half second, shared by all threads of a process."""

    def __init__(self) -> None:
        #: The monotonic time and the reason, by canonical query.
        self._recent: dict[str, tuple[float, Reason]] = {}

    def find(
        self, request: ClaimRequest, snapshot: Snapshot, settings: Settings, allowance: Allowance
    ) -> Reason | None:
        """Return the reason for the lack of candidates, from the cache or from a new explanation.

        Returns:
            None if the call has too few operations left for an explanation.
        """
        now = time.monotonic()
        recent = {query: entry for query, entry in list(self._recent.items()) if now - entry[0] <= _MAX_AGE}
        if request.query.canonical in recent:
            return recent[request.query.canonical][1]
        operations = allowance.for_explanation()
        if not operations:
            return None
        bounded = replace(settings, operations=min(settings.operations, operations))
        explanation = explain(request.query, snapshot, bounded)
        allowance.charge_explanation(explanation.operations)
        reason = Reason.from_explanation(explanation)
        if not reason.found and len(recent) < MAX_REASONS:
            recent[request.query.canonical] = now, reason
        self._recent = recent
        return reason
