"""All providers as of a past time: the present state, with the events since then undone from the newest on."""

from __future__ import annotations

import datetime
import itertools
import threading
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import orjson
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from placement.db.database import Database
from placement.db.engine import bulkhead
from placement.db.schema.clock import CLOCK
from placement.db.writes.notes import PROVIDER, RESOURCE_CLASS
from placement.extensions.v1.failures import TimeUnknown, TooManyChanges
from placement.extensions.v1.history import order, recorder
from placement.extensions.v1.history.event import OF_ORDER, OLDEST, POSITION
from placement.extensions.v1.history.order import NEWEST_POSITION
from placement.extensions.v1.history.tables import event_order, events
from placement.index import load
from placement.index.build import build, matrix
from placement.index.records import Rows
from placement.index.snapshot import Snapshot
from placement.objects import usage
from placement.objects.inventory import AMOUNTS
from placement.schemas.dates import precise

#: Classes and traits that are not in the tables any more get ids above all of the tables.
_ABOVE = 2**31
#: Positions of one statement that reads events.
_WINDOW = 10_000


class PastState(NamedTuple):
    """A snapshot as of a past time, and how many consumers held something on each provider, by its id."""

    snapshot: Snapshot
    consumers: Mapping[int, int]


#: Past states that were asked for last, by database and moment, and how many of each database are kept.
_RECENT: WeakKeyDictionary[Database, dict[datetime.datetime, PastState]] = WeakKeyDictionary()
_KEPT = 2
_BUILDING = threading.Lock()
#: After this time no transaction commits events of before, so that the state of then does not change any more.
_SETTLED = datetime.timedelta(minutes=10)


def state_at(database: Database, moment: datetime.datetime) -> PastState:
    """Return all providers as they were at a moment (naive, UTC, by the clock of the database).

    Where the clocks of several database servers differ, the moment is as exact as they agree.

    Raises:
        TimeUnknown: The history does not reach back so far.
        TooManyChanges: There are more events since then than ``[history]max_undone_events``.
        Failure: As ``Database.read``.
    """
    history = recorder.of(database)

    def read(db: Connection) -> tuple[_State, datetime.datetime]:
        now: datetime.datetime = db.execute(sa.select(CLOCK)).scalar_one()
        return _read(db, moment, history.settings.max_undone_events), now

    # A page asks for a state more than once.  One at a time: it takes seconds of a processor where there are many
    # providers.
    with _BUILDING:
        recent = _RECENT.setdefault(database, {})
        if moment in recent:
            return recent[moment]
        state, now = history.read(read)
        built = state.built()
        if now - moment > _SETTLED:
            while len(recent) >= _KEPT:
                del recent[next(iter(recent))]
            recent[moment] = built
        return built


def _read(db: Connection, moment: datetime.datetime, most: int) -> _State:
    # Before anything else is read: a time that is refused costs four rows.
    first, end = _positions_since(db, moment, most)
    rows = load.everything(db)
    consumers = usage.count_by_provider(db, [row[0] for row in rows.providers])
    state = _State(rows, load.class_names(db), consumers)
    for event in _newest_first(db, first, end):
        state.undo(event)
    return state


@dataclass(slots=True)
class _Provider:
    """A provider while events are undone."""

    name: str | None = None
    generation: int | None = None
    parent: str | None = None
    #: By the id of the class, and column.
    inventories: dict[int, dict[str, Any]] = field(default_factory=dict)
    used: Counter[int] = field(default_factory=Counter)
    traits: set[str] = field(default_factory=set)
    aggregates: set[str] = field(default_factory=set)
    consumers: int = 0


class _State:
    """All providers while events are undone."""

    def __init__(self, rows: Rows, class_names: Mapping[int, str], consumers: Mapping[int, int]) -> None:
        """Take the rows of a database, its resource classes by id, and the numbers of consumers by provider id."""
        self._class_ids = {name: class_id for class_id, name in class_names.items()}
        self._trait_ids = dict(rows.trait_ids)
        #: Ids of classes and traits that are in no table any more.
        self._ids = itertools.count(_ABOVE)
        uuids = {row[0]: row[1] for row in rows.providers}
        # Rows that a deleted provider may have left behind are of one that is not there.
        by_id = defaultdict(
            _Provider,
            {
                id_: _Provider(name, generation or 0, uuids.get(parent_id or 0), consumers=consumers.get(id_, 0))
                for id_, _, name, generation, parent_id, _ in rows.providers
            },
        )
        for id_, class_id, *amounts in matrix(rows.inventories, 2 + len(AMOUNTS)).tolist():
            if class_id in class_names:
                by_id[id_].inventories[int(class_id)] = dict(zip(AMOUNTS, amounts, strict=True))
        for id_, class_id, used in matrix(rows.usages, 3).tolist():
            if class_id in class_names:
                by_id[id_].used[int(class_id)] = used
        for id_, trait in rows.traits:
            by_id[id_].traits.add(trait)
        for id_, aggregate in rows.aggregates:
            by_id[id_].aggregates.add(aggregate)
        self._providers = {uuid: by_id[id_] for id_, uuid in uuids.items()}

    def undo(self, event: Any) -> None:
        """Undo a row of ``_EVENTS``."""
        changes = orjson.loads(event.changes)
        if event.kind == RESOURCE_CLASS:
            before, after = changes["name"]
            # Classes that were created or deleted since then have no inventory.
            if before is not None and after is not None:
                self._class_ids[before] = self._class_id(after)
                del self._class_ids[after]
        elif event.before_generation is None and event.generation is not None:
            self._providers.pop(event.uuid, None)
        else:
            # One that is not there was deleted; or another program deleted it, which wrote no event.
            provider = self._providers.setdefault(event.uuid, _Provider())
            self._undo(provider, changes)
            if event.before_generation is not None:
                provider.generation = event.before_generation

    def _undo(self, provider: _Provider, changes: Mapping[str, Any]) -> None:
        if "name" in changes:
            provider.name = changes["name"][0]
        if "parent" in changes:
            provider.parent = changes["parent"][0]
        for resource_class, columns in changes.get("inventories", {}).items():
            class_id = self._class_id(resource_class)
            inventory = provider.inventories.setdefault(class_id, {})
            inventory |= {name: pair[0] for name, pair in columns.items()}
            if inventory.get("total") is None:
                # It was created then; or removed by a process that records nothing, so that most of it is not known.
                del provider.inventories[class_id]
        for amounts in changes.get("allocations", {}).values():
            for resource_class, (before, after) in amounts.items():
                provider.used[self._class_id(resource_class)] += (before or 0) - (after or 0)
        for name, members in (("traits", provider.traits), ("aggregates", provider.aggregates)):
            changed = changes.get(name, {})
            members.difference_update(changed.get("added", ()))
            members.update(changed.get("removed", ()))
        changed = changes.get("consumers", {})
        provider.consumers += len(changed.get("removed", ())) - len(changed.get("added", ()))

    def _class_id(self, name: str) -> int:
        """Return the id of the class that had a name at the time up to which events are undone."""
        if name not in self._class_ids:
            self._class_ids[name] = next(self._ids)
        return self._class_ids[name]

    def built(self) -> PastState:
        """Return the state.

        Ids are the places in the order of the names.  Those of the tables are not known of providers that are gone, and
        what is gone may be more from one page of a past time to the next.
        """
        in_order = sorted((each.name or "", uuid) for uuid, each in self._providers.items())
        ids = {uuid: number for number, (_, uuid) in enumerate(in_order, 1)}
        numbered = [(id_, self._providers[uuid]) for uuid, id_ in ids.items()]
        for trait in sorted({trait for one in self._providers.values() for trait in one.traits}):
            if trait not in self._trait_ids:
                self._trait_ids[trait] = next(self._ids)
        rows = Rows(
            providers=[
                (id_, uuid, one.name, one.generation, ids.get(one.parent or ""), ids[self._root_of(uuid)])
                for (id_, one), uuid in zip(numbered, ids, strict=True)
            ],
            inventories=[
                (id_, class_id, *(columns[amount] for amount in AMOUNTS))
                for id_, one in numbered
                for class_id, columns in one.inventories.items()
                if columns.keys() >= {*AMOUNTS}
            ],
            usages=[(id_, class_id, used) for id_, one in numbered for class_id, used in one.used.items()],
            traits=_pairs((id_, one.traits) for id_, one in numbered),
            aggregates=_pairs((id_, one.aggregates) for id_, one in numbered),
            trait_ids=self._trait_ids,
        )
        names = {class_id: name for name, class_id in self._class_ids.items()}
        return PastState(build(rows, names), {id_: one.consumers for id_, one in numbered})

    def _root_of(self, uuid: str) -> str:
        """Return the uuid of the root; where other programs have made a loop, that of the provider itself."""
        path = [uuid]
        while (parent := self._providers[path[-1]].parent) is not None and parent in self._providers:
            if parent in path:
                return uuid
            path.append(parent)
        return path[-1]


def _pairs(sets: Iterable[tuple[int, set[str]]]) -> list[tuple[int, str]]:
    return [(id_, name) for id_, names in sets for name in sorted(names)]


# --- the events ------------------------------------------------------------------------------------------------------


def _positions_since(db: Connection, moment: datetime.datetime, most: int) -> tuple[int, int]:
    """Return the first position after a moment, naive, UTC, and the first that no event has yet.

    Raises:
        TimeUnknown: The history does not reach back so far.
        TooManyChanges: There are more than ``most`` between them.
    """
    oldest = db.execute(OLDEST).first()
    newest = db.execute(NEWEST_POSITION).first()
    if oldest is None or newest is None or oldest.at > moment:
        raise TimeUnknown(begins="none" if oldest is None else precise(oldest.at))
    end = newest.position + newest.events
    first = db.execute(_FIRST_AFTER, {"moment": moment}).scalar()
    if first is not None and end - first > most:
        # A tenth less, so that a client can ask for this time although there are more events by then.
        reached = db.execute(_FIRST_FROM, {"position": end - most * 9 // 10}).scalar()
        raise TooManyChanges(most=most, reached=precise(reached or newest.at))
    return end if first is None else first, end


def _newest_first(db: Connection, first: int, end: int) -> Iterator[Any]:
    """Yield the events from a position on, the newest first; ``db`` sees one committed state."""
    # Few: those that were committed after all others were put in order, a moment ago.
    places = {(row["writer_id"], row["seq"]): row["position"] for row in order.unordered(db)}
    rows = db.execute(_OF_TRANSACTIONS, {"transactions": [*places]}).all() if places else []
    yield from sorted(rows, key=lambda row: (places[row.writer_id, row.seq], row.ordinal), reverse=True)
    for beyond in range(end, first, -_WINDOW):
        yield from db.execute(_OF_WINDOW, {"first": max(first, beyond - _WINDOW), "end": beyond})
        bulkhead.note_progress()


_FIRST_AFTER = (
    sa.select(event_order.c.position)
    .where(event_order.c.at > sa.bindparam("moment"))
    .order_by(event_order.c.at, event_order.c.position)
    .limit(1)
)
_FIRST_FROM = (
    sa.select(event_order.c.at)
    .where(event_order.c.position >= sa.bindparam("position"))
    .order_by(event_order.c.position)
    .limit(1)
)
_EVENTS = sa.select(
    *(events.c.kind, events.c.uuid, events.c.before_generation, events.c.generation, events.c.changes)
).where(events.c.kind.in_((PROVIDER, RESOURCE_CLASS)))
_OF_TRANSACTIONS = _EVENTS.add_columns(events.c.writer_id, events.c.seq, events.c.ordinal).where(
    sa.tuple_(events.c.writer_id, events.c.seq).in_(sa.bindparam("transactions", expanding=True))
)
_OF_WINDOW = (
    _EVENTS.join(event_order, OF_ORDER)
    .where(event_order.c.position >= sa.bindparam("first"), event_order.c.position < sa.bindparam("end"))
    .order_by(POSITION.desc())
)
