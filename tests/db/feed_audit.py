"""Comparison of each commit with its rows of the feed, which must record every change of indexed data.

It requires a single writing thread.  The state of the tables is read in the transaction, just before its COMMIT.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from placement.db import feed
from placement.db.database import Database
from placement.db.schema.tables import (
    allocations,
    inventories,
    placement_aggregates,
    provider_changes,
    resource_classes,
    resource_provider_aggregates,
    resource_provider_traits,
    resource_providers,
    traits,
)

#: Kinds of change from the weakest to the strongest; a stronger one includes the others.
STRENGTH = (feed.USAGE, feed.SHAPE, feed.GONE)

_P, _I, _A = resource_providers.c, inventories.c, allocations.c
_HAS, _IN = resource_provider_traits.c, resource_provider_aggregates.c
_FORM = {
    "providers": sa.select(_P.id, _P.uuid, _P.name, _P.parent_provider_id, _P.root_provider_id),
    "inventories": sa.select(
        *(_I.resource_provider_id, _I.resource_class_id, _I.total, _I.reserved, _I.min_unit),
        *(_I.max_unit, _I.step_size, _I.allocation_ratio),
    ),
    "traits": sa.select(_HAS.resource_provider_id, traits.c.name).join(traits, traits.c.id == _HAS.trait_id),
    "aggregates": sa.select(_IN.resource_provider_id, placement_aggregates.c.uuid).join(
        placement_aggregates, placement_aggregates.c.id == _IN.aggregate_id
    ),
}
_USE = {
    "generations": sa.select(_P.id, _P.generation),
    "allocations": sa.select(_A.resource_provider_id, _A.resource_class_id, _A.consumer_id, _A.used),
}
_CLASSES = sa.select(resource_classes.c.id, resource_classes.c.name)
_TRAITS = sa.select(traits.c.id, traits.c.name)
_FEED = sa.select(provider_changes.c.writer_id, provider_changes.c.seq, provider_changes.c.provider_id)
_FEED = _FEED.add_columns(provider_changes.c.what)

#: Facts about one provider: (name of the fact, values).
Facts = Mapping[int, frozenset[tuple[Any, ...]]]


class State(NamedTuple):
    """The data from which an index is built."""

    #: Facts whose changes make a search read a provider again: all except usage and generation.
    form: Facts
    use: Facts
    classes: Mapping[int, str]
    traits: Mapping[int, str]

    @classmethod
    def read(cls, db: Connection) -> State:
        """Return the state that the connection sees."""
        return cls(
            _facts(db, _FORM),
            _facts(db, _USE),
            {row.id: row.name for row in db.execute(_CLASSES)},
            {row.id: row.name for row in db.execute(_TRAITS)},
        )

    def changes_to(self, after: State) -> dict[int, str]:
        """Return, by provider, the weakest kind of change that leads readers from this state to ``after``."""
        changes = dict.fromkeys(_differing_ids(self.use, after.use), feed.USAGE)
        changes |= dict.fromkeys(_differing_ids(self.form, after.form), feed.SHAPE)
        changes |= dict.fromkeys(_providers(self) - _providers(after), feed.GONE)
        # A new trait is on no provider yet: the index reads it with the first provider that has it.
        renamed = {id_: after.traits.get(id_) for id_ in self.traits} != self.traits
        if renamed or self.classes != after.classes:
            changes[feed.NO_PROVIDER] = feed.NAMES
        return changes


class Commit(NamedTuple):
    """The changes of a transaction, and its rows in the feed."""

    #: By provider, the weakest sufficient kind of change.
    changes: dict[int, str]
    recorded: dict[int, str]

    @property
    def omissions(self) -> dict[int, str]:
        """Return the changes that the feed lacks, or records as a weaker kind."""
        return {id_: change for id_, change in self.changes.items() if not _includes(self.recorded.get(id_), change)}


@contextlib.contextmanager
def audit(database: Database) -> Iterator[list[Commit]]:
    """Yield a list of the commits of the database, which grows during the block."""
    commits: list[Commit] = []
    with database.engine.connect() as connection:
        state, earlier_keys = State.read(connection), _rows(connection).keys()
        connection.rollback()

    def before_commit(connection: Connection) -> None:
        nonlocal state, earlier_keys
        earlier, state, rows = state, State.read(connection), _rows(connection)
        recorded = {key[-1]: change for key, change in rows.items() if key not in earlier_keys}
        earlier_keys = rows.keys()
        commits.append(Commit(earlier.changes_to(state), recorded))

    sa.event.listen(database.engine, "commit", before_commit)
    try:
        yield commits
    finally:
        sa.event.remove(database.engine, "commit", before_commit)


def _facts(db: Connection, queries: Mapping[str, Any]) -> Facts:
    """Return rows by provider, whose id is their first column."""
    facts: dict[int, set[tuple[Any, ...]]] = {}
    for name, query in queries.items():
        for provider_id, *values in db.execute(query):
            facts.setdefault(provider_id, set()).add((name, *values))
    return {provider_id: frozenset(values) for provider_id, values in facts.items()}


def _differing_ids(before: Facts, after: Facts) -> set[int]:
    return {id_ for id_ in before.keys() | after.keys() if before.get(id_) != after.get(id_)}


def _providers(state: State) -> set[int]:
    return {id_ for id_, facts in state.form.items() if any(name == "providers" for name, *_ in facts)}


def _rows(db: Connection) -> dict[tuple[int, int, int], str]:
    return {(row.writer_id, row.seq, row.provider_id): row.what for row in db.execute(_FEED)}


def _includes(recorded: str | None, change: str) -> bool:
    if recorded is None or change == feed.NAMES:
        return recorded == change
    return STRENGTH.index(recorded) >= STRENGTH.index(change)
