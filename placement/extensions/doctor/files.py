"""Checks of the permissions of configuration files and the metrics directory."""

from __future__ import annotations

import importlib.util
import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

import sqlalchemy as sa
from oslo_config import cfg
from sqlalchemy import exc

from placement import package
from placement.checks.check import NotMadeError, Subject
from placement.checks.finding import Finding, error, warning
from placement.conf import reading
from placement.policy import files

_DATABASE_SECTION = "placement_database"
#: Options of keystoneauth plugins and memcached with secret values, in any section.
_SECRETS = {
    *("password", "client_secret", "application_credential_secret", "access_token", "admin_password", "admin_token"),
    *("memcache_secret_key", "memcache_sasl_password", "memcache_password", "passcode"),
}
_DENY_OTHERS = "chmod o-rwx {path}"


def metrics_directory(subject: Subject) -> Iterator[Finding]:
    """Find reasons why processes cannot store metrics in the directory, without creating it or writing to it."""
    name = subject.conf.metrics.directory
    if not name:
        raise NotMadeError("[metrics]directory is not set.")
    if importlib.util.find_spec("prometheus_client") is None:
        yield error(
            "[metrics]directory is set but prometheus_client is not installed: the service does not start.",
            (),
            package.install_command("metrics"),
        )
    path = Path(name)
    owner = f"install -d -o <user of the service> -m 0755 {path}"
    if not _exists(path):
        above = next(parent for parent in path.absolute().parents if _exists(parent))
        if not above.is_dir() or not _may(above, os.W_OK | os.X_OK):
            yield error("The metrics directory does not exist and cannot be created.", (str(path),), owner)
    elif not path.is_dir():
        yield error("[metrics]directory is not a directory: the service does not start.", (str(path),), owner)
    elif not _may(path, os.R_OK | os.W_OK | os.X_OK):
        yield error("This user cannot write to the metrics directory.", (str(path),), owner)
    elif path.stat().st_mode & stat.S_IWOTH and not path.stat().st_mode & stat.S_ISVTX:
        yield warning("Every user can change the metrics.", (str(path),), f"chmod o-w {path}")


def _exists(path: Path) -> bool:
    """Whether the path exists and this process can see it."""
    try:
        return path.exists()
    except PermissionError:
        return False


def _may(path: Path, mode: int) -> bool:
    """Whether the permissions of a directory grant this process a mode (``os.R_OK``, ...)."""
    return os.access(path, mode, effective_ids=os.access in os.supports_effective_ids)


def secrets(subject: Subject) -> Iterator[Finding]:
    """Find files with secrets that other users can read, and configuration files that they can change."""
    conf = subject.conf
    with_secrets = [path for path in reading.files(conf) if _has_secret(path)]
    if conf.api.auth_strategy == "http_basic":
        with_secrets.append(conf.oslo_middleware.http_basic_auth_user_file)
    readable = tuple(path for path in with_secrets if _mode(path) & stat.S_IROTH)
    if readable:
        sentence = "Every user of this host can read files with passwords."
        yield error(sentence, readable, _DENY_OTHERS.format(path=" ".join(readable)))
    changeable = tuple(path for path in {*_files(conf), *with_secrets} if _mode(path) & stat.S_IWOTH)
    if changeable:
        sentence = "Every user of this host can change files of the configuration."
        yield error(sentence, tuple(sorted(changeable)), _DENY_OTHERS.format(path=" ".join(sorted(changeable))))


def _files(conf: cfg.ConfigOpts) -> Iterable[str]:
    try:
        return [*reading.files(conf), *files.paths(conf)]
    except (OSError, ValueError):
        return reading.files(conf)  # the policy check reports the reason


def _mode(path: str) -> int:
    """Return the mode of a file; 0 if it cannot be read."""
    try:
        return os.stat(path).st_mode
    except OSError:
        return 0


def _has_secret(path: str) -> bool:
    """Whether a configuration file contains a password or another secret."""
    sections: dict[str, dict[str, list[str]]] = {}
    try:
        cfg.ConfigParser(path, sections).parse()
    except (OSError, UnicodeDecodeError, cfg.Error, cfg.ParseError):
        return False
    return any(
        value and (name in _SECRETS or (section.lower() == _DATABASE_SECTION and _is_secret(name, value)))
        for section, options in sections.items()
        for name, values in options.items()
        for value in values
    )


def _is_secret(name: str, value: str) -> bool:
    """Whether the value of a database option contains a password."""
    if name == "connection_parameters":
        return "passw" in value.lower()
    if name not in ("connection", "slave_connection"):
        return False
    try:
        url = sa.make_url(value)
    except (exc.ArgumentError, ValueError):
        return True  # an invalid URL may contain one
    return bool(url.password) or any("passw" in parameter.lower() for parameter in url.query)
