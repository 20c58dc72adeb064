"""Settings of new connections, which depend neither on other connections nor on the server's settings."""

from __future__ import annotations

import sqlite3

import pytest
import sqlalchemy as sa

from placement.db.engine import dialects
from placement.db.engine.dialects import LOCK_TIMEOUT
from placement.objects.locked_provider import LockedProvider
from placement.objects.provider import ResourceProvider
from tests.clock import Clock
from tests.made import opened

pytestmark = pytest.mark.every_database


def test_the_first_connections_to_a_sqlite_file_wait_for_each_other(tmp_path, monkeypatch):
    """LP 1789633: SQLite does not wait when it switches a file to WAL while another connection writes to it."""
    path = tmp_path / "new.sqlite"
    writer = sqlite3.connect(path, isolation_level=None)
    writer.execute("BEGIN IMMEDIATE")
    writer.execute("CREATE TABLE t (a INTEGER)")
    clock = Clock()
    clock.sleep = lambda _seconds: writer.execute("COMMIT")
    monkeypatch.setattr(dialects, "time", clock)
    with opened(f"sqlite:///{path}") as database, database.engine.connect() as connection:
        assert connection.exec_driver_sql("PRAGMA journal_mode").scalar() == "wal"
    assert not writer.in_transaction
    writer.close()


#: Server settings that administrators may have changed.
SERVER_SETTINGS = {
    "mariadb": {
        "init_command": "SET SESSION time_zone = '+05:00', innodb_lock_wait_timeout = 1000, "
        "tx_isolation = 'READ-UNCOMMITTED'"
    },
    "postgresql": {
        "options": "-c timezone=Asia/Tokyo -c lock_timeout=0 -c jit=on -c default_transaction_isolation=serializable"
    },
}
SETTINGS = {
    "mariadb": ("SELECT @@time_zone, @@innodb_lock_wait_timeout", ("+00:00", LOCK_TIMEOUT)),
    "postgresql": (
        "SELECT current_setting('TimeZone'), current_setting('lock_timeout'), current_setting('jit')",
        ("UTC", f"{LOCK_TIMEOUT}s", "off"),
    ),
}
ISOLATION = {"mariadb": "SELECT @@tx_isolation", "postgresql": "SHOW transaction_isolation"}


@pytest.mark.parametrize("backend", ["mariadb", "postgresql"], indirect=True)
def test_the_settings_of_sessions_do_not_depend_on_the_settings_of_the_server(backend, database):
    """Times are in UTC, waits for locks are short, and a snapshot shows one state."""

    def fail(db):
        db.execute(sa.select(1))
        raise LookupError

    with opened(database.url.update_query_dict(SERVER_SETTINGS[backend.kind])) as configured:
        settings, expected = SETTINGS[backend.kind]
        configured.write(lambda _: None)
        configured.engine.dispose()
        with pytest.raises(LookupError):
            configured.write(fail)  # the first transaction of its connection; the failure rolls back only itself
        for run in (configured.read, configured.write, configured.snapshot):
            assert run(lambda db: tuple(db.execute(sa.text(settings)).one())) == expected
        levels = [
            run(lambda db: db.execute(sa.text(ISOLATION[backend.kind])).scalar())
            for run in (configured.write, configured.snapshot)
        ]
    assert [level.replace("-", " ").lower() for level in levels] == ["read committed", "repeatable read"]


def test_a_failure_in_a_snapshot_leaves_no_connection_in_the_past(database):
    """The pool returns that connection next."""

    def fail(db):
        assert ResourceProvider.find(db, "new") is None
        raise LookupError

    with pytest.raises(LookupError):
        database.snapshot(fail)
    database.write(lambda db: LockedProvider.create(db, uuid="new", name="new"))
    for run in (database.read, database.snapshot):
        assert run(lambda db: ResourceProvider.get(db, "new")).name == "new"
