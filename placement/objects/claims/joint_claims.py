"""The claims of a request, placed in a transaction of their own or with those of other threads (docs/adr/0036).

Only claims of consumers that hold nothing yet, as their clients state, are placed together: mostly they have no rows
for whose locks the batch might have to wait.  They are judged one after another, so each reply is one that the request
could have had alone.
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
    """Place the claims of one request, all of them or none; raises like ``ClaimSet.place`` and ``Database.write``.

    Args:
        attempts: The largest number of attempts.
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
            turn.end(_place_together(database, turn.items))
        elif turn.items:
            write()
            turn.end([True])
    if not turn.result:
        write()


def _place_all(db: Transaction, claims: Sequence[Claim]) -> None:
    ClaimSet(db, claims).place()
    db.on_commit(functools.partial(signals.written_jointly, 1))


def _place_together(database: Database, claims: Sequence[Claim]) -> list[bool]:
    """Place the claims that fit and that no other transaction holds up; return for each whether it is placed.

    What a refused claim has done so far, such as creating the names of its owner, must not be committed.  So the
    transaction is rolled back, and done once more without that claim.
    """
    placed = _commit_if_placed(database, claims)
    if not all(placed):
        signals.retried("joint")
        fitting = [*itertools.compress(claims, placed)]
        if not all(_commit_if_placed(database, fitting)):
            return [False] * len(claims)
    return placed


def _commit_if_placed(database: Database, claims: Sequence[Claim]) -> list[bool]:
    """Commit the claims if one attempt can place all of them; return for each whether it can be placed.

    If all are true, they are committed.

    Raises:
        Unavailable: This concerns all of them; it is OutcomeUnknown if the connection was lost during COMMIT.
    """
    placed: list[bool] = []

    def work(db: Transaction) -> None:
        placed[:] = [False] * len(claims)  # what an earlier attempt placed was rolled back
        if db.attempt > 1:
            raise _NotAllPlaced
        different = len({frozenset(claim.resources) for claim in claims}) > 1
        if different and db.locks_rows and not db.skips_locked_rows:
            raise _NotAllPlaced  # one locked row would hold up all of them
        outcomes = ClaimSet(db, claims).place_each(skip_locked=different)
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
        # It may concern only one of them, and nothing was written.
        log_failure(LOG, f"{len(claims)} claims are placed separately", error)
        return [False] * len(claims)
    return placed


class _NotAllPlaced(Exception):
    """Ends an attempt that does not place all of its claims, so that it is neither committed nor run again."""
