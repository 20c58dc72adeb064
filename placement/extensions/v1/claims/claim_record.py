"""Records of claims: the digest of the request, the mappings and the expiry."""

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
from placement.objects.claims.consumer_notes import format_expiry
from placement.objects.claims.holding import Holding, Mappings, stored_uuids


@dataclass(frozen=True, slots=True)
class ClaimRecord:
    """The record of a placed claim."""

    consumer: str
    #: The id of the consumer's row, which the writing transaction has locked.
    row_id: int
    #: The digest of the request.
    content: str
    #: The consumer's generation after the claim.
    generation: int
    mappings: Mappings
    #: The expiry by the database's clock (naive, UTC); None if the claim does not expire.
    expires_at: datetime.datetime | None = None
    #: The author of the request.
    author: Author | None = field(default=None, compare=False)

    @property
    def _columns(self) -> dict[str, Any]:
        return {
            "consumer_id": self.row_id,
            "content": self.content,
            "generation": self.generation,
            "mappings": self.mappings,
            "expires_at": self.expires_at,
        }

    @classmethod
    def insert_all(cls, db: Transaction, records: Sequence[Self]) -> None:
        """Insert records for consumers without one."""
        db.execute(_INSERT, [record._columns for record in records])
        for record in records:
            record._note_expiry(db, None)

    def replace(self, db: Transaction, *, keep_expiry: bool) -> Self:
        """Insert this record, or replace the consumer's existing one, and return the record as written.

        Args:
            keep_expiry: Whether to keep the expiry of the existing record.

        Raises:
            Prerequisite: The lease expired before this transaction locked the consumer's row, so it must be released
                first.
        """
        existing = db.execute(_EXPIRY, {"row": self.row_id}).first()
        if existing is None:
            self.insert_all(db, [self])
            return self
        if existing.is_expired:
            leases.require_ended([self.consumer])
        record = replace(self, expires_at=existing.expires_at) if keep_expiry else self
        db.execute(_UPDATE.values(record._columns), {"row": self.row_id})
        record._note_expiry(db, existing.expires_at)
        return record

    def _note_expiry(self, db: Transaction, before: datetime.datetime | None) -> None:
        """Note a change of the expiry for the history."""
        if self.expires_at != before:
            changes: dict[Path, Pair] = {("lease",): (format_expiry(before), format_expiry(self.expires_at))}
            db.note(CONSUMER, self.consumer, changes, by=self.author)


def held_claims(db: Reading, uuids: Collection[str]) -> dict[str, Holding]:
    """Return the holdings of these consumers, with their records, by uuid.

    Consumers that the v1 API does not show are left out (``Holding.exists``).
    """
    holdings = Holding.read_all(db, uuids, with_record=True)
    return {uuid: holding for uuid, holding in holdings.items() if holding.exists}


def held_claim(db: Reading, uuid: str) -> Holding | None:
    """Return the holding of a consumer, whose uuid may have any spelling.

    Returns:
        None if the consumer holds nothing or its lease has expired.
    """
    return next(iter(held_claims(db, [*stored_uuids(db, [uuid]).values()]).values()), None)


_OF_CONSUMER = claims.c.consumer_id == sa.bindparam("row")
_EXPIRY = sa.select(claims.c.expires_at, LEASE_HAS_EXPIRED.label("is_expired")).where(_OF_CONSUMER)
_UPDATE = sa.update(claims).where(_OF_CONSUMER)
_INSERT = CompiledInsert(claims, "consumer_id", "content", "generation", "mappings", "expires_at")
