"""What is known of a claim beside what its consumer holds: the request that it answers, its mappings, its end."""

from __future__ import annotations

import datetime
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

import sqlalchemy as sa

from placement.db.engine.compiled import CompiledInsert, CompiledStatement
from placement.db.schema.tables import (
    LEASE_HAS_EXPIRED,
    allocations,
    claims,
    consumer_types,
    consumers,
    projects,
    resource_classes,
    resource_providers,
    users,
)
from placement.db.writes.author import Author
from placement.db.writes.notes import CONSUMER, Pair, Path
from placement.db.writes.transaction import Reading, Transaction
from placement.objects.claims.consumer_state import stored_uuids, written
from placement.objects.provider import GENERATION
from placement.objects.usage import UNKNOWN_TYPE

#: For each copy, the uuids of the providers that serve each group, by its suffix.
Mappings = Sequence[Mapping[str, Sequence[str]]]


@dataclass(frozen=True, slots=True)
class ClaimRecord:
    """The record of a claim that was placed for a request."""

    consumer: str
    #: The digest of the request.
    content: str
    #: The generation that the claim gave the consumer.
    generation: int
    mappings: Mappings
    #: By the database's clock, UTC, naive; None: it has no end.
    expires_at: datetime.datetime | None = None
    #: Who claims.
    author: Author | None = field(default=None, compare=False)

    @property
    def _columns(self) -> dict[str, Any]:
        return {
            "content": self.content,
            "generation": self.generation,
            "mappings": self.mappings,
            "expires_at": self.expires_at,
        }

    @classmethod
    def insert_all(cls, db: Transaction, records: Sequence[Self]) -> None:
        """Insert the records of consumers that have none.

        Their rows are locked by this transaction, as all rows of consumers whose records are written.
        """
        if len(records) == 1:
            # The statement that looks up the id is saved.  Of many rows it would make many statements.
            db.execute(_INSERT_ONE, {"consumer": records[0].consumer, **records[0]._columns})
        elif records:
            found = db.execute(_IDS, {"uuids": [record.consumer for record in records]})
            ids = {row.uuid: row.id for row in found}
            db.execute(_INSERT, [{"consumer_id": ids[one.consumer], **one._columns} for one in records])
        for record in records:
            record._note_end(db, None)

    def replace(self, db: Transaction, *, keep_end: bool) -> Self:
        """Write the record of a consumer that may have one, and return the record as it is now.

        Args:
            keep_end: Whether the end of the present record stays.
        """
        of_consumer = {"consumer": self.consumer}
        present = db.execute(_END, of_consumer).first()
        if present is None:
            self.insert_all(db, [self])
            return self
        record = replace(self, expires_at=present.expires_at) if keep_end else self
        db.execute(_UPDATE.values(record._columns), of_consumer)
        record._note_end(db, present.expires_at)
        return record

    def _note_end(self, db: Transaction, before: datetime.datetime | None) -> None:
        """Note the end for the history, if it is another one than before."""
        if self.expires_at != before:
            changes: dict[Path, Pair] = {("lease",): (written(before), written(self.expires_at))}
            db.note(CONSUMER, self.consumer, changes, by=self.author)


@dataclass(slots=True)
class HeldClaim:
    """All that one consumer holds, with its owner and the record of its claim."""

    consumer: str
    #: None, as the user, if another implementation has left no row of it.
    project: str | None
    user: str | None
    consumer_type: str
    consumer_generation: int
    #: The digest of the request that was claimed; None if that was not recorded.
    content: str | None
    #: None if they are not known, because something else has changed what the consumer holds.
    mappings: Mappings | None
    #: By the database's clock, UTC, naive; None: it has no end.
    expires_at: datetime.datetime | None
    #: Amounts by provider uuid and class; of providers and classes that exist.
    resources: dict[str, dict[str, int]] = field(default_factory=dict)
    #: By provider uuid, as the generations.
    provider_names: dict[str, str | None] = field(default_factory=dict)
    provider_generations: dict[str, int] = field(default_factory=dict)

    @classmethod
    def of_consumers(cls, db: Reading, uuids: Collection[str]) -> dict[str, Self]:
        """Return what those of these consumers hold that hold something and whose time is not over, by uuid."""
        found: dict[str, Self] = {}
        ordered = sorted(uuids)
        for start in range(0, len(ordered), _MANY):
            for row in db.execute(_HELD, {"consumers": ordered[start : start + _MANY]}):
                if row.consumer not in uuids:
                    continue  # some collations find it in another case, too
                held = found.get(row.consumer)
                if held is None:
                    held = found[row.consumer] = cls._of_row(row)
                if row.provider is None or row.resource_class is None:
                    continue  # another implementation has deleted it
                held.resources.setdefault(row.provider, {})[row.resource_class] = row.used
                held.provider_names[row.provider] = row.name
                held.provider_generations[row.provider] = row.provider_generation
        return found

    @classmethod
    def of_spelling(cls, db: Reading, text: str) -> Self | None:
        """Return what the consumer holds whose uuid a text spells; None if that is nothing, or its time is over."""
        return next(iter(cls.of_consumers(db, [*stored_uuids(db, [text]).values()]).values()), None)

    @classmethod
    def _of_row(cls, row: Any) -> Self:
        return cls(
            consumer=row.consumer,
            project=row.project,
            user=row.user,
            consumer_type=row.consumer_type or UNKNOWN_TYPE,
            consumer_generation=row.generation,
            content=row.content,
            mappings=row.mappings if row.content and row.claim_generation == row.generation else None,
            expires_at=row.expires_at,
        )


#: Consumers in one statement.
_MANY = 1000
_A, _C, _P = allocations.c, consumers.c, resource_providers.c
_ID_OF = sa.select(_C.id).where(_C.uuid == sa.bindparam("consumer")).scalar_subquery()
_OF_CONSUMER = claims.c.consumer_id == _ID_OF
_END = sa.select(claims.c.expires_at).where(_OF_CONSUMER)
_UPDATE = sa.update(claims).where(_OF_CONSUMER)
_COLUMNS = ("content", "generation", "mappings", "expires_at")
_INSERT_ONE = CompiledStatement(
    sa.insert(claims).values(consumer_id=_ID_OF, **{name: sa.bindparam(name) for name in _COLUMNS}).inline()
)
_INSERT = CompiledInsert(claims, "consumer_id", *_COLUMNS)
_IDS = CompiledStatement(sa.select(_C.id, _C.uuid).where(_C.uuid.in_(sa.bindparam("uuids", expanding=True))))
_HELD = (
    sa.select(
        _A.consumer_id.label("consumer"),
        _P.uuid.label("provider"),
        _P.name,
        GENERATION.label("provider_generation"),
        resource_classes.c.name.label("resource_class"),
        _A.used,
        _C.generation,
        projects.c.external_id.label("project"),
        users.c.external_id.label("user"),
        consumer_types.c.name.label("consumer_type"),
        claims.c.content,
        claims.c.generation.label("claim_generation"),
        claims.c.mappings,
        claims.c.expires_at,
    )
    .select_from(allocations)
    .join(consumers, _C.uuid == _A.consumer_id)
    .outerjoin(resource_providers, _P.id == _A.resource_provider_id)
    .outerjoin(resource_classes, resource_classes.c.id == _A.resource_class_id)
    .outerjoin(projects, projects.c.id == _C.project_id)
    .outerjoin(users, users.c.id == _C.user_id)
    .outerjoin(consumer_types, consumer_types.c.id == _C.consumer_type_id)
    .outerjoin(claims, claims.c.consumer_id == _C.id)
    .where(_A.consumer_id.in_(sa.bindparam("consumers", expanding=True)))
    .where(sa.not_(sa.func.coalesce(LEASE_HAS_EXPIRED, sa.false())))
    .order_by(_A.id)
)
