"""Every route, asked by every kind of caller, in both sets of defaults: who gets through the door (contract 5.1).

The table below is the contract's, not the program's: that the two name the same routes and rules is a test of its own.
A request without body or parameters that policy lets in ends in a status known beforehand, so that "not 403" is never
mistaken for "allowed".
"""

from __future__ import annotations

import json
import typing

import pytest
import webob

from placement import deploy, policy, routes
from tests import servers, web

pytestmark = pytest.mark.parametrize("backend", [servers.SQLite.kind], indirect=True, scope="session")

PROVIDERS = "/resource_providers"
PROVIDER = PROVIDERS + "/{uuid}"
CLASSES = "/resource_classes"
VALUES = {
    "uuid": "5d2f2a3c-7d0b-4f3e-9d61-5f0f4c0b7a11",  # nobody has it
    "consumer_uuid": "5d2f2a3c-7d0b-4f3e-9d61-5f0f4c0b7a12",
    "resource_class": "VCPU",
    "name": "CUSTOM_POLICY",
}


class Operation(typing.NamedTuple):
    method: str
    path: str
    rule: str
    status: int  # of an empty request by somebody who may


OPERATIONS = [
    Operation("GET", CLASSES, "resource_classes:list", 200),
    Operation("POST", CLASSES, "resource_classes:create", 400),
    Operation("GET", CLASSES + "/{name}", "resource_classes:show", 404),
    Operation("DELETE", CLASSES + "/{name}", "resource_classes:delete", 404),
    Operation("PUT", CLASSES + "/{name}", "resource_classes:update", 201),
    Operation("GET", PROVIDERS, "resource_providers:list", 200),
    Operation("POST", PROVIDERS, "resource_providers:create", 400),
    Operation("GET", PROVIDER, "resource_providers:show", 404),
    Operation("PUT", PROVIDER, "resource_providers:update", 404),
    Operation("DELETE", PROVIDER, "resource_providers:delete", 404),
    Operation("GET", PROVIDER + "/inventories", "resource_providers:inventories:list", 404),
    Operation("POST", PROVIDER + "/inventories", "resource_providers:inventories:create", 404),
    Operation("PUT", PROVIDER + "/inventories", "resource_providers:inventories:update", 404),
    Operation("DELETE", PROVIDER + "/inventories", "resource_providers:inventories:delete", 404),
    Operation("GET", PROVIDER + "/inventories/{resource_class}", "resource_providers:inventories:show", 404),
    Operation("PUT", PROVIDER + "/inventories/{resource_class}", "resource_providers:inventories:update", 404),
    Operation("DELETE", PROVIDER + "/inventories/{resource_class}", "resource_providers:inventories:delete", 404),
    Operation("GET", PROVIDER + "/usages", "resource_providers:usages", 404),
    Operation("GET", PROVIDER + "/aggregates", "resource_providers:aggregates:list", 404),
    Operation("PUT", PROVIDER + "/aggregates", "resource_providers:aggregates:update", 404),
    Operation("GET", PROVIDER + "/allocations", "resource_providers:allocations:list", 404),
    Operation("GET", PROVIDER + "/traits", "resource_providers:traits:list", 404),
    Operation("PUT", PROVIDER + "/traits", "resource_providers:traits:update", 400),
    Operation("DELETE", PROVIDER + "/traits", "resource_providers:traits:delete", 404),
    Operation("GET", "/traits", "traits:list", 200),
    Operation("GET", "/traits/{name}", "traits:show", 404),
    Operation("DELETE", "/traits/{name}", "traits:delete", 404),
    Operation("PUT", "/traits/{name}", "traits:update", 201),
    Operation("POST", "/allocations", "allocations:manage", 400),
    Operation("GET", "/allocations/{consumer_uuid}", "allocations:list", 200),
    Operation("PUT", "/allocations/{consumer_uuid}", "allocations:update", 400),
    Operation("DELETE", "/allocations/{consumer_uuid}", "allocations:delete", 404),
    Operation("GET", "/allocation_candidates", "allocation_candidates:list", 400),
    Operation("GET", "/usages", "usages", 200),
    Operation("POST", "/reshaper", "reshaper:reshape", 400),
]

ROLES = ["admin", "service", "reader", "member", "reader,member,manager", "admin,service,reader", ""]
SCOPES = ["own project", "other project", "system"]


def may(rule, roles, scope, legacy):
    """The verdict of contract 5.1."""
    if scope == "system":
        return False
    if rule == "reshaper:reshape":
        return "service" in roles or (legacy and "admin" in roles)
    if rule == "usages" and "reader" in roles and scope == "own project":
        return True
    return "admin" in roles or "service" in roles


def ask(app, operation, roles, scope):
    """The answer to an empty request; the one parameter that policy looks at is filled in."""
    query = {"own project": "?project_id=mine", "other project": "?project_id=yours"}.get(scope, "?project_id=mine")
    headers = {
        "X-Auth-Token": "somebody:mine",
        "X-Roles": roles,
        "Accept": "application/json",
        "Content-Type": "application/json",
        "OpenStack-API-Version": "placement latest",
    }
    if scope == "system":
        headers["OpenStack-System-Scope"] = "all"
    path = operation.path.format(**VALUES) + (query if operation.path == "/usages" else "")
    return webob.Request.blank(path, method=operation.method, headers=headers).get_response(app)


def told(answer):
    """The specific sentence of an error."""
    return json.loads(answer.text)["errors"][0]["detail"].splitlines()[-1].strip()


@pytest.fixture(params=["secure", "legacy"])
def legacy(request):
    return request.param == "legacy"


@pytest.fixture
def app(database, legacy):
    """The whole service, with noauth2, on a clean database."""
    conf = web.configuration(
        placement_database__connection=str(database.engine.url), oslo_policy__enforce_new_defaults=not legacy
    )
    return deploy.loadapp(conf, database)


@pytest.mark.parametrize("roles", ROLES, ids=lambda roles: roles or "none")
@pytest.mark.parametrize("scope", SCOPES)
def test_each_caller_gets_through_the_right_doors(app, legacy, roles, scope):
    expected, answered = {}, {}
    for operation in OPERATIONS:
        answer = ask(app, operation, roles, scope)
        allowed = may(operation.rule, roles.split(","), scope, legacy)
        expected[operation] = operation.status if allowed else 403
        answered[operation] = answer.status_int
        if answer.status_int == 403:
            rule = f"placement:{operation.rule}"
            assert told(answer) == (rule if scope == "system" else f"Policy does not allow {rule} to be performed.")
        elif answer.status_int == 404:
            assert told(answer), "a path that nobody serves is not a door"
    assert answered == expected


def test_the_root_is_open_to_all(app):
    for roles in ROLES:
        for scope in SCOPES:
            assert ask(app, Operation("GET", "/", "", 200), roles, scope).status_int == 200


def test_the_matrix_knows_every_route_and_every_rule(backend):
    served = {(method, path) for path, methods in routes.TABLE.items() for method in methods}
    assert {(operation.method, operation.path) for operation in OPERATIONS} == served - {("GET", "/")}
    rules = {rule.name for rule in policy.RULES if rule.name.startswith("placement:")}
    assert {f"placement:{operation.rule}" for operation in OPERATIONS} == rules
