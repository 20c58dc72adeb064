"""The table of routes, and the policy rules of its endpoints (docs: baremetal-policy)."""

from __future__ import annotations

import pytest
from oslo_policy.policy import DocumentedRuleDefault

from placement.extensions.baremetal import access, policy, versions
from placement.extensions.baremetal.api import BAREMETAL, TABLE
from tests import web

METHODS = [(method, path) for path, methods in TABLE.items() for method in methods]
#: Rules that handlers check after the rule of the endpoint.
CHECKED_BY_HANDLERS = {
    "baremetal:allocation:list_all",
    "baremetal:allocation:create_restricted",
    "baremetal:node:list_all",
    "baremetal:node:update:owner",
}
OPERATIONS = {
    rule.name: {(operation["method"], operation["path"]) for operation in rule.operations}
    for rule in policy.RULES
    if isinstance(rule, DocumentedRuleDefault)
}


@pytest.fixture(scope="module")
def app():
    return web.mount(BAREMETAL, web.routes.PLACEMENT)


@pytest.mark.parametrize(("method", "path"), METHODS)
def test_every_endpoint_except_the_version_documents_has_its_own_rule(method, path):
    endpoint = TABLE[path][method]
    if path in ("/", "/v1"):
        assert endpoint.policy is None
    else:
        assert (method, path) in OPERATIONS[endpoint.policy]
        assert endpoint.target is access.own_target


def test_every_rule_is_checked():
    checked = {TABLE[path][method].policy for method, path in METHODS}
    assert checked - {None} == OPERATIONS.keys() - CHECKED_BY_HANDLERS


def test_the_operations_of_a_rule_are_routes():
    operations = set().union(*OPERATIONS.values())
    assert operations == set(METHODS) - {("GET", "/"), ("GET", "/v1")}


@pytest.mark.parametrize(("method", "path"), METHODS)
def test_a_caller_without_a_role_is_refused_by_each_rule(app, method, path):
    """The rule is checked before the empty body."""
    url = path.replace("{", "").replace("}", "")
    headers = {"x-auth-token": "stranger", "x-openstack-ironic-api-version": "latest"}
    answer = web.ask(app, method, f"/baremetal{url}", headers)
    assert answer.status_int == (200 if path in ("/", "/v1") else 403)


@pytest.mark.parametrize(("method", "path"), METHODS)
def test_no_endpoint_checks_accept(method, path):
    assert not TABLE[path][method].negotiates


@pytest.mark.parametrize(("method", "path"), METHODS)
def test_every_endpoint_is_in_the_newest_version(method, path):
    assert TABLE[path][method].since <= versions.LATEST
    assert TABLE[path][method].until is None


@pytest.mark.parametrize(("method", "path"), METHODS)
def test_every_path_value_is_an_argument_of_its_handler(method, path):
    code = TABLE[path][method].handler.__code__
    names = {part.strip("{}") for part in path.split("/") if part.startswith("{")}
    assert set(code.co_varnames[1 : code.co_argcount]) == names
