"""The owner rules with every kind of caller, over HTTP (docs: baremetal-policy, baremetal-owners)."""

from __future__ import annotations

import base64
import re

import bcrypt
import pytest
from oslo_policy.policy import DocumentedRuleDefault

from placement.extensions.baremetal import policy
from placement.extensions.baremetal.api import TABLE
from tests import children, owner_rules, running, servers

pytestmark = [
    pytest.mark.parametrize("backend", [servers.SQLite.kind], indirect=True, scope="session"),
    pytest.mark.xdist_group("baremetal-policy"),
]

BAREMETAL = {"enabled": True}
PROJECTS = {name: name for name in (owner_rules.MINE, owner_rules.YOURS, owner_rules.ELSE)}
MEMBER, READER, SYSTEM = "member,reader", "reader", "system"
#: Roles as Keystone assigns them, with implied roles; the project, or the system.
CALLERS = {
    "admin": ("admin,manager,member,reader", owner_rules.ELSE),
    "service": ("service", owner_rules.ELSE),
    "system-admin": ("admin,manager,member,reader", SYSTEM),
    "system-member": (MEMBER, SYSTEM),
    "system-reader": (READER, SYSTEM),
    "member": (MEMBER, owner_rules.MINE),
    "reader": (READER, owner_rules.MINE),
    "stranger": (MEMBER, owner_rules.YOURS),
    "strange-reader": (READER, owner_rules.YOURS),
    "a role of no rule": ("Members", owner_rules.MINE),
    "no role": ("", owner_rules.MINE),
    "no role in the system": ("", SYSTEM),
}


def headers(roles, place):
    scope = {"OpenStack-System-Scope": "all"} if place == SYSTEM else {}
    return {"X-Auth-Token": f"user:{place}", "X-Roles": roles, **scope}


@pytest.fixture(scope="module")
def port(module_database_url):
    """The port of a service with noauth2, which accepts any roles."""
    with running.embedded(module_database_url, {"baremetal": BAREMETAL}) as service:
        yield service.port


@pytest.fixture(scope="module")
def world(port):
    with owner_rules.calling(port, {}) as admin:
        yield owner_rules.World(admin, PROJECTS)


@pytest.mark.parametrize("name", CALLERS)
def test_each_caller_gets_the_result_in_the_table_of_owners(world, port, name):
    world.put_back()
    with owner_rules.calling(port, headers(*CALLERS[name])) as caller:
        owner_rules.check(world, caller, name)


def test_a_request_without_a_token_has_administrator_rights(world, port):
    world.put_back()
    with owner_rules.calling(port, {}) as caller:
        owner_rules.check(world, caller, "admin")


def create(world, port, caller, **document):
    """Create an allocation, and return its document; both requests are the caller's."""
    with owner_rules.calling(port, headers(*CALLERS[caller])) as sender:
        status, allocation = sender.ask("POST", "/v1/allocations", {"resource_class": "box", **document})
        assert status == 201
        return sender.ask("GET", f"/v1/allocations/{allocation['uuid']}")[1]


def test_an_allocation_belongs_to_the_project_of_its_creator(world, port):
    world.put_back()
    assert create(world, port, "member")["owner"] == owner_rules.MINE
    assert create(world, port, "member", owner=owner_rules.MINE)["owner"] == owner_rules.MINE
    assert create(world, port, "system-member")["owner"] is None
    assert create(world, port, "system-member", owner=owner_rules.MINE)["owner"] == owner_rules.MINE


def test_an_allocation_of_a_project_gets_only_nodes_that_the_project_owns_or_leases(world, port):
    """The same holds for an allocation that an administrator creates."""
    world.put_back()
    with owner_rules.calling(port, {}) as admin:
        assert admin.ask("DELETE", "/v1/allocations/mine")[0] == 204
    assert create(world, port, "stranger")["state"] == "error"
    assert create(world, port, "admin", owner=owner_rules.YOURS)["state"] == "error"
    assert create(world, port, "member")["state"] == "active"


@pytest.fixture(scope="module")
def password_port(module_database_url, port):
    """The port of a service on the same database with HTTP Basic, whose user names are those of two projects."""
    file = children.run_directory() / "owners"
    digest = bcrypt.hashpw(b"p", bcrypt.gensalt(4)).decode()
    file.write_text("".join(f"{name}:{digest}\n" for name in (owner_rules.MINE, owner_rules.YOURS)))
    options = {
        "baremetal": BAREMETAL,
        "api": {"auth_strategy": "http_basic", "http_basic_roles": MEMBER},
        "oslo_middleware": {"http_basic_auth_user_file": file},
    }
    with running.embedded(module_database_url, options) as service:
        yield service.port


@pytest.mark.parametrize(("user", "kind"), [(owner_rules.MINE, "member"), (owner_rules.YOURS, "stranger")])
def test_a_user_of_http_basic_is_a_project(world, password_port, user, kind):
    world.put_back()
    credentials = {"Authorization": "Basic " + base64.b64encode(f"{user}:p".encode()).decode()}
    with owner_rules.calling(password_port, credentials) as caller:
        owner_rules.check(world, caller, kind)
    with owner_rules.calling(password_port, {"X-Roles": "admin", "X-Project-Id": user}) as caller:
        assert caller.ask("GET", "/v1/nodes")[0] == 401


def test_the_table_lists_every_route(backend):
    """The rules of the routes are compared in tests/unit/extensions/baremetal/test_routes.py."""
    rows_of_table = {(row.method, _template(row.path)) for row in owner_rules.ROWS}
    routes = {(method, path) for path, methods in TABLE.items() for method in methods}
    assert rows_of_table == routes - {("GET", "/"), ("GET", "/v1")}
    documented = {
        (operation["method"], operation["path"])
        for rule in policy.RULES
        if isinstance(rule, DocumentedRuleDefault)
        for operation in rule.operations
    }
    assert rows_of_table == documented


def _template(path):
    path = re.sub(r"/nodes/node-\w+", "/nodes/{node}", path.partition("?")[0])
    return re.sub(r"(?<=/traits/)\w+", "{trait}", re.sub(r"(?<=/v1/allocations/)\w+", "{allocation}", path))
