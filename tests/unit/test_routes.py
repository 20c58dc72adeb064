"""The table of routes (docs: api-routes)."""

from __future__ import annotations

import itertools

import pytest

from placement import microversion as mv
from placement.http.endpoint import Endpoint
from placement.policy import rules
from placement.routes import TABLE
from tests import web

#: The allowed methods of each path, as in the header of a 405.
ALLOW = {
    "/": "GET",
    "/resource_classes": "GET, POST",
    "/resource_classes/{name}": "GET, PUT, DELETE",
    "/resource_providers": "GET, POST",
    "/resource_providers/{uuid}": "GET, DELETE, PUT",
    "/resource_providers/{uuid}/inventories": "GET, POST, PUT, DELETE",
    "/resource_providers/{uuid}/inventories/{resource_class}": "GET, PUT, DELETE",
    "/resource_providers/{uuid}/usages": "GET",
    "/resource_providers/{uuid}/aggregates": "GET, PUT",
    "/resource_providers/{uuid}/allocations": "GET",
    "/resource_providers/{uuid}/traits": "GET, PUT, DELETE",
    "/allocations": "POST",
    "/allocations/{consumer_uuid}": "GET, PUT, DELETE",
    "/allocation_candidates": "GET",
    "/traits": "GET",
    "/traits/{name}": "GET, PUT, DELETE",
    "/usages": "GET",
    "/reshaper": "POST",
}
#: The first version of each path that the first version of the API lacks.
SINCE = {
    "/resource_classes": (1, 2),
    "/resource_classes/{name}": (1, 2),
    "/resource_providers/{uuid}/aggregates": (1, 1),
    "/resource_providers/{uuid}/traits": (1, 6),
    "/allocations": (1, 13),
    "/allocation_candidates": (1, 10),
    "/traits": (1, 6),
    "/traits/{name}": (1, 6),
    "/usages": (1, 9),
    "/reshaper": (1, 30),
}
#: Writes whose requests have no body.
BODILESS = {("PUT", "/traits/{name}")}
#: Reads that do not check the Accept header.
UNCHECKED = {("GET", "/"), ("GET", "/traits/{name}")}

METHODS = [(method, path) for path, methods in TABLE.items() for method in methods]
JSON = {"content-type": "application/json"}


@pytest.fixture(scope="module")
def app():
    return web.application(TABLE)


def path_of(template):
    return template.replace("{", "").replace("}", "")


def first_version(method, path):
    return mv.Version(*((1, 5) if (method, path) == ("DELETE", list(ALLOW)[5]) else SINCE.get(path, (1, 0))))


def endpoints(method, path):
    declaration = TABLE[path][method]
    return (declaration,) if isinstance(declaration, Endpoint) else declaration


def test_the_table_has_the_routes_and_methods_of_the_api():
    assert {path: ", ".join(methods) for path, methods in TABLE.items()} == ALLOW


@pytest.mark.parametrize("path", TABLE)
def test_a_405_reply_lists_the_allowed_methods_at_every_version(app, path):
    for version in (mv.MINIMUM, mv.LATEST):
        answer = web.ask_inside(app, "PATCH", path_of(path), version=version)
        assert answer.status_int == 405
        assert answer.headers["allow"] == ALLOW[path]


@pytest.mark.parametrize(("method", "path"), METHODS)
def test_every_route_exists_from_its_version_on(app, method, path):
    first = first_version(method, path)
    assert max(endpoints(method, path)[0].since, mv.MINIMUM) == first
    if first > mv.MINIMUM:
        before = mv.Version(1, first.minor - 1)
        answer = web.ask_inside(app, method, path_of(path), JSON, version=before)
        assert answer.status_int == (405 if method == "DELETE" and path.endswith("/inventories") else 404)
        assert "allow" not in answer.headers


@pytest.mark.parametrize(("method", "path"), METHODS)
def test_every_route_except_the_root_checks_its_policy_rule_first(app, method, path):
    """The caller has no known role, and the body is empty."""
    answer = web.ask_inside(app, method, path_of(path), JSON, roles="none")
    assert answer.status_int == (200 if path == "/" else 403)
    for endpoint in endpoints(method, path):
        assert (endpoint.policy is None) is (path == "/")


def test_endpoints_check_exactly_the_declared_rules():
    checked = {endpoint.policy for method, path in METHODS for endpoint in endpoints(method, path)} - {None}
    declared = {rule.name for rule in rules.RULES if rule.name.startswith("placement:")}
    assert checked == declared


def test_the_operations_of_a_rule_are_the_routes_that_check_it():
    documented = {
        (operation["method"], operation["path"], rule.name)
        for rule in rules.RULES
        if rule.name.startswith("placement:")
        for operation in rule.operations
    }
    checked = {
        (method, path, endpoint.policy)
        for method, path in METHODS
        for endpoint in endpoints(method, path)
        if endpoint.policy
    }
    assert checked == documented


@pytest.mark.parametrize(("method", "path"), METHODS)
def test_every_get_except_of_the_root_and_of_one_trait_checks_accept(app, method, path):
    answer = web.ask_inside(app, method, path_of(path), {"accept": "image/png"}, roles="none")
    assert (answer.status_int == 406) is (method == "GET" and (method, path) not in UNCHECKED)


@pytest.mark.parametrize(("method", "path"), METHODS)
def test_every_put_and_post_with_a_body_requires_json(app, method, path):
    for endpoint in endpoints(method, path):
        bodiless = method in ("GET", "DELETE") or (method, path) in BODILESS or endpoint.since == (1, 7)
        text = {"content-type": "text/plain"}
        version = max(endpoint.since, mv.MINIMUM)
        answer = web.ask_inside(app, method, path_of(path), text, b"x", version=version, roles="none")
        assert (answer.status_int == 415) is not bodiless


def test_the_version_ranges_of_the_endpoints_of_a_method_are_contiguous():
    for method, path in METHODS:
        endpoints_of_method = endpoints(method, path)
        for earlier, later in itertools.pairwise(endpoints_of_method):
            assert earlier.until == later.since
        assert endpoints_of_method[-1].until is None


def test_every_path_value_is_an_argument_of_its_handler():
    for method, path in METHODS:
        names = {part.strip("{}") for part in path.split("/") if part.startswith("{")}
        for endpoint in endpoints(method, path):
            code = endpoint.handler.__code__
            assert set(code.co_varnames[1 : code.co_argcount]) == names, (method, path)
