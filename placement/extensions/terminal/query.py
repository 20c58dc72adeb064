"""Queries for allocation candidates, from a query string or options.

Options after ``--group X`` belong to the group X, until the next ``--group``.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterable
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

_RESOURCE = re.compile(r"[A-Z0-9_]+[:=][0-9]+")
_GROUP = re.compile(r"[A-Za-z0-9_-]{1,63}")
#: Parameters whose values are joined into one, separated by commas.
_JOINED = ("resources", "required", "root_required")
#: The error handler that keeps bytes that are not UTF-8; the service refuses them.
_BYTES = "surrogateescape"
#: Characters of a query that are not escaped.
_UNESCAPED = "%=&:,!~*'()-._+?/@;$"


class Term(NamedTuple):
    """A parameter that an option adds to a query.

    Attributes:
        name: The name of the parameter, with the suffix of its group.
        parameter: The name without the suffix.
        value: The value.
    """

    name: str
    parameter: str
    value: str


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the query argument and the options for its parts."""
    parser.add_argument(
        "query",
        metavar="<query>",
        nargs="?",
        default="",
        help='the query of /allocation_candidates, such as "resources=VCPU:4&required=HW_CPU_X86_AVX2"',
    )
    add_options(parser)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options for the parts of a query."""
    parser.set_defaults(terms=(), group="")
    options = parser.add_argument_group("the query, by options")

    def add(name: str, parameter: str, metavar: str, text: str, grouped: bool = True, kind: Any = str) -> None:
        options.add_argument(
            name, dest="terms", action=_Term, const=(parameter, grouped), metavar=metavar, help=text, type=kind
        )

    add("--resource", "resources", "<class>=<amount>", "an amount of a resource class; repeatable", kind=_resource)
    add("--required", "required", "<trait>", "a required trait, or !<trait> for a forbidden one; repeatable")
    add("--member-of", "member_of", "<aggregate>", "an aggregate, or in:<a>,<b> for any of several; repeatable")
    add("--in-tree", "in_tree", "<provider>", "the tree of the providers, by name or uuid of a provider in it")
    options.add_argument(
        "--group",
        action=_Group,
        metavar="<group>",
        help="the following options describe one group, whose resources come from one provider",
    )
    add("--group-policy", "group_policy", "none|isolate", "whether groups may share a provider", grouped=False)
    add(
        "--same-subtree",
        "same_subtree",
        "<group>,...",
        "groups whose providers are in one subtree",
        grouped=False,
        kind=_groups,
    )
    add("--root-required", "root_required", "<trait>", "a trait required of the root, or !<trait>", grouped=False)


class _Term(argparse.Action):
    """An option that adds a term to the query."""

    def __call__(self, _: Any, namespace: argparse.Namespace, value: Any, _option: str | None = None) -> None:
        parameter, grouped = self.const
        name = parameter + (namespace.group if grouped else "")
        namespace.terms = (*namespace.terms, Term(name, parameter, value))


class _Group(argparse.Action):
    """An option that begins a group."""

    def __call__(self, _: Any, namespace: argparse.Namespace, value: Any, _option: str | None = None) -> None:
        try:
            namespace.group = _suffix(value)
        except argparse.ArgumentTypeError as error:
            raise argparse.ArgumentError(self, str(error)) from None


def query_string(query: str, terms: Iterable[Term] = ()) -> str:
    """Return the encoded query string for a typed query and the terms of options.

    >>> query_string("resources=VCPU:4&limit=1", [Term("resources", "resources", "DISK_GB:1")])
    'resources=VCPU:4,DISK_GB:1&limit=1'
    """
    pairs = [part for part in quote(query.lstrip("?"), _UNESCAPED, errors=_BYTES).split("&") if part]
    positions = {part.partition("=")[0]: at for at, part in enumerate(pairs) if "=in:" not in part}
    for name, parameter, value in terms:
        pair = urlencode({name: value}, safe=":,!", errors=_BYTES)
        joined = parameter in _JOINED and not value.startswith("in:")
        if joined and name in positions:
            pairs[positions[name]] += f",{pair.partition('=')[2]}"
            continue
        if joined:
            positions[name] = len(pairs)
        pairs.append(pair)
    return "&".join(pairs)


def _resource(text: str) -> str:
    if not _RESOURCE.fullmatch(text):
        raise argparse.ArgumentTypeError(f"{text!r} is invalid: use <class>=<amount>, such as VCPU=4")
    return text.replace("=", ":")


def _groups(text: str) -> str:
    return ",".join(_suffix(name) for name in text.split(","))


def _suffix(group: str) -> str:
    """Return the suffix of the parameters of a group: a number, or a name after an underscore."""
    if not _GROUP.fullmatch(group):
        raise argparse.ArgumentTypeError(f"{group!r} is not a valid group: use 1 to 63 letters, digits, _ and -")
    return group if group.isdecimal() or group.startswith(("_", "-")) else f"_{group}"
