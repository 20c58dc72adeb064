"""Every rule with every kind of caller, in both sets of defaults, over HTTP (docs: policy)."""

from __future__ import annotations

import re

import pytest

from placement import routes
from placement.policy import rules
from tests import permissions, running, servers

pytestmark = [
    pytest.mark.parametrize("backend", [servers.SQLite.kind], indirect=True, scope="session"),
    pytest.mark.xdist_group("policy"),
]

MINE, YOURS = "mine", "yours"

#: Roles as Keystone assigns them, with implied roles; the project; and the kind of caller in the table.
CALLERS = {
    "admin": ("admin,manager,member,reader", MINE, "admin"),
    "admin of another project": ("admin,manager,member,reader", YOURS, "admin"),
    "admin and nothing else": ("admin", YOURS, "admin"),
    "service": ("service", YOURS, "service"),
    "manager": ("manager,member,reader", MINE, "reader"),
    "member": ("member,reader", MINE, "reader"),
    "reader": ("reader", MINE, "reader"),
    "reader of another project": ("reader", YOURS, "stranger"),
    "member who is no reader": ("member", MINE, "stranger"),
    "a role of no rule": ("Admins", MINE, "stranger"),
    "no role": ("", MINE, "stranger"),
}


@pytest.fixture(scope="module", params=["secure", "legacy"])
def legacy(request):
    return request.param == "legacy"


@pytest.fixture(scope="module")
def port(backend, legacy):
    """The port of a service with noauth2, which accepts any roles."""
    url = backend.create_database()
    with running.embedded(url, {"oslo_policy": {"enforce_new_defaults": not legacy}}) as service:
        yield service.port
    backend.drop_database(url)


@pytest.mark.parametrize("name", CALLERS)
def test_each_caller_has_exactly_the_documented_rights(port, legacy, name):
    roles, project, kind = CALLERS[name]
    with permissions.calling(port, {"X-Auth-Token": f"user:{project}", "X-Roles": roles}, MINE) as caller:
        permissions.check(caller.send_all(), kind, legacy=legacy)


@pytest.mark.parametrize("roles", ["admin,manager,member,reader", "service", "reader", ""])
def test_a_system_scoped_token_is_refused_everywhere(port, legacy, roles):
    headers = {"X-Auth-Token": f"user:{MINE}", "X-Roles": roles, "OpenStack-System-Scope": "all"}
    with permissions.calling(port, headers, MINE) as caller:
        permissions.check(caller.send_all(), "system", legacy=legacy, scope="system")


@pytest.mark.parametrize("headers", [{}, {"X-Auth-Token": "user"}, {"OpenStack-System-Scope": "all"}])
def test_the_root_is_open_to_all(port, headers):
    with permissions.calling(port, headers, MINE) as caller:
        root = permissions.Operation("", "GET", "/", 200, frozenset(), frozenset())
        assert caller.send(root).status == 200


def test_the_table_lists_every_route_and_every_rule(backend):
    served_routes = {(method, path) for path, methods in routes.TABLE.items() for method in methods} - {("GET", "/")}
    assert {(operation.method, _template(operation.path)) for operation in permissions.OPERATIONS} == {
        (method, re.sub("{.*?}", "{}", path)) for method, path in served_routes
    }
    assert len(permissions.OPERATIONS) == len(served_routes)
    assert {operation.rule for operation in permissions.OPERATIONS} == {rule.name for rule in rules.RULES} - {
        "admin_api",
        "service_api",
        "admin_or_service_api",
        "project_reader_api",
        "admin_or_project_reader_or_service_api",
    }


def _template(path):
    return re.sub(r"{uuid}|(?<=/)(CUSTOM_POLICY|VCPU)", "{}", path.partition("?")[0])
