"""The table of the service's options (docs: configuration).

Options are registered on the caller's ``ConfigOpts``, never globally, so that one process can run several applications.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from oslo_config import cfg
from oslo_middleware import basic_auth, cors, http_proxy_to_wsgi
from oslo_middleware.opts import list_opts_healthcheck
from oslo_policy import opts as oslo_policy

from placement import extension
from placement.extension import Extension

_NIL_UUID = "00000000-0000-0000-0000-000000000000"

_DEFAULT = [
    cfg.StrOpt(
        "pybasedir",
        default=str(Path(__file__).parents[2]),
        sample_default="<Path>",
        help="The directory of the installation. Other options can refer to it as $pybasedir.",
    ),
    cfg.StrOpt("state_path", default="$pybasedir", help="A directory. Other options can refer to it as $state_path."),
    cfg.StrOpt("tempdir", help="Accepted for compatibility with existing configurations; not used."),
    cfg.BoolOpt("log_options", default=True, help="Write all options to the log, at level DEBUG, at start."),
]

_API = [
    cfg.StrOpt(
        "auth_strategy",
        default="keystone",
        choices=[
            ("keystone", "the Identity service validates tokens"),
            ("http_basic", "names and passwords in [oslo_middleware]http_basic_auth_user_file; no Identity service"),
            ("noauth2", "for tests: tokens are not validated; the token 'admin' has the role admin"),
        ],
        deprecated_group="DEFAULT",
        help="How clients are authenticated.",
    ),
    cfg.ListOpt(
        "http_basic_roles",
        default=["admin", "service"],
        help="The roles of all users in [oslo_middleware]http_basic_auth_user_file. To give users different rights, "
        "refer to user_id in rules of the policy file.",
    ),
    cfg.IntOpt(
        "max_request_body_size",
        default=16 * 1024 * 1024,
        min=1,
        help="The maximum size of a request body, in bytes. A larger one is refused with 413.",
    ),
    cfg.IntOpt(
        "max_request_body_values",
        default=500_000,
        min=1,
        help="The maximum number of JSON values in a request body, not counting keys of objects. More are refused with "
        "413. A parsed value takes many times the memory of its text.",
    ),
    cfg.IntOpt(
        "max_query_length",
        default=28 * 1024,
        min=1,
        help="The maximum length of a query string, in bytes. A longer one is refused with 414. uWSGI allows little "
        "more: all variables of a request must fit into 64 KiB, and they contain the query string twice.",
    ),
    cfg.FloatOpt(
        "slow_request_threshold",
        default=0,
        min=0,
        help="The duration, in seconds, from which a request counts as slow. Slow requests are logged at level "
        "WARNING, with the time of each part. 0 disables this. The measurement adds about 1% to the time of a request.",
    ),
]

_METRICS = [
    cfg.StrOpt(
        "directory",
        help="The directory in which the processes of the service keep their metrics; 'placement-metrics <directory>' "
        "exports the sums to Prometheus. Only this service on this machine may use it. It should be in memory, below "
        "/run, and is created if it does not exist. If unset, there are no metrics. Requires prometheus_client (the "
        "extra 'metrics').",
    ),
]

_PLACEMENT = [
    cfg.StrOpt(
        "incomplete_consumer_project_id",
        default=_NIL_UUID,
        help="The project of consumers written at a microversion before 1.8, in which requests have no project.",
    ),
    cfg.StrOpt(
        "incomplete_consumer_user_id",
        default=_NIL_UUID,
        help="The user of consumers written at a microversion before 1.8, in which requests have no user.",
    ),
    cfg.IntOpt(
        "allocation_conflict_retry_count",
        default=10,
        min=0,
        help="The maximum number of attempts to write allocations, including the first. If all of them collide "
        "with other writers, the request is refused with 409. With 0 every write fails.",
    ),
    cfg.BoolOpt(
        "randomize_allocation_candidates",
        default=False,
        help="Search trees of providers, and the providers in them, in random order. Otherwise they are searched in "
        "the order of the index, and clients that request few candidates compete for the same ones.",
    ),
    cfg.IntOpt(
        "max_allocation_candidates",
        default=10000,
        min=-1,
        help="The maximum number of candidates in a response, regardless of the client's limit. If a client "
        "needs every host, set it to at least the number of hosts. -1 means no limit: a request that matches a large "
        "cloud in many ways can then use up max_search_memory.",
    ),
    cfg.StrOpt(
        "allocation_candidates_generation_strategy",
        default="breadth-first",
        choices=[
            ("breadth-first", "one candidate from each tree of providers, then a second one from each, and so on"),
            ("depth-first", "all candidates from one tree, then all from the next"),
        ],
        help="The candidates to return if more exist than the limit allows.",
    ),
    cfg.IntOpt(
        "max_request_groups",
        default=256,
        min=1,
        max=500,
        help="The maximum number of suffixed groups plus resource classes of the unsuffixed group in one GET "
        "/allocation_candidates. More are refused with 400.",
    ),
    cfg.IntOpt(
        "max_search_operations",
        default=1_000_000,
        min=1000,
        help="The maximum number of operations, of about a microsecond each, for one GET /allocation_candidates. When "
        "they are used up, the candidates found so far are returned, with the header x-placement-incomplete. "
        "Counting operations instead of time lets a request find the same candidates on a busy machine.",
    ),
    cfg.IntOpt(
        "max_search_memory",
        default=128,
        min=1,
        help="The maximum estimated amount of memory for one GET /allocation_candidates and its response, in MiB. When "
        "it is used up, the candidates found so far are returned, with the header x-placement-incomplete.",
    ),
    cfg.IntOpt(
        "max_allocations_per_request",
        default=20000,
        min=1,
        help="The maximum number of allocations in one request; an allocation is an amount of one resource class from "
        "one provider for one consumer. More are refused with 400. A request is written in one transaction, during "
        "which other writers of the same providers wait.",
    ),
    cfg.IntOpt(
        "max_inventories_per_request",
        default=10000,
        min=1,
        help="The maximum number of inventories in one request: of one provider, or of all providers of a reshape. "
        "More are refused with 400.",
    ),
    cfg.IntOpt(
        "max_traits_per_request",
        default=10000,
        min=1,
        help="The maximum number of traits in one request, including duplicates. More are refused with 400.",
    ),
    cfg.IntOpt(
        "max_aggregates_per_request",
        default=10000,
        min=1,
        help="The maximum number of aggregates in one request. More are refused with 400.",
    ),
    cfg.StrOpt(
        "index_directory",
        help="The directory of the index files. The workers of this host share one file for each database, and a "
        "worker that starts reads it instead of the database. The directory must belong to the user of the service, "
        "must not be writable by its group or by other users, and should be in memory; it is created if it does not "
        "exist. If unset, it is /dev/shm/placement- followed by the user id, or $state_path/index on a host without "
        "/dev/shm. If it cannot be used, each worker keeps the index in its own memory, logs a warning, and tries "
        "again after ten minutes.",
    ),
    cfg.IntOpt(
        "index_verify_interval",
        default=600,
        min=0,
        help="The interval, in seconds, at which each worker compares its index with the database once: providers, "
        "generations and usages. The comparison runs during requests that read the index, for up to 10,000 providers "
        "at a time. A difference is logged as an error, and the index is reloaded; only a foreign process that writes "
        "to the database can cause one. 0 disables the comparison.",
    ),
    cfg.FloatOpt(
        "lease_sweep_interval",
        default=5,
        min=0,
        help="The interval, in seconds, at which each worker releases expired leases, after a response. Searches and "
        "claims use the capacity of expired leases even without it. If you disable it with 0, run 'placement-manage "
        "leases sweep' at intervals.",
    ),
]

_WORKAROUNDS = [
    cfg.BoolOpt(
        "optimize_for_wide_provider_trees",
        default=True,
        help="Accepted for compatibility with existing configurations; the search always excludes providers as early "
        "as possible.",
    ),
]

_DATABASE = [
    cfg.StrOpt("connection", required=True, secret=True, help="The URL of the database."),
    cfg.StrOpt(
        "connection_parameters", default="", secret=True, help="Parameters added to the URL: name=value&name=value."
    ),
    cfg.StrOpt(
        "slave_connection",
        secret=True,
        help="Accepted for compatibility with existing configurations; not used. Reads must show every acknowledged "
        "write, which a replica does not guarantee.",
    ),
    cfg.BoolOpt("sync_on_startup", default=False, help="Upgrade the schema to the newest revision at every start."),
    cfg.BoolOpt(
        "sqlite_synchronous", default=True, help="Whether SQLite waits at every commit until the data is on disk."
    ),
    cfg.StrOpt(
        "mysql_sql_mode",
        default="TRADITIONAL",
        help="The SQL mode of MySQL sessions; if empty, the server's default applies.",
    ),
    cfg.IntOpt(
        "mysql_wsrep_sync_wait",
        default=7,
        min=0,
        max=15,
        help="The statements that wait until the node of a Galera cluster has applied the commits of other nodes: the "
        "sum of 1 for reads, 2 for updates and deletions, 4 for insertions, and 8 for SHOW. No effect without Galera.",
    ),
    cfg.IntOpt("connection_recycle_time", default=3600, help="Seconds after which a connection is replaced."),
    cfg.IntOpt(
        "max_pool_size", help="The maximum number of connections that one process keeps open; 0 means no limit."
    ),
    cfg.IntOpt(
        "max_overflow", help="The maximum number of additional connections when all connections of the pool are in use."
    ),
    cfg.IntOpt("pool_timeout", help="Seconds to wait for a free connection."),
    cfg.IntOpt(
        "connect_timeout",
        default=5,
        min=2,
        help="Seconds to wait for a new connection; after that the database counts as unavailable.",
    ),
    cfg.IntOpt(
        "read_timeout",
        default=30,
        min=15,
        help="Seconds to wait for the result of a statement; after that the connection counts as lost. Waits for "
        "locks end after ten seconds. Schema migrations and commands have no limit.",
    ),
    cfg.IntOpt(
        "max_threads",
        min=0,
        help="The maximum number of threads of a process that use the database at the same time. Further requests "
        "wait, and fail with 503 if the database has responded to no other request for five seconds. The default is "
        "one less than the threads of the web server, if their number is known and at least three; the remaining "
        "thread serves requests that need no database. 0 means no limit.",
    ),
    cfg.IntOpt(
        "max_retries",
        default=10,
        min=-1,
        help="The number of retries if the database cannot be reached at start; -1 means no limit.",
    ),
    cfg.IntOpt("retry_interval", default=10, min=0, help="Seconds between the retries at start."),
    cfg.IntOpt(
        "connection_debug",
        default=0,
        min=0,
        max=100,
        help="From 50, log SQL statements with their values; at 100, also their rows.",
    ),
    cfg.BoolOpt(
        "connection_trace",
        default=False,
        help="Add a comment with the calling line of code to each SQL statement.",
    ),
]

#: The options of the core, by group.
GROUPS: dict[str | None, Sequence[cfg.Opt]] = {
    None: _DEFAULT,
    "api": _API,
    **extension.OPTIONS,
    "metrics": _METRICS,
    "placement": _PLACEMENT,
    "placement_database": _DATABASE,
    "workarounds": _WORKAROUNDS,
}

#: String and list options that must not be empty.
NEVER_EMPTY = (
    ("placement", "incomplete_consumer_project_id"),
    ("placement", "incomplete_consumer_user_id"),
    ("placement_database", "connection"),
    ("oslo_policy", "policy_file"),
    ("oslo_policy", "policy_dirs"),
)

# The headers and methods that browsers may use (docs: api-cors).
_CORS_DEFAULTS: Mapping[str, list[str]] = {
    "allow_headers": [
        "X-Auth-Token",
        "X-Openstack-Request-Id",
        "X-Identity-Status",
        "X-Roles",
        "X-Service-Catalog",
        "X-User-Id",
        "X-Tenant-Id",
        "OpenStack-API-Version",
    ],
    "expose_headers": [
        "X-Auth-Token",
        "X-Openstack-Request-Id",
        "X-Subject-Token",
        "X-Service-Token",
        "OpenStack-API-Version",
    ],
    "allow_methods": ["GET", "PUT", "POST", "DELETE", "PATCH"],
}
_BASIC_AUTH_DEFAULTS = {"http_basic_auth_user_file": "/etc/placement/htpasswd"}


def register(conf: cfg.ConfigOpts) -> None:
    """Register all options of the service, its extensions and its libraries on ``conf``."""
    for group, options in (*GROUPS.items(), *extension.options_of(extension.installed_extensions().values())):
        conf.register_opts(options, group=group)
    for group, options, defaults in _library_options():
        conf.register_opts(options, group=group)
        for name, value in defaults.items():
            conf.set_default(name, value, group=group)
    for group, options in oslo_policy.list_opts():
        conf.register_opts(options, group=group)


def forget_disabled(conf: cfg.ConfigOpts) -> bool:
    """Remove the additions of disabled extensions from a configuration that has been read.

    Returns:
        Whether the configuration must be read again.

    Raises:
        cfg.Error: As for ``extension.enabled``.
    """
    enabled = extension.forget_disabled(conf)
    if enabled is None:
        return False
    for name, value in _cors_defaults(enabled).items():
        conf.set_default(name, value, group="cors")
    return True


def _cors_defaults(extensions: Iterable[Extension]) -> dict[str, list[str]]:
    defaults = {option: [*names] for option, names in _CORS_DEFAULTS.items()}
    for declaration in extensions:
        for option, names in declaration.cors.items():
            defaults[option] += names
    return defaults


def _library_options() -> Iterator[tuple[str, Sequence[cfg.Opt], Mapping[str, Any]]]:
    """Yield group, options and overridden defaults of the middleware libraries."""
    yield "cors", cors.OPTS, _cors_defaults(extension.installed_extensions().values())
    yield "oslo_middleware", http_proxy_to_wsgi.OPTS, {}
    yield "oslo_middleware", basic_auth.OPTS, _BASIC_AUTH_DEFAULTS
    for group, options in list_opts_healthcheck():
        yield group, options, {}


def list_opts() -> list[tuple[str | None, list[cfg.Opt]]]:
    """Return the options of the service and its extensions, for oslo-config-generator; libraries list their own."""
    groups: dict[str | None, list[cfg.Opt]] = {group: [*options] for group, options in GROUPS.items()}
    for group, options in extension.options_of(extension.installed_extensions().values()):
        groups.setdefault(group, []).extend(options)
    by_name = sorted(groups.items(), key=lambda pair: pair[0] or "")
    return [(group, copy.deepcopy(options)) for group, options in by_name]


def set_library_defaults() -> None:
    """Override the defaults of library options with this service's, for oslo-config-generator."""
    for _, options, defaults in _library_options():
        cfg.set_defaults(options, **defaults)
