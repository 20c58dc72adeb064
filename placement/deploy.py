"""Assembly and start of the service: shared layers, APIs, and the work done once at start."""

from __future__ import annotations

import contextlib
import platform
from collections.abc import Iterable, Sequence
from pathlib import Path
from wsgiref.types import WSGIApplication

import sqlalchemy as sa
from oslo_config import cfg
from oslo_log import log
from oslo_policy.policy import Enforcer, RuleDefault

from placement import conf as options
from placement import errors, extension, metrics, package, policy, routes
from placement.db.connect import connect
from placement.db.database import Database
from placement.db.engine import dialects, driver_errors
from placement.db.engine.bulkhead import Bulkhead
from placement.db.schema import schema
from placement.db.upkeep import standard
from placement.errors import StartError
from placement.extension import Extension
from placement.http.api import Api, Layer
from placement.http.application import Application
from placement.http.service import Service
from placement.index.live import LiveIndex
from placement.index.store import IndexStore, default_directory
from placement.middleware.authentication import Authentication
from placement.middleware.lease_sweeps import LeaseSweeps
from placement.middleware.libraries import cross_origin, proxy_headers
from placement.middleware.mount import Dispatch, Mount
from placement.middleware.profiler import add_profiling, add_tracing
from placement.middleware.request_log import RequestLog
from placement.policy import Policy
from placement.tracing import with_spans

LOG = log.getLogger(__name__)

# --- the shared layers, outermost first (docs: layers) ---------------------------------------------------------------

Layers = tuple[Layer, ...]
LAYERS: Layers = (
    add_profiling,
    with_spans,
    add_tracing,
    proxy_headers,  # before Mount: the prefix of an API is appended to the prefix of the proxy
    RequestLog,
    Mount,  # inner layers render failures in the form of the API
    cross_origin,  # before authentication, so that browsers can read a 401
    Authentication,  # inner layers may raise failures
)

# --- the APIs --------------------------------------------------------------------------------------------------------


def apis(conf: cfg.ConfigOpts) -> tuple[Api, ...]:
    """Return the APIs that the configuration enables, or raise cfg.Error."""
    return (
        routes.PLACEMENT,
        *(
            declaration.api()
            for declaration in extension.enabled(conf)
            if declaration.api and declaration.is_served(conf)
        ),
    )


def assemble(service: Service, layers: Layers = LAYERS) -> WSGIApplication:
    """Return the application of the service: each API in its own layers, all of them in the shared layers."""
    applications = {api.prefix: _add_layers(Application(api, service), api.layers, service) for api in service.apis}
    sweeps = LeaseSweeps(service.database, service.conf.placement.lease_sweep_interval)
    extension_layers = (layer for declaration in extension.enabled(service.conf) for layer in declaration.layers())
    return _add_layers(Dispatch(applications, sweeps), (*layers, *extension_layers), service)


def _add_layers(application: WSGIApplication, layers: Iterable[Layer], service: Service) -> WSGIApplication:
    for layer in reversed(tuple(layers)):
        application = layer(application, service)
    return application


# --- start-up --------------------------------------------------------------------------------------------------------


def loadapp(
    conf: cfg.ConfigOpts, database: Database | None = None, layers: Layers = LAYERS, threads: int | None = None
) -> WSGIApplication:
    """Return a new WSGI application for a configuration, and prepare its database.

    Args:
        conf: The configuration.
        database: The database; None for the configured one.
        layers: The shared layers, outermost first.
        threads: The number of threads that call the application; None if it is unknown.

    Raises:
        StartError: The configuration or the database cannot be used.
    """
    for finding in options.find_unknown(conf):
        LOG.warning("%s", finding)
    if database is None:
        database = connected_database(conf)
    try:
        extension.attach(database, conf, threads)
    except cfg.Error as error:
        raise StartError(str(error)) from error
    _prepare(database, conf)
    database.bulkhead = Bulkhead(_max_database_threads(conf.placement_database.max_threads, threads))
    _observe(database, conf)
    index = LiveIndex(database, conf.placement.index_verify_interval, index_store(conf))
    extension.start(database, conf, index)
    application = assemble(Service(conf, database, _policy(conf), index, apis(conf)), layers)
    names = ", ".join(declaration.name for declaration in extension.enabled(conf)) or "none"
    LOG.info("Placement %s starts with Python %s; extensions: %s.", package.version(), platform.python_version(), names)
    return application


def index_store(conf: cfg.ConfigOpts) -> IndexStore:
    """Return the index files of this machine; none for a database in the memory of this process."""
    if dialects.in_memory(sa.make_url(conf.placement_database.connection)):
        return IndexStore(None)
    return IndexStore(Path(conf.placement.index_directory or default_directory(conf.state_path)))


def _observe(database: Database, conf: cfg.ConfigOpts) -> None:
    """Start the metrics and the timings of slow requests, if enabled."""
    if conf.metrics.directory:
        metrics.start(conf.metrics.directory, extension.enabled(conf))
    if conf.api.slow_request_threshold:
        database.publish_statements()


def _max_database_threads(configured: int | None, threads: int | None) -> int | None:
    """Return the limit on threads that use the database concurrently; None for no limit.

    By default one thread is reserved for requests that need no database, if at least two others remain.
    """
    if configured is not None:
        return configured or None
    return threads - 1 if threads is not None and threads > 2 else None


def _policy(conf: cfg.ConfigOpts) -> Policy:
    try:
        return Policy(conf, rules_of(extension.enabled(conf)))
    except ValueError as error:
        raise StartError(f"[oslo_policy]policy_file: {error}") from error


def rules_of(extensions: Iterable[Extension]) -> list[RuleDefault]:
    """Return the policy rules of Placement and of these extensions, even if their APIs are not served."""
    return [
        *routes.PLACEMENT.rules,
        *(rule for declaration in extensions if declaration.api for rule in declaration.api().rules),
    ]


def list_rules() -> list[RuleDefault]:
    """Return the policy rules of Placement and all installed extensions, for the oslopolicy tools."""
    return rules_of(extension.installed_extensions().values())


def get_enforcer() -> Enforcer:
    """Return an enforcer configured like the service's, for the oslopolicy tools."""
    return policy.get_enforcer(list_rules())


def connected_database(conf: cfg.ConfigOpts) -> Database:
    """Connect to the configured database, wait until it responds, and return it, or raise StartError."""
    try:
        database = connect(conf)
    except (sa.exc.ArgumentError, ImportError) as error:
        raise StartError(options.connection_finding(error)) from error
    _wait_until_reachable(database, conf)
    return database


def _wait_until_reachable(database: Database, conf: cfg.ConfigOpts) -> None:
    """Wait until the database responds, or raise StartError."""
    group = conf.placement_database
    try:
        database.wait_until_reachable(group.max_retries, group.retry_interval)
    except errors.Unavailable as failure:
        raise StartError(f"{failure} ({driver_errors.cause_of(failure)}){options.WHICH_DATABASE}") from failure


def _prepare(database: Database, conf: cfg.ConfigOpts) -> None:
    """Bring the schema and the standard rows up to date; safe for concurrent processes (docs: entry-points).

    Retries after a lost connection, as in a switchover of the database, and after a lock wait: otherwise uWSGI would
    end all workers if one of them could not start.
    """
    attempts = 0
    while True:
        try:
            return _bring_up_to_date(database, conf)
        except errors.DatabaseUnavailable as failure:
            cause = driver_errors.cause_of(failure)
        except sa.exc.DBAPIError as error:
            if not driver_errors.is_transient(error):
                raise
            cause = driver_errors.message(error)
        if 0 <= conf.placement_database.max_retries <= attempts:
            raise StartError(f"The database failed at every attempt: {cause}")
        LOG.warning("The database failed at start: %s", cause)
        attempts += 1
        _wait_until_reachable(database, conf)


def _bring_up_to_date(database: Database, conf: cfg.ConfigOpts) -> None:
    additions = extension.additions(conf)
    if conf.placement_database.sync_on_startup:
        try:
            # As without the option, the check below decides whether to serve an unknown revision.
            with contextlib.suppress(schema.UnknownRevision), database.unbounded_engine() as engine:
                schema.sync(engine, additions=additions)
        except errors.SchemaError as error:
            raise StartError(str(error)) from error
    finding = schema.finding(database.engine, additions)
    if finding:
        _serve_only_if_newer(database, finding, additions)
    standard.insert(database)


def _serve_only_if_newer(database: Database, finding: str, additions: Sequence[schema.Addition]) -> None:
    """Warn if a newer version of this service has created the schema; raise StartError for any other schema.

    During a rolling upgrade the newer version migrates the schema while this one serves and restarts workers.  That is
    safe as long as newer revisions only add to the schema (docs: rolling-upgrade).  This version does not know the new
    revisions, so it checks for its own tables: foreign schemas lack them, and so does another Placement's schema at a
    revision after COMMON_HEADS.
    """
    if schema.state(database.engine) is not schema.State.UNKNOWN:
        raise StartError(finding)
    missing = schema.missing_columns(database.engine, additions)
    if missing:
        raise StartError(f"{finding} It lacks {', '.join(missing)}.")
    LOG.warning("%s It contains everything that this version needs, and is used unchanged.", finding)
