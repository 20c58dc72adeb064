"""Services of another implementation, run by a command; their responses are checked, but not their tables.

    python -m jepsen run --cluster other-mariadb --command 'serve --port {port} --database {database}' ...

The command must exit on SIGTERM, and create its tables if the database is empty.
"""

from __future__ import annotations

import secrets
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from typing import ClassVar

import sqlalchemy as sa

from jepsen.clusters import single_database
from jepsen.clusters.cluster import Cluster
from tests import children, running
from tests.running import Service

#: Database drivers that any implementation supports, by kind of database.
_DRIVERS = {"sqlite": "sqlite", "mariadb": "mysql+pymysql", "postgresql": "postgresql+psycopg2"}


@contextmanager
def _service(cluster: Cluster, database_url: str) -> Iterator[Service]:
    """Run ``Other.command`` as a service."""
    assert Other.command, "--command is required for the other-... clusters"
    url = sa.make_url(database_url).set(drivername=_DRIVERS[cluster.kind])
    port, directory = children.free_port(), children.run_directory() / f"other-{secrets.token_hex(4)}"
    directory.mkdir()
    places = {"port": port, "database": url.render_as_string(hide_password=False)}
    argv = [word.format(**places) for word in shlex.split(Other.command)]
    # Another directory, because a Python server would import this package from here.
    yield from running.run(argv, port, directory, environment=cluster.environment, cwd=str(directory))


class Other(Cluster):
    """Base class of clusters with another implementation.

    Attributes:
        command: Command line with ``{port}`` and ``{database}``, for all clusters of this process.
    """

    command: ClassVar[str] = ""
    shows_state = False
    serve = _service


class SQLite(Other, single_database.SQLite):
    name = "other-sqlite"


class MariaDB(Other, single_database.MariaDB):
    name = "other-mariadb"


class PostgreSQL(Other, single_database.PostgreSQL):
    name = "other-postgresql"
