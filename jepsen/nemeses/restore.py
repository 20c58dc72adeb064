"""A backup from some seconds before, restored in place with the commands of docs/backup.rst while the services run.

That page stops clients meanwhile, because their writes would be mixed with the backup.  Here the database is
unreachable instead, so the services keep the indices and the cached ids of the lost state.
"""

from __future__ import annotations

import contextlib
import os
import random
import secrets
import sqlite3
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from jepsen.clusters.cluster import Cluster
from jepsen.nemeses.nemesis import Nemesis
from tests import children, proxy_faults


class RestoreBackup(Nemesis):
    """A restored backup, which loses the commits since then."""

    name = "restore-backup"
    loses_tail = keeps_earlier = True
    seconds = 2.0

    def applies_to(self, cluster: Cluster) -> bool:
        return cluster.kind == "sqlite" or (len(cluster.servers) == 1 and bool(cluster.proxies))

    @contextlib.contextmanager
    def harm(self, cluster: Cluster, rng: random.Random) -> Iterator[dict[str, Any]]:
        url = sa.make_url(cluster.database_url)
        # Concurrent runs of tests share the directory, and may have equal random numbers.
        backup = children.run_directory() / f"backup-{secrets.token_hex(8)}"
        _back_up(url, backup)
        try:
            yield {}
            with out_of_reach(cluster):
                _restore(url, backup)
        finally:
            backup.unlink()


@contextlib.contextmanager
def out_of_reach(cluster: Cluster) -> Iterator[None]:
    """Cut the services off from the database server for the block; SQLite's lock keeps them off a file."""
    with contextlib.ExitStack() as stack:
        for proxy in cluster.proxies.values():
            stack.enter_context(proxy.behaving(proxy_faults.Resets()))
        yield


def _back_up(url: sa.URL, backup: Path) -> None:
    match url.get_backend_name():
        case "sqlite":
            copy_sqlite(str(url.database), backup)
        case "mysql":
            _run(url, ["mariadb-dump", "--single-transaction", f"--result-file={backup}", str(url.database)])
        case "postgresql":
            _run(url, ["pg_dump", "--format=custom", f"--file={backup}", str(url.database)])


def _restore(url: sa.URL, backup: Path) -> None:
    match url.get_backend_name():
        case "sqlite":
            copy_sqlite(str(backup), str(url.database))
        case "mysql":
            with backup.open() as dump:
                _run(url, ["mariadb", str(url.database)], stdin=dump)
        case "postgresql":
            words = ["--clean", "--if-exists", "--no-owner", f"--dbname={url.database}", str(backup)]
            _run(url, ["pg_restore", *words])


def copy_sqlite(source: Path | str, target: Path | str) -> None:
    """Copy an SQLite database, which may be in use; raise sqlite3.OperationalError if the source does not exist."""
    # A missing source must not be created, as an empty database would replace the target.
    existing = f"{Path(source).absolute().as_uri()}?mode=ro"
    with (
        contextlib.closing(sqlite3.connect(existing, uri=True)) as old,
        contextlib.closing(sqlite3.connect(target)) as new,
    ):
        old.backup(new)


def _run(url: sa.URL, words: Sequence[str], **more: Any) -> None:
    program, *arguments = words
    address = [f"--host={url.host}", f"--port={url.port}"]
    if url.get_backend_name() == "mysql":
        address += [f"--user={url.username}", "--protocol=tcp", "--skip-ssl"]
    else:
        address += [f"--username={url.username}"]
    passwords = {"MYSQL_PWD": str(url.password), "PGPASSWORD": str(url.password)}
    subprocess.run([program, *address, *arguments], env=os.environ | passwords, check=True, **more)
