"""Examples of requests and replies: those of the reference, which the tests send to the service.

``tools/generate_examples.py`` writes ``examples/*.json``, one file for each page of docs/api.  An example belongs to
the document of a version if what it sends and the reply that it shows conform to the schemas of that version.
"""

from __future__ import annotations

import copy
import functools
import json
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import resources
from typing import Any

from placement import errors
from placement.http.api import Api
from placement.http.endpoint import Endpoint
from placement.schemas.validator import LENIENT, Validator
from placement.version_history import Version

#: The most examples of an operation that a document shows.
_MOST = 3


@dataclass(frozen=True, slots=True)
class Example:
    """A request to a route, and the reply to it.

    Args:
        name: The page and the number of the example in it.
        api: The name of the API.
        method: The method.
        route: The path in the route table.
        path: The values in the path.
        query: Names and values of the query, in order.
        body: The JSON value that is sent; None if there is none.
        status: The status of the reply.
        reply: Its JSON value; None if there is none, or if the page does not show all of it.
        version: The version of the API that the request uses.
    """

    name: str
    api: str
    method: str
    route: str
    path: dict[str, str]
    query: list[tuple[str, str]]
    body: Any
    status: int
    reply: Any
    version: Version

    def values(self, parameter: str) -> list[str]:
        """Return the values of a parameter of the query, in order."""
        return [value for name, value in self.query if name == parameter]


def of(api: Api, version: Version, method: str, route: str, endpoint: Endpoint) -> list[Example]:
    """Return examples for the document of this version: first those with a reply, and those of the nearest versions."""
    known = (each for each in _all() if (each.api, each.method, each.route) == (api.name, method, route))
    fitting = [each for each in known if _conforms(each, endpoint, version)]
    return sorted(fitting, key=lambda each: (each.reply is None, abs(each.version.minor - version.minor)))[:_MOST]


def _conforms(example: Example, endpoint: Endpoint, version: Version) -> bool:
    # What the value of a parameter may be is not in the schemas alone; it has only grown.
    if example.query and example.version > version:
        return False
    if (example.body is None) != (endpoint.body is None):
        return False
    try:
        if endpoint.body is not None:
            endpoint.body.validate(copy.deepcopy(example.body), version)
        if endpoint.query is not None:
            endpoint.query.validate(example.query, version)
    except errors.BadRequest:
        return False
    return any(
        success.status == example.status
        and success.exists_at(version)
        and (
            success.document is None
            or example.reply is None
            or Validator(success.document.render(version), LENIENT).is_valid(example.reply)
        )
        for success in endpoint.replies
    )


@functools.cache
def _all() -> tuple[Example, ...]:
    return tuple(_read())


def _read() -> Iterator[Example]:
    files = resources.files("placement.extensions.v1.openapi").joinpath("examples").iterdir()
    for file in sorted(files, key=lambda each: each.name):
        for record in json.loads(file.read_text()):
            record["query"] = [(name, value) for name, value in record["query"]]
            record["version"] = Version(*map(int, record["version"].split(".")))
            yield Example(**record)
