"""/v1/nodes/{node}/states, /validate, /maintenance: bodies and documents."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from placement import errors
from placement.extensions.baremetal import versions
from placement.extensions.baremetal.failures import NotInThisVersion, VerbNotPossible
from placement.extensions.baremetal.objects import states
from placement.extensions.baremetal.objects.node import Node
from placement.extensions.baremetal.schemas.node_document import NodePresentation
from placement.extensions.baremetal.schemas.node_fields import FIELDS, LINKS
from placement.extensions.baremetal.versions import Version
from placement.http.request import Request
from placement.schemas.declarations import ANYTHING, Field, Object, integer, nullable, required, string
from placement.schemas.document import Body

_TARGET = required(Field("target", nullable(string())))
#: Fields of a provision request that concern hardware and are ignored.
_IGNORED = (
    *("configdrive", "clean_steps", "deploy_steps", "service_steps", "rescue_password", "disable_ramdisk", "runbook"),
)
PROVISION = Body(Object(_TARGET, *(Field(name, ANYTHING) for name in _IGNORED)))
POWER = Body(Object(_TARGET, Field("timeout", nullable(integer(minimum=1)))))
MAINTENANCE = Body(Object(Field("reason", nullable(string(maxLength=4096)))))
#: Parameters of a maintenance request whose reason is in the query string instead.
MAINTENANCE_QUERY = ("reason",)

_STATE_FIELDS = (
    *("console_enabled", "last_error", "power_state", "provision_state", "target_power_state"),
    *("target_provision_state", "provision_updated_at", "raid_config", "target_raid_config", "boot_mode"),
    "secure_boot",
)
_INTERFACES = (
    *("boot", "deploy", "management", "network", "power", "bios", "console", "firmware", "inspect", "raid"),
    *("rescue", "storage"),
)
_SOFT_TARGETS = ("soft rebooting", "soft power off")


def verb(document: Mapping[str, Any], version: Version) -> str:
    """Return the verb of a provision request, or raise NotInThisVersion."""
    target = str(document["target"])
    if target == "deploy" and version < versions.DEPLOY:
        raise NotInThisVersion()
    return target


def power(document: Mapping[str, Any], version: Version, node: Node) -> str:
    """Return the power state after a power request.

    Raises:
        NotInThisVersion: The version does not support the target or timeouts.
        VerbNotPossible: The target is unknown.
    """
    target = str(document["target"])
    if version < versions.SOFT_POWER and (target in _SOFT_TARGETS or document.get("timeout") is not None):
        raise NotInThisVersion()
    if target not in states.POWER:
        raise VerbNotPossible(verb=target, node=node.uuid, state=node.power_state)
    return states.POWER[target]


def present_states(req: Request, node: Node) -> dict[str, Any]:
    """Return the states of a node."""
    names = [name for name in _STATE_FIELDS if FIELDS[name].since <= req.version]
    document = NodePresentation(req, names).of_node(node, [])
    del document[LINKS]
    return document


def present_validation(failure: errors.Failure | None) -> dict[str, Any]:
    """Return the results for all interfaces of a node; only deployment can fail."""
    results: dict[str, Any] = {interface: {"result": True} for interface in _INTERFACES}
    if failure is not None:
        results["deploy"] = {"result": False, "reason": failure.sentence}
    return results
