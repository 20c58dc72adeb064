"""The nodes and allocations that a caller may see and change: the owner rules (docs: baremetal-owners).

The rule of an endpoint is checked before the handler runs, for a target owned by the caller's project.  The handler
then reads the node or allocation and checks it with one of these functions: 404 if the caller may not see it, 403 if
the caller may only see it.  A node is checked a second time under its lock before it changes, since its owner or lessee
may have changed.

=====================  ============================================================================================
POST /v1/allocations   ``owner_of_new(req, owner)`` for the record, ``project_of_candidates(req)`` for the names
GET /v1/allocations    ``owner_of_list(req, owner)``
one allocation         ``check_allocation(req, rule, record, missing)``
GET /v1/nodes          ``project_of_nodes(req)``
one node               ``find_node(req, db, ident, rule)``, ``may_see(req, node)``
its changes            ``lock_node(req, db, ident, rule)``, or ``check_node(req, rule, node, ident)`` where it is locked
=====================  ============================================================================================
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from placement import errors
from placement.db.writes.transaction import Reading, Transaction
from placement.extensions.baremetal import versions
from placement.extensions.baremetal.failures import NodeNotFound
from placement.extensions.baremetal.objects.locked_node import LockedNode
from placement.extensions.baremetal.objects.node import Node
from placement.extensions.baremetal.objects.record import Record
from placement.http.environ import CONTEXT
from placement.http.request import Request
from placement.uuids import canonical

Target = Mapping[str, Any]

_ANY_OWNER = "baremetal:allocation:create_restricted"
_ALL_ALLOCATIONS = "baremetal:allocation:list_all"


def own_target(req: Request) -> Target:
    """Return the policy target of an object that belongs to the caller's project."""
    project = _project(req)
    return {"allocation.owner": project, "node.owner": project, "node.lessee": project}


def may(req: Request, rule: str, target: Target | None = None) -> bool:
    """Whether the policy allows ``rule`` for a target, by default for an object of the caller's project."""
    try:
        req.authorize(rule, own_target(req) if target is None else target)
    except errors.Forbidden:
        return False
    return True


# --- allocations -----------------------------------------------------------------------------------------------------


def owner_of_new(req: Request, owner: str | None) -> str | None:
    """Return the owner of a new allocation.

    Args:
        owner: The owner in the request, if any.

    Returns:
        ``owner`` for a caller who may create for any owner; otherwise the caller's project.

    Raises:
        Forbidden: The request names a project other than the caller's, or the caller has no project.
    """
    project = project_of_candidates(req)
    if project is None:
        return owner
    if owner is not None and owner != project:
        raise errors.PolicyForbids(rule=_ANY_OWNER)
    return project


def project_of_candidates(req: Request) -> str | None:
    """Return the project whose nodes, owned or leased, a POST may name; None for all nodes.

    Other nodes count as missing.

    Raises:
        Forbidden: The caller has no project and may not create allocations for any owner.
    """
    return _project_unless(req, _ANY_OWNER)


def may_use_any_consumer(req: Request) -> bool:
    """Whether the caller may allocate a node to an existing consumer of any project."""
    return may(req, _ANY_OWNER)


def owner_of_list(req: Request, owner: str | None) -> str | None:
    """Return the owner whose allocations the caller may list; None for all owners.

    Args:
        owner: The owner in the query, if any.

    Raises:
        Forbidden: The query names another project, and the caller may not list all allocations.
    """
    project = _project_unless(req, _ALL_ALLOCATIONS)
    if project is None:
        return owner
    if owner is not None and owner != project:
        raise errors.PolicyForbids(rule=_ALL_ALLOCATIONS)
    return project


def check_allocation(req: Request, rule: str, record: Record, missing: errors.Failure) -> None:
    """Check that ``rule`` allows the caller to act on the allocation.

    Args:
        record: The allocation; only its owner is used.
        missing: The failure for a missing allocation, raised if the caller may not see this one.

    Raises:
        Failure: ``missing``.
        Forbidden: The caller may see the allocation, but ``rule`` refuses the action.
    """
    target = {"allocation.owner": record.owner}
    if not may(req, "baremetal:allocation:get", target):
        raise missing
    req.authorize(rule, target)


# --- nodes -----------------------------------------------------------------------------------------------------------


def project_of_nodes(req: Request) -> str | None:
    """Return the project whose nodes, owned or leased, the caller may list; None for all nodes.

    Raises:
        Forbidden: The caller has no project and may not list all nodes.
    """
    return _project_unless(req, "baremetal:node:list_all")


def find_node(req: Request, db: Reading, ident: str, rule: str) -> Node:
    """Return the node in the path if ``rule`` allows the caller to act on it.

    Raises:
        NodeNotFound: The node does not exist, the version does not support names, or the caller may not see the node.
        Forbidden: The caller may only see the node.
    """
    if req.version < versions.NODE_NAMES and canonical(ident) is None:
        raise NodeNotFound(node=ident)
    node = Node.get(db, ident)
    check_node(req, rule, node, ident)
    return node


def lock_node(req: Request, db: Transaction, ident: str, rule: str) -> LockedNode:
    """Return the node in the path, locked; ``rule`` is checked before and after.  Failures are as for ``find_node``."""
    locked = LockedNode.lock(db, find_node(req, db, ident, rule).uuid)
    check_node(req, rule, locked.node, ident)
    return locked


def may_see(req: Request, node: Node) -> bool:
    """Whether the caller may see the node."""
    return may(req, "baremetal:node:get", _node_target(node))


def check_node(req: Request, rule: str, node: Node, ident: str | None = None) -> None:
    """Check that ``rule`` allows the caller to act on the node.

    Args:
        node: Only its owner and lessee are used.
        ident: The name or uuid in the path; None for the node's uuid.

    Raises:
        NodeNotFound: The caller may not see the node.
        Forbidden: The caller may see the node, but ``rule`` refuses the action.
    """
    if not may_see(req, node):
        raise NodeNotFound(node=ident or node.uuid)
    req.authorize(rule, _node_target(node))


def _node_target(node: Node) -> Target:
    return {"node.owner": node.owner, "node.lessee": node.lessee}


def _project_unless(req: Request, rule: str) -> str | None:
    """Return None if the policy grants ``rule``, otherwise the caller's project; raise Forbidden without one."""
    if may(req, rule):
        return None
    project = _project(req)
    if project is None:
        raise errors.PolicyForbids(rule=rule)
    return project


def _project(req: Request) -> str | None:
    project: str | None = req.environ[CONTEXT].project_id
    return project
