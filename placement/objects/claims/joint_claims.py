"""Claims of several requests that one transaction places together (docs/adr/0036)."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from placement.db.writes.joint_write import JointWrite
from placement.db.writes.transaction import Transaction
from placement.objects.claims.claim import Claim
from placement.objects.claims.claim_batch import ClaimBatch, PlacedClaim
from placement.objects.claims.claim_set import ClaimSet


def joint_write(claims: Sequence[Claim], **options: Any) -> JointWrite:
    """Return the write that places the claims of one request; ``options`` are those of ``JointWrite``.

    It is joined with others if all its consumers are new.  Then it gives nothing back that the others could take, so
    claims that fit together fit one after another, too, in any order.
    """
    joins = all(claim.generation is None and claim.resources and claim.only_on is None for claim in claims)
    return JointWrite(
        work=_place,
        mixed_work=_place_free if joins and len(claims) == 1 else None,
        value=claims,
        contended=frozenset(uuid for claim in claims for uuid in claim.resources) if joins else frozenset(),
        distinct=frozenset(claim.consumer for claim in claims),
        size=sum(len(amounts) for claim in claims for amounts in claim.resources.values()),
        **options,
    )


def _place(db: Transaction, requests: Sequence[Sequence[Claim]], more: Callable[[], Iterable[Sequence[Claim]]]) -> None:
    ClaimSet(db, [*itertools.chain(*requests)]).place(late=lambda: [*itertools.chain(*more())])


def _place_free(db: Transaction, requests: Sequence[Sequence[Claim]]) -> list[bool]:
    """Place those claims that fit, and if they are on different providers, only on those that are not locked."""
    claims = [*itertools.chain(*requests)]
    different = len({frozenset(claim.resources) for claim in claims}) > 1
    if different and db.locks_rows and not db.skips_locked_rows:
        return [False] * len(claims)  # one row that is locked would hold up all of them
    outcomes = ClaimBatch(db, claims).place(skip_locked=different)
    return [isinstance(outcome, PlacedClaim) for outcome in outcomes]
