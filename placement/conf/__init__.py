"""The configuration: its files, and the detection of mistakes in them (docs: configuration).

options   the table of options
reading   reading of the files by oslo.config, with readable errors
spelling  unknown options, most of them misspelt
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from oslo_config import cfg
from oslo_log import log

from placement import extension, package
from placement.conf import reading
from placement.conf.options import (
    GROUPS,
    NEVER_EMPTY,
    forget_disabled,
    list_opts,
    register,
    set_library_defaults,
)
from placement.conf.spelling import UnknownOption, unknown_options

__all__ = [
    "CONFIG_DIR_VARIABLE",
    "NO_FILES",
    "PROJECT",
    "check",
    "connection_finding",
    "forget_disabled",
    "list_opts",
    "load",
    "read",
    "register",
    "register_opts",
    "set_library_defaults",
    "unknown",
]

PROJECT = "placement"
CONFIG_DIR_VARIABLE = "OS_PLACEMENT_CONFIG_DIR"
#: Arguments that keep oslo.config from reading any file.
NO_FILES: Mapping[str, Any] = {"project": PROJECT, "default_config_files": [], "default_config_dirs": []}

#: A hint appended to messages about an unreachable database or a refused login.
WHICH_DATABASE = "; its host, name, user and password are set in [placement_database]connection"
#: The extra that installs a driver, and the scheme of its URL, by the missing module.
_DRIVERS = {
    "MySQLdb": ("mysqlclient", "mysql+mysqldb"),
    **dict.fromkeys(("pymysql", "mysql", "aiomysql", "asyncmy"), ("mysql", "mysql+pymysql")),
    **dict.fromkeys(("psycopg", "psycopg2", "asyncpg", "pg8000"), ("postgresql", "postgresql+psycopg")),
}

#: The name used by tests of other projects (docs: entry-points).
register_opts = register


def load(arguments: Sequence[str] = ()) -> cfg.ConfigOpts:
    """Return the configuration of this process.

    The sources are ``placement.conf``, then the files in ``placement.conf.d``, then the environment.  A later source
    overrides earlier ones.  The files are looked up in $OS_PLACEMENT_CONFIG_DIR if it is set, and otherwise where
    oslo.config looks.

    Args:
        arguments: A command line, in which --config-file and --config-dir may name other files.

    Raises:
        cfg.Error: A file does not exist, or an option is missing or invalid; the message is for the operator.
    """
    conf = cfg.ConfigOpts()
    register(conf)
    log.register_options(conf)
    read(conf, arguments)
    check(conf)
    return conf


def read(conf: cfg.ConfigOpts, arguments: Sequence[str], **keywords: Any) -> None:
    """Read the files described at :func:`load` and a command line into ``conf``.

    Args:
        conf: The configuration, with registered options.
        arguments: The command line.
        keywords: Keyword arguments for oslo.config, which may name other files.
    """
    directory = os.environ.get(CONFIG_DIR_VARIABLE, "").strip()
    files = [os.path.join(directory, f"{PROJECT}.conf")] if directory else None
    conf_d = os.path.join(directory, f"{PROJECT}.conf.d")
    directories = [conf_d] if directory and os.path.isdir(conf_d) else None
    keywords = {"project": PROJECT, "default_config_files": files, "default_config_dirs": directories, **keywords}
    reading.read(conf, arguments, **keywords)
    if forget_disabled(conf):
        reading.read(conf, arguments, **keywords)


def check(conf: cfg.ConfigOpts) -> None:
    """Raise ``cfg.Error`` if the value of an option is invalid, whether of the service or of a library."""
    defaults = cfg.ConfigOpts()
    register(defaults)
    log.register_options(defaults)
    defaults.set_default("connection", "none", group="placement_database")  # required, so without a default
    defaults([], **NO_FILES, use_env=False)
    reading.check(conf, defaults, NEVER_EMPTY)


def find_unknown(conf: cfg.ConfigOpts) -> list[UnknownOption]:
    """Return the options in the configuration that the service does not define."""
    own_sections = {group for group in GROUPS if group} | {
        group for group, _ in extension.options_of(extension.enabled(conf))
    }
    return unknown_options(conf, own_sections)


def connection_finding(error: Exception) -> str:
    """Return a sentence about the error that SQLAlchemy raised for ``[placement_database]connection``."""
    sentence = f"[placement_database]connection: {error}"
    if isinstance(error, ModuleNotFoundError) and str(error.name).partition(".")[0] in _DRIVERS:
        extra, scheme = _DRIVERS[str(error.name).partition(".")[0]]
        sentence += f": the driver is missing: {package.install_command(extra)}; then start the URL with {scheme}://"
    return sentence
