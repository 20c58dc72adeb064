"""One run of a write, and its effects on rows of the database, on the feed, and on responses from the index."""

from __future__ import annotations

import json
import re
import weakref
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa

from placement.db import feed
from placement.db.database import Database
from placement.db.schema.tables import provider_changes, resource_providers
from tests.caller import Answer, Caller
from tests.db import row_snapshots
from tests.db.in_process import placement
from tests.db.scenarios import NO_PROVIDER, Names, Write

#: Request ids and dates, which differ in each run.
_VARYING = re.compile(r"req-[0-9a-f-]{36}|\d{4}-\d\d-\d\dT[\d:.]+\+00:00")


@dataclass
class ScenarioRun:
    """A write whose preconditions were created through a database without faults."""

    write: Write
    database: Database
    names: Names = field(default_factory=Names)

    def __post_init__(self) -> None:
        self._witness = _witness(self.database)
        for call in self.write.before:
            answer = self._witness(*self.names.fill(call))
            assert answer.status < 300, (call, answer)
        self._call = self.names.fill(self.write.call)
        self._earlier = self._rows()
        self._ids = self._uuids()

    def ask(self, service: Caller) -> Answer:
        """Send the request of the write; return the response."""
        return service(*self._call)

    def state(self) -> dict[str, Any]:
        """Return the state of this run's objects, with names that are the same in every run."""
        uuids = [value for name, value in self.names.items() if name != "RUN"]
        rows = row_snapshots.read(self.database, uuids, self.names["RUN"])
        rows |= {page: self._witness("GET", page)[:2] for page in self.names.pages()}
        state: dict[str, Any] = json.loads(_VARYING.sub("", self.names.hide(json.dumps(rows))), object_hook=_sort_lists)
        return state

    def changes(self) -> dict[str, str]:
        """Return the changes in the feed since the preconditions, by the name of the provider."""
        uuids = self._ids | self._uuids()
        names = {value: name for name, value in self.names.items()} | {"": NO_PROVIDER}
        rows = self._rows() - self._earlier
        assert len({row.provider_id for row in rows}) == len(rows), "two rows of one change"
        return {names[uuids.get(row.provider_id, "")]: row.what for row in rows}

    def _rows(self) -> set[Any]:
        only_events = (provider_changes.c.provider_id == feed.NO_PROVIDER) & (provider_changes.c.what == feed.USAGE)
        query = sa.select(provider_changes).where(~only_events)
        return set(self.database.read(lambda db: db.execute(query).all()))

    def _uuids(self) -> dict[int, str]:
        query = sa.select(resource_providers.c.id, resource_providers.c.uuid)
        return {row.id: row.uuid for row in self.database.read(lambda db: db.execute(query).all())}


_WITNESSES: weakref.WeakKeyDictionary[Database, Caller] = weakref.WeakKeyDictionary()


def _witness(database: Database) -> Caller:
    """Return a service that all runs share, whose index follows the feed."""
    if database not in _WITNESSES:
        _WITNESSES[database] = placement(database)
    return _WITNESSES[database]


def _sort_lists(document: dict[str, Any]) -> dict[str, Any]:
    """Sort lists of traits and aggregates by their placeholders, so that all runs return the same."""
    return {name: sorted(value, key=str) if isinstance(value, list) else value for name, value in document.items()}
