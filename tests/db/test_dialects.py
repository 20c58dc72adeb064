"""Connections come out of the box ready for use, whatever others do at that moment."""

from __future__ import annotations

import sqlite3
import threading

from placement.db.engine import opened


def test_the_first_connections_to_a_sqlite_file_wait_for_each_other(tmp_path):
    """LP 1789633: SQLite refuses at once, without waiting, to switch a file to WAL that somebody is writing to."""
    path = tmp_path / "new.sqlite"
    somebody = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    somebody.execute("BEGIN IMMEDIATE")
    somebody.execute("CREATE TABLE t (a INTEGER)")
    leaves = threading.Timer(0.3, somebody.execute, ["COMMIT"])
    leaves.start()
    with opened(f"sqlite:///{path}") as database, database.engine.connect() as connection:
        assert connection.exec_driver_sql("PRAGMA journal_mode").scalar() == "wal"
    leaves.join()
    somebody.close()
