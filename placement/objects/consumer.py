"""Consumers: who holds allocations, for whom, and in which generation.

A consumer's row lives exactly as long as it holds something.  Databases that another implementation wrote may have
rows of consumers that hold nothing (they count as absent, and are used again) and allocations whose consumer has no
row (they are replaced like any other).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa

from placement import errors
from placement.db.engine import Again, Database, Reading, Transaction
from placement.db.tables import allocations, consumer_types, consumers, projects, users, utcnow


@dataclass(frozen=True, slots=True)
class Owner:
    """For whom a consumer holds: ids of its project, its user and its type."""

    project_id: int
    user_id: int
    #: None leaves the type of an existing consumer alone.
    consumer_type_id: int | None = None

    @classmethod
    def ensure(cls, database: Database, project: str, user: str, consumer_type: str | None = None) -> Owner:
        """The ids of these names, which come into being on first sight; outside of any transaction."""
        return cls(
            project_id=database.find_or_create(projects.c.external_id, project),
            user_id=database.find_or_create(users.c.external_id, user),
            consumer_type_id=None
            if consumer_type is None
            else database.find_or_create(consumer_types.c.name, consumer_type),
        )


@dataclass(slots=True)
class Consumer:
    """A consumer as an attempt found it: its row, if there is one, and the providers on which it holds something."""

    uuid: str
    id: int | None = None
    generation: int | None = None
    held_on: set[int] = field(default_factory=set)

    @property
    def exists(self) -> bool:
        """Whether clients can see it."""
        return self.id is not None and bool(self.held_on)

    def expect(self, generation: int | None) -> None:
        """Nothing, if the client knows the present generation (None: no such consumer); else raises."""
        if self.exists and generation != self.generation:
            raise errors.ConsumerGenerationConflict(expected=self.generation, given=generation)
        # A row that holds nothing is invisible; whoever knows its generation all the same may use it.
        if not self.exists and generation is not None and generation != self.generation:
            raise errors.ConsumerGenerationConflict(expected="null", given=generation)

    @classmethod
    def read_all(cls, db: Reading, uuids: Collection[str]) -> dict[str, Consumer]:
        """All of these, by uuid, absent ones too: their rows and what they hold, in one snapshot."""
        found = {uuid: cls(uuid) for uuid in uuids}
        for row in db.execute(_READ, {"uuids": list(uuids)}):
            consumer = found.get(row.uuid)
            if consumer is None:
                continue
            if row.id is not None:
                consumer.id, consumer.generation = row.id, row.generation
            if row.provider_id is not None:
                consumer.held_on.add(row.provider_id)
        return found

    def advance(self, db: Transaction, owner: Owner, *, as_read: bool = True) -> None:
        """One generation on, held for ``owner``; raises Again if another writer was faster.

        Unless ``as_read``, that matters only if the row has gone: ``read_again`` tells what others have changed.
        """
        values = {"project": owner.project_id, "user": owner.user_id, "type": owner.consumer_type_id, "now": utcnow()}
        self._write(db, _ADVANCE, as_read, values)

    def remove(self, db: Transaction, *, as_read: bool = True) -> None:
        """End the consumer's row, if it has one; raises Again like ``advance``."""
        if self.id is not None:
            self._write(db, _DELETE, as_read, {})

    def _write(self, db: Transaction, statement: Mapping[bool, Any], as_read: bool, values: dict[str, Any]) -> None:
        found = {"id_": self.id, "was": self.generation} if as_read else {"id_": self.id}
        if db.execute(statement[as_read], found | values).rowcount != 1:
            raise Again

    @classmethod
    def read_again(cls, db: Transaction, consumers: Collection[Consumer]) -> None:
        """See what these hold now that their rows are written, so that it cannot change any more."""
        if consumers:
            now = cls.read_all(db, [consumer.uuid for consumer in consumers])
            for consumer in consumers:
                consumer.held_on = now[consumer.uuid].held_on

    @classmethod
    def end(cls, db: Transaction, uuid: str) -> set[int]:
        """The providers on which the consumer, whose row is gone now, holds something; none if it does not exist."""
        if not db.execute(_END, {"uuid": uuid}).rowcount:
            return set()
        # After the row, so that nothing can change any more; some collations end it in another case, too.
        return cls.read_all(db, [uuid])[uuid].held_on

    @staticmethod
    def insert_all(db: Transaction, owners: dict[str, Owner]) -> None:
        """Rows for new consumers, by uuid.  A row that another writer made meanwhile collides with them."""
        rows = [
            {
                "uuid": uuid,
                "generation": 1,
                "project_id": owner.project_id,
                "user_id": owner.user_id,
                "consumer_type_id": owner.consumer_type_id,
            }
            for uuid, owner in sorted(owners.items())
        ]
        if rows:
            db.execute(sa.insert(consumers), rows)


_ADVANCE_ANY = (
    sa.update(consumers)
    .where(consumers.c.id == sa.bindparam("id_"))
    .values(
        generation=consumers.c.generation + 1,
        project_id=sa.bindparam("project"),
        user_id=sa.bindparam("user"),
        consumer_type_id=sa.func.coalesce(sa.bindparam("type", type_=sa.Integer), consumers.c.consumer_type_id),
        updated_at=sa.bindparam("now"),
    )
)
_DELETE_ANY = sa.delete(consumers).where(consumers.c.id == sa.bindparam("id_"))
_AS_READ = consumers.c.generation == sa.bindparam("was")
#: By whether the row must still be the one that was read.
_ADVANCE = {False: _ADVANCE_ANY, True: _ADVANCE_ANY.where(_AS_READ)}
_DELETE = {False: _DELETE_ANY, True: _DELETE_ANY.where(_AS_READ)}
_END = sa.delete(consumers).where(consumers.c.uuid == sa.bindparam("uuid"))
_UUIDS: sa.BindParameter[Any] = sa.bindparam("uuids", expanding=True)
_ROWS = sa.select(
    consumers.c.uuid.label("uuid"),
    consumers.c.id.label("id"),
    consumers.c.generation.label("generation"),
    allocations.c.resource_provider_id.label("provider_id"),
)
# The second half finds allocations whose consumer has no row.  One statement, so that both halves are one snapshot.
_READ = sa.union_all(
    _ROWS.select_from(consumers)
    .outerjoin(allocations, allocations.c.consumer_id == consumers.c.uuid)
    .where(consumers.c.uuid.in_(_UUIDS)),
    sa.select(allocations.c.consumer_id, sa.null(), sa.null(), allocations.c.resource_provider_id).where(
        allocations.c.consumer_id.in_(_UUIDS),
        ~sa.exists().where(consumers.c.uuid == allocations.c.consumer_id),
    ),
)
