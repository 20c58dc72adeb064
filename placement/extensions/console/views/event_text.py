"""Events in words: what has happened to what, when, in whose name."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import orjson

from placement.db.writes.notes import CONSUMER, MEMBERS, PROVIDER, RESOURCE_CLASS, TRAIT
from placement.extensions.v1.history.event import NODE, Event

#: Lines of one event that are shown.
_MOST = 20
_KINDS = {
    PROVIDER: "Provider",
    CONSUMER: "Consumer",
    NODE: "Node",
    RESOURCE_CLASS: "Resource class",
    TRAIT: "Trait",
}
#: Words for an allocation, as its consumer and its provider see it: if all of it is new, if nothing is left, or else.
_ALLOCATIONS = {
    CONSUMER: ("Takes from", "Gives back to", "Holds otherwise of"),
    PROVIDER: ("Given to", "Given back by", "Held otherwise by"),
}
_INVENTORIES = ("New inventory of", "Inventory is gone of", "Inventory of")
#: Changes that the verb of an event, or another change, says; and those of what is new or gone.
_SAID = frozenset({"reason", "consumers"})
_SAID_BY = dict.fromkeys(("created", "deleted"), _SAID | {"name"})


class ObjectLink(NamedTuple):
    """A provider or a consumer that has a page, also if it is gone."""

    #: The page below which it is: "providers" or "consumers".
    section: str
    uuid: str
    name: str


class ValueChange(NamedTuple):
    """A value before and after; None where there is none."""

    field: str
    old: Any
    new: Any


@dataclass(frozen=True, slots=True)
class ChangeLine:
    """One change: of values, or of the members of a set."""

    label: str
    link: ObjectLink | None = None
    pairs: tuple[ValueChange, ...] = ()
    names: tuple[str, ...] = ()
    #: That of an inventory; else empty.
    resource_class: str = ""


@dataclass(frozen=True, slots=True)
class EventText:
    """One event.

    Args:
        ago: How long ago it was, in words.
        kind: What the object is, in words.
        verb: What happened to it.
        link: The object, if it has a page; else it has only a name.
        more: How many lines are left out.
        request: Who asked for it, as events have it; None if that is not known.
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


def ago(moment: datetime.datetime, now: datetime.datetime) -> str:
    """Return how long ago a moment was: to the minute within a day."""
    minutes = int((now - moment).total_seconds()) // 60
    if minutes < 1:
        return "just now"
    hours = minutes // 60
    if hours < 24:
        return f"{hours} h {minutes % 60} min ago" if hours else f"{minutes} min ago"
    return f"{hours // 24} day{'s' if hours >= 48 else ''} ago"


class EventFormatter:
    """Makes words of events, with the names that are known."""

    def __init__(self, names: Mapping[str, str]) -> None:
        """Take the names of providers and nodes, by uuid."""
        self._names = names

    def entry(self, event: Event, now: datetime.datetime) -> EventText:
        """Return an event in words.

        Args:
            now: The time by which it is said how long ago it was (naive, UTC).
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
            lines=tuple(lines[:_MOST]),
            more=max(len(lines) - _MOST, 0),
            request=event.request,
        )

    def _lines(self, event: Event, verb: str) -> Iterator[ChangeLine]:
        said = _SAID_BY.get(verb, _SAID)
        for what, value in event.changes.items():
            if what in said:
                continue
            if what == "inventories":
                yield from map(_inventory, value.items())
            elif what == "allocations":
                yield from self._allocations(event.kind, value)
            elif what in MEMBERS:
                yield from (
                    ChangeLine(f"{what.capitalize()} {how}", names=tuple(names)) for how, names in value.items()
                )
            elif what == "details":
                yield ChangeLine("Details changed", names=tuple(value))
            elif what == "parent":
                yield ChangeLine("Parent", pairs=(ValueChange("", *(uuid and self.provider(uuid) for uuid in value)),))
            else:
                yield ChangeLine(what.replace("_", " ").capitalize(), pairs=_pairs({"": value}))

    def _allocations(self, kind: str, changes: Mapping[str, Mapping[str, Sequence[Any]]]) -> Iterator[ChangeLine]:
        for uuid, amounts in changes.items():
            pairs = _pairs(amounts)
            link = self.provider(uuid) if kind == CONSUMER else self._consumer(uuid)
            yield ChangeLine(_of(_ALLOCATIONS[kind], pairs), link, pairs)

    def provider(self, uuid: str) -> ObjectLink:
        """Return the name of a provider if it is known."""
        return ObjectLink("providers", uuid, self._names.get(uuid, uuid))

    @staticmethod
    def _consumer(uuid: str) -> ObjectLink:
        return ObjectLink("consumers", uuid, uuid)


def _inventory(change: tuple[str, Mapping[str, Sequence[Any]]]) -> ChangeLine:
    name, fields = change
    pairs = _pairs({column.replace("_", " "): pair for column, pair in fields.items()})
    return ChangeLine(f"{_of(_INVENTORIES, pairs)} {name}", pairs=pairs, resource_class=name)


def _pairs(fields: Mapping[str, Sequence[Any]]) -> tuple[ValueChange, ...]:
    return tuple(ValueChange(name, *map(_shown, pair)) for name, pair in fields.items())


def _shown(value: Any) -> Any:
    """Return a value as it is shown: numbers, texts and None as they are."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return orjson.dumps(value).decode() if isinstance(value, (dict, list)) else value


def _of(words: tuple[str, str, str], pairs: Sequence[ValueChange]) -> str:
    """Return the words for pairs of which all are new, or all are gone, or others."""
    if all(pair.old is None for pair in pairs):
        return words[0]
    return words[1] if all(pair.new is None for pair in pairs) else words[2]


def _verb(event: Event) -> str:
    """Return what has happened to the object."""
    before, after = event.generations
    # Nodes, resource classes and traits have no generation; what they always have is new or gone with them.
    if before is None and after is None:
        before, after = event.changes.get("driver" if event.kind == NODE else "name", (None, None))
    is_new, is_gone = before is None and after is not None, before is not None and after is None
    if event.kind == CONSUMER:
        if is_gone:
            expired = event.changes.get("reason", (None, None))[1] == "expired"
            return "ended, since its time was over" if expired else "gave back all that it held"
        return "claimed" if is_new else "changed"
    if is_new:
        return "created"
    if is_gone:
        return "deleted"
    return "renamed" if None not in event.changes.get("name", (None, None)) else "changed"
