"""Past states of all providers: the present state with later events undone, the newest first."""

from __future__ import annotations

import datetime
import itertools
import threading
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
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
from placement.index.build import build
from placement.index.records import Rows
from placement.index.snapshot import Snapshot
from placement.index.tables import Tables
from placement.objects import usage
from placement.objects.inventory import AMOUNTS
from placement.schemas.dates import precise

#: Ids of classes and traits that are no longer in the tables begin here, above all ids of the tables.
_FIRST_ID = 2**31
#: Positions whose events one statement reads.
_WINDOW = 10_000


class PastState(NamedTuple):
    """The snapshot at a past time, and the number of consumers with resources on each provider, by its id."""

    snapshot: Snapshot
    consumers: Mapping[int, int]


#: The last requested past states, by database and timestamp.
_RECENT: WeakKeyDictionary[Database, dict[datetime.datetime, PastState]] = WeakKeyDictionary()
#: Past states kept for each database.
_MAX_RECENT = 2
_BUILDING = threading.Lock()
#: The age at which a past state is final: no transaction runs for longer between an event and its COMMIT.
_SETTLED = datetime.timedelta(minutes=10)


def state_at(database: Database, at: datetime.datetime) -> PastState:
    """Return the state of all providers at a past time.

    Args:
        at: The time by the clock of the database (naive, UTC).  If the clocks of several database servers differ, the
            state is inexact by that difference.

    Raises:
        TimeUnknown: The history does not reach back that far.
        TooManyChanges: More than ``[history]max_undone_events`` events have been recorded since.
        Failure: As for ``Database.read``.
    """
    history = recorder.history_of(database)

    def read(db: Connection) -> tuple[_State, datetime.datetime]:
        now: datetime.datetime = db.execute(sa.select(CLOCK)).scalar_one()
        return _read(db, at, history.settings.max_undone_events), now

    # A page of the console requests a state several times.  Build one state at a time: with many providers, it takes
    # seconds of processor time.
    with _BUILDING:
        recent = _RECENT.setdefault(database, {})
        if at in recent:
            return recent[at]
        state, now = history.read(read)
        built = state.build()
        if now - at > _SETTLED:
            while len(recent) >= _MAX_RECENT:
                del recent[next(iter(recent))]
            recent[at] = built
        return built


def _read(db: Connection, at: datetime.datetime, max_events: int) -> _State:
    # Check the time before reading anything else: a refusal reads only four rows.
    first, end = _positions_since(db, at, max_events)
    rows = load.all_rows(db).rows()
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
    #: Values by class id and column.
    inventories: dict[int, dict[str, Any]] = field(default_factory=dict)
    used: Counter[int] = field(default_factory=Counter)
    traits: set[str] = field(default_factory=set)
    aggregates: set[str] = field(default_factory=set)
    consumers: int = 0


class _State:
    """All providers while events are undone."""

    def __init__(self, rows: Rows, class_names: Mapping[int, str], consumers: Mapping[int, int]) -> None:
        """Begin with the present state.

        Args:
            rows: The rows of the database.
            class_names: The names of resource classes, by id.
            consumers: The number of consumers of each provider, by its id.
        """
        self._class_ids = {name: class_id for class_id, name in class_names.items()}
        self._trait_ids = dict(rows.trait_ids)
        #: Ids for classes and traits that are no longer in the tables.
        self._ids = itertools.count(_FIRST_ID)
        uuids = {row[0]: row[1] for row in rows.providers}
        # Rows that a deleted provider left behind go to default entries, which are dropped below.
        by_id = defaultdict(
            _Provider,
            {
                provider_id: _Provider(
                    name, generation or 0, uuids.get(parent_id or 0), consumers=consumers.get(provider_id, 0)
                )
                for provider_id, _, name, generation, parent_id, _ in rows.providers
            },
        )
        for provider_id, class_id, *amounts in np.asarray(rows.inventories).tolist():
            if class_id in class_names:
                by_id[provider_id].inventories[int(class_id)] = dict(zip(AMOUNTS, amounts, strict=True))
        for provider_id, class_id, used in np.asarray(rows.usages).tolist():
            if class_id in class_names:
                by_id[provider_id].used[int(class_id)] = used
        for provider_id, trait in rows.traits:
            by_id[provider_id].traits.add(trait)
        for provider_id, aggregate in rows.aggregates:
            by_id[provider_id].aggregates.add(aggregate)
        self._providers = {uuid: by_id[provider_id] for provider_id, uuid in uuids.items()}

    def undo(self, event: Any) -> None:
        """Undo one event, a row of ``_EVENTS``."""
        changes = orjson.loads(event.changes)
        if event.kind == RESOURCE_CLASS:
            before, after = changes["name"]
            # Only a rename matters: a class created or deleted since then had no inventory at the time.
            if before is not None and after is not None:
                self._class_ids[before] = self._class_id(after)
                del self._class_ids[after]
        elif event.before_generation is None and event.generation is not None:
            self._providers.pop(event.uuid, None)
        else:
            # A missing provider was deleted, perhaps by a process that records no events.
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
                # The event created the inventory; or a process that records no events deleted it, so it is incomplete.
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
        """Return the id of the class with this name at the time that the undone events have reached."""
        if name not in self._class_ids:
            self._class_ids[name] = next(self._ids)
        return self._class_ids[name]

    def build(self) -> PastState:
        """Return the state.

        Providers are numbered by name.  The ids of the tables are unknown for deleted providers, and a provider may be
        deleted between two pages of the same past state.
        """
        by_name = sorted((provider.name or "", uuid) for uuid, provider in self._providers.items())
        ids = {uuid: number for number, (_, uuid) in enumerate(by_name, 1)}
        numbered = [(provider_id, self._providers[uuid]) for uuid, provider_id in ids.items()]
        for trait in sorted({trait for provider in self._providers.values() for trait in provider.traits}):
            if trait not in self._trait_ids:
                self._trait_ids[trait] = next(self._ids)
        rows = Rows(
            providers=[
                (
                    *(provider_id, uuid, provider.name, provider.generation),
                    *(ids.get(provider.parent or ""), ids[self._root_of(uuid)]),
                )
                for (provider_id, provider), uuid in zip(numbered, ids, strict=True)
            ],
            inventories=[
                (provider_id, class_id, *(columns[amount] for amount in AMOUNTS))
                for provider_id, provider in numbered
                for class_id, columns in provider.inventories.items()
                if columns.keys() >= {*AMOUNTS}
            ],
            usages=[
                (provider_id, class_id, used)
                for provider_id, provider in numbered
                for class_id, used in provider.used.items()
            ],
            traits=_pairs((provider_id, provider.traits) for provider_id, provider in numbered),
            aggregates=_pairs((provider_id, provider.aggregates) for provider_id, provider in numbered),
            trait_ids=self._trait_ids,
        )
        names = {class_id: name for name, class_id in self._class_ids.items()}
        consumers = {provider_id: provider.consumers for provider_id, provider in numbered}
        return PastState(build(Tables.of(rows), names), consumers)

    def _root_of(self, uuid: str) -> str:
        """Return the uuid of the root; in a cycle, which other implementations can create, the provider's own uuid."""
        path = [uuid]
        while (parent := self._providers[path[-1]].parent) is not None and parent in self._providers:
            if parent in path:
                return uuid
            path.append(parent)
        return path[-1]


def _pairs(sets: Iterable[tuple[int, set[str]]]) -> list[tuple[int, str]]:
    return [(provider_id, name) for provider_id, names in sets for name in sorted(names)]


# --- the events ------------------------------------------------------------------------------------------------------


def _positions_since(db: Connection, at: datetime.datetime, max_events: int) -> tuple[int, int]:
    """Return the first position after ``at`` (naive, UTC), and the next free position.

    Raises:
        TimeUnknown: The history does not reach back that far.
        TooManyChanges: More than ``max_events`` positions lie between them.
    """
    oldest = db.execute(OLDEST).first()
    newest = db.execute(NEWEST_POSITION).first()
    if oldest is None or newest is None or oldest.at > at:
        raise TimeUnknown(begins="none" if oldest is None else precise(oldest.at))
    end = newest.position + newest.events
    first = db.execute(_FIRST_AFTER, {"at": at}).scalar()
    if first is not None and end - first > max_events:
        # A tenth less, so that a request for the suggested time succeeds although more events are recorded until then.
        reached = db.execute(_FIRST_FROM, {"position": end - max_events * 9 // 10}).scalar()
        raise TooManyChanges(maximum=max_events, reached=precise(reached or newest.at))
    return end if first is None else first, end


def _newest_first(db: Connection, first: int, end: int) -> Iterator[Any]:
    """Yield the events from a position on, the newest first.

    Args:
        db: A connection that sees one committed state.
    """
    # Begin with the few events committed since the last ordering.
    positions = {(row["writer_id"], row["seq"]): row["position"] for row in order.missing_rows(db)}
    rows = db.execute(_OF_TRANSACTIONS, {"transactions": [*positions]}).all() if positions else []
    yield from sorted(rows, key=lambda row: (positions[row.writer_id, row.seq], row.ordinal), reverse=True)
    for window_end in range(end, first, -_WINDOW):
        yield from db.execute(_OF_WINDOW, {"first": max(first, window_end - _WINDOW), "end": window_end})
        bulkhead.note_progress()


_FIRST_AFTER = (
    sa.select(event_order.c.position)
    .where(event_order.c.at > sa.bindparam("at"))
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
