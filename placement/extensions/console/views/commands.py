"""Commands for a terminal that ask what a page asks."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from typing import Any

from placement import microversion as mv
from placement.extensions.console.views.query_form import Pairs, of_claim, of_search
from placement.extensions.v1 import query_text
from placement.search.query.query import UNSUFFIXED, Group, SearchQuery

#: The token is that of the shell's environment.
_HEADERS = f"""-H "X-Auth-Token: $OS_TOKEN" -H 'OpenStack-API-Version: placement {mv.LATEST}'"""


def curl(url: str, pairs: Pairs) -> str:
    """Return the command that sends the query."""
    address = shlex.quote(f"{url}/allocation_candidates?{query_text.text(pairs)}")
    return f"curl {_HEADERS} \\\n  {address}"


def curl_json(method: str, url: str, document: Any) -> str:
    """Return the command that sends a JSON body."""
    content = shlex.quote(json.dumps(document, indent=2))
    return (
        f"curl -X {method} {_HEADERS} \\\n  -H 'Content-Type: application/json' {shlex.quote(url)} \\\n  -d {content}"
    )


def questions(pairs: Pairs) -> list[tuple[str, str]]:
    """Return commands that explain and count the query, each after what it is.

    They take the query as it is, and so express each one.
    """
    query, counted = (shlex.quote(query_text.text(each)) for each in (of_search(pairs), pairs))
    return [
        ("Why, with OpenStack's client", f"openstack allocation candidate explain {query}"),
        ("How many times, with OpenStack's client", f"openstack allocation candidate count {counted}"),
        ("Why, with placement-ask", f"placement-ask explain {query}"),
        ("How many times, with placement-ask", f"placement-ask capacity {counted}"),
    ]


def claims(pairs: Pairs) -> list[tuple[str, str]]:
    """Return commands that show what a claim of the query would take, each after what it is; a claim has no limit."""
    query = shlex.quote(query_text.text(of_claim(pairs)))
    return [
        ("A claim with OpenStack's client", f"openstack allocation claim --dry-run {query}"),
        ("A claim with placement-ask", f"placement-ask claim --dry-run {query}"),
    ]


def openstack(query: SearchQuery) -> str | None:
    """Return the command of OpenStack's client for the query; None where the client has no option for a part of it."""
    if query.root_traits.names or query.same_subtrees or any(not _is_expressible(group) for group in query.groups):
        return None
    words = ["openstack", "--os-placement-api-version", str(mv.LATEST), "allocation", "candidate", "list"]
    for group in query.groups:
        words += _options(group)
    if any(group.suffix != UNSUFFIXED for group in query.groups):
        words += ["--group-policy", "isolate" if query.isolate else "none"]
    if query.limit is not None:
        words += ["--limit", str(query.limit)]
    return shlex.join(words)


def _is_expressible(group: Group) -> bool:
    return (
        group.in_tree is None
        and bool(group.resources)
        and (group.suffix == UNSUFFIXED or group.suffix.isdigit())
        and not group.aggregates.none_of
    )


def _options(group: Group) -> Iterator[str]:
    """Yield the options of one group; those of the unsuffixed group follow no ``--group``."""
    if group.suffix != UNSUFFIXED:
        yield from ("--group", group.suffix)
    for name, amount in group.resources.items():
        yield from ("--resource", f"{name}={amount}")
    for names in group.traits.any_of:
        yield from ("--required", ",".join(sorted(names)))
    for name in sorted(group.traits.none_of):
        yield from ("--forbidden", name)
    for aggregates in group.aggregates.any_of:
        yield from ("--member-of", ",".join(sorted(aggregates)))
