"""All providers as of a past time: the present state, with the events since then undone from the newest on."""

from __future__ import annotations

import datetime
import itertools
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import orjson
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from placement.db.database import Database
from placement.db.writes.notes import PROVIDER, RESOURCE_CLASS
from placement.extensions.v1.history import order, recorder
from placement.extensions.v1.history.event import OF_ORDER, OLDEST, POSITION
from placement.extensions.v1.history.order import NEWEST_POSITION
from placement.extensions.v1.history.tables import event_order, events
from placement.index import load
from placement.index.build import Matrix, build, grouped, matrix
from placement.index.records import Rows
from placement.index.snapshot import Snapshot
from placement.objects.claims import holders
from placement.objects.inventory import AMOUNTS

#: Classes and traits that are not in the tables any more get ids above all of the tables.
_ABOVE = 2**31
#: Positions of one statement that reads events, and transactions of one.
_WINDOW, _TRANSACTIONS = 10_000, 100


class UnknownTime(Exception):
    """The history does not reach back so far."""

    def __init__(self, begins: datetime.datetime | None) -> None:
        """Take the time of the oldest event, naive, UTC; None if there is no event."""
        super().__init__(begins)
        self.begins = begins


class TooManyEvents(Exception):
    """There are more events since then than can be undone."""

    def __init__(self, reached: datetime.datetime) -> None:
        """Take the time since which there are about as many as can be, naive, UTC."""
        super().__init__(reached)
        self.reached = reached


class PastState(NamedTuple):
    """A snapshot as of a past time, and how many consumers held something on each provider, by its id."""

    snapshot: Snapshot
    consumers: Mapping[int, int]


def state_at(database: Database, moment: datetime.datetime) -> PastState:
    """Return all providers as they were at a moment (naive, UTC, by the clock of the database).

    Where the clocks of several database servers differ, the moment is as exact as they agree.

    Raises:
        UnknownTime: The history does not reach back so far.
        TooManyEvents: There are more events since then than ``[history]max_undone_events``.
        Failure: As ``Database.read``.
    """
    history = recorder.of(database)
    present, since = history.read(lambda db: _read(db, moment, history.settings.max_undone_events))
    for undoable in since.newest_first(database):
        present.undo(undoable)
    return PastState(*present.built())


def _read(db: Connection, moment: datetime.datetime, most: int) -> tuple[_State, EventsSince]:
    # Before anything else is read: a time that is refused costs four rows.
    since = EventsSince.read(db, moment, most)
    rows = load.everything(db)
    consumers = holders.count_by_provider(db, [row[0] for row in rows.providers])
    return _State(rows, load.class_names(db), consumers), since


@dataclass(slots=True)
class _Provider:
    """A provider while events are undone."""

    name: str | None = None
    generation: int | None = None
    parent: str | None = None
    #: By class and column.
    inventories: dict[str, dict[str, Any]] = field(default_factory=dict)
    used: Counter[str] = field(default_factory=Counter)
    traits: set[str] = field(default_factory=set)
    aggregates: set[str] = field(default_factory=set)
    consumers: int = 0

    def undo(self, changes: Mapping[str, Any]) -> None:
        """Undo what an event says of the provider."""
        if "name" in changes:
            self.name = changes["name"][0]
        if "parent" in changes:
            self.parent = changes["parent"][0]
        for resource_class, columns in changes.get("inventories", {}).items():
            inventory = self.inventories.setdefault(resource_class, {})
            inventory |= {name: pair[0] for name, pair in columns.items()}
            if inventory.get("total") is None:
                # It was created then; or removed by a process that records nothing, so that most of it is not known.
                del self.inventories[resource_class]
        for amounts in changes.get("allocations", {}).values():
            for resource_class, (before, after) in amounts.items():
                self.used[resource_class] += (before or 0) - (after or 0)
        for name, members in (("traits", self.traits), ("aggregates", self.aggregates)):
            changed = changes.get(name, {})
            members.difference_update(changed.get("added", ()))
            members.update(changed.get("removed", ()))
        changed = changes.get("consumers", {})
        self.consumers += len(changed.get("removed", ())) - len(changed.get("added", ()))


class _State:
    """All providers while events are undone: the rows of the tables, and by uuid those that events have changed.

    Most have not changed since a time, so that only few of them are more than their rows.
    """

    def __init__(self, rows: Rows, class_names: Mapping[int, str], consumers: Mapping[int, int]) -> None:
        """Take the rows of a database, its resource classes by id, and the numbers of consumers by provider id."""
        self._rows = rows
        self._consumers = consumers
        self._class_names = dict(class_names)
        self._class_ids = {name: class_id for class_id, name in class_names.items()}
        #: Ids of classes that are in no table any more.
        self._ids = itertools.count(_ABOVE)
        self._present = {row[1]: row for row in rows.providers}
        self._uuids = {row[0]: row[1] for row in rows.providers}
        self._inventories = _Amounts(matrix(rows.inventories, 8), class_names)
        self._usages = _Amounts(matrix(rows.usages, 3), class_names)
        self._traits, self._aggregates = grouped(rows.traits), grouped(rows.aggregates)
        #: None of those that were not there yet.
        self._changed: dict[str, _Provider | None] = {}

    def undo(self, undoable: Undoable) -> None:
        """Undo one event."""
        if undoable.kind == RESOURCE_CLASS:
            self._rename(*undoable.changes["name"])
        elif undoable.kind == PROVIDER:
            assert undoable.uuid is not None
            before, after = undoable.generations
            if before is None and after is not None:
                self._changed[undoable.uuid] = None
                return
            provider = self._to_change(undoable.uuid)
            provider.undo(undoable.changes)
            if before is not None:
                provider.generation = before

    def _to_change(self, uuid: str) -> _Provider:
        """Return a provider that an event is about."""
        provider = self._changed.get(uuid)
        if provider is None:
            # Without a row it was deleted; or another program deleted it, which wrote no event.
            is_row = uuid in self._present and uuid not in self._changed
            provider = self._changed[uuid] = self._of_row(self._present[uuid]) if is_row else _Provider()
        return provider

    def _of_row(self, row: Any) -> _Provider:
        id_, _, name, generation, parent_id, _ = row
        return _Provider(
            *(name, generation or 0, self._uuids.get(parent_id or 0)),
            inventories={
                self._class_names[int(class_id)]: dict(zip(AMOUNTS, (*map(int, amounts), ratio), strict=True))
                for _, class_id, *amounts, ratio in self._inventories.of(id_)
            },
            used=Counter({self._class_names[int(class_id)]: int(used) for _, class_id, used in self._usages.of(id_)}),
            traits={*self._traits.get(id_, ())},
            aggregates={*self._aggregates.get(id_, ())},
            consumers=self._consumers.get(id_, 0),
        )

    def _rename(self, before: str | None, after: str | None) -> None:
        """Undo that a class got another name; classes that were created or deleted since then have no inventory."""
        if before is None or after is None:
            return
        known = self._class_ids.pop(after) if after in self._class_ids else next(self._ids)
        self._class_ids[before] = known
        self._class_names[known] = before
        for provider in filter(None, self._changed.values()):
            if after in provider.inventories:
                provider.inventories[before] = provider.inventories.pop(after)
            if after in provider.used:
                provider.used[before] = provider.used.pop(after)

    def built(self) -> tuple[Snapshot, dict[int, int]]:
        """Return the snapshot, and the numbers of consumers by provider id.

        Ids are the places in the order of the uuids.  Those of the tables are not known of providers that are gone, and
        what is gone may be more from one page of a past time to the next.
        """
        changed = {uuid: one for uuid, one in self._changed.items() if one is not None}
        kept = {uuid: row for uuid, row in self._present.items() if uuid not in self._changed}
        parents = {uuid: self._uuids.get(row[4] or 0) for uuid, row in kept.items()}
        parents |= {uuid: one.parent for uuid, one in changed.items()}
        ids = {uuid: number for number, uuid in enumerate(sorted(parents), 1)}
        heads = {uuid: (row[2], row[3]) for uuid, row in kept.items()}
        heads |= {uuid: (one.name, one.generation) for uuid, one in changed.items()}
        # Of those that have not changed, by the id of the table.
        moved = {row[0]: ids[uuid] for uuid, row in kept.items()}
        numbered = [(ids[uuid], one) for uuid, one in changed.items()]
        self._number_classes(changed.values())
        rows = Rows(
            providers=[
                (id_, uuid, *heads[uuid], ids.get(parents[uuid] or ""), ids[_root_of(uuid, parents)])
                for uuid, id_ in ids.items()
            ],
            inventories=self._inventories.with_those(
                moved,
                [
                    (id_, self._class_ids[name], *(columns[amount] for amount in AMOUNTS))
                    for id_, one in numbered
                    for name, columns in one.inventories.items()
                    if columns.keys() >= {*AMOUNTS}
                ],
            ),
            usages=self._usages.with_those(
                moved, [(id_, self._class_ids[name], used) for id_, one in numbered for name, used in one.used.items()]
            ),
            traits=_moved(self._rows.traits, moved) + _members((id_, one.traits) for id_, one in numbered),
            aggregates=_moved(self._rows.aggregates, moved) + _members((id_, one.aggregates) for id_, one in numbered),
            trait_ids=self._numbered_traits(changed.values()),
        )
        names = {class_id: name for name, class_id in self._class_ids.items()}
        consumers = {moved[id_]: number for id_, number in self._consumers.items() if id_ in moved}
        return build(rows, names), consumers | {id_: one.consumers for id_, one in numbered}

    def _number_classes(self, changed: Collection[_Provider]) -> None:
        """Give an id to each class that has none, as it is gone."""
        classes = {name for one in changed for name in (*one.inventories, *one.used)}
        for name in sorted(classes - self._class_ids.keys()):
            self._class_ids[name] = next(self._ids)

    def _numbered_traits(self, changed: Collection[_Provider]) -> dict[str, int]:
        """Return the ids of all traits, those that are gone above all others."""
        known = self._rows.trait_ids
        unknown = sorted({name for one in changed for name in one.traits} - known.keys())
        return {**known, **{name: _ABOVE + number for number, name in enumerate(unknown)}}


class _Amounts:
    """Rows of a table of amounts, each with the id of its provider and of its class."""

    def __init__(self, rows: Matrix, class_names: Mapping[int, str]) -> None:
        """Take the rows, without those of unknown classes."""
        rows = rows[np.isin(rows[:, 1], [*class_names])]
        self._rows = rows[np.argsort(rows[:, 0], kind="stable")]
        self._ids = np.ascontiguousarray(self._rows[:, 0])

    def of(self, provider_id: int) -> list[list[float]]:
        """Return the rows of a provider."""
        first, end = np.searchsorted(self._ids, (provider_id, provider_id + 1))
        found: list[list[float]] = self._rows[first:end].tolist()
        return found

    def with_those(self, moved: Mapping[int, int], more: Sequence[tuple[Any, ...]]) -> Matrix:
        """Return the rows of the providers that get another id, with that id, and further ones."""
        ids = np.array([moved.get(int(id_), 0) for id_ in self._ids], dtype=np.float64)
        kept = np.column_stack((ids, self._rows[:, 1:]))[ids > 0]
        return np.concatenate((kept, matrix(more, self._rows.shape[1])))


def _root_of(uuid: str, parents: Mapping[str, str | None]) -> str:
    """Return the uuid of the root; where other programs have made a loop, that of the provider itself."""
    path = [uuid]
    while (parent := parents[path[-1]]) is not None and parent in parents:
        if parent in path:
            return uuid
        path.append(parent)
    return path[-1]


def _moved(pairs: Iterable[tuple[int, str]], moved: Mapping[int, int]) -> list[tuple[int, str]]:
    return [(moved[id_], name) for id_, name in pairs if id_ in moved]


def _members(sets: Iterable[tuple[int, set[str]]]) -> list[tuple[int, str]]:
    return [(id_, name) for id_, names in sets for name in sorted(names)]


# --- the events ------------------------------------------------------------------------------------------------------


class Undoable(NamedTuple):
    """What an event of a provider or a resource class says."""

    kind: str
    #: None for a resource class.
    uuid: str | None
    generations: tuple[int | None, int | None]
    changes: dict[str, Any]


@dataclass(frozen=True, slots=True)
class EventsSince:
    """The events between a past time and one state of a database; rows of events never change."""

    #: The first position after that time, and the first one that is not known to the state.
    first: int
    end: int
    #: Transactions that had no position yet, in their order.
    unordered: tuple[tuple[int, int], ...]

    @classmethod
    def read(cls, db: Connection, moment: datetime.datetime, most: int) -> EventsSince:
        """Return the events since a moment, naive, UTC.

        Args:
            db: A connection that sees one committed state.
            most: The largest number of events.

        Raises:
            UnknownTime: The history does not reach back so far.
            TooManyEvents: There are more than ``most``.
        """
        oldest = db.execute(OLDEST).first()
        newest = db.execute(NEWEST_POSITION).first()
        if oldest is None or newest is None or oldest.at > moment:
            raise UnknownTime(None if oldest is None else oldest.at)
        end = newest.position + newest.events
        first = db.execute(_FIRST_AFTER, {"moment": moment}).scalar()
        if first is not None and end - first > most:
            # A tenth less, so that a client can ask for this time although there are more events by then.
            raise TooManyEvents(db.execute(_FIRST_FROM, {"position": end - most * 9 // 10}).scalar() or newest.at)
        unordered = tuple((row["writer_id"], row["seq"]) for row in order.unordered(db))
        return cls(end if first is None else first, end, unordered)

    def newest_first(self, database: Database) -> Iterator[Undoable]:
        """Yield the events of providers and resource classes, the newest first.

        Raises:
            UnknownTime: The oldest of them were removed meanwhile.
            Failure: As ``Database.read``.
        """
        for end in range(len(self.unordered), 0, -_TRANSACTIONS):
            some = self.unordered[max(0, end - _TRANSACTIONS) : end]
            yield from database.read(lambda db: _of_transactions(db, some))  # noqa: B023
        for end in range(self.end, self.first, -_WINDOW):
            window = {"first": max(self.first, end - _WINDOW), "end": end}
            rows = database.read(lambda db: db.execute(_OF_WINDOW, window).all())  # noqa: B023
            yield from map(_undoable, rows)
        # Events are removed from the oldest on: what is read last may have gone meanwhile.
        oldest = database.read(lambda db: db.execute(OLDEST).first())
        if oldest is None or oldest.position > self.first:
            raise UnknownTime(None if oldest is None else oldest.at)


def _of_transactions(db: Any, transactions: tuple[tuple[int, int], ...]) -> list[Undoable]:
    numbers = {transaction: number for number, transaction in enumerate(transactions)}
    those = sa.or_(*(sa.and_(events.c.writer_id == writer, events.c.seq == seq) for writer, seq in transactions))
    rows = db.execute(_OF_TRANSACTIONS.where(those)).all()
    rows.sort(key=lambda row: (numbers[row.writer_id, row.seq], row.number), reverse=True)
    return [*map(_undoable, rows)]


def _undoable(row: Any) -> Undoable:
    generations = row.before_generation, row.generation
    return Undoable(row.kind, row.uuid, generations, orjson.loads(row.changes))


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
_OF_TRANSACTIONS = _EVENTS.add_columns(events.c.ordinal.label("number"), events.c.writer_id, events.c.seq)
_OF_WINDOW = (
    _EVENTS.add_columns(POSITION.label("number"))
    .join(event_order, OF_ORDER)
    .where(event_order.c.position >= sa.bindparam("first"), event_order.c.position < sa.bindparam("end"))
    .order_by(POSITION.desc())
)
