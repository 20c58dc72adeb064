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


class Thing(NamedTuple):
    """A provider or a consumer that has a page, also if it is gone."""

    #: The page below which it is: "providers" or "consumers".
    place: str
    uuid: str
    name: str


class Pair(NamedTuple):
    """A value before and after; None where there is none."""

    field: str
    old: Any
    new: Any


@dataclass(frozen=True, slots=True)
class Line:
    """One change: of values, or of the members of a set."""

    label: str
    thing: Thing | None = None
    pairs: tuple[Pair, ...] = ()
    names: tuple[str, ...] = ()
    #: That of an inventory; else empty.
    resource_class: str = ""


@dataclass(frozen=True, slots=True)
class TimelineEntry:
    """One event.

    Args:
        ago: How long ago it was, in words.
        kind: What the object is, in words.
        verb: What happened to it.
        thing: The object, if it has a page; else it has only a name.
        more: How many lines are left out.
        request: Who asked for it, as events have it; None if that is not known.
    """

    at: datetime.datetime
    ago: str
    kind: str
    name: str
    thing: Thing | None
    verb: str
    lines: tuple[Line, ...]
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


class Words:
    """Makes words of events, with the names that are known."""

    def __init__(self, names: Mapping[str, str]) -> None:
        """Take the names of providers and nodes, by uuid."""
        self._names = names

    def entry(self, event: Event, now: datetime.datetime) -> TimelineEntry:
        """Return an event in words.

        Args:
            now: The time by which it is said how long ago it was (naive, UTC).
        """
        verb = _verb(event)
        lines = [*self._lines(event, verb)]
        thing = None
        if event.uuid is not None:
            thing = self._consumer(event.uuid) if event.kind == CONSUMER else self.provider(event.uuid)
        return TimelineEntry(
            at=event.at,
            ago=ago(event.at, now),
            kind=_KINDS.get(event.kind, event.kind),
            name=event.name or (thing.name if thing else ""),
            thing=thing,
            verb=verb,
            lines=tuple(lines[:_MOST]),
            more=max(len(lines) - _MOST, 0),
            request=event.request,
        )

    def _lines(self, event: Event, verb: str) -> Iterator[Line]:
        said = _SAID_BY.get(verb, _SAID)
        for what, value in event.changes.items():
            if what in said:
                continue
            if what == "inventories":
                yield from map(_inventory, value.items())
            elif what == "allocations":
                yield from self._allocations(event.kind, value)
            elif what in MEMBERS:
                yield from (Line(f"{what.capitalize()} {how}", names=tuple(names)) for how, names in value.items())
            elif what == "details":
                yield Line("Details changed", names=tuple(value))
            elif what == "parent":
                yield Line("Parent", pairs=(Pair("", *(uuid and self.provider(uuid) for uuid in value)),))
            else:
                yield Line(what.replace("_", " ").capitalize(), pairs=_pairs({"": value}))

    def _allocations(self, kind: str, changes: Mapping[str, Mapping[str, Sequence[Any]]]) -> Iterator[Line]:
        for uuid, amounts in changes.items():
            pairs = _pairs(amounts)
            thing = self.provider(uuid) if kind == CONSUMER else self._consumer(uuid)
            yield Line(_of(_ALLOCATIONS[kind], pairs), thing, pairs)

    def provider(self, uuid: str) -> Thing:
        """Return the name of a provider if it is known."""
        return Thing("providers", uuid, self._names.get(uuid, uuid))

    @staticmethod
    def _consumer(uuid: str) -> Thing:
        return Thing("consumers", uuid, uuid)


def _inventory(change: tuple[str, Mapping[str, Sequence[Any]]]) -> Line:
    name, fields = change
    pairs = _pairs({column.replace("_", " "): pair for column, pair in fields.items()})
    return Line(f"{_of(_INVENTORIES, pairs)} {name}", pairs=pairs, resource_class=name)


def _pairs(fields: Mapping[str, Sequence[Any]]) -> tuple[Pair, ...]:
    return tuple(Pair(name, *map(_shown, pair)) for name, pair in fields.items())


def _shown(value: Any) -> Any:
    """Return a value as it is shown: numbers, texts and None as they are."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return orjson.dumps(value).decode() if isinstance(value, (dict, list)) else value


def _of(words: tuple[str, str, str], pairs: Sequence[Pair]) -> str:
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
