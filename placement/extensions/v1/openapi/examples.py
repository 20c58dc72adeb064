"""Examples of requests and responses, taken from docs/api and tested against the service.

``tools/generate_examples.py`` writes ``examples/*.json``, one file for each page of docs/api.  The document of a
version includes an example if its request and its response conform to the schemas of that version.
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

#: Examples of one operation in a document.
_MAX_EXAMPLES = 3


@dataclass(frozen=True, slots=True)
class Example:
    """A request to a route, and its response.

    Attributes:
        name: The page, and the number of the example on the page.
        api: The name of the API.
        method: The method.
        route: The path in the route table.
        path: The values in the path.
        query: Names and values of the query, in order.
        body: The JSON body of the request; None if it has no body.
        status: The status of the response.
        reply: The JSON body of the response; None if it has no body, or if the page abridges it.
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


def examples_of(api: Api, version: Version, method: str, route: str, endpoint: Endpoint) -> list[Example]:
    """Return examples for the document of a version, preferably with a response and of a version close to it."""
    key = api.name, method, route
    matches = (example for example in _all_examples() if (example.api, example.method, example.route) == key)
    conforming = [example for example in matches if _conforms(example, endpoint, version)]
    conforming.sort(key=lambda example: (example.reply is None, abs(example.version.minor - version.minor)))
    return conforming[:_MAX_EXAMPLES]


def _conforms(example: Example, endpoint: Endpoint, version: Version) -> bool:
    # Schemas do not fully describe values of parameters.  Later versions accept all values of earlier ones.
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
def _all_examples() -> tuple[Example, ...]:
    return tuple(_read())


def _read() -> Iterator[Example]:
    files = resources.files("placement.extensions.v1.openapi").joinpath("examples").iterdir()
    for file in sorted(files, key=lambda file: file.name):
        for record in json.loads(file.read_text()):
            record["query"] = [(name, value) for name, value in record["query"]]
            record["version"] = Version(*map(int, record["version"].split(".")))
            yield Example(**record)
