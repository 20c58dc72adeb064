"""The state of a database, read from its tables, and the same made from its events alone.

Each pair of an event is compared with the state before it, so what it says about the past has to be true, too.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from placement.db.database import Database
from placement.db.schema.tables import (
    allocations,
    claims,
    consumer_types,
    consumers,
    inventories,
    placement_aggregates,
    projects,
    resource_classes,
    resource_provider_aggregates,
    resource_provider_traits,
    resource_providers,
    traits,
    users,
)
from placement.db.writes.notes import CONSUMER, MEMBERS, PROVIDER, RESOURCE_CLASS, TRAIT
from placement.extensions.baremetal.tables import baremetal_nodes
from placement.extensions.v1.history.event import NODE
from tests.db.extensions import event_rows
from tests.db.extensions.event_rows import Event

#: A fact about something: kind, uuid and the path of a value.
Fact = tuple[str, ...]
AMOUNTS = ("total", "reserved", "min_unit", "max_unit", "step_size", "allocation_ratio")
NODE_COLUMNS = (
    *("name", "driver", "resource_class", "owner", "lessee", "parent_node", "provision_state"),
    *("target_provision_state", "power_state", "target_power_state", "maintenance"),
)
_CUSTOM = "CUSTOM_"


@dataclass
class State:
    """Facts, without those that are null; generations of providers and consumers are facts, too."""

    facts: dict[Fact, Any] = field(default_factory=dict)

    def put(self, *fact: str, value: Any) -> None:
        """State a fact; a null is none."""
        if value is None or value is False:
            self.facts.pop(fact, None)
        else:
            self.facts[fact] = rounded(value)

    def get(self, *fact: str) -> Any:
        """Return the value of a fact; None if there is none."""
        return self.facts.get(fact)


def rounded(value: Any) -> Any:
    """Return a number as precisely as MySQL stores a ratio."""
    return float(f"{value:.5g}") if isinstance(value, float) else value


# --- from the tables --------------------------------------------------------------------------------------------------


def read(database: Database) -> State:
    """Return the state of all objects that have events; of one moment."""
    return database.snapshot(_read)


def _read(db: Connection) -> State:
    state = State()
    for read_some in (_read_providers, _read_members, _read_consumers, _read_nodes):
        read_some(db, state)
    for kind, table in ((RESOURCE_CLASS, resource_classes), (TRAIT, traits)):
        for name in db.execute(sa.select(table.c.name).where(table.c.name.startswith(_CUSTOM))).scalars():
            state.put(kind, name, value=True)
    return state


def _read_providers(db: Connection, state: State) -> None:
    parent = resource_providers.alias()
    of_provider = sa.select(_P.uuid, _P.name, _P.generation, parent.c.uuid.label("parent")).select_from(
        resource_providers.outerjoin(parent, parent.c.id == _P.parent_provider_id)
    )
    for row in db.execute(of_provider):
        for name in ("name", "generation", "parent"):
            state.put(PROVIDER, row.uuid, name, value=getattr(row, name))
    stock = (
        sa.select(_P.uuid, resource_classes.c.name, *(inventories.c[name] for name in AMOUNTS))
        .join(inventories, inventories.c.resource_provider_id == _P.id)
        .join(resource_classes, resource_classes.c.id == inventories.c.resource_class_id)
    )
    for row in db.execute(stock):
        for name in AMOUNTS:
            state.put(PROVIDER, row.uuid, "inventories", row.name, name, value=getattr(row, name))


def _read_members(db: Connection, state: State) -> None:
    has, member = resource_provider_traits.c, resource_provider_aggregates.c
    of_trait = (
        sa.select(_P.uuid, traits.c.name)
        .join(resource_provider_traits, has.resource_provider_id == _P.id)
        .join(traits, traits.c.id == has.trait_id)
    )
    of_aggregate = (
        sa.select(_P.uuid, placement_aggregates.c.uuid.label("name"))
        .join(resource_provider_aggregates, member.resource_provider_id == _P.id)
        .join(placement_aggregates, placement_aggregates.c.id == member.aggregate_id)
    )
    for of, query in (("traits", of_trait), ("aggregates", of_aggregate)):
        for row in db.execute(query):
            state.put(PROVIDER, row.uuid, of, row.name, value=True)


def _read_consumers(db: Connection, state: State) -> None:
    for row in db.execute(_HELD):
        state.put(CONSUMER, row.consumer, "allocations", row.provider, row.name, value=row.used)
        state.put(PROVIDER, row.provider, "allocations", row.consumer, row.name, value=row.used)
        state.put(PROVIDER, row.provider, "consumers", row.consumer, value=True)
        for name in ("generation", "project", "user", "type"):
            state.put(CONSUMER, row.consumer, name, value=getattr(row, name))
        if row.lease is not None:
            state.put(CONSUMER, row.consumer, "lease", value=row.lease.isoformat(timespec="microseconds") + "Z")


def _read_nodes(db: Connection, state: State) -> None:
    for row in db.execute(sa.select(baremetal_nodes)):
        for name in NODE_COLUMNS:
            state.put(NODE, row.uuid, name, value=getattr(row, name))
        for name, value in row.details.items():
            state.put(NODE, row.uuid, "details", name, value=value is not None)


_P = resource_providers.c
_A = allocations.c
_HELD = (
    sa.select(
        *(_A.consumer_id.label("consumer"), _A.used, resource_providers.c.uuid.label("provider")),
        *(resource_classes.c.name, consumers.c.generation, projects.c.external_id.label("project")),
        *(users.c.external_id.label("user"), consumer_types.c.name.label("type"), claims.c.expires_at.label("lease")),
    )
    .select_from(allocations)
    .join(consumers, consumers.c.uuid == _A.consumer_id)
    .join(resource_providers, resource_providers.c.id == _A.resource_provider_id)
    .join(resource_classes, resource_classes.c.id == _A.resource_class_id)
    .join(projects, projects.c.id == consumers.c.project_id)
    .join(users, users.c.id == consumers.c.user_id)
    .outerjoin(consumer_types, consumer_types.c.id == consumers.c.consumer_type_id)
    .outerjoin(claims, claims.c.consumer_id == consumers.c.id)
)


# --- from the events --------------------------------------------------------------------------------------------------


def replayed(database: Database) -> State:
    """Return the state that all events make of nothing."""
    result = State()
    for one in event_rows.following(database):
        apply(result, one)
    return result


def apply(state: State, one: Event) -> None:
    """Change the state as an event says; raises AssertionError if it was not as the event says."""
    if one.kind in (RESOURCE_CLASS, TRAIT):
        old, new = one.changes["name"]
        _named(state, one.kind, old, new)
        return
    assert one.uuid is not None
    before, after = one.generations
    if before is not None or after is not None:
        present = state.get(one.kind, one.uuid, "generation")
        # Claims of several requests that one transaction has placed advance a provider once.
        assert present == before or (one.kind == PROVIDER and present == after), (one, present)
        state.put(one.kind, one.uuid, "generation", value=after)
    for path, old, new in _pairs(one.changes):
        fact = (one.kind, one.uuid, *path)
        present = state.get(*fact)
        if path[0] == "details":
            assert (present is not None) == (old is not None), (one, fact, present)
            state.put(*fact, value=new is not None)
        elif path != ("reason",):
            assert (present or None) == (rounded(old) or None), (one, fact, present)
            state.put(*fact, value=new)


def _named(state: State, kind: str, old: str | None, new: str | None) -> None:
    """Create, rename or delete a class or a trait; what has inventory of the class has it of the new name."""
    if old is not None:
        assert state.facts.pop((kind, old), None), (kind, old)
    if new is not None:
        assert (kind, new) not in state.facts
        state.put(kind, new, value=True)
    if old is not None and new is not None:
        state.facts = {
            tuple(new if step == old and kind == RESOURCE_CLASS else step for step in fact): value
            for fact, value in state.facts.items()
        }


def _pairs(changes: dict[str, Any], path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any, Any]]:
    """Yield path, old and new value of each pair."""
    for name, value in changes.items():
        if name in MEMBERS and not path:
            yield from (((name, member), None, True) for member in value.get("added", ()))
            yield from (((name, member), True, None) for member in value.get("removed", ()))
        elif isinstance(value, dict):
            yield from _pairs(value, (*path, name))
        else:
            old, new = value
            yield (*path, name), old, new


def differences(one: State, other: State) -> dict[Fact, tuple[Any, Any]]:
    """Return the facts that differ, with both values; for messages."""
    keys = one.facts.keys() | other.facts.keys()
    return {key: (one.get(*key), other.get(*key)) for key in sorted(keys) if one.get(*key) != other.get(*key)}


def untruths(database: Database) -> list[str]:
    """Replay all events; return what they say that is not true of the tables, as sentences."""
    try:
        found = differences(replayed(database), read(database))
    except AssertionError as untrue:
        return [str(untrue)]
    return [f"{' '.join(fact)}: {pair[0]} by the events, {pair[1]} in the tables" for fact, pair in found.items()]


class Follower:
    """Follows the events of a database, and compares what they make with the tables."""

    def __init__(self, database: Database) -> None:
        """Begin with the state that the database has."""
        self._database = database
        self._state = read(database)
        self._position = event_rows.newest(database)

    def check(self) -> None:
        """Apply the events since the last time; raises AssertionError if they do not make what is in the tables."""
        for one in event_rows.following(self._database, self._position):
            apply(self._state, one)
            self._position = one.position
        assert differences(self._state, read(self._database)) == {}
