"""All providers as of a past time: the present state, with the events since then undone from the newest on."""

from __future__ import annotations

import datetime
import itertools
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from sqlalchemy.engine import Connection

from placement.db.database import Database
from placement.db.events import PROVIDER, RESOURCE_CLASS
from placement.index import load
from placement.index.build import build
from placement.index.records import Rows
from placement.index.snapshot import Snapshot
from placement.objects import holders
from placement.objects.inventory import AMOUNTS
from placement.objects.past_events import EventsSince, Undoable

#: Classes and traits that are not in the tables any more get ids above all of the tables.
_ABOVE = 2**31


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
    database.history.order()
    most = database.history.settings.max_undone_events
    present, since = database.snapshot(lambda db: _read(db, moment, most))
    for undoable in since.newest_first(database):
        present.undo(undoable)
    return PastState(*present.built())


def _read(db: Connection, moment: datetime.datetime, most: int) -> tuple[_State, EventsSince]:
    # Before anything else is read: a time that is refused costs four rows.
    since = EventsSince.read(db, moment, most)
    rows = load.everything(db)
    consumers = holders.count_by_provider(db, [row[0] for row in rows.providers])
    return _State.of(rows, load.class_names(db), consumers), since


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
    """All providers by uuid, while events are undone."""

    def __init__(self, class_ids: Mapping[str, int], trait_ids: Mapping[str, int]) -> None:
        self._class_ids = dict(class_ids)
        self._trait_ids = trait_ids
        #: Ids of classes that are in no table any more.
        self._ids = itertools.count(_ABOVE)
        self._providers: dict[str, _Provider] = {}

    @classmethod
    def of(cls, rows: Rows, class_names: Mapping[int, str], consumers: Mapping[int, int]) -> _State:
        """Return the state of the rows of a database."""
        state = cls({name: class_id for class_id, name in class_names.items()}, rows.trait_ids)
        uuids = {row[0]: row[1] for row in rows.providers}
        by_id = {}
        for id_, uuid, name, generation, parent_id, _ in rows.providers:
            parent = None if parent_id is None else uuids.get(parent_id)
            by_id[id_] = _Provider(name, generation or 0, parent, consumers=consumers.get(id_, 0))
            state._providers[uuid] = by_id[id_]
        for id_, class_id, *amounts in rows.inventories:
            if int(id_) in by_id and int(class_id) in class_names:
                values = [int(amount) for amount in amounts[:-1]]
                columns = dict(zip(AMOUNTS, (*values, float(amounts[-1])), strict=True))
                by_id[int(id_)].inventories[class_names[int(class_id)]] = columns
        for id_, class_id, used in rows.usages:
            if int(id_) in by_id and int(class_id) in class_names:
                by_id[int(id_)].used[class_names[int(class_id)]] = int(used)
        for pairs, members in ((rows.traits, "traits"), (rows.aggregates, "aggregates")):
            for id_, name in pairs:
                if id_ in by_id:
                    getattr(by_id[id_], members).add(name)
        return state

    def undo(self, undoable: Undoable) -> None:
        """Undo one event."""
        if undoable.kind == RESOURCE_CLASS:
            self._rename(*undoable.changes["name"])
        elif undoable.kind == PROVIDER:
            assert undoable.uuid is not None
            before, after = undoable.generations
            if before is None and after is not None:
                self._providers.pop(undoable.uuid, None)
                return
            provider = self._providers.get(undoable.uuid)
            if provider is None:
                # It was deleted; or another program deleted it, which wrote no event.
                provider = self._providers[undoable.uuid] = _Provider()
            provider.undo(undoable.changes)
            if before is not None:
                provider.generation = before

    def _rename(self, before: str | None, after: str | None) -> None:
        """Undo that a class got another name; classes that were created or deleted since then have no inventory."""
        if before is None or after is None:
            return
        known = self._class_ids.pop(after) if after in self._class_ids else next(self._ids)
        self._class_ids[before] = known
        for provider in self._providers.values():
            if after in provider.inventories:
                provider.inventories[before] = provider.inventories.pop(after)
            if after in provider.used:
                provider.used[before] = provider.used.pop(after)

    def built(self) -> tuple[Snapshot, dict[int, int]]:
        """Return the snapshot, and the numbers of consumers by provider id.

        Ids are the places in the order of the uuids.  Those of the tables are not known of providers that are gone, and
        what is gone may be more from one page of a past time to the next.
        """
        ids = {uuid: number for number, uuid in enumerate(sorted(self._providers), 1)}
        numbered = [(ids[uuid], provider) for uuid, provider in self._providers.items()]
        providers = self._providers.values()
        classes = {name for provider in providers for name in (*provider.inventories, *provider.used)}
        for name in sorted(classes - self._class_ids.keys()):
            self._class_ids[name] = next(self._ids)
        traits = {name for provider in providers for name in provider.traits}
        unknown = sorted(traits - self._trait_ids.keys())
        rows = Rows(
            providers=[
                (ids[uuid], uuid, one.name, one.generation, ids.get(one.parent or ""), ids[self._root_of(uuid)])
                for uuid, one in self._providers.items()
            ],
            inventories=[
                (id_, self._class_ids[name], *(columns[amount] for amount in AMOUNTS))
                for id_, one in numbered
                for name, columns in one.inventories.items()
                if columns.keys() >= {*AMOUNTS}
            ],
            usages=[(id_, self._class_ids[name], used) for id_, one in numbered for name, used in one.used.items()],
            traits=_members((id_, one.traits) for id_, one in numbered),
            aggregates=_members((id_, one.aggregates) for id_, one in numbered),
            trait_ids={**self._trait_ids, **{name: _ABOVE + number for number, name in enumerate(unknown)}},
        )
        names = {class_id: name for name, class_id in self._class_ids.items()}
        return build(rows, names), {id_: one.consumers for id_, one in numbered}

    def _root_of(self, uuid: str) -> str:
        """Return the uuid of the root; where other programs have made a loop, that of the provider itself."""
        path = [uuid]
        while (parent := self._providers[path[-1]].parent) is not None and parent in self._providers:
            if parent in path:
                return uuid
            path.append(parent)
        return path[-1]


def _members(sets: Iterable[tuple[int, set[str]]]) -> list[tuple[int, str]]:
    return [(id_, name) for id_, names in sets for name in sorted(names)]
