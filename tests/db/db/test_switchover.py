"""A switchover: the primary becomes a replica, and new connections lead to another server."""

from __future__ import annotations

import logging
import secrets
import threading
import time

import pytest
import sqlalchemy as sa

from placement import errors
from placement.db.engine import freshness
from placement.db.schema.tables import traits
from placement.db.upkeep import standard
from placement.objects.locked_provider import LockedProvider
from placement.objects.provider import ResourceProvider
from placement.objects.trait import Trait
from tests import made, proxies, servers
from tests.clock import PATIENCE
from tests.made import opened


class Pair:
    """Two servers behind a proxy, with the same database and user names; the first is the primary."""

    def __init__(self, first, second, proxy):
        self.first, self.second, self._proxy = first, second, proxy
        self._password = secrets.token_hex(8)
        self.name = self.user = f"switched_{secrets.token_hex(4)}"
        for server in (first, second):
            self._prepare(server)
        self.url = self._url_of(first).set(port=proxy.port)

    def _url_of(self, server):
        return server.url.set(username=self.user, password=self._password, database=self.name)

    def _prepare(self, server):
        if server.kind == "mariadb":
            statements = [
                f"CREATE DATABASE {self.name}",
                f"CREATE OR REPLACE USER {self.user}@'127.0.0.1' IDENTIFIED BY '{self._password}'",
                f"GRANT ALL ON {self.name}.* TO {self.user}@'127.0.0.1'",
            ]
        else:
            statements = [
                f"CREATE ROLE {self.user} LOGIN PASSWORD '{self._password}'",
                f"CREATE DATABASE {self.name} OWNER {self.user}",
            ]
        server._administer(*statements)
        with opened(self._url_of(server)) as database:
            made.sync(database.engine)
            standard.insert(database)

    def clean_up(self):
        """Promote the first server again, and remove the rows of the test."""
        if self.first.kind == "mariadb":
            self.first._administer("SET GLOBAL read_only = 0")
        else:
            self.first._administer("SET default_transaction_read_only = off", "ALTER SYSTEM RESET ALL")
            self.first._administer("SELECT pg_reload_conf()")
            self._wait_until_read_only("off")
        for server in (self.first, self.second):
            server.drop_database(self._url_of(server).render_as_string())
            server._administer(f"DROP USER {self.user}" + ("@'127.0.0.1'" if server.kind == "mariadb" else ""))

    def demote(self):
        """Make the first server read-only, even for open connections."""
        if self.first.kind == "mariadb":
            self.first._administer("SET GLOBAL read_only = 1")
            return
        self.first._administer("ALTER SYSTEM SET default_transaction_read_only = on")
        self.first._administer("SELECT pg_reload_conf()")
        self._wait_until_read_only("on")
        # The setting may reach one session before others; a second new session begins after it has reached all.
        self.first._administer("SELECT 1")

    def _wait_until_read_only(self, read_only):
        while self.first._administer("SHOW default_transaction_read_only")[0][0] != read_only:
            time.sleep(0.01)

    def switch(self):
        """Demote the first server, and direct new connections to the second."""
        self.demote()
        self._proxy.target = self.second.port

    def has_provider(self, server, name):
        with opened(self._url_of(server)) as database:
            return database.read(lambda db: ResourceProvider.find(db, name)) is not None


@pytest.fixture(scope="module")
def old_primary(backend):
    with servers.private(backend.kind) as server:
        yield server


@pytest.fixture
def pair(backend, old_primary):
    with proxies.proxy(old_primary.port) as proxy:
        pair = Pair(old_primary, backend, proxy)
        yield pair
        pair.clean_up()


def create(name):
    return lambda db: LockedProvider.create(db, uuid=name, name=name)


def find(name):
    return lambda db: ResourceProvider.find(db, name)


@pytest.mark.parametrize("backend", ["mariadb", "postgresql"], indirect=True)
def test_the_first_write_and_then_reads_leave_a_demoted_primary(pair, monkeypatch):
    monkeypatch.setattr(freshness, "CHECK_INTERVAL", 3600)
    with opened(pair.url) as database, opened(pair.url) as reading_database:
        database.write(create("old"))
        assert database.read(find("old"))
        assert reading_database.read(find("old"))
        pair.switch()
        database.write(create("new"))
        assert pair.has_provider(pair.second, "new")
        assert not pair.has_provider(pair.first, "new")
        assert database.read(find("new"))
        # A process that only reads notices the demotion after the check interval.
        assert reading_database.read(find("old"))
        monkeypatch.setattr(freshness, "CHECK_INTERVAL", 0)
        assert reading_database.read(find("new"))


@pytest.mark.parametrize("backend", ["mariadb"], indirect=True)
def test_a_commit_that_a_demoted_primary_refuses_is_retried(pair):
    """MariaDB refuses the COMMIT of a transaction that wrote before; the error means that nothing is committed."""
    attempts = []

    def work(db):
        db.execute(sa.insert(traits).values(name="CUSTOM_NEW"))
        attempts.append(db)
        if len(attempts) == 1:
            demoter = threading.Thread(target=pair.switch)
            demoter.start()
            demoter.join(PATIENCE)
            assert not demoter.is_alive()

    with opened(pair.url) as database:
        database.write(create("before"))
        database.write(work)
        assert len(attempts) == 2
        assert database.read(lambda db: Trait.find(db, "CUSTOM_NEW")) is not None


@pytest.mark.parametrize("backend", ["mariadb", "postgresql"], indirect=True)
def test_without_another_primary_writes_are_refused_and_reads_continue(pair, caplog, monkeypatch):
    with opened(pair.url) as database:
        database.write(create("old"))
        pair.demote()
        with caplog.at_level(logging.ERROR), pytest.raises(errors.DatabaseUnavailable):
            database.write(create("new"))
        assert "read" in caplog.text
        monkeypatch.setattr(freshness, "CHECK_INTERVAL", 0.01)
        for _ in range(3):
            time.sleep(0.02)
            assert database.read(find("old"))
