"""Options that choose providers and consumers, and the pages of what they choose."""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from placement.extensions.terminal.client import Pairs

#: Yields the documents of a list's pages, for a path and the parameters of the query.
Pages = Callable[[str, Pairs], Iterator[Mapping[str, Any]]]
#: Parameters by the names of their options' values.
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
#: Consumers that one page can have.
_LONGEST_PAGE = 1000


def add_overview(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``overview``."""
    options = parser.add_argument_group("which providers")
    options.add_argument("--root", metavar="<provider>", help="those of one tree: name or uuid of its root")
    options.add_argument("--class", dest="resource_class", metavar="<class>", help="those with inventory of a class")
    options.add_argument("--aggregate", metavar="<uuid>", help="those of an aggregate")
    options.add_argument("--trait", metavar="<trait>", help="those with a trait")
    options.add_argument("--sort", metavar="<order>", help="of the trees, such as free:VCPU, or --sort=-free:VCPU")
    options.add_argument("--at", metavar="<when>", help="what was there at a past date, or an age ago such as 2h")
    options.add_argument("--over-committed", action="store_true", help="those whose usage exceeds their capacity")
    _add_limit(options)


def add_consumers(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``consumers``."""
    options = parser.add_argument_group("which consumers")
    options.add_argument("--project", metavar="<project>", help="those of a project")
    options.add_argument("--user", metavar="<user>", help="those of a user")
    options.add_argument("--type", metavar="<type>", help="those of a consumer type")
    options.add_argument("--provider", metavar="<provider>", help="those that hold something of a provider or below")
    add_only(options)
    options.add_argument("--class", dest="resource_class", metavar="<class>", help="those that hold some of a class")
    options.add_argument("--older-than", metavar="<when>", help="those from before a date, or an age such as 30d")
    options.add_argument("--newer-than", metavar="<when>", help="those from after a date, or an age such as 2h")
    options.add_argument("--ends-within", metavar="<time>", help="those whose lease ends within a time such as 1h")
    _add_limit(options)


def add_only(options: argparse._ActionsContainer) -> None:
    """Add the option that goes with a provider."""
    help_ = "leave out what is below the provider"
    options.add_argument("--only-provider", dest="only", action="store_const", const="provider", help=help_)


def _add_limit(options: argparse._ArgumentGroup) -> None:
    options.add_argument("--limit", type=positive, metavar="<n>", help="this many at most (default: all)")


def positive(text: str) -> int:
    """Parse a number of at least 1, for argparse."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of at least 1")
    return int(text)


def overview(pages: Pages, arguments: argparse.Namespace) -> list[Mapping[str, Any]]:
    """Return the providers that a parsed ``overview`` asks for; with a limit, those of the first page: whole trees.

    Args:
        pages: Asks the service; raises what it raises.
        arguments: Those of ``add_overview``.
    """
    pairs = [*parameters_of(arguments, _OVERVIEW), *([("over_committed", "1")] if arguments.over_committed else [])]
    if arguments.limit is None:
        found = pages("/overview", pairs)
    else:
        found = itertools.islice(pages("/overview", [*pairs, ("limit", str(arguments.limit))]), 1)
    return [provider for document in found for provider in document["providers"]]


def consumers(pages: Pages, arguments: argparse.Namespace) -> list[Mapping[str, Any]]:
    """Return the consumers that a parsed ``consumers`` asks for, from as many pages as it takes.

    Args:
        pages: Asks the service; raises what it raises.
        arguments: Those of ``add_consumers``.
    """
    page = min(arguments.limit or _LONGEST_PAGE, _LONGEST_PAGE)
    found = pages("/consumers", [*conditions(arguments), ("limit", str(page))])
    items = (consumer for document in found for consumer in document["consumers"])
    return list(itertools.islice(items, arguments.limit))


def conditions(arguments: argparse.Namespace) -> list[tuple[str, str]]:
    """Return which consumers the arguments of ``add_consumers`` choose, as parameters of a query; without the limit."""
    return parameters_of(arguments, _CONSUMERS)


def parameters_of(arguments: argparse.Namespace, names: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return the arguments that are given as parameters of a query.

    Args:
        names: The parameters by the names of the options' values.
    """
    found = ((parameter, getattr(arguments, name)) for name, parameter in names.items())
    return [(parameter, str(value)) for parameter, value in found if value is not None]
