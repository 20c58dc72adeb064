"""The policy rules of the Bare Metal API, with Ironic's names (docs: baremetal-policy).

The target of a rule contains projects: the owner of an allocation, or the owner and the lessee of a node.  A missing
project is left out of the target, so that it matches no caller, not even a caller without a project.
"""

from __future__ import annotations

from typing import Any

from oslo_policy import policy

_SCOPES = ["system", "project"]

_ADMIN = "rule:baremetal_admin"
_SYSTEM_MEMBER = "rule:baremetal_system_member"
_SYSTEM_READER = "rule:baremetal_system_reader"
_ALLOCATION_MEMBER = f"{_SYSTEM_MEMBER} or (role:member and project_id:%(allocation.owner)s)"
_ALLOCATION_READER = f"{_SYSTEM_READER} or (role:reader and project_id:%(allocation.owner)s)"
_OWNER = "project_id:%(node.owner)s"
_TENANT = f"({_OWNER} or project_id:%(node.lessee)s)"
_NODE_OWNER = f"{_SYSTEM_MEMBER} or (role:member and {_OWNER})"
_NODE_MEMBER = f"{_SYSTEM_MEMBER} or (role:member and {_TENANT})"
_NODE_READER = f"{_SYSTEM_READER} or (role:reader and {_TENANT})"
_READER = f"{_SYSTEM_READER} or role:reader"

_BASE = [
    policy.RuleDefault(
        "baremetal_admin",
        "role:admin or role:service",
        "Administrators and other services, which have full access to all nodes and allocations.",
        scope_types=_SCOPES,
    ),
    policy.RuleDefault(
        "baremetal_system_member",
        f"{_ADMIN} or (role:member and system_scope:all)",
        "Members of the system, who may use all nodes and allocations.",
        scope_types=_SCOPES,
    ),
    policy.RuleDefault(
        "baremetal_system_reader",
        f"{_SYSTEM_MEMBER} or (role:reader and system_scope:all)",
        "Readers of the system, who may see all nodes and allocations.",
        scope_types=_SCOPES,
    ),
]

_NODES = "/v1/nodes"
_NODE = "/v1/nodes/{node}"
_TRAITS = "/v1/nodes/{node}/traits"
_TRAIT = "/v1/nodes/{node}/traits/{trait}"
_MAINTENANCE = "/v1/nodes/{node}/maintenance"
_ALLOCATIONS = "/v1/allocations"
_ALLOCATION = "/v1/allocations/{allocation}"
_OF_NODE = "/v1/nodes/{node}/allocation"

#: Name, check, description and operations of each rule.
_OPERATIONS: tuple[tuple[str, str, str, tuple[str, ...]], ...] = (
    ("allocation:get", _ALLOCATION_READER, "Show an allocation.", (f"GET {_ALLOCATION}", f"GET {_OF_NODE}")),
    ("allocation:list", _READER, "List the allocations of the caller's project.", (f"GET {_ALLOCATIONS}",)),
    ("allocation:list_all", _SYSTEM_READER, "List all allocations.", (f"GET {_ALLOCATIONS}",)),
    (
        "allocation:create",
        _ALLOCATION_MEMBER,
        "Create an allocation owned by the caller's project.",
        (f"POST {_ALLOCATIONS}",),
    ),
    (
        "allocation:create_restricted",
        _SYSTEM_MEMBER,
        "Create an allocation with any owner or without one, on nodes of any owner.",
        (f"POST {_ALLOCATIONS}",),
    ),
    ("allocation:update", _ALLOCATION_MEMBER, "Change the name and extra of an allocation.", (f"PATCH {_ALLOCATION}",)),
    (
        "allocation:delete",
        _ALLOCATION_MEMBER,
        "Delete an allocation.",
        (f"DELETE {_ALLOCATION}", f"DELETE {_OF_NODE}"),
    ),
    ("node:create", _ADMIN, "Create a node.", (f"POST {_NODES}",)),
    (
        "node:list",
        _READER,
        "List the nodes that the caller's project owns or leases.",
        (f"GET {_NODES}", f"GET {_NODES}/detail"),
    ),
    ("node:list_all", _SYSTEM_READER, "List all nodes.", (f"GET {_NODES}", f"GET {_NODES}/detail")),
    ("node:get", _NODE_READER, "Show a node.", (f"GET {_NODE}",)),
    ("node:update", _NODE_OWNER, "Change a node.", (f"PATCH {_NODE}",)),
    ("node:update:owner", _SYSTEM_MEMBER, "Change the owner and lessee of a node.", (f"PATCH {_NODE}",)),
    ("node:delete", _ADMIN, "Delete a node.", (f"DELETE {_NODE}",)),
    ("node:validate", _NODE_READER, "Show whether a node can be deployed.", (f"GET {_NODE}/validate",)),
    ("node:set_maintenance", _NODE_OWNER, "Put a node in maintenance.", (f"PUT {_MAINTENANCE}",)),
    ("node:clear_maintenance", _NODE_OWNER, "Take a node out of maintenance.", (f"DELETE {_MAINTENANCE}",)),
    ("node:get_states", _NODE_READER, "Show the states of a node.", (f"GET {_NODE}/states",)),
    ("node:set_power_state", _NODE_MEMBER, "Change the power state of a node.", (f"PUT {_NODE}/states/power",)),
    (
        "node:set_provision_state",
        _NODE_MEMBER,
        "Change the provision state of a node.",
        (f"PUT {_NODE}/states/provision",),
    ),
    ("node:traits:list", _NODE_READER, "List the traits of a node.", (f"GET {_TRAITS}",)),
    ("node:traits:set", _NODE_OWNER, "Add or replace traits of a node.", (f"PUT {_TRAITS}", f"PUT {_TRAIT}")),
    (
        "node:traits:delete",
        _NODE_OWNER,
        "Remove traits from a node.",
        (f"DELETE {_TRAITS}", f"DELETE {_TRAIT}"),
    ),
    ("driver:get", _READER, "List drivers.", ("GET /v1/drivers",)),
)


def _rule(name: str, check_str: str, description: str, operations: tuple[str, ...]) -> policy.RuleDefault:
    routes: list[Any] = []
    for operation in operations:
        method, path = operation.split()
        routes.append({"path": path, "method": method})
    return policy.DocumentedRuleDefault(f"baremetal:{name}", check_str, description, routes, scope_types=_SCOPES)


RULES: list[policy.RuleDefault] = [*_BASE, *(_rule(*operation) for operation in _OPERATIONS)]
