"""The state of a database, read from its tables or replayed from its events.

Replaying compares each old value of an event with the state before the event, so old values are checked, too.
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

#: A fact about an object: kind, uuid and the path of a value.
Fact = tuple[str, ...]
AMOUNTS = ("total", "reserved", "min_unit", "max_unit", "step_size", "allocation_ratio")
NODE_COLUMNS = (
    *("name", "driver", "resource_class", "owner", "lessee", "parent_node", "provision_state"),
    *("target_provision_state", "power_state", "target_power_state", "maintenance"),
)
_CUSTOM = "CUSTOM_"


@dataclass
class State:
    """Facts whose values are not null, including the generations of providers and consumers."""

    facts: dict[Fact, Any] = field(default_factory=dict)

    def put(self, *fact: str, value: Any) -> None:
        """Set the value of a fact; null or False removes it."""
        if value is None or value is False:
            self.facts.pop(fact, None)
        else:
            self.facts[fact] = round_ratio(value)

    def get(self, *fact: str) -> Any:
        """Return the value of a fact; None if there is none."""
        return self.facts.get(fact)


def round_ratio(value: Any) -> Any:
    """Return a number with the precision of a ratio in MySQL."""
    return float(f"{value:.5g}") if isinstance(value, float) else value


# --- from the tables --------------------------------------------------------------------------------------------------


def read(database: Database) -> State:
    """Return the state of all objects that have events, from one snapshot."""
    return database.snapshot(_read)


def _read(db: Connection) -> State:
    state = State()
    for read_part in (_read_providers, _read_members, _read_consumers, _read_nodes):
        read_part(db, state)
    for kind, table in ((RESOURCE_CLASS, resource_classes), (TRAIT, traits)):
        for name in db.execute(sa.select(table.c.name).where(table.c.name.startswith(_CUSTOM))).scalars():
            state.put(kind, name, value=True)
    return state


def _read_providers(db: Connection, state: State) -> None:
    parent = resource_providers.alias()
    providers_query = sa.select(_P.uuid, _P.name, _P.generation, parent.c.uuid.label("parent")).select_from(
        resource_providers.outerjoin(parent, parent.c.id == _P.parent_provider_id)
    )
    for row in db.execute(providers_query):
        for name in ("name", "generation", "parent"):
            state.put(PROVIDER, row.uuid, name, value=getattr(row, name))
    inventories_query = (
        sa.select(_P.uuid, resource_classes.c.name, *(inventories.c[name] for name in AMOUNTS))
        .join(inventories, inventories.c.resource_provider_id == _P.id)
        .join(resource_classes, resource_classes.c.id == inventories.c.resource_class_id)
    )
    for row in db.execute(inventories_query):
        for name in AMOUNTS:
            state.put(PROVIDER, row.uuid, "inventories", row.name, name, value=getattr(row, name))


def _read_members(db: Connection, state: State) -> None:
    trait_columns, aggregate_columns = resource_provider_traits.c, resource_provider_aggregates.c
    traits_query = (
        sa.select(_P.uuid, traits.c.name)
        .join(resource_provider_traits, trait_columns.resource_provider_id == _P.id)
        .join(traits, traits.c.id == trait_columns.trait_id)
    )
    aggregates_query = (
        sa.select(_P.uuid, placement_aggregates.c.uuid.label("name"))
        .join(resource_provider_aggregates, aggregate_columns.resource_provider_id == _P.id)
        .join(placement_aggregates, placement_aggregates.c.id == aggregate_columns.aggregate_id)
    )
    for members, query in (("traits", traits_query), ("aggregates", aggregates_query)):
        for row in db.execute(query):
            state.put(PROVIDER, row.uuid, members, row.name, value=True)


def _read_consumers(db: Connection, state: State) -> None:
    for row in db.execute(_ALLOCATIONS):
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
_ALLOCATIONS = (
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


def replay(database: Database) -> State:
    """Return the state after applying all events to an empty one."""
    result = State()
    for event in event_rows.following(database):
        apply(result, event)
    return result


def apply(state: State, event: Event) -> None:
    """Apply an event to the state.

    Raises:
        AssertionError: The state does not match the old values of the event.
    """
    if event.kind in (RESOURCE_CLASS, TRAIT):
        old, new = event.changes["name"]
        _rename(state, event.kind, old, new)
        return
    assert event.uuid is not None
    before, after = event.generations
    if before is not None or after is not None:
        present = state.get(event.kind, event.uuid, "generation")
        # If one transaction places claims of several requests, it advances a provider once.
        assert present == before or (event.kind == PROVIDER and present == after), (event, present)
        state.put(event.kind, event.uuid, "generation", value=after)
    for path, old, new in _pairs(event.changes):
        fact = (event.kind, event.uuid, *path)
        present = state.get(*fact)
        if path[0] == "details":
            assert (present is not None) == (old is not None), (event, fact, present)
            state.put(*fact, value=new is not None)
        elif path != ("reason",):
            assert (present or None) == (round_ratio(old) or None), (event, fact, present)
            state.put(*fact, value=new)


def _rename(state: State, kind: str, old: str | None, new: str | None) -> None:
    """Create, rename or delete a class or a trait; facts about a renamed class get its new name."""
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


def differences(first: State, second: State) -> dict[Fact, tuple[Any, Any]]:
    """Return the facts that differ, with both values; for messages."""
    keys = first.facts.keys() | second.facts.keys()
    return {key: (first.get(*key), second.get(*key)) for key in sorted(keys) if first.get(*key) != second.get(*key)}


def untruths(database: Database) -> list[str]:
    """Replay all events, and return a sentence for each difference from the tables."""
    try:
        differing_facts = differences(replay(database), read(database))
    except AssertionError as error:
        return [str(error)]
    return [
        f"{' '.join(fact)}: {pair[0]} by the events, {pair[1]} in the tables" for fact, pair in differing_facts.items()
    ]


class Follower:
    """A follower of a database's events, which compares the replayed state with the tables."""

    def __init__(self, database: Database) -> None:
        """Begin with the present state of the database."""
        self._database = database
        self._state = read(database)
        self._position = event_rows.newest(database)

    def check(self) -> None:
        """Apply the events since the last check.

        Raises:
            AssertionError: The replayed state differs from the tables.
        """
        for event in event_rows.following(self._database, self._position):
            apply(self._state, event)
            self._position = event.position
        assert differences(self._state, read(self._database)) == {}
