"""Options that select providers and consumers, and the selected lists."""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from placement.extensions.terminal.client import Pairs

#: A function of a path and query parameters that yields the pages of a list.
Pages = Callable[[str, Pairs], Iterator[Mapping[str, Any]]]
#: Query parameters, by the name of the argument.
_OVERVIEW = {
    "root": "root",
    "resource_class": "class",
    "aggregate": "aggregate",
    "trait": "trait",
    "at": "at",
    "sort": "sort",
}
_CONSUMERS = {
    "project": "project",
    "user": "user",
    "type": "type",
    "provider": "provider",
    "only": "only",
    "resource_class": "class",
    "older_than": "older_than",
    "newer_than": "newer_than",
    "ends_within": "ends_within",
}
#: Maximum number of consumers per page.
_MAX_PAGE = 1000


def add_overview(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``overview``."""
    options = parser.add_argument_group("which providers")
    options.add_argument("--root", metavar="<provider>", help="providers of one tree, by name or uuid of its root")
    options.add_argument(
        "--class", dest="resource_class", metavar="<class>", help="providers with inventory of a class"
    )
    options.add_argument("--aggregate", metavar="<uuid>", help="providers in an aggregate")
    options.add_argument("--trait", metavar="<trait>", help="providers with a trait")
    options.add_argument(
        "--sort", metavar="<order>", help="order of the trees, such as free:VCPU, or --sort=-free:VCPU"
    )
    options.add_argument("--at", metavar="<when>", help="the state at a past date, or some time ago, such as 2h")
    options.add_argument("--over-committed", action="store_true", help="providers whose usage exceeds their capacity")
    _add_limit(options)


def add_consumers(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``consumers``."""
    options = parser.add_argument_group("which consumers")
    options.add_argument("--project", metavar="<project>", help="consumers of a project")
    options.add_argument("--user", metavar="<user>", help="consumers of a user")
    options.add_argument("--type", metavar="<type>", help="consumers of a type")
    options.add_argument("--provider", metavar="<provider>", help="consumers of a provider and its descendants")
    add_only(options)
    options.add_argument("--class", dest="resource_class", metavar="<class>", help="consumers of a resource class")
    options.add_argument(
        "--older-than", metavar="<when>", help="consumers created before a date, or longer ago than an age such as 30d"
    )
    options.add_argument(
        "--newer-than", metavar="<when>", help="consumers created since a date, or within an age such as 2h"
    )
    options.add_argument(
        "--ends-within", metavar="<time>", help="consumers whose lease expires within a time such as 1h"
    )
    _add_limit(options)


def add_only(options: argparse._ActionsContainer) -> None:
    """Add the option that excludes the descendants of a provider."""
    options.add_argument(
        "--only-provider",
        dest="only",
        action="store_const",
        const="provider",
        help="exclude the descendants of the provider",
    )


def _add_limit(options: argparse._ArgumentGroup) -> None:
    options.add_argument("--limit", type=positive, metavar="<n>", help="the maximum number (default: all)")


def positive(text: str) -> int:
    """Parse a number of at least 1, for argparse."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is invalid: use an integer of at least 1")
    return int(text)


def overview(pages: Pages, arguments: argparse.Namespace) -> list[Mapping[str, Any]]:
    """Return the providers for the arguments of ``overview``; with a limit, only the trees of the first page.

    Args:
        pages: A function that reads pages from the service; its exceptions are raised.
        arguments: The arguments of ``add_overview``.
    """
    pairs = [*parameters_of(arguments, _OVERVIEW), *([("over_committed", "1")] if arguments.over_committed else [])]
    if arguments.limit is None:
        documents = pages("/overview", pairs)
    else:
        documents = itertools.islice(pages("/overview", [*pairs, ("limit", str(arguments.limit))]), 1)
    return [provider for document in documents for provider in document["providers"]]


def consumers(pages: Pages, arguments: argparse.Namespace) -> list[Mapping[str, Any]]:
    """Return the consumers for the arguments of ``consumers``, read page by page.

    Args:
        pages: A function that reads pages from the service; its exceptions are raised.
        arguments: The arguments of ``add_consumers``.
    """
    page = min(arguments.limit or _MAX_PAGE, _MAX_PAGE)
    documents = pages("/consumers", [*conditions(arguments), ("limit", str(page))])
    items = (consumer for document in documents for consumer in document["consumers"])
    return list(itertools.islice(items, arguments.limit))


def conditions(arguments: argparse.Namespace) -> list[tuple[str, str]]:
    """Return the arguments of ``add_consumers`` as query parameters, without the limit."""
    return parameters_of(arguments, _CONSUMERS)


def parameters_of(arguments: argparse.Namespace, names: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return the arguments as query parameters, except None.

    Args:
        names: The parameters by the name of the argument.
    """
    pairs = ((parameter, getattr(arguments, name)) for name, parameter in names.items())
    return [(parameter, str(value)) for parameter, value in pairs if value is not None]
