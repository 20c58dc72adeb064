"""Where the service is and who asks: options, the environment, or the service that runs in this directory."""

from __future__ import annotations

import argparse
import base64
import getpass
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

#: Where ``placement-serve`` without a configuration writes its address, from its current directory.
ADDRESS_FILE = Path("var/placement.url")


class UsageError(Exception):
    """The arguments or the environment are wrong; the text says what."""


@dataclass(frozen=True, slots=True)
class ServiceAddress:
    """The URL of a service, and the headers that authenticate the caller."""

    url: str
    headers: Mapping[str, str]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options that say where the service is, and who asks."""
    group = parser.add_argument_group("the service")
    group.add_argument(
        "--url", metavar="<url>", help=f"default: $OS_ENDPOINT, or the service of make serve ({ADDRESS_FILE})"
    )
    group.add_argument("--token", metavar="<token>", help="default: $OS_TOKEN")
    group.add_argument(
        "--username",
        metavar="<name>",
        help="for http_basic; the password is $OS_PASSWORD, or is asked for.  Default: $OS_USERNAME, if $OS_AUTH_TYPE "
        "is http_basic",
    )


def find(arguments: argparse.Namespace, environment: Mapping[str, str]) -> ServiceAddress:
    """Return where to ask.

    Args:
        arguments: Those of ``add_arguments``.
        environment: The variables of the process.

    Raises:
        UsageError: No service is named, or no password.
    """
    url = arguments.url or environment.get("OS_ENDPOINT")
    url = url or _of_this_directory()
    if url is None:
        raise UsageError(
            "No service is named: use --url or $OS_ENDPOINT, or start one in this directory with make serve, "
            f"which writes its address to {ADDRESS_FILE}."
        )
    if not url.startswith(("http://", "https://")):
        raise UsageError(f"{url} is no URL of a service: it begins with neither http:// nor https://.")
    username = arguments.username
    if username is None and not arguments.token and environment.get("OS_AUTH_TYPE") == "http_basic":
        username = environment.get("OS_USERNAME")
    if username is not None:
        if arguments.token:
            raise UsageError("--token does not go with --username.")
        return ServiceAddress(url.rstrip("/"), {"Authorization": _basic(username, environment)})
    token = arguments.token or environment.get("OS_TOKEN")
    return ServiceAddress(url.rstrip("/"), {"X-Auth-Token": token} if token else {})


def _of_this_directory() -> str | None:
    try:
        return ADDRESS_FILE.read_text(encoding="utf-8").strip() or None
    except OSError:
        return None


def _basic(username: str, environment: Mapping[str, str]) -> str:
    password = environment.get("OS_PASSWORD")
    if password is None:
        if not sys.stdin.isatty():
            raise UsageError(f"The password of {username} is missing: set $OS_PASSWORD.")
        password = getpass.getpass(f"Password of {username}: ")
    return "Basic " + base64.b64encode(f"{username}:{password}".encode()).decode()
