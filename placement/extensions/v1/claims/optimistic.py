"""Optimistic claims: a place from a recent snapshot, refused if its provider has changed since.

Refreshing the index takes half as many statements as a claim.  Concurrent optimistic calls share one search and one
transaction (docs/adr/0036, 0038).
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
def claim_optimistically(call: ClaimCall, shared: Shared) -> ClaimResult | None:
    """Return the result of a call that may be optimistic; None if its claim was refused or no place was found.

    Raises:
        OutcomeUnknown: The connection was lost during COMMIT.  Also raises like ``Queue.turn``.
    """
    [request] = call.requests
    kind = call.strategy, call.expires_in, call.sets_expiry
    with shared.queue.turn(request, distinct=[request.consumer], kind=kind) as turn:
        if turn.items:
            turn.set_results(_claim_together(replace(call, requests=turn.items), shared))
    return turn.result


def _claim_together(call: ClaimCall, shared: Shared) -> Sequence[ClaimResult | None]:
    """Return the result of each request, or None for a request without a place."""
    count = len(call.requests)
    try:
        placed, found_count = Claiming(call, shared, shared.database, shared.recent_snapshot()).run_optimistically()
    except errors.OutcomeUnknown:
        raise
    except Exception as error:
        # Nothing was written, and the error may concern only one of the calls.  An optimistic claim is one attempt;
        # each call alone makes several, which helps after a lost connection.
        log_failure(LOG, f"{count} calls of POST /v1/claims are placed separately", error)
        shared.backoff.note(placed=False)
        if count > 1:
            signals.retried("joint")
        return [None] * count
    if found_count:
        shared.backoff.note(2 * len(placed) >= found_count)
    if placed:
        signals.written_jointly(len(placed))
    if len(placed) < found_count and count > 1:
        signals.retried("joint")
    return [placed.get(request.consumer) for request in call.requests]
