"""The options of the service: one table (contract 5.3).

Nothing here is global: options are registered on a ``ConfigOpts`` of the caller, so that several applications can live
in one interpreter.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from oslo_config import cfg
from oslo_log import log
from oslo_middleware import basic_auth, cors, http_proxy_to_wsgi
from oslo_middleware.opts import list_opts_healthcheck
from oslo_policy import opts as oslo_policy

from placement.conf import reading
from placement.conf.spelling import Misspelt
from placement.conf.spelling import misspelt as find_misspelt

PROJECT = "placement"
CONFIG_DIR_VARIABLE = "OS_PLACEMENT_CONFIG_DIR"
_NIL_UUID = "00000000-0000-0000-0000-000000000000"

_DEFAULT = [
    cfg.StrOpt(
        "pybasedir",
        default=str(Path(__file__).parents[2]),
        sample_default="<Path>",
        help="Where the program is, for other options to name as $pybasedir.",
    ),
    cfg.StrOpt("state_path", default="$pybasedir", help="A directory for other options to name as $state_path."),
    cfg.StrOpt("tempdir", help="Accepted for the sake of existing configurations; nothing is kept there."),
    cfg.BoolOpt("log_options", default=True, help="Write all options to the log, at level DEBUG, at start."),
]

_API = [
    cfg.StrOpt(
        "auth_strategy",
        default="keystone",
        choices=[
            ("keystone", "tokens are validated by the Identity service"),
            ("http_basic", "names and passwords of [oslo_middleware]http_basic_auth_user_file: no Identity service"),
            ("noauth2", "for tests: the token itself says who asks, and 'admin' may do all that an admin may"),
        ],
        deprecated_group="DEFAULT",
        help="How the service knows who sends a request.",
    ),
    cfg.ListOpt(
        "http_basic_roles",
        default=["admin", "service"],
        help="The roles of all names in [oslo_middleware]http_basic_auth_user_file. Names that may do less than others "
        "are told apart in the policy file, by user_id.",
    ),
    cfg.IntOpt(
        "max_request_body_size",
        default=16 * 1024 * 1024,
        min=1,
        help="Bytes of a request's body. A longer one is answered with 413.",
    ),
    cfg.IntOpt(
        "max_request_body_values",
        default=500_000,
        min=1,
        help="Values, keys of objects not counted, that the JSON of a request's body may hold. More are answered with "
        "413. Each takes many times the memory that it takes in the body.",
    ),
    cfg.IntOpt(
        "max_query_length",
        default=28 * 1024,
        min=1,
        help="Bytes of a request's query string. A longer one is answered with 414. Behind uWSGI there is no room for "
        "much more: it counts a query twice, and all that it passes on of a request has to fit into 64 KiB.",
    ),
    cfg.FloatOpt(
        "slow_request_threshold",
        default=0,
        min=0,
        help="Seconds from which on a request is slow: the line about it in the log has the level WARNING, and goes on "
        "with what took the time. 0 finds none slow. Taking the time costs about a hundredth of it.",
    ),
]

_METRICS = [
    cfg.StrOpt(
        "directory",
        help="Where the processes of the service count what they do; 'placement-metrics <directory>' shows the sum to "
        "Prometheus. The directory is for this service on this machine alone, and better in memory, below /run; it is "
        "made if it is not there. Without it nothing is counted. Needs prometheus_client, the extra 'metrics'.",
    ),
]

_PLACEMENT = [
    cfg.StrOpt(
        "incomplete_consumer_project_id",
        default=_NIL_UUID,
        help="The project of consumers that are written at a microversion before 1.8, which names none.",
    ),
    cfg.StrOpt(
        "incomplete_consumer_user_id",
        default=_NIL_UUID,
        help="The user of consumers that are written at a microversion before 1.8, which names none.",
    ),
    cfg.IntOpt(
        "allocation_conflict_retry_count",
        default=10,
        min=0,
        help="Attempts at a write of allocations, the first included, before the client is told that it collided with "
        "others. With 0 every write fails.",
    ),
    cfg.BoolOpt(
        "randomize_allocation_candidates",
        default=False,
        help="Look at trees of providers, and at the providers in them, in random order. Otherwise the order is that "
        "of the index, and clients that ask for few candidates compete for the same ones.",
    ),
    cfg.IntOpt(
        "max_allocation_candidates",
        default=10000,
        min=-1,
        help="No reply has more candidates, whatever limit the client gives, and if it gives none. A client that has "
        "to see every host must not have more of them than this; -1 is no bound, and lets one request that matches a "
        "large cloud in many ways fill what max_search_memory allows.",
    ),
    cfg.StrOpt(
        "allocation_candidates_generation_strategy",
        default="breadth-first",
        choices=[
            ("breadth-first", "one candidate of each tree of providers, then a second one of each, and so on"),
            ("depth-first", "all candidates of one tree, then those of the next"),
        ],
        help="Which candidates a reply has when there are more than it may hold.",
    ),
    cfg.IntOpt(
        "max_request_groups",
        default=256,
        min=1,
        max=500,
        help="What one GET /allocation_candidates may ask for: its suffixed groups and the resource classes of the "
        "unsuffixed one. More are answered with 400.",
    ),
    cfg.IntOpt(
        "max_search_operations",
        default=1_000_000,
        min=1000,
        help="What one GET /allocation_candidates may do, in operations of about a microsecond. What it has found by "
        "then is answered, with the header x-placement-incomplete. Operations are counted and not time, so that the "
        "same request finds the same on a busy machine.",
    ),
    cfg.IntOpt(
        "max_search_memory",
        default=128,
        min=1,
        help="Mebibytes that one GET /allocation_candidates may hold at once, its reply included, as far as that can "
        "be told beforehand. What it has found by then is answered, with the header x-placement-incomplete.",
    ),
    cfg.IntOpt(
        "max_allocations_per_request",
        default=20000,
        min=1,
        help="What one request may write of allocations, an allocation being an amount of one resource class from one "
        "provider for one consumer. More are answered with 400. All rows of a request are written in one transaction, "
        "in which other writers of the same providers wait.",
    ),
    cfg.IntOpt(
        "max_inventories_per_request",
        default=10000,
        min=1,
        help="What one request may write of inventories, of one provider or of those of a reshape. More are answered "
        "with 400.",
    ),
    cfg.IntOpt(
        "max_traits_per_request",
        default=10000,
        min=1,
        help="Traits that a provider may be given by one request, repeated ones included. More are answered with 400.",
    ),
    cfg.IntOpt(
        "max_aggregates_per_request",
        default=10000,
        min=1,
        help="Aggregates that a provider may be put into by one request. More are answered with 400.",
    ),
    cfg.IntOpt(
        "index_verify_interval",
        default=600,
        min=0,
        help="Seconds after which each worker compares its index of all providers with the database, in the next "
        "request that reads it: providers, their generations and what is used of them; many providers in parts, each "
        "part once in this time. A difference is logged as an error and mended. It can only come from a program that "
        "writes to the database beside this service. 0 is never.",
    ),
]

_WORKAROUNDS = [
    cfg.BoolOpt(
        "optimize_for_wide_provider_trees",
        default=True,
        help="Accepted for the sake of existing configurations: the search always drops what cannot become a candidate "
        "as early as it can.",
    ),
]

_DATABASE = [
    cfg.StrOpt("connection", required=True, secret=True, help="The URL of the database."),
    cfg.StrOpt("connection_parameters", default="", secret=True, help="Added to the URL: name=value&name=value."),
    cfg.StrOpt(
        "slave_connection",
        secret=True,
        help="Accepted for the sake of existing configurations, and not connected to: what is read has to be as new as "
        "the last answer, which a replica does not promise.",
    ),
    cfg.BoolOpt("sync_on_startup", default=False, help="Bring the schema to the newest revision at every start."),
    cfg.BoolOpt("sqlite_synchronous", default=True, help="Whether SQLite waits until data is safe on disk."),
    cfg.StrOpt("mysql_sql_mode", default="TRADITIONAL", help="The SQL mode of MySQL; empty leaves the server's own."),
    cfg.IntOpt("connection_recycle_time", default=3600, help="Seconds after which a connection is made anew."),
    cfg.IntOpt("max_pool_size", help="Connections kept open by one process; 0 is no limit."),
    cfg.IntOpt("max_overflow", help="Connections opened beyond these when all are busy."),
    cfg.IntOpt("pool_timeout", help="Seconds to wait for a free connection."),
    cfg.IntOpt(
        "connect_timeout",
        default=5,
        min=2,
        help="Seconds to wait for a new connection, after which the database counts as away.",
    ),
    cfg.IntOpt(
        "read_timeout",
        default=30,
        min=15,
        help="Seconds to wait for an answer to a statement, after which the connection counts as lost. Waits for locks "
        "are shorter, ten seconds; changes of the schema and commands wait without a bound.",
    ),
    cfg.IntOpt(
        "max_threads",
        min=0,
        help="Threads of a process that may use the database at a time. A further one waits until a thread has ended, "
        "and is answered with 503 if for five seconds none has begun, or read another part of the index. By default "
        "one less than the threads of the web server, where it tells them and they are three or more, so that one is "
        "left for requests that need no database. 0 is no limit.",
    ),
    cfg.IntOpt(
        "max_retries",
        default=10,
        min=-1,
        help="Further tries to reach the database at start, after the first; -1 is no bound.",
    ),
    cfg.IntOpt("retry_interval", default=10, min=0, help="Seconds between these tries."),
    cfg.IntOpt(
        "connection_debug",
        default=0,
        min=0,
        max=100,
        help="From 50 on, SQL statements are logged with their values; at 100, what they return too.",
    ),
    cfg.BoolOpt(
        "connection_trace",
        default=False,
        help="Tell the database, in a comment on each SQL statement, which line of the program it comes from.",
    ),
]

_GROUPS: dict[str | None, Sequence[cfg.Opt]] = {
    None: _DEFAULT,
    "api": _API,
    "metrics": _METRICS,
    "placement": _PLACEMENT,
    "placement_database": _DATABASE,
    "workarounds": _WORKAROUNDS,
}

#: Strings that mean nothing if they are empty.
_NEVER_EMPTY = (
    ("placement", "incomplete_consumer_project_id"),
    ("placement", "incomplete_consumer_user_id"),
    ("placement_database", "connection"),
    ("oslo_policy", "policy_file"),
    ("oslo_policy", "policy_dirs"),
)

# What a browser may send and see (contract 1.15).
_CORS_DEFAULTS = {
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


#: The extra that installs a driver, by the module that is missing.
_DRIVERS = {
    **dict.fromkeys(("MySQLdb", "pymysql", "mysql", "aiomysql", "asyncmy"), ("mysql", "mysql+pymysql")),
    **dict.fromkeys(("psycopg", "psycopg2", "asyncpg", "pg8000"), ("postgresql", "postgresql+psycopg")),
}


def register(conf: cfg.ConfigOpts) -> None:
    """Make all options of the service known to ``conf``, those of the libraries it uses included."""
    for group, options in _GROUPS.items():
        conf.register_opts(options, group=group)
    for group, options, defaults in _library_options():
        conf.register_opts(options, group=group)
        for name, value in defaults.items():
            conf.set_default(name, value, group=group)
    for group, options in oslo_policy.list_opts():
        conf.register_opts(options, group=group)


#: The name under which other projects' tests know it (contract 5.5).
register_opts = register


def _library_options() -> Iterator[tuple[str, Sequence[cfg.Opt], Mapping[str, Any]]]:
    """The options of the middleware by group, and where their defaults are other than the library's."""
    yield "cors", cors.OPTS, _CORS_DEFAULTS
    yield "oslo_middleware", http_proxy_to_wsgi.OPTS, {}
    yield "oslo_middleware", basic_auth.OPTS, _BASIC_AUTH_DEFAULTS
    for group, options in list_opts_healthcheck():
        yield group, options, {}


def load(arguments: Sequence[str] = ()) -> cfg.ConfigOpts:
    """The configuration of this process: the file, then more files over it, then the environment over all.

    The file is ``placement.conf`` in $OS_PLACEMENT_CONFIG_DIR, or else where oslo.config looks for it; the others are
    those of ``placement.conf.d`` beside it, or where oslo.config looks for that.  Raises ``cfg.Error``, with a sentence
    for the operator, if there is no such file or an option is missing or wrong.
    """
    conf = cfg.ConfigOpts()
    register(conf)
    log.register_options(conf)
    read(conf, arguments)
    check(conf)
    return conf


def read(conf: cfg.ConfigOpts, arguments: Sequence[str], **how: Any) -> None:
    """Have ``conf`` read what :func:`load` says, and the words of a command line; ``how`` is for oslo.config."""
    directory = os.environ.get(CONFIG_DIR_VARIABLE, "").strip()
    files = [os.path.join(directory, f"{PROJECT}.conf")] if directory else None
    beside = os.path.join(directory, f"{PROJECT}.conf.d")
    directories = [beside] if directory and os.path.isdir(beside) else None
    reading.read(conf, arguments, project=PROJECT, default_config_files=files, default_config_dirs=directories, **how)


def check(conf: cfg.ConfigOpts) -> None:
    """Raise ``cfg.Error`` if a value makes no sense: of our options, or of those of libraries that we read."""
    defaults = cfg.ConfigOpts()
    register(defaults)
    log.register_options(defaults)
    defaults.set_default("connection", "none", group="placement_database")  # or it would be missed here
    defaults([], project=PROJECT, default_config_files=[], default_config_dirs=[], use_env=False)
    reading.check(conf, defaults, _NEVER_EMPTY)


def misspelt(conf: cfg.ConfigOpts) -> list[Misspelt]:
    """What stands in the configuration and is no option; options of libraries that we do not read are left out."""
    return find_misspelt(conf, [group for group in _GROUPS if group])


def no_connection(error: Exception) -> str:
    """What is wrong with ``[placement_database]connection``, of which SQLAlchemy made the error."""
    sentence = f"[placement_database]connection: {error}"
    if isinstance(error, ModuleNotFoundError) and str(error.name).partition(".")[0] in _DRIVERS:
        extra, scheme = _DRIVERS[str(error.name).partition(".")[0]]
        sentence += f": the driver is missing. Install the extra '{extra}', and let the URL begin with {scheme}://"
    return sentence


def list_opts() -> list[tuple[str | None, list[cfg.Opt]]]:
    """The service's own options, for oslo-config-generator; the libraries list theirs themselves."""
    return [(group, copy.deepcopy(list(options))) for group, options in _GROUPS.items()]


def set_library_defaults() -> None:
    """Let oslo-config-generator show the defaults of library options as they are in this service."""
    for _, options, defaults in _library_options():
        cfg.set_defaults(options, **defaults)
