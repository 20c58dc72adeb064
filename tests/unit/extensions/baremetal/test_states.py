"""Provision states and the operations allowed in each."""

from __future__ import annotations

import pytest

from placement.extensions.baremetal.objects import states


@pytest.mark.parametrize(
    ("verb", "state", "next_state"),
    [
        ("manage", "enroll", "manageable"),
        ("manage", "available", "manageable"),
        ("manage", "clean failed", "manageable"),
        ("manage", "active", None),
        ("provide", "manageable", "available"),
        ("provide", "enroll", None),
        ("active", "available", "active"),
        ("deploy", "available", "active"),
        ("active", "active", None),
        ("deleted", "active", "available"),
        ("undeploy", "error", "available"),
        ("deleted", "available", None),
        ("rebuild", "active", "active"),
        ("adopt", "manageable", "active"),
        ("inspect", "manageable", "manageable"),
        ("inspect", "available", None),
        ("clean", "manageable", None),
        ("", "enroll", None),
    ],
)
def test_a_verb_leads_to_its_state(verb, state, next_state):
    assert states.target(verb, state) == next_state


def test_verbs_lead_from_and_to_known_states():
    names = {state for transitions in states.VERBS.values() for pair in transitions.items() for state in pair}
    assert names <= states.ALL
    assert set(states.ALIASES.values()) <= states.VERBS.keys()


@pytest.mark.parametrize(
    ("provision", "power", "maintenance", "parent", "available"),
    [
        ("available", "power on", False, None, True),
        ("available", "power off", False, None, True),
        ("available", None, False, None, False),
        ("available", "error", False, None, False),
        ("available", "power on", True, None, False),
        ("available", "power on", False, "parent", False),
        ("active", "power on", False, None, False),
        ("manageable", "power on", False, None, False),
    ],
)
def test_only_available_nodes_can_be_allocated(provision, power, maintenance, parent, available):
    assert states.is_available(provision, power, maintenance, parent) == available


@pytest.mark.parametrize(
    ("state", "target", "deletable", "loses_instance", "loses_allocation"),
    [
        ("enroll", None, True, True, True),
        ("manageable", None, True, True, True),
        ("available", None, True, True, True),
        ("active", None, False, False, False),
        ("adopt failed", None, True, False, True),
        ("deploying", "active", False, False, False),
        ("deploy failed", "active", False, False, True),
        ("inspecting", "manageable", False, True, True),
        ("inspect wait", "manageable", False, True, True),
        ("cleaning", "available", False, False, False),
        ("clean failed", "available", False, False, True),
        ("verifying", "manageable", False, False, True),
        ("servicing", "active", False, False, True),
    ],
)
def test_the_state_limits_the_removal_of_a_node_its_instance_and_its_allocation(
    state, target, deletable, loses_instance, loses_allocation
):
    permissions = (
        states.may_be_deleted(state, maintenance=False),
        states.may_lose_instance(state, maintenance=False),
        states.may_lose_allocation(state, target, maintenance=False),
    )
    assert permissions == (deletable, loses_instance, loses_allocation)
    assert states.may_be_deleted(state, maintenance=True)
    assert states.may_lose_instance(state, maintenance=True)
    assert states.may_lose_allocation(state, target, maintenance=True)
