"""The names of the providers and nodes that events and claims mention by their uuids."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from placement.db.database import Database
from placement.db.writes.notes import CONSUMER, PROVIDER
from placement.db.writes.transaction import Reading
from placement.extensions.v1.history import subject
from placement.extensions.v1.history.event import NODE, Event
from placement.index.snapshot import Snapshot

#: Changes whose values are uuids of providers or nodes.
_REFERENCES = ("parent", "root", "parent_node")
#: How many uuids one statement names.
_AT_ONCE = 1000


def known(database: Database, snapshot: Snapshot, events: Sequence[Event]) -> dict[str, str]:
    """Return the names of what events mention, by uuid; without those of which no name is known.

    A provider has its present name.  One whose name is its uuid, as that of a machine is, has the name of its node;
    and what is gone has the last name that these events say.

    Args:
        database: Where the nodes are; raises DatabaseUnavailable or DatabaseBusy.
        snapshot: Has the providers that are there.
        events: In the order of their positions, or in reverse.
    """
    found = _said(events)
    nameless = []
    for uuid in {uuid for event in events for uuid in mentioned(event)}:
        slot = snapshot.by_uuid.get(uuid)
        name = None if slot is None else snapshot.provider(slot).name
        if name in (None, uuid):
            nameless.append(uuid)
        else:
            found[uuid] = name
    if nameless and subject.tables_of_extensions():
        found |= database.read(of_nodes, nameless)
    return found


def add_nodes(database: Database, allocations: Iterable[Mapping[str, dict[str, Any]]]) -> None:
    """Add ``node``, its name, to what is held of a machine, whose provider has its uuid as the name.

    Args:
        database: Where the nodes are; it is read only if there may be one.  Raises DatabaseUnavailable or DatabaseBusy.
        allocations: Those of documents: by the uuid of the provider, with its ``name``.
    """
    machines = [(uuid, held) for each in allocations for uuid, held in each.items() if held["name"] in (None, uuid)]
    if machines and subject.tables_of_extensions():
        found = database.read(of_nodes, [*{uuid for uuid, _ in machines}])
        for uuid, held in machines:
            if uuid in found:
                held["node"] = found[uuid]


def mentioned(event: Event) -> Iterator[str]:
    """Yield the uuids of the providers and nodes that an event is about, or names in what it has changed."""
    if event.kind in (PROVIDER, NODE) and event.uuid is not None:
        yield event.uuid
    if event.kind == CONSUMER:
        yield from event.changes.get("allocations", ())
    for reference in _REFERENCES:
        yield from filter(None, event.changes.get(reference, ()))


def of_nodes(db: Reading, uuids: Sequence[str] | None = None) -> Mapping[str, str]:
    """Return the names of objects of extensions that have the uuid of a provider, such as nodes, by that uuid.

    Args:
        db: The connection.
        uuids: The only ones that are looked for; None for all.
    """
    found = {}
    for table in subject.tables_of_extensions():
        query = sa.select(table.c.uuid, table.c.name).where(table.c.name.is_not(None))
        parts = [query]
        if uuids is not None:
            starts = range(0, len(uuids), _AT_ONCE)
            parts = [query.where(table.c.uuid.in_(uuids[start : start + _AT_ONCE])) for start in starts]
        found.update({row.uuid: row.name for part in parts for row in db.execute(part)})
    return found


def _said(events: Sequence[Event]) -> dict[str, str]:
    """Return the last names that events say, by uuid."""
    named = {}
    for event in sorted(events, key=lambda event: event.number):
        if event.kind in (PROVIDER, NODE) and event.uuid is not None and event.name not in (None, event.uuid):
            named[event.uuid] = event.name
    return named
