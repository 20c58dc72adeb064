"""The names of the providers and nodes that events mention by their uuids."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from placement.db.database import Database
from placement.db.writes.notes import CONSUMER, PROVIDER
from placement.extensions.v1 import nodes
from placement.extensions.v1.history.event import NODE, Event
from placement.index.snapshot import Snapshot

#: Changes whose values are uuids of providers or nodes.
_REFERENCES = ("parent", "root", "parent_node")


def known(database: Database, snapshot: Snapshot, events: Sequence[Event]) -> dict[str, str]:
    """Return the known names of the objects that events mention, by uuid.

    A provider has its present name; one that is named by its uuid, as those of nodes are, has the name of its node.
    An object that is gone has the last name in these events.

    Args:
        database: Where the nodes are; raises DatabaseUnavailable or DatabaseBusy.
        snapshot: Has the providers that are there.
        events: In the order of their positions, or in reverse.
    """
    found = _said(events)
    unnamed = []
    for uuid in {uuid for event in events for uuid in mentioned(event)}:
        slot = snapshot.by_uuid.get(uuid)
        name = None if slot is None else snapshot.provider(slot).name
        if name in (None, uuid):
            unnamed.append(uuid)
        else:
            found[uuid] = name
    return {**found, **nodes.names_of_providers(database, ((uuid, None) for uuid in unnamed))}


def mentioned(event: Event) -> Iterator[str]:
    """Yield the uuids of the providers and nodes that an event is about or that its changes name."""
    if event.kind in (PROVIDER, NODE) and event.uuid is not None:
        yield event.uuid
    if event.kind == CONSUMER:
        yield from event.changes.get("allocations", ())
    for reference in _REFERENCES:
        yield from filter(None, event.changes.get(reference, ()))


def _said(events: Sequence[Event]) -> dict[str, str]:
    """Return the last names in events, by uuid."""
    named = {}
    for event in sorted(events, key=lambda event: event.number):
        if event.kind in (PROVIDER, NODE) and event.uuid is not None and event.name not in (None, event.uuid):
            named[event.uuid] = event.name
    return named
