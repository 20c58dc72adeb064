"""Online data migrations: completion of rows that an older Placement left incomplete, in batches (docs: commands).

A migration is a function of a database and the largest number of rows to change; it returns :class:`Counts`.  It has to
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
    """The number of rows that a migration found, and that it completed."""

    found: int = 0
    done: int = 0

    def __add__(self, other: Counts) -> Counts:
        return Counts(self.found + other.found, self.done + other.done)


def rootless(db: Reading) -> int:
    """Return the number of providers without a root."""
    return int(db.execute(sa.select(sa.func.count()).select_from(resource_providers).where(_ROOTLESS)).scalar_one())


def ownerless(db: Reading) -> int:
    """Return the number of consumers that have allocations but no row."""
    return int(db.execute(sa.select(sa.func.count()).select_from(_OWNERLESS.subquery())).scalar_one())


def set_root_provider_ids(database: Database, limit: int) -> Counts:
    """Make providers without a root roots of their own trees."""

    def complete(db: Transaction) -> Counts:
        find = sa.select(resource_providers.c.id).where(_ROOTLESS).order_by(resource_providers.c.id).limit(limit)
        ids = db.execute(find).scalars().all()
        own_root = sa.update(resource_providers).values(root_provider_id=resource_providers.c.id)
        done = db.execute(own_root.where(resource_providers.c.id.in_(ids), _ROOTLESS)).rowcount if ids else 0
        for provider_id in ids:
            db.changed(provider_id, feed.SHAPE)
        return Counts(len(ids), done)

    return _write(database, complete)


class IncompleteConsumers:
    """Inserts missing consumers, of a given project and user (external ids).

    A batch begins where the last one ended: a search from the beginning would read all complete rows again.
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
        wanted = _OWNERLESS.where(after_last).order_by(allocations.c.consumer_id).limit(limit)

        def complete(db: Transaction) -> tuple[Counts, str | None]:
            found = db.execute(wanted).scalars().all()
            if not found:
                return Counts(), None
            values = [sa.literal(value) for value in (*self._owner(db), 0)]
            # Selected again by the INSERT itself: a consumer whose allocations were deleted meanwhile gets no row.
            missing = _OWNERLESS.where(allocations.c.consumer_id.in_(found))
            missing = missing.add_columns(*values, sa.literal(utcnow(), sa.DateTime))
            columns = ["uuid", "project_id", "user_id", "generation", "created_at"]
            create = sa.insert(consumers).from_select(columns, missing, include_defaults=False)
            # Without the option SQLAlchemy discards the row count of an INSERT.
            done = db.execute(create.execution_options(preserve_rowcount=True)).rowcount
            self._note(db, found)
            return Counts(done, done), found[-1]

        counts, self._last = _write(database, complete)
        return counts

    def _note(self, db: Transaction, uuids: Sequence[str]) -> None:
        """Note for the history the consumers that have this owner now; those that others created have generations."""
        owner: dict[Path, Pair] = {("project",): (None, self._project), ("user",): (None, self._user)}
        both = sa.select(consumers.c.uuid, consumers.c.id)
        for uuid, id_ in db.execute(both.where(consumers.c.uuid.in_(uuids), consumers.c.generation == 0)).all():
            db.note(CONSUMER, uuid, owner, advance=Advance(id_, None, 0), project=self._project)

    def _owner(self, db: Transaction) -> tuple[int, int]:
        """Return the ids of the project and the user; their rows are created if they are missing."""
        both = [Name(names.PROJECT, self._project), Name(names.USER, self._user)]
        if len(names.find(db, both)) < len(both):
            names.create(db, both)
        found = names.find(db, both)
        return found[both[0]], found[both[1]]


def _write(database: Database, work: Callable[[Transaction], Result]) -> Result:
    """Return what ``work`` returns; its changes are recorded in the feed if the schema is new enough to have one."""
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
