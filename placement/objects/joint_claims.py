"""Claims of several requests that one transaction places together (docs/adr/0036)."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from placement.db.joint_write import JointWrite
from placement.db.transaction import Transaction
from placement.objects.claim import Claim
from placement.objects.claim_set import ClaimSet


def joint_write(claims: Sequence[Claim], **options: Any) -> JointWrite:
    """Return the write that places the claims of one request; ``options`` are those of ``JointWrite``.

    It is joined with others on its providers if all its consumers are new.  Then it gives nothing back that the others
    could take, so claims that fit together fit one after another, too, in any order.
    """
    joins = all(claim.generation is None and claim.resources and claim.only_on is None for claim in claims)
    return JointWrite(
        work=_place,
        value=claims,
        contended=frozenset(uuid for claim in claims for uuid in claim.resources) if joins else frozenset(),
        distinct=frozenset(claim.consumer for claim in claims),
        size=sum(len(amounts) for claim in claims for amounts in claim.resources.values()),
        **options,
    )


def _place(db: Transaction, requests: Sequence[Sequence[Claim]], more: Callable[[], Iterable[Sequence[Claim]]]) -> None:
    ClaimSet(db, [*itertools.chain(*requests)]).place(late=lambda: [*itertools.chain(*more())])
