"""Provision states of nodes: which one a verb leads to, and what may happen to a node in each.

No hardware is driven, so a verb leads to its last state at once.  The states in between exist only on nodes that were
imported from a service that does drive hardware (docs: baremetal-nodes).
"""

from __future__ import annotations

from collections.abc import Mapping

ENROLL = "enroll"
MANAGEABLE = "manageable"
AVAILABLE = "available"
ACTIVE = "active"
#: States that a node has because an action on it failed.
_FAILED = {
    *("adopt failed", "clean failed", "deploy failed", "error", "inspect failed", "rescue failed", "unrescue failed"),
}
_SERVICE = {"servicing", "service wait", "service failed", "service hold"}

#: Every state that a node may have, of this service or of one that it was imported from.
ALL = {
    *(ENROLL, MANAGEABLE, AVAILABLE, ACTIVE, *_FAILED, *_SERVICE, "adopting", "cleaning", "clean wait", "clean hold"),
    *("deleted", "deleting", "deploying", "deploy hold", "deploy wait", "inspecting", "inspect wait", "rebuild"),
    *("rescue", "rescue wait", "rescuing", "unrescuing", "verifying"),
}
FAULTS = ("power failure", "clean failure", "rescue abort failure", "service failure")

#: The states that each verb leads to, by the states in which it is possible.
VERBS: Mapping[str, Mapping[str, str]] = {
    "manage": dict.fromkeys((ENROLL, AVAILABLE, *sorted(_FAILED - {"error", "deploy failed"})), MANAGEABLE),
    "provide": {MANAGEABLE: AVAILABLE},
    "active": dict.fromkeys((AVAILABLE, "deploy failed"), ACTIVE),
    "deleted": dict.fromkeys((ACTIVE, "deploy failed", "error", "rescue", "rescue failed"), AVAILABLE),
    "rebuild": dict.fromkeys((ACTIVE, "deploy failed", "error"), ACTIVE),
    "adopt": dict.fromkeys((MANAGEABLE, "adopt failed"), ACTIVE),
    "inspect": dict.fromkeys((MANAGEABLE, "inspect failed"), MANAGEABLE),
}
#: Other names of verbs.
ALIASES: Mapping[str, str] = {"deploy": "active", "undeploy": "deleted"}

#: Power states by the target that is asked for.
POWER: Mapping[str, str] = {
    "power on": "power on",
    "power off": "power off",
    "rebooting": "power on",
    "soft rebooting": "power on",
    "soft power off": "power off",
}
POWER_ERROR = "error"

_DELETABLE = {ENROLL, MANAGEABLE, AVAILABLE, "adopt failed"}
#: States in which the class of a node may change, and its allocation may end with its instance_uuid.
CHANGEABLE = (ENROLL, "inspecting", "inspect wait", MANAGEABLE, AVAILABLE)
#: States of a node with a target in which its allocation may be deleted all the same.
_UNLOCKED = {*_FAILED, *_SERVICE, "inspecting", "inspect wait", "verifying"}


def target(verb: str, state: str) -> str | None:
    """Return the state that the verb leads to from ``state``; None if it is not possible there."""
    return VERBS.get(ALIASES.get(verb, verb), {}).get(state)


def is_available(provision_state: str, power_state: str | None, maintenance: bool, parent_node: str | None) -> bool:
    """Whether a node could be given away, if it is free."""
    powered = power_state is not None and power_state != POWER_ERROR
    return provision_state == AVAILABLE and powered and not maintenance and parent_node is None


def may_be_deleted(state: str, maintenance: bool) -> bool:
    """Whether the node may be deleted."""
    return maintenance or state in _DELETABLE


def may_lose_instance(state: str, maintenance: bool) -> bool:
    """Whether a client may remove ``instance_uuid`` from the node although it has an allocation."""
    return maintenance or state in CHANGEABLE


def may_lose_allocation(state: str, target: str | None, maintenance: bool) -> bool:
    """Whether a client may delete the allocation of the node."""
    if maintenance:
        return True
    return state != ACTIVE and (target is None or state in _UNLOCKED)
