"""Shell commands that send the requests of a page."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from placement import microversion as mv
from placement.extensions.console.views.query_form import Pairs, of_claim, of_search
from placement.extensions.v1 import query_text
from placement.search.query.query import UNSUFFIXED, Group, SearchQuery

_VERSION = f"-H 'OpenStack-API-Version: placement {mv.LATEST}'"


@dataclass(frozen=True, slots=True)
class Access:
    """The address and the credentials in displayed commands, which can be run unchanged.

    Attributes:
        url: The URL of the service, without the path of an API.
        strategy: ``[api]auth_strategy``: with noauth2 any token is an administrator's, with http_basic the shell's
            environment holds name and password, and with keystone the OpenStack client gets a token.
    """

    url: str
    strategy: str

    @property
    def curl(self) -> str:
        """The options of a curl command: credentials and version."""
        credentials = {
            "noauth2": "-H 'X-Auth-Token: admin'",
            "http_basic": '-u "$OS_USERNAME:$OS_PASSWORD"',
        }.get(self.strategy, '-H "X-Auth-Token: $(openstack token issue -f value -c id)"')
        return f"{credentials} {_VERSION}"

    @property
    def openstack(self) -> str:
        """The start of an OpenStack client command; with keystone the client finds the service in the catalog."""
        if self.strategy == "keystone":
            return "openstack"
        types = {"noauth2": "none", "http_basic": "http_basic"}
        return f"openstack --os-auth-type {types.get(self.strategy, 'none')} --os-endpoint {shlex.quote(self.url)}"

    @property
    def ask(self) -> str:
        """The start of a placement-ask command."""
        return f"placement-ask --url {shlex.quote(self.url)}"


def curl(access: Access, pairs: Pairs) -> str:
    """Return the command that sends the query."""
    address = shlex.quote(f"{access.url}/allocation_candidates?{query_text.text(pairs)}")
    return f"curl {access.curl} \\\n  {address}"


def curl_json(access: Access, method: str, path: str, document: Any) -> str:
    """Return the command that sends a JSON body."""
    content = shlex.quote(json.dumps(document, indent=2))
    address = shlex.quote(access.url + path)
    return f"curl -X {method} {access.curl} \\\n  -H 'Content-Type: application/json' {address} \\\n  -d {content}"


def questions(access: Access, pairs: Pairs) -> list[tuple[str, str]]:
    """Return the labels and commands that explain and count a query; they accept any query unchanged."""
    query, counted = (shlex.quote(query_text.text(parameters)) for parameters in (of_search(pairs), pairs))
    return [
        ("Explanation with the OpenStack client", f"{access.openstack} allocation candidate explain {query}"),
        ("Count with the OpenStack client", f"{access.openstack} allocation candidate count {counted}"),
        ("Explanation with placement-ask", f"{access.ask} explain {query}"),
        ("Count with placement-ask", f"{access.ask} capacity {counted}"),
    ]


def claims(access: Access, pairs: Pairs) -> list[tuple[str, str]]:
    """Return the labels and commands that try a claim of a query, without the limit and count of the query."""
    query = shlex.quote(query_text.text(of_claim(pairs)))
    return [
        ("Claim with the OpenStack client", f"{access.openstack} allocation claim --dry-run {query}"),
        ("Claim with placement-ask", f"{access.ask} claim --dry-run {query}"),
    ]


def openstack(access: Access, query: SearchQuery) -> str | None:
    """Return the OpenStack client command for the query; None if the client has no option for part of it."""
    if query.root_traits.names or query.same_subtrees or any(not _is_expressible(group) for group in query.groups):
        return None
    words = ["--os-placement-api-version", str(mv.LATEST), "allocation", "candidate", "list"]
    for group in query.groups:
        words += _options(group)
    if any(group.suffix != UNSUFFIXED for group in query.groups):
        words += ["--group-policy", "isolate" if query.isolate else "none"]
    if query.limit is not None:
        words += ["--limit", str(query.limit)]
    return f"{access.openstack} {shlex.join(words)}"


def _is_expressible(group: Group) -> bool:
    return (
        group.in_tree is None
        and bool(group.resources)
        and (group.suffix == UNSUFFIXED or group.suffix.isdigit())
        and not group.aggregates.none_of
    )


def _options(group: Group) -> Iterator[str]:
    """Yield the options of one group; the unsuffixed group has no ``--group``."""
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
