"""The URL of a service and the credentials, from options, the environment, or a service started in this directory."""

from __future__ import annotations

import argparse
import base64
import contextlib
import getpass
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from placement.package import ADDRESS_FILE

#: Seconds to wait for a response, by default.
_TIMEOUT = 60


class UsageError(Exception):
    """The arguments or the environment are invalid; the text is the reason."""


@dataclass(frozen=True, slots=True)
class ServiceAddress:
    """The URL of a service, and the settings of connections to it.

    Attributes:
        headers: The headers that authenticate the caller; empty without credentials.
        cacert: A file with trusted certificates; None for the system's.
        verified: Whether to verify the certificate of the service.
        timeout: Seconds to wait for a response.
    """

    url: str
    headers: Mapping[str, str]
    cacert: str | None = None
    verified: bool = True
    timeout: float = _TIMEOUT


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options for the URL of the service and the credentials."""
    group = parser.add_argument_group("the service")
    group.add_argument(
        "--url", metavar="<url>", help=f"default: $OS_ENDPOINT, or the service started by make serve ({ADDRESS_FILE})"
    )
    group.add_argument("--token", metavar="<token>", help="default: $OS_TOKEN; a service with noauth2 needs none")
    group.add_argument(
        "--username",
        metavar="<name>",
        help="for http_basic; the password is $OS_PASSWORD, or prompted for.  Default: $OS_USERNAME, if $OS_AUTH_TYPE "
        "is http_basic",
    )
    group.add_argument(
        "--cacert",
        metavar="<file>",
        help="trusted certificates in PEM format; default: $OS_CACERT, or the system's",
    )
    group.add_argument("--insecure", action="store_true", help="do not verify the certificate of the service")
    group.add_argument(
        "--timeout",
        type=seconds,
        default=_TIMEOUT,
        metavar="<seconds>",
        help="maximum time to wait for a response (default: %(default)s)",
    )


def find(arguments: argparse.Namespace, environment: Mapping[str, str]) -> ServiceAddress:
    """Return the address of the service.

    Args:
        arguments: The arguments of ``add_arguments``.
        environment: Environment variables.

    Raises:
        UsageError: The URL or the password is missing, or one of the settings is invalid.
    """
    url = arguments.url or environment.get("OS_ENDPOINT") or _url_in_directory()
    if url is None:
        raise UsageError(
            "The URL of the service is missing: use --url or $OS_ENDPOINT, or start a service in this directory with "
            f"make serve, which writes its URL to {ADDRESS_FILE}."
        )
    _check_url(url)
    return ServiceAddress(
        url.rstrip("/"),
        _credentials(arguments, environment),
        arguments.cacert or environment.get("OS_CACERT") or None,
        not arguments.insecure,
        arguments.timeout,
    )


def seconds(text: str) -> float:
    """Parse a number of seconds, for argparse."""
    try:
        value = float(text)
    except ValueError:
        value = 0
    if not 0 < value <= 86400:
        raise argparse.ArgumentTypeError(f"{text!r} is invalid: use a number of seconds above 0, up to 86400")
    return value


def _url_in_directory() -> str | None:
    try:
        return ADDRESS_FILE.read_text(encoding="utf-8").strip() or None
    except (OSError, ValueError):
        return None


def _check_url(url: str) -> None:
    """Raise UsageError unless this is the URL of a service; a message about an invalid URL shows no password."""
    try:
        parts = urlsplit(url)
        _ = parts.port  # raises ValueError for an invalid port
    except ValueError as error:
        raise UsageError(f"The URL of the service is invalid: {error}.") from error
    if parts.username is not None:
        raise UsageError("The URL of the service contains a user name: use --username and $OS_PASSWORD instead.")
    if parts.scheme not in ("http", "https"):
        raise UsageError(f"{url} is not the URL of a service: it must begin with http:// or https://.")
    if not parts.hostname or parts.query or parts.fragment or not url.isprintable() or " " in url:
        raise UsageError(f"{url} is not the URL of a service: it must be like https://placement.example.org/placement.")


def _credentials(arguments: argparse.Namespace, environment: Mapping[str, str]) -> dict[str, str]:
    """Return the header with the credentials; empty without credentials."""
    username = arguments.username
    if username is None and not arguments.token and environment.get("OS_AUTH_TYPE") == "http_basic":
        username = environment.get("OS_USERNAME")
    if username is not None:
        if arguments.token:
            raise UsageError("--token and --username cannot be combined.")
        return {"Authorization": _basic_credentials(username, environment)}
    token = (arguments.token or environment.get("OS_TOKEN") or "").strip()
    if not (token.isascii() and token.isprintable()):
        raise UsageError("The token is invalid: it may contain only printable ASCII characters.")
    return {"X-Auth-Token": token} if token else {}


def _basic_credentials(username: str, environment: Mapping[str, str]) -> str:
    password = environment.get("OS_PASSWORD")
    if password is None and sys.stdin.isatty():
        with contextlib.suppress(EOFError):
            password = getpass.getpass(f"Password of {username}: ")
    if password is None:
        raise UsageError(f"The password of {username} is missing: set $OS_PASSWORD.")
    return "Basic " + base64.b64encode(f"{username}:{password}".encode(errors="surrogateescape")).decode()
