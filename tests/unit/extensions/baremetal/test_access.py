"""Owner rules: the nodes and allocations that callers may list, see, create and change (docs: baremetal-owners)."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import webob

from placement import deploy, errors
from placement.extensions.baremetal import access
from placement.extensions.baremetal.failures import NodeNotFound
from placement.http.environ import CONTEXT
from placement.http.request import Request
from placement.policy import Policy
from tests import web

ALL = "all"
#: Roles, project and scope of each caller.
CALLERS = {
    "admin": ("admin,member,reader", "theirs", None),
    "service": ("service", "theirs", None),
    "system admin": ("admin,member,reader", None, ALL),
    "system member": ("member,reader", None, ALL),
    "system reader": ("reader", None, ALL),
    "member": ("member,reader", "mine", None),
    "reader": ("reader", "mine", None),
    "other member": ("member,reader", "theirs", None),
    "member of a domain": ("member,reader", None, None),
    "no role": ("", "mine", None),
    "no role in the system": ("", None, ALL),
}
PRIVILEGED = {"admin", "service", "system admin", "system member"}
SEEING_ALL = PRIVILEGED | {"system reader"}


@pytest.fixture(scope="module")
def service():
    return SimpleNamespace(policy=Policy(web.configuration(), deploy.list_rules()))


@pytest.fixture
def req(service):
    """Return a function that creates a request of a caller."""

    def make(name):
        roles, project, scope = CALLERS[name]
        context = web.RequestContext(
            user_id="u",
            project_id=project,
            roles=roles.split(",") if roles else [],
            system_scope=scope,
            overwrite=False,
        )
        req = Request(webob.Request.blank("/", environ={CONTEXT: context}).environ)
        req.service = service
        return req

    return make


def outcome(function, *arguments):
    """Return the result of the function, or the class of its failure."""
    try:
        return function(*arguments)
    except errors.Failure as failure:
        return type(failure)


FORBIDDEN = errors.PolicyForbids


@pytest.mark.parametrize("caller", CALLERS)
@pytest.mark.parametrize("owner", [None, "mine", "theirs"])
def test_only_privileged_callers_choose_the_owner_of_a_new_allocation(req, caller, owner):
    project = CALLERS[caller][1]
    result = outcome(access.owner_of_new, req(caller), owner)
    if caller in PRIVILEGED:
        assert result == owner
    elif project is None:
        assert result is FORBIDDEN
    else:
        assert result == (project if owner in (None, project) else FORBIDDEN)


@pytest.mark.parametrize("caller", CALLERS)
def test_candidates_are_looked_up_among_the_nodes_of_the_project(req, caller):
    project = outcome(access.project_of_candidates, req(caller))
    assert project == (None if caller in PRIVILEGED else CALLERS[caller][1] or FORBIDDEN)


@pytest.mark.parametrize("caller", CALLERS)
@pytest.mark.parametrize("owner", [None, "mine", "theirs"])
def test_a_list_shows_the_allocations_of_the_project(req, caller, owner):
    project = CALLERS[caller][1]
    result = outcome(access.owner_of_list, req(caller), owner)
    if caller in SEEING_ALL:
        assert result == owner
    else:
        assert result == (project if project and owner in (None, project) else FORBIDDEN)


@pytest.mark.parametrize("caller", CALLERS)
def test_a_list_shows_the_nodes_of_the_project(req, caller):
    result = outcome(access.project_of_nodes, req(caller))
    assert result == (None if caller in SEEING_ALL else CALLERS[caller][1] or FORBIDDEN)


class Missing(errors.NotFound):
    template = "missing"


def is_allowed(caller, projects, role):
    """Whether a caller has the role in one of the projects, or in the system."""
    roles, project, scope = CALLERS[caller]
    return caller in PRIVILEGED or (role in roles.split(",") and (scope == ALL or project in projects))


@pytest.mark.parametrize("caller", CALLERS)
@pytest.mark.parametrize("owner", ["mine", "theirs", "other", None])
@pytest.mark.parametrize(
    ("rule", "role"),
    [
        ("baremetal:allocation:get", "reader"),
        ("baremetal:allocation:update", "member"),
        ("baremetal:allocation:delete", "member"),
    ],
)
def test_an_allocation_is_hidden_from_readers_and_members_of_other_projects(req, caller, owner, rule, role):
    record = SimpleNamespace(owner=owner)
    projects = {owner} - {None}
    result = outcome(access.check_allocation, req(caller), rule, record, Missing())
    if not is_allowed(caller, projects, "reader"):
        assert result is Missing
    else:
        assert result is (None if is_allowed(caller, projects, role) else FORBIDDEN)


@pytest.mark.parametrize("caller", CALLERS)
@pytest.mark.parametrize("owner", ["mine", "theirs", None])
@pytest.mark.parametrize("lessee", ["mine", "theirs", None])
@pytest.mark.parametrize(
    ("rule", "role", "lessees"),
    [
        ("get", "reader", True),
        ("traits:list", "reader", True),
        ("get_states", "reader", True),
        ("update", "member", False),
        ("traits:set", "member", False),
        ("set_maintenance", "member", False),
        ("set_power_state", "member", True),
        ("set_provision_state", "member", True),
        ("update:owner", "no role of a project", False),
    ],
)
def test_a_node_is_hidden_from_readers_and_members_of_other_projects(req, caller, owner, lessee, rule, role, lessees):
    node = SimpleNamespace(uuid="n", owner=owner, lessee=lessee)
    tenants = {owner, lessee} - {None}
    result = outcome(access.check_node, req(caller), f"baremetal:node:{rule}", node)
    if not is_allowed(caller, tenants, "reader"):
        assert result is NodeNotFound
    elif caller == "system member" and rule == "update:owner":
        assert result is None
    else:
        projects = tenants if lessees else {owner} - {None}
        assert result is (None if is_allowed(caller, projects, role) else FORBIDDEN)


@pytest.mark.parametrize("rule", ["create", "delete"])
@pytest.mark.parametrize("caller", sorted(SEEING_ALL))
def test_nodes_are_created_and_deleted_by_administrators(req, caller, rule):
    node = SimpleNamespace(uuid="n", owner=None, lessee=None)
    result = outcome(access.check_node, req(caller), f"baremetal:node:{rule}", node)
    assert result is (None if caller in {"admin", "service", "system admin"} else FORBIDDEN)


def test_a_hidden_node_is_reported_as_one_that_does_not_exist(req):
    node = SimpleNamespace(uuid="n", owner="theirs", lessee=None)
    for ident in (None, "name"):
        with pytest.raises(NodeNotFound, match=f"Node {ident or 'n'} could not be found"):
            access.check_node(req("member"), "baremetal:node:update", node, ident)


@pytest.mark.parametrize(
    ("rule", "callers"),
    [
        ("driver:get", {*SEEING_ALL, "member", "reader", "other member", "member of a domain"}),
        ("allocation:list", {*SEEING_ALL, "member", "reader", "other member", "member of a domain"}),
        ("allocation:create", {*PRIVILEGED, "member", "other member"}),
        ("allocation:delete", {*PRIVILEGED, "member", "other member"}),
        ("allocation:get", {*SEEING_ALL, "member", "reader", "other member"}),
        ("node:create", {"admin", "service", "system admin"}),
        ("node:set_provision_state", {*PRIVILEGED, "member", "other member"}),
    ],
)
def test_the_rule_of_an_endpoint_is_checked_for_the_callers_own_objects(req, rule, callers):
    assert {caller for caller in CALLERS if access.may(req(caller), f"baremetal:{rule}")} == callers
