"""Why requests are refused.  Where there is no room, many are refused for the same reason, which is found once."""

from __future__ import annotations

import time
from dataclasses import replace

from placement.extensions.v1.claims.request import ClaimRequest
from placement.extensions.v1.claims.result import Reason
from placement.extensions.v1.explain.explain import explain
from placement.extensions.v1.pick.allowance import Allowance
from placement.index.snapshot import Snapshot
from placement.search.find import Settings

#: Seconds for which a reason is reused.  Finding it takes several times as long as the search that found nothing.
_AGE = 0.5
#: The most reasons that are remembered.
MOST = 100


class RecentReasons:
    """The reasons of the last half second; shared by all threads of a process."""

    def __init__(self) -> None:
        #: Reasons with their times, by the text of the query.
        self._found: dict[str, tuple[float, Reason]] = {}

    def find(
        self, request: ClaimRequest, snapshot: Snapshot, settings: Settings, allowance: Allowance
    ) -> Reason | None:
        """Return why the query of a request found nothing a moment ago, or what explaining it finds now.

        Returns:
            None if the call has too few operations left to explain it.
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
