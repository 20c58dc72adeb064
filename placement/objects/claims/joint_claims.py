"""Placing the claims of a request, alone or in one transaction with the claims of other threads (docs/adr/0036).

Only claims of new consumers, as their clients state, are placed together: most have no rows yet, so the batch need not
wait for their locks.  They are judged one after another, so each response is one that the request could have had alone.
"""

from __future__ import annotations

import functools
import itertools
import logging
from collections.abc import Sequence
from typing import Any

from placement import errors, signals
from placement.db.database import Database
from placement.db.dry_run import DryRun
from placement.db.writes.queue import log_failure
from placement.db.writes.transaction import Transaction
from placement.objects.claims.claim import Claim
from placement.objects.claims.claim_set import ClaimSet, PlacedClaim

LOG = logging.getLogger(__name__)


def place(database: Database | DryRun[Any], claims: Sequence[Claim], *, attempts: int) -> None:
    """Place the claims of one request, all or none.

    Args:
        attempts: The maximum number of attempts.

    Raises:
        Failure: As for ``ClaimSet.place`` and ``Database.write``.
    """
    write = functools.partial(
        database.write,
        functools.partial(_place_all, claims=claims),
        attempts=attempts,
        exhausted=errors.AllocationsChanged,
    )
    if isinstance(database, DryRun) or len(claims) > 1 or not claims[0].is_first:
        write()
        return
    [claim] = claims
    size = sum(map(len, claim.resources.values()))
    with signals.timed("joint"), database.queue.turn(claim, distinct=[claim.consumer], size=size) as turn:
        if len(turn.items) > 1:
            turn.set_results(_place_together(database, turn.items))
        elif turn.items:
            write()
            turn.set_results([True])
    if not turn.result:
        write()


def _place_all(db: Transaction, claims: Sequence[Claim]) -> None:
    ClaimSet(db, claims).place()
    db.on_commit(functools.partial(signals.written_jointly, 1))


def _place_together(database: Database, claims: Sequence[Claim]) -> list[bool]:
    """Place the claims that fit and need not wait for locks; return for each claim whether it was placed.

    The writes of a refused claim, such as the names of its owner, must not be committed.  So the transaction is rolled
    back, and retried without the refused claims.
    """
    placed = _commit_if_placed(database, claims)
    if not all(placed):
        signals.retried("joint")
        fitting = [*itertools.compress(claims, placed)]
        if not all(_commit_if_placed(database, fitting)):
            return [False] * len(claims)
    return placed


def _commit_if_placed(database: Database, claims: Sequence[Claim]) -> list[bool]:
    """Commit the claims if one attempt can place all of them; return for each claim whether it can be placed.

    The claims have been committed if all values are true.

    Raises:
        Unavailable: No claim was placed, or, with OutcomeUnknown, the connection was lost during COMMIT.
    """
    placed: list[bool] = []

    def work(db: Transaction) -> None:
        placed[:] = [False] * len(claims)  # an earlier attempt was rolled back
        if db.attempt > 1:
            raise _NotAllPlaced
        providers_differ = len({frozenset(claim.resources) for claim in claims}) > 1
        if providers_differ and db.locks_rows and not db.skips_locked_rows:
            raise _NotAllPlaced  # one locked row would delay all of them
        outcomes = ClaimSet(db, claims).place_each(skip_locked=providers_differ)
        placed[:] = [isinstance(outcome, PlacedClaim) for outcome in outcomes]
        if not all(placed):
            raise _NotAllPlaced
        db.on_commit(functools.partial(signals.written_jointly, len(claims)))

    if not claims:
        return placed
    try:
        database.write(work)
    except _NotAllPlaced:
        return placed
    except errors.Unavailable:
        raise
    except Exception as error:
        # The failure may concern only one claim, and nothing was written.
        log_failure(LOG, f"{len(claims)} claims are placed separately", error)
        return [False] * len(claims)
    return placed


class _NotAllPlaced(Exception):
    """The end of an attempt that does not place all claims, without a commit or a retry."""
