"""The records of claims: the requests that they answer, their mappings and ends; and what is held by them."""

from __future__ import annotations

import datetime
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

import sqlalchemy as sa

from placement.db.engine.compiled import CompiledInsert
from placement.db.schema.tables import LEASE_HAS_EXPIRED, claims
from placement.db.writes.author import Author
from placement.db.writes.notes import CONSUMER, Pair, Path
from placement.db.writes.transaction import Reading, Transaction
from placement.objects.claims import leases
from placement.objects.claims.consumer_notes import written
from placement.objects.claims.holding import Holding, Mappings, stored_uuids


@dataclass(frozen=True, slots=True)
class ClaimRecord:
    """The record of a claim that was placed for a request."""

    consumer: str
    #: The id of the consumer's row, which the transaction that writes the record has locked.
    row: int
    #: The digest of the request.
    content: str
    #: The generation that the claim gave the consumer.
    generation: int
    mappings: Mappings
    #: By the database's clock: naive, UTC; None for no end.
    expires_at: datetime.datetime | None = None
    #: Who asked for the claim.
    author: Author | None = field(default=None, compare=False)

    @property
    def _columns(self) -> dict[str, Any]:
        return {
            "consumer_id": self.row,
            "content": self.content,
            "generation": self.generation,
            "mappings": self.mappings,
            "expires_at": self.expires_at,
        }

    @classmethod
    def insert_all(cls, db: Transaction, records: Sequence[Self]) -> None:
        """Insert the records of consumers that have none."""
        db.execute(_INSERT, [record._columns for record in records])
        for record in records:
            record._note_end(db, None)

    def replace(self, db: Transaction, *, keep_end: bool) -> Self:
        """Write the record of a consumer that may already have one, and return the record as written.

        Args:
            keep_end: Whether to keep the end of the present record.

        Raises:
            Prerequisite: The lease was over before this transaction had locked the consumer's row, so the consumer
                must first be ended.
        """
        present = db.execute(_END, {"row": self.row}).first()
        if present is None:
            self.insert_all(db, [self])
            return self
        if present.is_expired:
            leases.require_ended([self.consumer])
        record = replace(self, expires_at=present.expires_at) if keep_end else self
        db.execute(_UPDATE.values(record._columns), {"row": self.row})
        record._note_end(db, present.expires_at)
        return record

    def _note_end(self, db: Transaction, before: datetime.datetime | None) -> None:
        """Note the end for the history, if it differs from the one before."""
        if self.expires_at != before:
            changes: dict[Path, Pair] = {("lease",): (written(before), written(self.expires_at))}
            db.note(CONSUMER, self.consumer, changes, by=self.author)


def held_claims(db: Reading, uuids: Collection[str]) -> dict[str, Holding]:
    """Return what these consumers hold, with records, by uuid; without those that /v1 does not show (``exists``)."""
    found = Holding.read_all(db, uuids, with_record=True)
    return {uuid: held for uuid, held in found.items() if held.exists}


def held_claim(db: Reading, text: str) -> Holding | None:
    """Return what the consumer holds whose uuid the text spells; None if it holds nothing, or its lease is over."""
    return next(iter(held_claims(db, [*stored_uuids(db, [text]).values()]).values()), None)


_OF_CONSUMER = claims.c.consumer_id == sa.bindparam("row")
_END = sa.select(claims.c.expires_at, LEASE_HAS_EXPIRED.label("is_expired")).where(_OF_CONSUMER)
_UPDATE = sa.update(claims).where(_OF_CONSUMER)
_INSERT = CompiledInsert(claims, "consumer_id", "content", "generation", "mappings", "expires_at")
