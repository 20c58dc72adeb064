"""Summaries of requests in one sentence each: a claim on ten providers has many events but one summary."""

from __future__ import annotations

import datetime
import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from placement.db.writes.notes import CONSUMER, PROVIDER
from placement.extensions.console.views.cloud import provider_name
from placement.extensions.console.views.event_text import EventFormatter, EventText, ObjectLink, ValueChange
from placement.extensions.console.views.units import amount_of, in_units
from placement.extensions.v1.history.event import NODE, Event, EventPage
from placement.index.snapshot import Snapshot

#: Trees named in a sentence.
_MAX_TREES = 2
#: Changes of a provider or a node that only repeat a claim.
_CLAIM_CHANGES = {PROVIDER: {"allocations", "consumers"}, NODE: {"details"}}
#: Characters of a uuid that identify a consumer in a sentence.
_SHORT_UUID = 8
#: The word for a consumer of unknown type.
_UNTYPED = "consumer"
#: Values of a change quoted in a sentence.
_MAX_VALUES = 2

#: Words of a sentence, or a link.
Part = str | ObjectLink


@dataclass(frozen=True, slots=True)
class RequestSummary:
    """The events of one request, and a sentence about them.

    Attributes:
        key: An identifier that is unique among the summaries of a page.
        ago: The age of the events, in words.
        sentence: The parts of the sentence, spaces included.
        entries: The text of every event, including the events that the sentence covers.
        folds_events: Whether the sentence covers the events, so that they start folded.
        request: The requester, with the members of an event's ``request``; None if unknown.
    """

    key: str
    at: datetime.datetime
    ago: str
    sentence: tuple[Part, ...]
    entries: tuple[EventText, ...]
    folds_events: bool
    request: Mapping[str, str] | None


def summaries(
    events: Sequence[Event], names: Mapping[str, str], snapshot: Snapshot | None, now: datetime.datetime
) -> list[RequestSummary]:
    """Return one summary per request, in the order of the events.

    Args:
        events: By position, ascending or descending.
        names: Names of the providers and nodes in the events, by uuid.
        snapshot: The trees that sentences name instead of providers; None if the caller may not see them.
        now: The time that determines the ages (naive, UTC).
    """
    formatter = EventFormatter(names)
    return [_summary([*group], formatter, snapshot, now) for _, group in itertools.groupby(events, _request_of)]


def whole_requests(page: EventPage) -> tuple[list[Event], str]:
    """Return the events of a page and the mark of the last one, without the last request if the page may cut it.

    If the whole page belongs to one request, all its events are returned.
    """
    if page.more and page.events:
        last = _request_of(page.events[-1])
        whole = [*itertools.dropwhile(lambda event: _request_of(event) == last, reversed(page.events))][::-1]
        if whole:
            return whole, whole[-1].mark
    return page.events, page.mark


def _request_of(event: Event) -> object:
    """Return the id of the event's request; the event's number if it has no request."""
    request_id = (event.request or {}).get("request_id")
    return event.number if request_id is None else request_id


def _summary(
    events: Sequence[Event], formatter: EventFormatter, snapshot: Snapshot | None, now: datetime.datetime
) -> RequestSummary:
    entries = tuple(formatter.entry(event, now) for event in events)
    first = entries[0]
    claims = _Claims.from_events(events) if all(_belongs_to_claim(event) for event in events) else None
    if claims is not None and claims.allocations:
        sentence, folds_events = claims.sentence(formatter, snapshot), True
    else:
        pairs = zip(events, entries, strict=True)
        main = next((entry for event, entry in pairs if not _belongs_to_claim(event)), first)
        sentence, folds_events = (main.kind, main.link or main.name, *_predicate(main)), len(first.lines) < 2
    return RequestSummary(
        _key(events[0]), first.at, first.ago, _sentence(sentence), entries, folds_events, first.request
    )


def _key(event: Event) -> str:
    """Return a key that does not change if later transactions of the request add events."""
    return (event.request or {}).get("request_id") or f"event-{event.number}"


def _sentence(parts: Iterable[Part]) -> tuple[Part, ...]:
    """Return a sentence with spaces and an initial capital; the name of a provider is not capitalized."""
    first, *following = parts
    if isinstance(first, ObjectLink):
        first = first if first.section == "providers" else first._replace(name=_capital(first.name))
    else:
        first = _capital(first)
    spaced: list[Part] = [first]
    for part in following:
        spaced += [part] if part == "," else [" ", part]
    return tuple(spaced)


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _predicate(entry: EventText) -> Iterator[Part]:
    """Yield the predicate about an object: the verb, or the first change and the number of other changes."""
    if entry.verb != "changed":
        yield entry.verb
        return
    if not entry.lines:
        yield "changed: only its generation"
        return
    first, more_changes = entry.lines[0], len(entry.lines) + entry.more - 1
    yield f"changed: {first.label[:1].lower()}{first.label[1:]}"
    if first.link:
        yield first.link
    yield ", ".join([*first.names, *(_change(pair, first.resource_class) for pair in first.pairs)][:_MAX_VALUES])
    if more_changes:
        yield f"and {more_changes} more"


def _change(pair: ValueChange, resource_class: str) -> str:
    values = " → ".join(_value(value, resource_class) for value in (pair.old, pair.new) if value is not None)
    # The label of an inventory already says that it was removed.
    removed = " removed" if pair.new is None and not resource_class else ""
    return f"{pair.field} {values}{removed}".strip()


def _value(value: Any, resource_class: str) -> str:
    if isinstance(value, ObjectLink):
        return value.name
    return in_units(value, resource_class) if isinstance(value, int) else str(value)


def _belongs_to_claim(event: Event) -> bool:
    """Whether this is the event of a consumer, or of a provider or node that changed only through a claim."""
    return event.kind == CONSUMER or event.changes.keys() <= _CLAIM_CHANGES.get(event.kind, set())


@dataclass(frozen=True, slots=True)
class _Claims:
    """The allocations that one request made and released.

    Attributes:
        allocations: Amounts before and after, by consumer, provider and class.
        types: Types of new consumers, by uuid.
        is_expiry: Whether every consumer's lease expired.
    """

    allocations: Mapping[str, Mapping[str, Mapping[str, Sequence[int | None]]]]
    types: Mapping[str, str]
    is_expiry: bool

    @classmethod
    def from_events(cls, events: Iterable[Event]) -> _Claims:
        allocations: dict[str, dict[str, Any]] = {}
        types, reasons = {}, set()
        for event in events:
            changed = event.changes.get("allocations", {})
            if event.kind == CONSUMER and event.uuid is not None:
                allocations.setdefault(event.uuid, {}).update(changed)
                before, after = event.changes.get("type", (None, None))
                types[event.uuid] = after or before or _UNTYPED
                reasons.add(event.changes.get("reason", (None, None))[1])
            elif event.kind == PROVIDER and event.uuid is not None:
                for consumer, amounts in changed.items():
                    allocations.setdefault(consumer, {})[event.uuid] = amounts
        return cls(
            {uuid: by_provider for uuid, by_provider in allocations.items() if by_provider},
            types,
            reasons == {"expired"},
        )

    def sentence(self, formatter: EventFormatter, snapshot: Snapshot | None) -> tuple[Part, ...]:
        """Return a sentence with the consumers, the amounts claimed and released, and the trees."""
        pairs = [
            pair
            for by_provider in self.allocations.values()
            for amounts in by_provider.values()
            for pair in amounts.values()
        ]
        claimed, released = self._amounts(1), self._amounts(0)
        trees = [*_enumerate_links([*self._trees(formatter, snapshot)])]
        consumers = self._consumers()
        if all(before is None for before, _ in pairs):
            return (*consumers, "claimed", claimed, "on", *trees)
        if all(after is None for _, after in pairs):
            if self.is_expiry:
                return (*consumers, "released", released, "on", *trees, "when the lease expired")
            return (*consumers, "released", released, "on", *trees)
        verb = "now holds" if len(self.allocations) == 1 else "now hold"
        return (*consumers, verb, claimed, "on", *trees, "instead of", released)

    def _amounts(self, position: int) -> str:
        """Return the sum of each class before (0) or after (1) the request, as text."""
        sums: Counter[str] = Counter()
        for by_provider in self.allocations.values():
            for amounts in by_provider.values():
                for name, pair in amounts.items():
                    sums[name] += pair[position] or 0
        return ", ".join(amount_of(amount, name) for name, amount in sorted(sums.items()) if amount) or "nothing"

    def _trees(self, formatter: EventFormatter, snapshot: Snapshot | None) -> Iterator[ObjectLink]:
        seen = set()
        for uuid in dict.fromkeys(uuid for by_provider in self.allocations.values() for uuid in by_provider):
            slot = None if snapshot is None else snapshot.by_uuid.get(uuid)
            if snapshot is None or slot is None:
                link = formatter.provider(uuid)
            else:
                link = ObjectLink("providers", *provider_name(snapshot, snapshot.provider(slot).root))
            if link not in seen:
                seen.add(link)
                yield link

    def _consumers(self) -> tuple[Part, ...]:
        if len(self.allocations) > 1:
            return (f"{len(self.allocations)} consumers",)
        (uuid,) = self.allocations
        return (ObjectLink("consumers", uuid, f"{self.types.get(uuid, _UNTYPED).lower()} {uuid[:_SHORT_UUID]}"),)


def _enumerate_links(links: Sequence[ObjectLink]) -> Iterator[Part]:
    """Yield the first links with "and" or commas between them, and the number of other links."""
    for number, link in enumerate(links[:_MAX_TREES], 1):
        if number > 1:
            yield "and" if number == len(links) else ","
        yield link
    if len(links) > _MAX_TREES:
        yield f"and {len(links) - _MAX_TREES} more"
