"""The service put together: the shared layers, the APIs inside of them, and what is done once at start."""

from __future__ import annotations

import contextlib
import platform
from collections.abc import Iterable, Sequence
from wsgiref.types import WSGIApplication

import sqlalchemy as sa
from oslo_config import cfg
from oslo_log import log
from oslo_policy.policy import Enforcer, RuleDefault

from placement import conf as options
from placement import errors, extension, metrics, package, policy, routes
from placement.db.connect import connect
from placement.db.database import Database
from placement.db.engine import driver_errors
from placement.db.engine.bulkhead import Bulkhead
from placement.db.schema import schema
from placement.db.upkeep import standard
from placement.errors import StartError
from placement.extension import Extension
from placement.http.api import Api, Layer
from placement.http.application import Application
from placement.http.service import Service
from placement.index.live import LiveIndex
from placement.middleware.authentication import Authentication
from placement.middleware.lease_sweeps import LeaseSweeps
from placement.middleware.libraries import cross_origin, proxy_headers
from placement.middleware.mount import Dispatch, Mount
from placement.middleware.profiler import profiled, traced
from placement.middleware.request_log import RequestLog
from placement.policy import Policy
from placement.tracing import with_spans

LOG = log.getLogger(__name__)

# --- the shared layers, outermost first (docs: layers) ---------------------------------------------------------------

Layers = tuple[Layer, ...]
LAYERS: Layers = (
    profiled,
    with_spans,
    traced,
    proxy_headers,  # before the prefix of an API is added to the one that a proxy names
    RequestLog,
    Mount,  # from here on a failure has the form of its API
    cross_origin,  # before authentication, so that a browser may read a 401
    Authentication,  # from here on a failure can be raised
)

# --- the APIs --------------------------------------------------------------------------------------------------------


def apis(conf: cfg.ConfigOpts) -> tuple[Api, ...]:
    """Return the APIs that the configuration asks for; raises cfg.Error."""
    return (routes.PLACEMENT, *(each.api() for each in extension.enabled(conf) if each.api and each.is_served(conf)))


def assemble(service: Service, layers: Layers = LAYERS) -> WSGIApplication:
    """Return the APIs of the service, each in its own layers, all in the shared ones."""
    applications = {api.prefix: _layered(Application(api, service), api.layers, service) for api in service.apis}
    sweeps = LeaseSweeps(service.database, service.conf.placement.lease_sweep_interval)
    added = (layer for each in extension.enabled(service.conf) for layer in each.layers())
    return _layered(Dispatch(applications, sweeps), (*layers, *added), service)


def _layered(application: WSGIApplication, layers: Iterable[Layer], service: Service) -> WSGIApplication:
    for layer in reversed(tuple(layers)):
        application = layer(application, service)
    return application


# --- start-up --------------------------------------------------------------------------------------------------------


def loadapp(
    conf: cfg.ConfigOpts, database: Database | None = None, layers: Layers = LAYERS, threads: int | None = None
) -> WSGIApplication:
    """Return the WSGI application for a configuration, with a database that is ready to be used.

    Nothing of it is global: every call returns a new application.

    Args:
        database: None for the one that the configuration names.
        threads: The number of threads that call the application, if it is known.

    Raises:
        StartError: The configuration or the database cannot be used.
    """
    for finding in options.unknown(conf):
        LOG.warning("%s", finding)
    if database is None:
        database = reached(conf)
    try:
        extension.attach(database, conf, threads)
    except cfg.Error as error:
        raise StartError(str(error)) from error
    _prepare(database, conf)
    database.bulkhead = Bulkhead(_most_threads(conf.placement_database.max_threads, threads))
    _observe(database, conf)
    index = LiveIndex(database, conf.placement.index_verify_interval)
    application = assemble(Service(conf, database, _policy(conf), index, apis(conf)), layers)
    names = ", ".join(each.name for each in extension.enabled(conf)) or "none"
    LOG.info("Placement %s starts with Python %s; extensions: %s.", package.version(), platform.python_version(), names)
    return application


def _observe(database: Database, conf: cfg.ConfigOpts) -> None:
    """Start the metrics and the timings that the configuration asks for."""
    if conf.metrics.directory:
        metrics.start(conf.metrics.directory, extension.enabled(conf))
    if conf.api.slow_request_threshold:
        database.publish_statements()


def _most_threads(configured: int | None, threads: int | None) -> int | None:
    """Return how many threads may use the database at the same time; None for no bound.

    By default one thread is reserved for requests without the database, if at least two remain for the others.
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
    """Return the policy rules of Placement and of these extensions, whether their APIs are served or not."""
    return [*routes.PLACEMENT.rules, *(rule for each in extensions if each.api for rule in each.api().rules)]


def list_rules() -> list[RuleDefault]:
    """Return the policy rules of all installed extensions with their defaults, for the oslopolicy tools."""
    return rules_of(extension.installed().values())


def get_enforcer() -> Enforcer:
    """Return an enforcer configured like the service's, for the oslopolicy tools."""
    return policy.get_enforcer(list_rules())


def reached(conf: cfg.ConfigOpts) -> Database:
    """Return the database of the configuration, once it answers; raises StartError."""
    try:
        database = connect(conf)
    except (sa.exc.ArgumentError, ImportError) as error:
        raise StartError(options.connection_finding(error)) from error
    _reach(database, conf)
    return database


def _reach(database: Database, conf: cfg.ConfigOpts) -> None:
    """Return once the database answers; raises StartError."""
    group = conf.placement_database
    try:
        database.wait_until_reachable(group.max_retries, group.retry_interval)
    except errors.Unavailable as failure:
        raise StartError(f"{failure} ({driver_errors.cause_of(failure)}){options.WHICH_DATABASE}") from failure


def _prepare(database: Database, conf: cfg.ConfigOpts) -> None:
    """Bring the schema and the standard rows up to date; other processes may do the same (docs: entry-points).

    It is repeated if the connection is lost, as in a switchover of the database, or if a statement meets a lock:
    otherwise uWSGI would end all workers because one of them could not start.
    """
    tries = 0
    while True:
        try:
            return _bring_up_to_date(database, conf)
        except errors.DatabaseUnavailable as failure:
            cause = driver_errors.cause_of(failure)
        except sa.exc.DBAPIError as error:
            if not driver_errors.is_transient(error):
                raise
            cause = driver_errors.message(error)
        if 0 <= conf.placement_database.max_retries <= tries:
            raise StartError(f"The database fails each time: {cause}")
        LOG.warning("The database failed at start: %s", cause)
        tries += 1
        _reach(database, conf)


def _bring_up_to_date(database: Database, conf: cfg.ConfigOpts) -> None:
    additions = extension.additions(conf)
    if conf.placement_database.sync_on_startup:
        try:
            # Whether an unknown revision is served is decided below, as without the option.
            with contextlib.suppress(schema.UnknownRevision), database.unbounded_engine() as engine:
                schema.sync(engine, additions=additions)
        except errors.SchemaError as error:
            raise StartError(str(error)) from error
    finding = schema.finding(database.engine, additions)
    if finding:
        _serve_only_if_newer(database, finding, additions)
    standard.insert(database)


def _serve_only_if_newer(database: Database, finding: str, additions: Sequence[schema.Addition]) -> None:
    """Warn of a schema that a newer version of this service has made; raise StartError for any other.

    In a rolling upgrade the newer version migrates the schema while this one serves, and workers of this one may start
    again.  That is safe as long as newer revisions only add to the schema (docs: rolling-upgrade).  This program
    does not have those revisions, so it looks at what they made: the schema of another program lacks our tables, as
    does that of another Placement at a revision later than COMMON_HEADS.
    """
    if schema.state(database.engine) is not schema.State.UNKNOWN:
        raise StartError(finding)
    lacking = schema.lacking(database.engine, additions)
    if lacking:
        raise StartError(f"{finding} It lacks {', '.join(lacking)}.")
    LOG.warning("%s It has all that this program needs, and is served as it is.", finding)
