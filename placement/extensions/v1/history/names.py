"""Names of the providers and nodes that events mention by uuid."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from placement.db.database import Database
from placement.db.writes.notes import CONSUMER, PROVIDER
from placement.extensions.v1 import nodes
from placement.extensions.v1.history.event import NODE, Event
from placement.index.snapshot import Snapshot

#: Changes whose values are uuids of providers or nodes.
_REFERENCES = ("parent", "root", "parent_node")


def known_names(database: Database, snapshot: Snapshot, events: Sequence[Event]) -> dict[str, str]:
    """Return the known names of the objects that events mention, by uuid.

    The name of an existing provider is its current one.  The provider of a node has its uuid as its name, so the name
    of the node is returned instead.  The name of a deleted object is the last one in these events.

    Args:
        database: The database of the nodes.
        snapshot: The current snapshot of the providers.
        events: The events, in any order.

    Raises:
        DatabaseUnavailable, DatabaseBusy: The nodes cannot be read.
    """
    names = _last_names(events)
    unnamed = []
    for uuid in {uuid for event in events for uuid in mentioned_uuids(event)}:
        slot = snapshot.by_uuid.get(uuid)
        name = None if slot is None else snapshot.provider(slot).name
        if name in (None, uuid):
            unnamed.append(uuid)
        else:
            names[uuid] = name
    return {**names, **nodes.names_of_providers(database, ((uuid, None) for uuid in unnamed))}


def mentioned_uuids(event: Event) -> Iterator[str]:
    """Yield the uuids of the providers and nodes in an event: its object and the values of its changes."""
    if event.kind in (PROVIDER, NODE) and event.uuid is not None:
        yield event.uuid
    if event.kind == CONSUMER:
        yield from event.changes.get("allocations", ())
    for reference in _REFERENCES:
        yield from filter(None, event.changes.get(reference, ()))


def _last_names(events: Sequence[Event]) -> dict[str, str]:
    names = {}
    for event in sorted(events, key=lambda event: event.number):
        if event.kind in (PROVIDER, NODE) and event.uuid is not None and event.name not in (None, event.uuid):
            names[event.uuid] = event.name
    return names
