"""Rows that an older Placement left incomplete, completed in batches while the service runs (contract 5.4).

A migration takes a database and the most rows to touch, and gives how many it found and how many it completed.  It must
run on the first revision of the schema, because later ones refuse databases that need it: it names the columns it uses.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import TypeVar

import sqlalchemy as sa

from placement.db import feed, names, schema
from placement.db.database import Database
from placement.db.names import Name
from placement.db.tables import allocations, consumers, resource_providers, utcnow
from placement.db.transaction import Reading, Transaction

Result = TypeVar("Result")


@dataclasses.dataclass(frozen=True, slots=True)
class Counts:
    """What a migration did, in one batch or in several."""

    found: int = 0
    done: int = 0

    def __add__(self, other: Counts) -> Counts:
        return Counts(self.found + other.found, self.done + other.done)


def rootless(db: Reading) -> int:
    """How many providers have no root."""
    return int(db.execute(sa.select(sa.func.count()).select_from(resource_providers).where(_ROOTLESS)).scalar_one())


def ownerless(db: Reading) -> int:
    """How many consumers have allocations but no row."""
    return int(db.execute(sa.select(sa.func.count()).select_from(_OWNERLESS.subquery())).scalar_one())


def set_root_provider_ids(database: Database, limit: int) -> Counts:
    """Make providers without a root their own root."""

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
    """Gives allocations without a consumer one, of a given project and user (their external ids).

    A batch is looked for behind the one before: from the beginning, each would pass all that are complete.
    """

    def __init__(self, project: str, user: str) -> None:
        self._project, self._user = project, user
        self._last: str | None = None

    def __call__(self, database: Database, limit: int) -> Counts:
        behind = self._last
        counts = self._batch(database, limit, behind)
        if not counts.done and behind is not None:
            counts = self._batch(database, limit)
        return counts

    def _batch(self, database: Database, limit: int, last: str | None = None) -> Counts:
        behind = sa.true() if last is None else allocations.c.consumer_id > last
        wanted = _OWNERLESS.where(behind).order_by(allocations.c.consumer_id).limit(limit)

        def complete(db: Transaction) -> tuple[Counts, str | None]:
            found = db.execute(wanted).scalars().all()
            if not found:
                return Counts(), None
            values = [sa.literal(value) for value in (*self._owner(db), 0)]
            # Found again by the statement that creates: a consumer must not outlive allocations that went meanwhile.
            missing = _OWNERLESS.where(allocations.c.consumer_id.in_(found))
            missing = missing.add_columns(*values, sa.literal(utcnow(), sa.DateTime))
            columns = ["uuid", "project_id", "user_id", "generation", "created_at"]
            create = sa.insert(consumers).from_select(columns, missing, include_defaults=False)
            # Without the option the driver has forgotten the number of an INSERT by the time it is asked.
            done = db.execute(create.execution_options(preserve_rowcount=True)).rowcount
            return Counts(done, done), found[-1]

        counts, self._last = _write(database, complete)
        return counts

    def _owner(self, db: Transaction) -> tuple[int, int]:
        """The ids of the project and the user, made if they are not there."""
        both = [Name(names.PROJECT, self._project), Name(names.USER, self._user)]
        if len(names.find(db, both)) < len(both):
            names.make(db, both)
        found = names.find(db, both)
        return found[both[0]], found[both[1]]


def _write(database: Database, work: Callable[[Transaction], Result]) -> Result:
    """What ``work`` returns; the change feed is told, if the schema is so new that there is one."""
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
