"""Provision states of nodes: the transitions by verb, and the actions allowed in each state.

The service controls no hardware, so a verb leads directly to its final state.  Intermediate states occur only on nodes
imported from a service that controls hardware (docs: baremetal-nodes).
"""

from __future__ import annotations

from collections.abc import Mapping

ENROLL = "enroll"
MANAGEABLE = "manageable"
AVAILABLE = "available"
ACTIVE = "active"
#: States after a failed action.
_FAILED = {
    *("adopt failed", "clean failed", "deploy failed", "error", "inspect failed", "rescue failed", "unrescue failed"),
}
_SERVICE = {"servicing", "service wait", "service failed", "service hold"}

#: All states, including those that only imported nodes can have.
ALL = {
    *(ENROLL, MANAGEABLE, AVAILABLE, ACTIVE, *_FAILED, *_SERVICE, "adopting", "cleaning", "clean wait", "clean hold"),
    *("deleted", "deleting", "deploying", "deploy hold", "deploy wait", "inspecting", "inspect wait", "rebuild"),
    *("rescue", "rescue wait", "rescuing", "unrescuing", "verifying"),
}
FAULTS = ("power failure", "clean failure", "rescue abort failure", "service failure")

#: Target states by verb and current state.
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

#: Power states by requested target.
POWER: Mapping[str, str] = {
    "power on": "power on",
    "power off": "power off",
    "rebooting": "power on",
    "soft rebooting": "power on",
    "soft power off": "power off",
}
POWER_ERROR = "error"

_DELETABLE = {ENROLL, MANAGEABLE, AVAILABLE, "adopt failed"}
#: States in which the class of a node may change, and ``instance_uuid`` may be removed with its allocation.
CHANGEABLE = (ENROLL, "inspecting", "inspect wait", MANAGEABLE, AVAILABLE)
#: States in which the allocation may be deleted even if the node has a target state.
_UNLOCKED = {*_FAILED, *_SERVICE, "inspecting", "inspect wait", "verifying"}


def target(verb: str, state: str) -> str | None:
    """Return the target state of the verb from ``state``; None if the verb is not allowed there."""
    return VERBS.get(ALIASES.get(verb, verb), {}).get(state)


def is_available(provision_state: str, power_state: str | None, maintenance: bool, parent_node: str | None) -> bool:
    """Whether a node could be allocated if free."""
    powered = power_state is not None and power_state != POWER_ERROR
    return provision_state == AVAILABLE and powered and not maintenance and parent_node is None


def may_be_deleted(state: str, maintenance: bool) -> bool:
    """Whether the node may be deleted."""
    return maintenance or state in _DELETABLE


def may_lose_instance(state: str, maintenance: bool) -> bool:
    """Whether a client may remove ``instance_uuid`` from the node although it has an allocation."""
    return maintenance or state in CHANGEABLE


def may_lose_allocation(state: str, target_state: str | None, maintenance: bool) -> bool:
    """Whether a client may delete the allocation of the node."""
    if maintenance:
        return True
    return state != ACTIVE and (target_state is None or state in _UNLOCKED)
