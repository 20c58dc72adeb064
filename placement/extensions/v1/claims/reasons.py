"""Why requests are refused: where there is no room, many of them are refused for the same reason."""

from __future__ import annotations

import time
from dataclasses import replace

from placement.extensions.v1.claims.request import ClaimRequest
from placement.extensions.v1.claims.result import Reason
from placement.extensions.v1.explain.explaining import explain
from placement.extensions.v1.pick.allowance import Allowance
from placement.index.snapshot import Snapshot
from placement.search.find import Settings

#: Seconds for which a reason is used again.  To find it takes several times as long as the search that found nothing.
_AGE = 0.5
#: Reasons that are remembered.
MOST = 100


class RecentReasons:
    """The reasons of the last half second; shared by all threads of a process."""

    def __init__(self) -> None:
        #: With the time of each, by the text of the query.
        self._found: dict[str, tuple[float, Reason]] = {}

    def find(
        self, request: ClaimRequest, snapshot: Snapshot, settings: Settings, allowance: Allowance
    ) -> Reason | None:
        """Return why the query of a request found nothing a moment ago, or what it finds now.

        Args:
            allowance: The operations that the call has left; without enough of them nothing is searched for.
        """
        now = time.monotonic()
        recent = {text: one for text, one in list(self._found.items()) if now - one[0] <= _AGE}
        if request.query.canonical in recent:
            return recent[request.query.canonical][1]
        operations = allowance.for_explanation()
        if not operations:
            return None
        bounded = replace(settings, operations=min(settings.operations, operations))
        explained = explain(request.query, snapshot, bounded)
        allowance.explained(explained.operations)
        reason = Reason.of(explained)
        if not reason.found and len(recent) < MOST:
            recent[request.query.canonical] = now, reason
        self._found = recent
        return reason
