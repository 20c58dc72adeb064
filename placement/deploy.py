"""The service put together: the onion of layers round the application, and what is done once at start."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import sqlalchemy as sa
from oslo_config import cfg
from oslo_log import log

from placement import conf as options
from placement import errors, metrics, routes
from placement.db import driver_errors, schema, standard
from placement.db.bulkhead import Bulkhead
from placement.db.connect import connect
from placement.db.database import Database
from placement.errors import StartError
from placement.http.application import Application
from placement.http.service import Service
from placement.index.live import LiveIndex
from placement.middleware.authentication import authentication
from placement.middleware.cross_origin import cross_origin
from placement.middleware.health import Health
from placement.middleware.identity import Identity
from placement.middleware.microversion import Microversion
from placement.middleware.profiler import profiled, traced
from placement.middleware.proxy_headers import proxy_headers
from placement.middleware.request_log import RequestLog
from placement.middleware.unexpected import UnexpectedErrors
from placement.middleware.well_formed import WellFormed
from placement.policy import Policy

LOG = log.getLogger(__name__)

# Outermost first (docs: layers).  CORS is outside authentication, so that a browser may read a 401; the version is told
# further in than bugs are caught, so that a 500 tells none.
Layers = tuple[Callable[[Any, Service], Any], ...]
LAYERS: Layers = (
    profiled,
    traced,
    proxy_headers,
    RequestLog,
    WellFormed,
    Health,
    cross_origin,
    authentication,
    Identity,
    UnexpectedErrors,
    Microversion,
)


def loadapp(
    conf: cfg.ConfigOpts, database: Database | None = None, layers: Layers = LAYERS, threads: int | None = None
) -> Any:
    """The WSGI application for a configuration, its database ready to be used; raises StartError.

    Nothing of it is global: every call gives an application of its own.

    :param threads: those of the web server that call it, where their number is known
    """
    for found in options.misspelt(conf):
        LOG.warning("%s", found)
    if database is None:
        database = reached(conf)
    _prepare(database, conf)
    database.bulkhead = Bulkhead(_most_threads(conf.placement_database.max_threads, threads))
    _observe(database, conf)
    index = LiveIndex(database, conf.placement.index_verify_interval)
    return onion(Application(routes.TABLE, Service(conf, database, _policy(conf), index)), layers)


def onion(application: Application, layers: Layers = LAYERS) -> Any:
    """The application with all layers round it."""
    layered: Any = application
    for layer in reversed(layers):
        layered = layer(layered, application.service)
    return layered


def _observe(database: Database, conf: cfg.ConfigOpts) -> None:
    """Have counted and clocked what the configuration wants to know."""
    if conf.metrics.directory:
        metrics.start(conf.metrics.directory)
    if conf.api.slow_request_threshold:
        database.time_statements()


def _most_threads(told: int | None, threads: int | None) -> int | None:
    """How many threads may use the database at a time; None for no bound.

    One thread is left for requests that need no database, unless that would leave a single one to those that do.
    """
    if told is not None:
        return told or None
    return threads - 1 if threads is not None and threads > 2 else None


def _policy(conf: cfg.ConfigOpts) -> Policy:
    try:
        return Policy(conf)
    except ValueError as error:
        raise StartError(f"[oslo_policy]policy_file: {error}") from error


def reached(conf: cfg.ConfigOpts) -> Database:
    """The database of the configuration, once it answers; raises StartError."""
    group = conf.placement_database
    try:
        database = connect(conf)
    except (sa.exc.ArgumentError, ImportError) as error:
        raise StartError(options.no_connection(error)) from error
    try:
        database.wait_until_reachable(group.max_retries, group.retry_interval)
    except errors.Unavailable as failure:
        raise StartError(f"{failure} ({driver_errors.cause_of(failure)})") from failure
    return database


def _prepare(database: Database, conf: cfg.ConfigOpts) -> None:
    """Make sure of the schema and of the standard rows; others may be doing the same (docs: entry-points)."""
    if conf.placement_database.sync_on_startup:
        try:
            with database.unbounded_engine() as engine:
                schema.sync(engine)
        except schema.CommandError as error:
            raise StartError(str(error)) from error
    finding = schema.finding(database.engine)
    if finding and schema.state(database.engine) is not schema.State.UNKNOWN:
        raise StartError(finding)
    if finding:
        LOG.warning(finding)  # a newer program was here: its tables are ours and some more
    standard.insert(database)
