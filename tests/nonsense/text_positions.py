"""The places of a request that hold a text - in paths, parameters and bodies - marked by ``TRAP``."""

from __future__ import annotations

import json
import urllib.parse
from collections.abc import Iterator
from typing import Any, NamedTuple

from tests.nonsense.odd_values import CONSUMERS, NOWHERE, PROVIDERS, Sent, usual_headers

_PROVIDERS = "/resource_providers"
_PROVIDER = f"{_PROVIDERS}/{PROVIDERS[2]}"
_GUARD = {"resource_provider_generation": 0}
_CLAIM = {
    "allocations": {PROVIDERS[0]: {"resources": {"VCPU": 1}}},
    "project_id": "project",
    "user_id": "user",
    "consumer_type": "INSTANCE",
    "consumer_generation": None,
}


class Place(NamedTuple):
    """A request with a place for a text."""

    method: str
    path: str
    query: str = ""
    body: Any = None

    def fill(self, text: str) -> Sent:
        """Return the request with the text at the place."""
        body = b""
        if self.body is not None:
            body = json.dumps(self.body).replace("TRAP", json.dumps(text)[1:-1]).encode()
        query = self.query.replace("TRAP", urllib.parse.quote(text, safe=""))
        path = self.path.replace("TRAP", text)
        return Sent(self.method, path.encode(), query.encode(), usual_headers(body), body)


def _paths() -> Iterator[Place]:
    for path in (_PROVIDERS, f"{_PROVIDER}/inventories", "/resource_classes", "/traits", "/allocations"):
        yield Place("GET", f"{path}/TRAP")
        yield Place("DELETE", f"{path}/TRAP")
    yield Place("PUT", "/traits/TRAP")
    yield Place("PUT", "/resource_classes/TRAP")
    yield Place("PUT", "/allocations/TRAP", body=_CLAIM)
    yield Place("PUT", f"{_PROVIDERS}/TRAP", body={"name": "x"})
    yield Place("PUT", f"{_PROVIDER}/inventories/TRAP", body={**_GUARD, "total": 1})


def _queries() -> Iterator[Place]:
    for name in ("name", "uuid", "in_tree", "member_of", "required", "TRAP"):
        yield Place("GET", _PROVIDERS, f"{name}=TRAP")
    for path in (_PROVIDERS, "/allocation_candidates"):
        yield Place("GET", path, "resources=TRAP:1")
        yield Place("GET", path, "resources=VCPU:TRAP")
    for name in ("required", "member_of", "in_tree", "root_required", "same_subtree", "limit", "group_policy", "TRAP"):
        yield Place("GET", "/allocation_candidates", f"resources=VCPU:1&{name}=TRAP")
    for query in ("name=TRAP", "name=in:TRAP", "name=startswith:TRAP", "associated=TRAP"):
        yield Place("GET", "/traits", query)
    for name in ("project_id", "user_id", "consumer_type"):
        yield Place("GET", "/usages", f"project_id=project&{name}=TRAP")


def _bodies() -> Iterator[Place]:
    yield Place("POST", _PROVIDERS, body={"name": "TRAP"})
    for name in ("uuid", "parent_provider_uuid", "TRAP"):
        yield Place("POST", _PROVIDERS, body={"name": "x", name: "TRAP"})
    yield Place("PUT", _PROVIDER, body={"name": "TRAP"})
    yield Place("POST", "/resource_classes", body={"name": "TRAP"})
    yield Place("POST", f"{_PROVIDER}/inventories", body={"resource_class": "TRAP", "total": 1})
    yield Place("PUT", f"{_PROVIDER}/inventories", body={**_GUARD, "inventories": {"TRAP": {"total": 1}}})
    for names in ("traits", "aggregates"):
        yield Place("PUT", f"{_PROVIDER}/{names}", body={**_GUARD, names: ["TRAP"]})
    for name in ("project_id", "user_id", "consumer_type", "TRAP"):
        yield Place("PUT", f"/allocations/{NOWHERE}", body=_CLAIM | {name: "TRAP"})
    for allocations in ({"TRAP": {"resources": {"VCPU": 1}}}, {PROVIDERS[0]: {"resources": {"TRAP": 1}}}):
        yield Place("PUT", f"/allocations/{NOWHERE}", body=_CLAIM | {"allocations": allocations})
    yield Place("POST", "/allocations", body={"TRAP": _CLAIM})
    yield Place("POST", "/allocations", body={CONSUMERS[0]: _CLAIM | {"mappings": {"TRAP": ["TRAP"]}}})
    yield Place("POST", "/reshaper", body={"inventories": {"TRAP": {**_GUARD, "inventories": {}}}, "allocations": {}})


PLACES = [*_paths(), *_queries(), *_bodies()]
