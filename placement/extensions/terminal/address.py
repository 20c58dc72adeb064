"""Where the service is and who asks: options, the environment, or the service that runs in this directory."""

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

#: Seconds that the service may be silent.
_TIMEOUT = 60


class UsageError(Exception):
    """The arguments or the environment are wrong; the text says what."""


@dataclass(frozen=True, slots=True)
class ServiceAddress:
    """The URL of a service, and how to talk to it.

    Attributes:
        headers: Those that authenticate the caller; empty for a caller without credentials.
        cacert: A file with the certificates to trust; None for those of the system.
        verified: Whether the certificate of the service is verified.
        timeout: Seconds that the service may be silent.
    """

    url: str
    headers: Mapping[str, str]
    cacert: str | None = None
    verified: bool = True
    timeout: float = _TIMEOUT


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options that say where the service is, and who asks."""
    group = parser.add_argument_group("the service")
    group.add_argument(
        "--url", metavar="<url>", help=f"default: $OS_ENDPOINT, or the service of make serve ({ADDRESS_FILE})"
    )
    group.add_argument("--token", metavar="<token>", help="default: $OS_TOKEN; a service with noauth2 needs none")
    group.add_argument(
        "--username",
        metavar="<name>",
        help="for http_basic; the password is $OS_PASSWORD, or is asked for.  Default: $OS_USERNAME, if $OS_AUTH_TYPE "
        "is http_basic",
    )
    group.add_argument(
        "--cacert",
        metavar="<file>",
        help="the certificates to trust, in PEM format; default: $OS_CACERT, or those of the system",
    )
    group.add_argument("--insecure", action="store_true", help="do not verify the certificate of the service")
    group.add_argument(
        "--timeout",
        type=seconds,
        default=_TIMEOUT,
        metavar="<seconds>",
        help="how long the service may be silent (default: %(default)s)",
    )


def find(arguments: argparse.Namespace, environment: Mapping[str, str]) -> ServiceAddress:
    """Return where to ask.

    Args:
        arguments: Those of ``add_arguments``.
        environment: The variables of the process.

    Raises:
        UsageError: No service is named, or no password; or what is named cannot be used.
    """
    url = arguments.url or environment.get("OS_ENDPOINT") or _of_this_directory()
    if url is None:
        raise UsageError(
            "No service is named: use --url or $OS_ENDPOINT, or start one in this directory with make serve, "
            f"which writes its address to {ADDRESS_FILE}."
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
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds above 0, up to a day")
    return value


def _of_this_directory() -> str | None:
    try:
        return ADDRESS_FILE.read_text(encoding="utf-8").strip() or None
    except (OSError, ValueError):
        return None


def _check_url(url: str) -> None:
    """Raise UsageError, without what may be a password, if this is no URL of a service."""
    try:
        parts = urlsplit(url)
        _ = parts.port  # raises ValueError if it is no number of a port
    except ValueError as error:
        raise UsageError(f"The URL of the service is none: {error}.") from error
    if parts.username is not None:
        raise UsageError("The URL of the service has a user name: use --username, and $OS_PASSWORD.")
    if parts.scheme not in ("http", "https"):
        raise UsageError(f"{url} is no URL of a service: it begins with neither http:// nor https://.")
    if not parts.hostname or parts.query or parts.fragment or not url.isprintable() or " " in url:
        raise UsageError(f"{url} is no URL of a service: it has to be like https://placement.example.org/placement.")


def _credentials(arguments: argparse.Namespace, environment: Mapping[str, str]) -> dict[str, str]:
    """Return the header that says who asks; empty without credentials."""
    username = arguments.username
    if username is None and not arguments.token and environment.get("OS_AUTH_TYPE") == "http_basic":
        username = environment.get("OS_USERNAME")
    if username is not None:
        if arguments.token:
            raise UsageError("--token does not go with --username.")
        return {"Authorization": _basic(username, environment)}
    token = (arguments.token or environment.get("OS_TOKEN") or "").strip()
    if not (token.isascii() and token.isprintable()):
        raise UsageError("The token has characters that no token has.")
    return {"X-Auth-Token": token} if token else {}


def _basic(username: str, environment: Mapping[str, str]) -> str:
    password = environment.get("OS_PASSWORD")
    if password is None and sys.stdin.isatty():
        with contextlib.suppress(EOFError):
            password = getpass.getpass(f"Password of {username}: ")
    if password is None:
        raise UsageError(f"The password of {username} is missing: set $OS_PASSWORD.")
    return "Basic " + base64.b64encode(f"{username}:{password}".encode(errors="surrogateescape")).decode()
