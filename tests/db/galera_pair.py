"""The service at two nodes of Galera, and requests at both that are always concurrent."""

from __future__ import annotations

import functools

import pytest
import sqlalchemy as sa

from tests.db.in_process import placement
from tests.load.soundness import flaws_of_rows
from tests.load.storm import Call, claim, new, stock

#: Rows of a table without a key; changing all takes a quarter of a second, because each is looked up by a scan.
ROWS = 1500
#: Attempts to make two requests concurrent on a busy machine.
TRIES = 20

AGGREGATE, OTHER = new(), new()


class Missed(Exception):
    """The slow node had applied all changes before the second request was committed."""


class Pair:
    """The service at two nodes."""

    def __init__(self, slow, quick):
        self.databases = slow, quick
        self.slow, self.quick = placement(slow), placement(quick)
        self.patience = 1
        with slow.engine.begin() as connection:
            connection.exec_driver_sql("CREATE TABLE slow (number INT NOT NULL)")
            connection.execute(sa.text("INSERT INTO slow VALUES (:n)"), [{"n": 0}] * ROWS)
        # Create the names that most tests use.
        for service in (self.slow, self.quick):
            provider = self.provider(VCPU=1)
            for call in (claim([provider]), aggregates(provider, AGGREGATE, OTHER)):
                assert service(*arguments_of(call)).status in (200, 204)
            self.settle()

    def ask(self, call):
        """Send a request; return the response once both nodes have applied it."""
        answer = self.slow(*arguments_of(call))
        self.settle()
        return answer

    def provider(self, parent=None, **totals):
        """Create a provider with these inventories; return its uuid."""
        uuid = new()
        assert self.ask(create_child(uuid, parent)).status == 200
        if totals:
            assert self.ask(stock(uuid, 0, **totals)).status == 200
        return uuid

    def create_name(self, call):
        """Create a class or a trait with this request; return its name."""
        assert self.ask(call).status == 201
        return call.path.rpartition("/")[2]

    def meet(self, first, second):
        """Return the statuses of two requests at two nodes; the first commits first, and the second does not see it.

        A function that takes the database may replace a request.
        """
        slow, quick = self.databases
        before = flaws_of_rows(slow.engine)
        self.occupy()
        behind = []

        def note_lag(_connection):
            if not behind:
                newest = [database.read(lambda db: db.execute(_NEWEST).scalar()) for database in self.databases]
                behind.append(newest[0] < newest[1])

        sa.event.listen(slow.engine, "commit", note_lag)
        try:
            statuses = [self._do(self.quick, quick, first), self._do(self.slow, slow, second)]
        finally:
            sa.event.remove(slow.engine, "commit", note_lag)
        self.settle()
        assert flaws_of_rows(slow.engine) == flaws_of_rows(quick.engine) == before
        if behind != [True]:
            self.patience += 1
            raise Missed
        return statuses

    def occupy(self):
        """Make the slow node apply a long change before all later commits of the quick node."""
        with self.databases[1].engine.begin() as connection:
            for _ in range(self.patience):
                connection.exec_driver_sql("UPDATE slow SET number = number + 1")

    @staticmethod
    def _do(service, database, work):
        return work(database) if callable(work) else service(*arguments_of(work)).status

    def settle(self):
        """Wait until each node has applied the commits of the other."""
        for database in self.databases:
            with database.reading_engine.connect() as connection:
                connection.exec_driver_sql("SET SESSION wsrep_sync_wait = 15")
                connection.exec_driver_sql("SELECT 1 FROM feed_instance")
                connection.exec_driver_sql("SET SESSION wsrep_sync_wait = 0")


_NEWEST = sa.text("SELECT MIN(number) FROM slow")


def arguments_of(call):
    return call.method, call.path, call.minor, call.body


def create_child(uuid, parent=None):
    return Call("POST", "/resource_providers", {"name": uuid, "uuid": uuid, "parent_provider_uuid": parent})


def aggregates(provider, *uuids):
    """Return a request of version 1.18, in which a client states no generation."""
    return Call("PUT", f"/resource_providers/{provider}/aggregates", [*uuids], 18)


def retry_if_missed(test):
    """Run the test again if its two requests were not concurrent."""

    @functools.wraps(test)
    def wrapper(*args, **kwargs):
        for _ in range(TRIES):
            try:
                return test(*args, **kwargs)
            except Missed:
                pass
        raise AssertionError(f"the requests missed each other {TRIES} times")

    return wrapper


either_first = pytest.mark.parametrize("order", [1, -1], ids=["this order", "other order"])
