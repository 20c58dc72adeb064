"""Fixtures for functional tests of other projects: the service in the test's process, with its own database.

Any number of fixtures can be used, consecutively or at once: each has its own database and configuration.  They share
the template of an empty database, and a replacement of ``HTTPAdapter.send`` that the last one removes.
docs/testing-other-projects.rst describes their use.
"""

from __future__ import annotations

import contextlib
import functools
import sqlite3
import uuid
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urlsplit

import fixtures
from oslo_config import cfg
from oslo_config import fixture as config_fixture
from requests import PreparedRequest, Response
from requests.adapters import HTTPAdapter

from placement import conf as options
from placement import deploy, extension
from placement.db import database as databases
from placement.db.connect import connect
from placement.db.schema import schema
from placement.db.upkeep import standard
from placement.direct import Transport


class Database(fixtures.Fixture):
    """The configured database, with the schema and the standard rows.

    An in-memory database ends with the fixture; any other database keeps the rows that the test has written.
    """

    def __init__(self, conf_fixture: config_fixture.Config, set_config: bool = False) -> None:
        """Create the fixture; ``setUp`` prepares the database.

        Args:
            conf_fixture: The fixture of oslo.config, with the options of the service registered.
            set_config: Whether to configure a new in-memory database first.
        """
        super().__init__()
        self.conf_fixture = conf_fixture
        self.set_config = set_config

    def _setUp(self) -> None:
        if self.set_config:
            _name_new_database(self.conf_fixture)
        # A named in-memory database exists as long as a connection to it is open.
        database = connect(self.conf_fixture.conf)
        self.addCleanup(database.dispose)
        if database.url.get_backend_name() == "sqlite" and schema.version(database.engine) is None:
            _copy_template(database)
        else:
            schema.sync(database.engine, additions=_additions())
            standard.insert(database)


class PlacementFixture(fixtures.Fixture):
    """The service in this process, reachable at the URL ``endpoint`` with ``requests`` and thus with keystoneauth.

    The token ``token`` has all rights: the old policy is in force, which also allows administrators to reshape.
    """

    def __init__(
        self,
        conf_fixture: config_fixture.Config | None = None,
        db: bool = True,
        use_intercept: bool = True,
        register_opts: bool = True,
    ) -> None:
        """Create the fixture; ``setUp`` starts the service.

        Args:
            conf_fixture: The fixture of oslo.config, used while the service runs; None for a new one.
            db: Whether to use a new in-memory database instead of the configured one.
            use_intercept: Whether to provide ``endpoint`` besides ``app``, the WSGI application.
            register_opts: Whether to register the options of the service.
        """
        super().__init__()
        self.token = "admin"
        self.conf_fixture = conf_fixture
        self.db = db
        self.use_intercept = use_intercept
        self.register_opts = register_opts

    def _setUp(self) -> None:
        if self.conf_fixture is None:
            self.conf_fixture = self.useFixture(config_fixture.Config(cfg.ConfigOpts()))
        conf = self.conf_fixture.conf
        if self.register_opts:
            options.register_opts(conf)
        self._configure_placement(self.conf_fixture)
        _read_no_files(conf)
        if self.db:
            self.useFixture(Database(self.conf_fixture))
        database = deploy.connected_database(conf)
        self.addCleanup(database.dispose)
        self.app = deploy.loadapp(conf, database)
        if self.use_intercept:
            self.endpoint = self.useFixture(InProcessEndpoint(self.app)).url

    def _configure_placement(self, conf_fixture: config_fixture.Config) -> None:
        """Set options before the database and the service are created; subclasses may override it."""
        conf_fixture.config(group="api", auth_strategy="noauth2")
        conf_fixture.config(group="oslo_policy", enforce_new_defaults=False)
        if self.db:
            _name_new_database(conf_fixture)


class InProcessEndpoint(fixtures.Fixture):
    """A URL, ``url``, at which ``requests`` reaches a WSGI application of this process from any session."""

    def __init__(self, application: Any) -> None:
        super().__init__()
        self._transport = Transport(application)

    def _setUp(self) -> None:
        host = str(uuid.uuid4())
        self.url = f"http://{host}"
        _route(host, self._transport)
        self.addCleanup(_unroute, host)


# --- the database ----------------------------------------------------------------------------------------------------


def _name_new_database(conf_fixture: config_fixture.Config) -> None:
    url = f"sqlite:///file:/{uuid.uuid4()}?vfs=memdb&uri=true"
    conf_fixture.config(group="placement_database", connection=url)


def _additions() -> tuple[schema.Addition, ...]:
    """Return the tables of all extensions, so that a test may enable any of them."""
    return extension.additions_of(extension.installed_extensions().values())


def _copy_template(database: databases.Database) -> None:
    """Copy the template into an empty SQLite database, which is about ten times as fast as the migrations."""
    with contextlib.closing(sqlite3.connect(":memory:")) as template, _driver(database) as connection:
        template.deserialize(_template())
        template.backup(connection)


@functools.cache
def _template() -> bytes:
    with databases.open_database("sqlite://") as database:
        schema.sync(database.engine, additions=_additions())
        standard.insert(database)
        with _driver(database) as connection:
            return connection.serialize()


@contextlib.contextmanager
def _driver(database: databases.Database) -> Iterator[sqlite3.Connection]:
    with contextlib.closing(database.engine.raw_connection()) as connection:
        assert isinstance(connection.driver_connection, sqlite3.Connection)
        yield connection.driver_connection


def _read_no_files(conf: cfg.ConfigOpts) -> None:
    """Initialize the configuration without files, unless the caller has already done so."""
    try:
        conf.find_file(options.PROJECT)
    except cfg.NotInitializedError:
        conf([], **options.NO_FILES, use_env=False)


# --- the endpoint ----------------------------------------------------------------------------------------------------

#: The adapter class whose ``send`` all sessions call.
_adapters: Any = HTTPAdapter
_send_out: Callable[..., Response] = _adapters.send
#: The transports to applications in this process, by host.
_transports: dict[str | None, Transport] = {}


def _send(adapter: HTTPAdapter, request: PreparedRequest, *arguments: Any, **options: Any) -> Response:
    """Send a request to the transport of its host, or to the network; replaces ``HTTPAdapter.send``."""
    transport = _transports.get(urlsplit(str(request.url)).hostname)
    if transport is None:
        return _send_out(adapter, request, *arguments, **options)
    return transport.send(request)


def _route(host: str, transport: Transport) -> None:
    global _send_out
    if not _transports and _adapters.send is not _send:
        _send_out, _adapters.send = _adapters.send, _send
    _transports[host] = transport


def _unroute(host: str) -> None:
    """Remove a transport; removing the last one restores ``requests``.  Fixtures may end in any order."""
    del _transports[host]
    if not _transports:
        _adapters.send = _send_out
