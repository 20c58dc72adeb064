"""The pages of docs/api cover every route, every field and parameter, every strategy, and every version."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from placement import microversion as mv
from placement.extensions.baremetal.schemas import allocation, node_fields, node_list
from placement.extensions.console.api import CONSOLE
from placement.extensions.v1.api import TABLE
from placement.extensions.v1.pick.strategy import Preference
from placement.extensions.v1.schemas import search
from placement.version_history import OLDEST
from tests import apis
from tests.docs import examples

ROOT = Path(__file__).parents[2]
PAGES = {path.stem: path.read_text() for path in sorted((ROOT / "docs/api").glob("*.rst"))}
BAREMETAL_PAGES = [path.read_text() for path in sorted((ROOT / "docs/api/baremetal").glob("*.rst"))]
V1_PAGES = {path.stem: path.read_text() for path in sorted((ROOT / "docs/api/v1").glob("*.rst"))}
SUCCESSES = {
    (example.request.method, example.request.path.partition("?")[0])
    for text in (*PAGES.values(), *BAREMETAL_PAGES, *V1_PAGES.values())
    for example in examples.parse(text).examples
    if example.reply is not None and example.reply.status.startswith("2")
}
#: The routes of all APIs except the console, by their paths from the root.
ROUTES = {api.prefix + path: methods for api in apis.ALL if api is not CONSOLE for path, methods in api.routes.items()}
#: The recorded schemas of bodies and queries, by version.
SCHEMAS = {path.stem: json.loads(path.read_text()) for path in sorted((ROOT / "tests/unit/schemas").glob("*.json"))}


@pytest.mark.parametrize("path", ROUTES)
def test_every_method_of_a_route_has_an_example_that_succeeds(path):
    pattern = re.compile(re.sub(r"\{[^}]+\}", "[^/]+", path))
    methods = {method for method, example in SUCCESSES if pattern.fullmatch(example)}
    assert methods >= ROUTES[path].keys()


def properties(schema: Any) -> Iterator[str]:
    """Yield the names of all properties in a JSON schema, at any depth."""
    if isinstance(schema, dict):
        yield from schema.get("properties", ())
        for value in schema.values():
            yield from properties(value)
    elif isinstance(schema, list):
        for value in schema:
            yield from properties(value)


@pytest.mark.parametrize("name", SCHEMAS)
def test_every_field_and_parameter_is_described(name):
    text = "".join(PAGES.values())
    assert [field for field in sorted(set(properties(SCHEMAS[name]))) if f"``{field}``" not in text] == []


#: The parameters of a search, which the page of GET /allocation_candidates describes.
SEARCH = {field.name for field in search.PARAMETERS} - {"limit"}


@pytest.mark.parametrize(
    ("path", "method"), [(path, method) for path in TABLE for method in TABLE[path]], ids=lambda part: part
)
def test_every_parameter_and_field_of_v1_is_described(path, method):
    """Parameters of a request are described on the page of the route, fields of a response on any page."""
    endpoint = TABLE[path][method]
    page = re.match(r"/(\w*)", path)[1]
    parameters = set(properties(endpoint.query.render(OLDEST))) - SEARCH if endpoint.query else set()
    parameters |= set(properties(endpoint.body.render(OLDEST))) if endpoint.body else set()
    assert [name for name in sorted(parameters) if f"``{name}``" not in V1_PAGES[page]] == []
    text = "".join((*PAGES.values(), *V1_PAGES.values()))
    replies = [reply.document.render(OLDEST) for reply in endpoint.replies if reply.document]
    fields = set(properties(replies)) if page != "openapi" else set()  # OpenAPI defines its own form
    assert [name for name in sorted(fields) if f"``{name}``" not in text] == []


def test_every_strategy_is_described():
    rows = re.findall(r'^``"(\w+)"``  ', V1_PAGES["claims"], flags=re.MULTILINE)
    assert rows == [*Preference]


def test_every_field_and_parameter_of_the_bare_metal_api_is_described():
    names = {*allocation.FIELDS, *allocation.LIST, *node_list.LIST, *node_fields.UPDATABLE, *node_fields.SHORT}
    text = "".join(BAREMETAL_PAGES)
    missing = {name for name in names if f"``{name}``" not in text}
    # The page describes the interfaces together, as ``*_interface``.
    assert {name for name in missing if not name.endswith("_interface")} == set()


def test_every_version_has_an_entry_in_the_history():
    entries = re.findall(r"^(1\.\d+)$", PAGES["versions"], flags=re.MULTILINE)
    assert entries == [str(change.version) for change in mv.HISTORY]
