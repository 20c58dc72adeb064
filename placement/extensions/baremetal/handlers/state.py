"""/v1/nodes/{node}/states, /states/provision, /states/power, /validate, /maintenance"""

from __future__ import annotations

from typing import Any

from placement import errors
from placement.db.writes.transaction import Reading, Transaction
from placement.extensions.baremetal import access
from placement.extensions.baremetal.endpoint import endpoint
from placement.extensions.baremetal.failures import InstanceTraitsMissing
from placement.extensions.baremetal.objects import node_update
from placement.extensions.baremetal.objects.node import Node
from placement.extensions.baremetal.schemas import state as schema
from placement.extensions.baremetal.schemas.node import check_ident
from placement.extensions.baremetal.schemas.query import Arguments
from placement.http.request import Request
from placement.http.response import Reply, accepted, ok


@endpoint(policy="baremetal:node:get_states", check_path=check_ident)
def show(req: Request, node: str) -> Reply:
    """Show the states of a node."""
    Arguments(req.pairs())
    current = req.read(lambda db: access.find_node(req, db, node, "baremetal:node:get_states"))
    return ok(schema.present_states(req, current))


@endpoint(policy="baremetal:node:set_provision_state", check_path=check_ident, body=schema.PROVISION)
def set_provision(req: Request, node: str) -> Reply:
    """Change the provision state of a node without delay; undeployment ends its allocation."""
    Arguments(req.pairs())
    verb = schema.verb(req.document, req.version)

    def permit(current: Node) -> None:
        access.check_node(req, "baremetal:node:set_provision_state", current, node)

    def work(db: Transaction) -> None:
        current = access.find_node(req, db, node, "baremetal:node:set_provision_state")
        node_update.set_provision_state(db, current, verb, permit)

    req.write(work)
    return accepted(req.absolute_url(f"/v1/nodes/{node}/states"))


@endpoint(policy="baremetal:node:set_power_state", check_path=check_ident, body=schema.POWER)
def set_power(req: Request, node: str) -> Reply:
    """Record the power state of a node."""
    Arguments(req.pairs())

    def work(db: Transaction) -> None:
        locked = access.lock_node(req, db, node, "baremetal:node:set_power_state")
        power_state = schema.power(req.document, req.version, locked.node)
        locked.update(power_state=power_state, target_power_state=None)

    req.write(work)
    return accepted(req.absolute_url(f"/v1/nodes/{node}/states"))


@endpoint(policy="baremetal:node:validate", check_path=check_ident)
def validate(req: Request, node: str) -> Reply:
    """Show whether a node could be deployed: without hardware, only missing traits prevent it."""
    Arguments(req.pairs())

    def work(db: Reading) -> errors.Failure | None:
        current = access.find_node(req, db, node, "baremetal:node:validate")
        missing = node_update.missing_traits(db, current)
        return InstanceTraitsMissing(node=current.uuid, traits=", ".join(missing)) if missing else None

    return ok(schema.present_validation(req.read(work)))


@endpoint(
    policy="baremetal:node:set_maintenance",
    check_path=check_ident,
    body=schema.MAINTENANCE,
)
def set_maintenance(req: Request, node: str) -> Reply:
    """Put a node in maintenance: it keeps its allocation, but is not allocated again."""
    arguments = Arguments(req.pairs(), schema.MAINTENANCE_QUERY)
    reason = req.document.get("reason", arguments.get("reason"))
    return _maintain(req, node, "baremetal:node:set_maintenance", True, {"maintenance_reason": reason})


@endpoint(policy="baremetal:node:clear_maintenance", check_path=check_ident)
def clear_maintenance(req: Request, node: str) -> Reply:
    """Take a node out of maintenance."""
    Arguments(req.pairs())
    return _maintain(req, node, "baremetal:node:clear_maintenance", False, {"maintenance_reason": None, "fault": None})


def _maintain(req: Request, node: str, rule: str, maintenance: bool, details: dict[str, Any]) -> Reply:
    def work(db: Transaction) -> None:
        locked = access.lock_node(req, db, node, rule)
        locked.update(maintenance=maintenance, details=details)

    req.write(work)
    return accepted()
