"""Services of another implementation, run by a command: what they answer is judged, their tables are not.

    python -m jepsen run --cluster other-mariadb --command 'serve --port {port} --database {database}' ...

The command must end by itself on SIGTERM, and make its tables if the database is empty.
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

#: Drivers that every implementation can be given, by the kind of database.
_DRIVERS = {"sqlite": "sqlite", "mariadb": "mysql+pymysql", "postgresql": "postgresql+psycopg2"}


@contextmanager
def _service(cluster: Cluster, database_url: str) -> Iterator[Service]:
    """Provide what ``Other.command`` starts."""
    assert Other.command, "another implementation is run by --command"
    url = sa.make_url(database_url).set(drivername=_DRIVERS[cluster.kind])
    port, directory = children.free_port(), children.run_directory() / f"other-{secrets.token_hex(4)}"
    directory.mkdir()
    places = {"port": port, "database": url.render_as_string(hide_password=False)}
    argv = [word.format(**places) for word in shlex.split(Other.command)]
    # Elsewhere than here, where a server of Python programs would find this package.
    yield from running.run(argv, port, directory, environment=cluster.environment, cwd=str(directory))


class Other(Cluster):
    """The common part.

    Attributes:
        command: A command line with ``{port}`` and ``{database}`` in it, for all clusters of this process.
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
