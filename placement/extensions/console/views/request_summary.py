"""What a request has done, as one sentence: the events of a claim on ten providers are one story."""

from __future__ import annotations

import datetime
import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from placement.db.writes.notes import CONSUMER, PROVIDER
from placement.extensions.console.views.cloud import named
from placement.extensions.console.views.event_text import EventFormatter, EventText, ObjectLink, ValueChange
from placement.extensions.console.views.units import amount_of, in_units
from placement.extensions.v1.history.event import NODE, Event, EventPage
from placement.index.snapshot import Snapshot

#: Trees that a sentence names.
_NAMED = 2
#: What changes with a claim of a provider or of a node, and says nothing more.
_OF_CLAIMS = {PROVIDER: {"allocations", "consumers"}, NODE: {"details"}}
#: How much of a uuid tells consumers apart, and what one of unknown type is called.
_SHORT, _UNTYPED = 8, "consumer"
#: Values of a change that a sentence has.
_VALUES = 2

#: A word or a few, or what has a page.
Part = str | ObjectLink


@dataclass(frozen=True, slots=True)
class RequestSummary:
    """The events of one request.

    Args:
        key: Tells it from other stories.
        ago: How long ago it was, in words.
        sentence: What has happened: words with the spaces between them, and what has a page.
        entries: All events in words, including those that the sentence covers completely.
        folds_events: Whether the sentence says what matters, so that the events are folded.
        request: Who asked for it, as events have it; None if that is not known.
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
    """Return events as stories, in their order.

    Args:
        events: In the order of their positions, or in reverse.
        names: Those of the providers and nodes that they mention, by uuid.
        snapshot: Has the trees by which sentences name providers; None for a caller who may not know these.
        now: The time by which it is said how long ago they were (naive, UTC).
    """
    words = EventFormatter(names)
    return [_summary([*group], words, snapshot, now) for _, group in itertools.groupby(events, _request_of)]


def whole_requests(page: EventPage) -> tuple[list[Event], str]:
    """Return the events of a page without those of a request that it may have only a part of, and where it ends.

    If they all are of one request, they stay.
    """
    if page.more and page.events:
        last = _request_of(page.events[-1])
        kept = [*itertools.dropwhile(lambda event: _request_of(event) == last, reversed(page.events))][::-1]
        if kept:
            return kept, kept[-1].mark
    return page.events, page.mark


def _request_of(event: Event) -> object:
    """Return what the events of a request have in common; an event of no request is alone."""
    named = (event.request or {}).get("request_id")
    return event.number if named is None else named


def _summary(
    events: Sequence[Event], words: EventFormatter, snapshot: Snapshot | None, now: datetime.datetime
) -> RequestSummary:
    entries = tuple(words.entry(event, now) for event in events)
    first = entries[0]
    claims = _Claims.of(events) if all(_is_of_a_claim(event) for event in events) else None
    if claims is not None and claims.moves:
        sentence, folds_events = claims.sentence(words, snapshot), True
    else:
        pairs = zip(events, entries, strict=True)
        main = next((entry for event, entry in pairs if not _is_of_a_claim(event)), first)
        sentence, folds_events = (main.kind, main.link or main.name, *_done(main)), len(first.lines) < 2
    return RequestSummary(_key(events[0]), first.at, first.ago, _spaced(sentence), entries, folds_events, first.request)


def _key(event: Event) -> str:
    """Return the id of the request; a request may have several transactions, and so more events later."""
    return (event.request or {}).get("request_id") or f"event-{event.number}"


def _spaced(parts: Iterable[Part]) -> tuple[Part, ...]:
    """Return a sentence with its spaces, and with a capital at its beginning; names of providers stay as they are."""
    first, *others = parts
    if isinstance(first, ObjectLink):
        first = first if first.section == "providers" else first._replace(name=_capital(first.name))
    else:
        first = _capital(first)
    spaced: list[Part] = [first]
    for part in others:
        spaced += [part] if part == "," else [" ", part]
    return tuple(spaced)


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _done(entry: EventText) -> Iterator[Part]:
    """Yield what has happened to an object; of several changes the first, and how many more there are."""
    if entry.verb != "changed":
        yield entry.verb
        return
    if not entry.lines:
        yield "changed: nothing but its generation"
        return
    first, others = entry.lines[0], len(entry.lines) + entry.more - 1
    yield f"changed: {first.label[:1].lower()}{first.label[1:]}"
    if first.link:
        yield first.link
    yield ", ".join([*first.names, *(_pair(pair, first.resource_class) for pair in first.pairs)][:_VALUES])
    if others:
        yield f"and {others} more"


def _pair(pair: ValueChange, resource_class: str) -> str:
    values = " → ".join(_value(value, resource_class) for value in (pair.old, pair.new) if value is not None)
    # Of an inventory that is gone, the label says so.
    gone = " is gone" if pair.new is None and not resource_class else ""
    return f"{pair.field} {values}{gone}".strip()


def _value(value: Any, resource_class: str) -> str:
    if isinstance(value, ObjectLink):
        return value.name
    return in_units(value, resource_class) if isinstance(value, int) else str(value)


def _is_of_a_claim(event: Event) -> bool:
    """Whether this is the event of a claim, or what it has changed of providers and nodes."""
    return event.kind == CONSUMER or event.changes.keys() <= _OF_CLAIMS.get(event.kind, set())


@dataclass(frozen=True, slots=True)
class _Claims:
    """What consumers took and gave back.

    Args:
        moves: By consumer and provider, the amounts before and after, by class.
        types: Those of consumers that are new, by uuid.
        is_expiry: Whether the time of all of them was over.
    """

    moves: Mapping[str, Mapping[str, Mapping[str, Sequence[int | None]]]]
    types: Mapping[str, str]
    is_expiry: bool

    @classmethod
    def of(cls, events: Iterable[Event]) -> _Claims:
        moves: dict[str, dict[str, Any]] = {}
        types, reasons = {}, set()
        for event in events:
            changed = event.changes.get("allocations", {})
            if event.kind == CONSUMER and event.uuid is not None:
                moves.setdefault(event.uuid, {}).update(changed)
                before, after = event.changes.get("type", (None, None))
                types[event.uuid] = after or before or _UNTYPED
                reasons.add(event.changes.get("reason", (None, None))[1])
            elif event.kind == PROVIDER and event.uuid is not None:
                for consumer, amounts in changed.items():
                    moves.setdefault(consumer, {})[event.uuid] = amounts
        return cls({uuid: held for uuid, held in moves.items() if held}, types, reasons == {"expired"})

    def sentence(self, words: EventFormatter, snapshot: Snapshot | None) -> tuple[Part, ...]:
        """Return what has happened: who gave what to whom."""
        pairs = [pair for held in self.moves.values() for amounts in held.values() for pair in amounts.values()]
        taken = self._amounts(1)
        trees = [*_listed(self._trees(words, snapshot))]
        who = self._who()
        if all(before is None for before, _ in pairs):
            return (*trees, "gave", taken, "to", *who)
        given_back = self._amounts(0)
        if all(after is None for _, after in pairs):
            if self.is_expiry:
                return (*who, "released", given_back, "on", *trees, "when the lease expired")
            return (*who, "released", given_back, "on", *trees)
        return (
            *who,
            "now holds" if len(self.moves) == 1 else "now hold",
            taken,
            "of",
            *trees,
            "instead of",
            given_back,
        )

    def _amounts(self, at: int) -> str:
        """Return the sums before (0) or after (1)."""
        sums: Counter[str] = Counter()
        for held in self.moves.values():
            for amounts in held.values():
                for name, pair in amounts.items():
                    sums[name] += pair[at] or 0
        return ", ".join(amount_of(amount, name) for name, amount in sorted(sums.items()) if amount) or "nothing"

    def _trees(self, words: EventFormatter, snapshot: Snapshot | None) -> Iterator[ObjectLink]:
        seen = set()
        for uuid in dict.fromkeys(uuid for held in self.moves.values() for uuid in held):
            slot = None if snapshot is None else snapshot.by_uuid.get(uuid)
            if snapshot is None or slot is None:
                link = words.provider(uuid)
            else:
                link = ObjectLink("providers", *named(snapshot, snapshot.provider(slot).root))
            if link not in seen:
                seen.add(link)
                yield link

    def _who(self) -> tuple[Part, ...]:
        if len(self.moves) > 1:
            return (f"{len(self.moves)} consumers",)
        (uuid,) = self.moves
        return (ObjectLink("consumers", uuid, f"{self.types.get(uuid, _UNTYPED).lower()} {uuid[:_SHORT]}"),)


def _listed(things: Iterable[ObjectLink]) -> Iterator[Part]:
    """Yield the first of some things, and how many more there are."""
    found = [*things]
    for place, link in enumerate(found[:_NAMED], 1):
        if place > 1:
            yield "and" if place == len(found) else ","
        yield link
    if len(found) > _NAMED:
        yield f"and {len(found) - _NAMED} more"
