"""A guess: a place is chosen in the index as it was a moment ago, and claimed if its provider has not changed since.

Bringing the index up to date takes half as many statements as a claim.  Calls that guess at the same time share one
search and one transaction (docs/adr/0036).
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace

from placement import errors, signals
from placement.db.writes.queue import log_failure
from placement.extensions.v1.claims.engine import Claiming
from placement.extensions.v1.claims.request import ClaimCall
from placement.extensions.v1.claims.result import ClaimResult
from placement.extensions.v1.claims.shared import Shared

LOG = logging.getLogger(__name__)


@signals.timed("joint")
def guess(call: ClaimCall, shared: Shared) -> ClaimResult | None:
    """Return the result of a call for which ``may_guess`` is true; None if the guess was lost, or there is no place.

    Raises:
        OutcomeUnknown: The connection was lost during COMMIT; or as for ``Queue.turn``.
    """
    [request] = call.requests
    alike = call.strategy, call.expires_in, call.sets_end
    with shared.queue.turn(request, distinct=[request.consumer], kind=alike) as turn:
        if turn.items:
            turn.end(_guess_together(replace(call, requests=turn.items), shared))
    return turn.result


def _guess_together(call: ClaimCall, shared: Shared) -> Sequence[ClaimResult | None]:
    """Return the results of the requests that got their places, and None for the others."""
    number = len(call.requests)
    try:
        placed, found = Claiming(call, shared, shared.database, shared.recent()).guess()
    except errors.OutcomeUnknown:
        raise
    except Exception as error:
        # It may concern only one of them, and nothing was written.  A lost connection ends a guess, which is a single
        # attempt; the calls have more.
        log_failure(LOG, f"{number} calls are carried out separately", error)
        shared.guesses.note(won=False)
        if number > 1:
            signals.retried("joint")
        return [None] * number
    if found:
        shared.guesses.note(2 * len(placed) >= found)
    if placed:
        signals.written_jointly(len(placed))
    if len(placed) < found and number > 1:
        signals.retried("joint")
    return [placed.get(request.consumer) for request in call.requests]
