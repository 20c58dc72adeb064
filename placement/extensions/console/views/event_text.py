"""The text of events: the changes, their time, and the caller on whose behalf they were made."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import orjson

from placement.db.writes.notes import CONSUMER, MEMBERS, PROVIDER, RESOURCE_CLASS, TRAIT
from placement.extensions.v1.history.event import NODE, Event

#: Maximum number of lines shown per event.
_MAX_LINES = 20
_KINDS = {
    PROVIDER: "Provider",
    CONSUMER: "Consumer",
    NODE: "Node",
    RESOURCE_CLASS: "Resource class",
    TRAIT: "Trait",
}
#: Labels of an allocation in the events of its consumer and its provider: new, released, changed.
_ALLOCATIONS = {
    CONSUMER: ("Allocated from", "Released to", "Allocation changed on"),
    PROVIDER: ("Allocated to", "Released by", "Allocation changed for"),
}
#: Labels of an inventory: new, removed, changed.
_INVENTORIES = ("New inventory of", "Removed inventory of", "Inventory of")
#: Changes without a line, because the verb or another line states them; the name of a new or deleted object as well.
_IMPLIED = frozenset({"reason", "consumers"})
_IMPLIED_BY_VERB = dict.fromkeys(("created", "deleted"), _IMPLIED | {"name"})


class ObjectLink(NamedTuple):
    """A link to the page of a provider or a consumer, which may have been deleted."""

    #: The first segment of the path of its page: "providers" or "consumers".
    section: str
    uuid: str
    name: str


class ValueChange(NamedTuple):
    """A value before and after a change; None if absent."""

    field: str
    old: Any
    new: Any


@dataclass(frozen=True, slots=True)
class ChangeLine:
    """One line of an event: changed values, or members added to or removed from a set."""

    label: str
    link: ObjectLink | None = None
    pairs: tuple[ValueChange, ...] = ()
    names: tuple[str, ...] = ()
    #: The class of an inventory; empty for other changes.
    resource_class: str = ""


@dataclass(frozen=True, slots=True)
class EventText:
    """The text of one event.

    Attributes:
        ago: The age of the event, in words.
        kind: The kind of object, in words.
        verb: The change of the object as a whole.
        link: The page of the object, if it has one.
        more: Number of lines left out.
        request: The requester, with the members of an event's ``request``; None if unknown.
    """

    at: datetime.datetime
    ago: str
    kind: str
    name: str
    link: ObjectLink | None
    verb: str
    lines: tuple[ChangeLine, ...]
    more: int
    request: Mapping[str, str] | None


def ago(at: datetime.datetime, now: datetime.datetime) -> str:
    """Return the age of a timestamp in words: in hours and minutes within a day, then in days."""
    minutes = int((now - at).total_seconds()) // 60
    if minutes < 1:
        return "just now"
    hours = minutes // 60
    if hours < 24:
        return f"{hours} h {minutes % 60} min ago" if hours else f"{minutes} min ago"
    return f"{hours // 24} day{'s' if hours >= 48 else ''} ago"


class EventFormatter:
    """A formatter of events as text."""

    def __init__(self, names: Mapping[str, str]) -> None:
        """Set the names of providers and nodes, by uuid."""
        self._names = names

    def entry(self, event: Event, now: datetime.datetime) -> EventText:
        """Return the text of an event.

        Args:
            now: The time that determines its age (naive, UTC).
        """
        verb = _verb(event)
        lines = [*self._lines(event, verb)]
        link = None
        if event.uuid is not None:
            link = self._consumer(event.uuid) if event.kind == CONSUMER else self.provider(event.uuid)
        return EventText(
            at=event.at,
            ago=ago(event.at, now),
            kind=_KINDS.get(event.kind, event.kind),
            name=event.name or (link.name if link else ""),
            link=link,
            verb=verb,
            lines=tuple(lines[:_MAX_LINES]),
            more=max(len(lines) - _MAX_LINES, 0),
            request=event.request,
        )

    def _lines(self, event: Event, verb: str) -> Iterator[ChangeLine]:
        implied = _IMPLIED_BY_VERB.get(verb, _IMPLIED)
        for field, value in event.changes.items():
            if field in implied:
                continue
            if field == "inventories":
                yield from map(_inventory, value.items())
            elif field == "allocations":
                yield from self._allocations(event.kind, value)
            elif field in MEMBERS:
                yield from (
                    ChangeLine(f"{field.capitalize()} {action}", names=tuple(names)) for action, names in value.items()
                )
            elif field == "details":
                yield ChangeLine("Details changed", names=tuple(value))
            elif field == "parent":
                yield ChangeLine("Parent", pairs=(ValueChange("", *(uuid and self.provider(uuid) for uuid in value)),))
            else:
                yield ChangeLine(field.replace("_", " ").capitalize(), pairs=_pairs({"": value}))

    def _allocations(self, kind: str, changes: Mapping[str, Mapping[str, Sequence[Any]]]) -> Iterator[ChangeLine]:
        for uuid, amounts in changes.items():
            pairs = _pairs(amounts)
            link = self.provider(uuid) if kind == CONSUMER else self._consumer(uuid)
            yield ChangeLine(_label(_ALLOCATIONS[kind], pairs), link, pairs)

    def provider(self, uuid: str) -> ObjectLink:
        """Return a link to a provider, by name if it is known."""
        return ObjectLink("providers", uuid, self._names.get(uuid, uuid))

    @staticmethod
    def _consumer(uuid: str) -> ObjectLink:
        return ObjectLink("consumers", uuid, uuid)


def _inventory(change: tuple[str, Mapping[str, Sequence[Any]]]) -> ChangeLine:
    name, fields = change
    pairs = _pairs({column.replace("_", " "): pair for column, pair in fields.items()})
    return ChangeLine(f"{_label(_INVENTORIES, pairs)} {name}", pairs=pairs, resource_class=name)


def _pairs(fields: Mapping[str, Sequence[Any]]) -> tuple[ValueChange, ...]:
    return tuple(ValueChange(name, *map(_display_value, pair)) for name, pair in fields.items())


def _display_value(value: Any) -> Any:
    """Return a value for display: numbers, strings and None unchanged."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return orjson.dumps(value).decode() if isinstance(value, (dict, list)) else value


def _label(labels: tuple[str, str, str], pairs: Sequence[ValueChange]) -> str:
    """Return the first label if all values are new, the second if all were removed, or else the third."""
    if all(pair.old is None for pair in pairs):
        return labels[0]
    return labels[1] if all(pair.new is None for pair in pairs) else labels[2]


def _verb(event: Event) -> str:
    """Return the verb for the change of the object."""
    before, after = event.generations
    # Nodes, resource classes and traits have no generation; a field that is always present shows the change instead.
    if before is None and after is None:
        before, after = event.changes.get("driver" if event.kind == NODE else "name", (None, None))
    is_new, is_deleted = before is None and after is not None, before is not None and after is None
    if event.kind == CONSUMER:
        if is_deleted:
            expired = event.changes.get("reason", (None, None))[1] == "expired"
            return "expired" if expired else "released everything it held"
        return "claimed" if is_new else "changed"
    if is_new:
        return "created"
    if is_deleted:
        return "deleted"
    return "renamed" if None not in event.changes.get("name", (None, None)) else "changed"
