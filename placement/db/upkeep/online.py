"""Online data migrations, which complete the rows of older Placement releases in batches (docs: commands).

A migration is a function of a database and the maximum number of rows to change; it returns :class:`Counts`.  It must
run on the first revision of the schema, because later ones refuse databases that need it; so it names its columns.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import TypeVar

import sqlalchemy as sa

from placement.db import feed
from placement.db.database import Database
from placement.db.schema import schema
from placement.db.schema.tables import allocations, consumers, resource_providers, utcnow
from placement.db.writes import names
from placement.db.writes.names import Name
from placement.db.writes.notes import CONSUMER, Advance, Pair, Path
from placement.db.writes.transaction import Reading, Transaction

Result = TypeVar("Result")


@dataclasses.dataclass(frozen=True, slots=True)
class Counts:
    """The numbers of incomplete rows that a migration found and completed."""

    found: int = 0
    done: int = 0

    def __add__(self, other: Counts) -> Counts:
        return Counts(self.found + other.found, self.done + other.done)


def count_rootless(db: Reading) -> int:
    """Return the number of providers without a root."""
    return int(db.execute(sa.select(sa.func.count()).select_from(resource_providers).where(_ROOTLESS)).scalar_one())


def count_ownerless(db: Reading) -> int:
    """Return the number of consumers with allocations but without a row."""
    return int(db.execute(sa.select(sa.func.count()).select_from(_OWNERLESS.subquery())).scalar_one())


def set_root_provider_ids(database: Database, limit: int) -> Counts:
    """Set the root of each provider without one to the provider itself."""

    def complete(db: Transaction) -> Counts:
        batch = sa.select(resource_providers.c.id).where(_ROOTLESS).order_by(resource_providers.c.id).limit(limit)
        ids = db.execute(batch).scalars().all()
        own_root = sa.update(resource_providers).values(root_provider_id=resource_providers.c.id)
        completed = db.execute(own_root.where(resource_providers.c.id.in_(ids), _ROOTLESS)).rowcount if ids else 0
        for provider_id in ids:
            db.record_change(provider_id, feed.SHAPE)
        return Counts(len(ids), completed)

    return _write(database, complete)


class IncompleteConsumers:
    """A migration that inserts missing consumers, with a given project and user (external ids).

    Each batch begins where the last one ended: a search from the beginning would read all complete rows again.
    """

    def __init__(self, project: str, user: str) -> None:
        self._project, self._user = project, user
        self._last: str | None = None

    def __call__(self, database: Database, limit: int) -> Counts:
        last = self._last
        counts = self._batch(database, limit, last)
        if not counts.done and last is not None:
            counts = self._batch(database, limit)
        return counts

    def _batch(self, database: Database, limit: int, last: str | None = None) -> Counts:
        after_last = sa.true() if last is None else allocations.c.consumer_id > last
        statement = _OWNERLESS.where(after_last).order_by(allocations.c.consumer_id).limit(limit)

        def complete(db: Transaction) -> tuple[Counts, str | None]:
            uuids = db.execute(statement).scalars().all()
            if not uuids:
                return Counts(), None
            values = [sa.literal(value) for value in (*self._owner(db), 0)]
            # The INSERT selects them again, since the allocations of some may have been deleted meanwhile.
            missing = _OWNERLESS.where(allocations.c.consumer_id.in_(uuids))
            missing = missing.add_columns(*values, sa.literal(utcnow(), sa.DateTime))
            columns = ["uuid", "project_id", "user_id", "generation", "created_at"]
            insert = sa.insert(consumers).from_select(columns, missing, include_defaults=False)
            # By default SQLAlchemy discards the row count of an INSERT.
            inserted = db.execute(insert.execution_options(preserve_rowcount=True)).rowcount
            self._note(db, uuids)
            return Counts(inserted, inserted), uuids[-1]

        counts, self._last = _write(database, complete)
        return counts

    def _note(self, db: Transaction, uuids: Sequence[str]) -> None:
        """Note the inserted consumers for the history; consumers that others inserted have a generation above 0."""
        owner: dict[Path, Pair] = {("project",): (None, self._project), ("user",): (None, self._user)}
        inserted = sa.select(consumers.c.uuid, consumers.c.id)
        for uuid, id_ in db.execute(inserted.where(consumers.c.uuid.in_(uuids), consumers.c.generation == 0)).all():
            db.note(CONSUMER, uuid, owner, advance=Advance(id_, None, 0), project=self._project)

    def _owner(self, db: Transaction) -> tuple[int, int]:
        """Return the ids of the project and the user; create missing rows."""
        project, user = Name(names.PROJECT, self._project), Name(names.USER, self._user)
        ids = names.find(db, [project, user])
        if len(ids) < 2:
            names.create(db, [project, user])
            ids = names.find(db, [project, user])
        return ids[project], ids[user]


def _write(database: Database, work: Callable[[Transaction], Result]) -> Result:
    """Return the result of ``work``; record its changes in the feed if the schema is new enough to include one."""
    if schema.state(database.reading_engine) is schema.State.CURRENT:
        return database.write(work)
    with database.engine.begin() as connection:
        return work(Transaction(connection))


_ROOTLESS = resource_providers.c.root_provider_id.is_(None)
_OWNERLESS = (
    sa.select(allocations.c.consumer_id)
    .select_from(allocations.outerjoin(consumers, allocations.c.consumer_id == consumers.c.uuid))
    .where(consumers.c.id.is_(None))
    .distinct()
)
