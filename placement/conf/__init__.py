"""The configuration: which files are read, and what is wrong in them (docs: configuration).

options   the table of options
reading   the reading of the files by oslo.config, with errors as sentences
spelling  options in a configuration that do not exist
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
    forget_others,
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
    "forget_others",
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
#: Has oslo.config read no file.
NO_FILES: Mapping[str, Any] = {"project": PROJECT, "default_config_files": [], "default_config_dirs": []}

#: Follows the reason why the database is out of reach, or refuses the service.
WHICH_DATABASE = "; its host, name, user and password are those of [placement_database]connection"
#: By the missing module of a driver: the extra that installs one, and the scheme of its URL.
_DRIVERS = {
    "MySQLdb": ("mysqlclient", "mysql+mysqldb"),
    **dict.fromkeys(("pymysql", "mysql", "aiomysql", "asyncmy"), ("mysql", "mysql+pymysql")),
    **dict.fromkeys(("psycopg", "psycopg2", "asyncpg", "pg8000"), ("postgresql", "postgresql+psycopg")),
}

#: The name that tests of other projects use (docs: entry-points).
register_opts = register


def load(arguments: Sequence[str] = ()) -> cfg.ConfigOpts:
    """Return the configuration of this process: one file, then more files over it, then the environment over all.

    The file is ``placement.conf`` in $OS_PLACEMENT_CONFIG_DIR, or else where oslo.config looks for it; the others are
    those of ``placement.conf.d`` beside it, or where oslo.config looks for that.

    Args:
        arguments: A command line, in which --config-file and --config-dir may name other files.

    Raises:
        cfg.Error: There is no such file, or an option is missing or wrong; a sentence for the operator.
    """
    conf = cfg.ConfigOpts()
    register(conf)
    log.register_options(conf)
    read(conf, arguments)
    check(conf)
    return conf


def read(conf: cfg.ConfigOpts, arguments: Sequence[str], **how: Any) -> None:
    """Have ``conf`` read the files that :func:`load` describes, and a command line.

    Args:
        how: For oslo.config; it may name other files.
    """
    directory = os.environ.get(CONFIG_DIR_VARIABLE, "").strip()
    files = [os.path.join(directory, f"{PROJECT}.conf")] if directory else None
    beside = os.path.join(directory, f"{PROJECT}.conf.d")
    directories = [beside] if directory and os.path.isdir(beside) else None
    how = {"project": PROJECT, "default_config_files": files, "default_config_dirs": directories, **how}
    reading.read(conf, arguments, **how)
    if forget_others(conf):
        reading.read(conf, arguments, **how)


def check(conf: cfg.ConfigOpts) -> None:
    """Raise ``cfg.Error`` if a value is invalid, of our options or of those of libraries that we register."""
    defaults = cfg.ConfigOpts()
    register(defaults)
    log.register_options(defaults)
    defaults.set_default("connection", "none", group="placement_database")  # it is required
    defaults([], **NO_FILES, use_env=False)
    reading.check(conf, defaults, NEVER_EMPTY)


def unknown(conf: cfg.ConfigOpts) -> list[UnknownOption]:
    """Return the options in the configuration that do not exist, most often because they are misspelt."""
    own = {group for group in GROUPS if group} | {group for group, _ in extension.options_of(extension.enabled(conf))}
    return unknown_options(conf, own)


def connection_finding(error: Exception) -> str:
    """Return the finding about ``[placement_database]connection``, for which SQLAlchemy raised the error."""
    sentence = f"[placement_database]connection: {error}"
    if isinstance(error, ModuleNotFoundError) and str(error.name).partition(".")[0] in _DRIVERS:
        extra, scheme = _DRIVERS[str(error.name).partition(".")[0]]
        sentence += f": the driver is missing: {package.install(extra)}; and let the URL begin with {scheme}://"
    return sentence
