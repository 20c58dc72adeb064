"""Writes whose every attempt collides: the response, and the number of attempts."""

from __future__ import annotations

import pytest

from placement.db.writes.retry import ATTEMPTS
from placement.objects.locked_provider import TREE_ATTEMPTS
from placement.objects.resource_class import CREATE_ATTEMPTS
from tests.db import faults
from tests.db.faults import Plan, plant
from tests.db.in_process import placement
from tests.db.scenarios import Call, Names
from tests.db.writes import CLAIMED, HOST, RESOURCE_CLASS, claim, holding, inventories, stock

# The attempts do not depend on the database.
pytestmark = pytest.mark.parametrize("backend", ["sqlite"], indirect=True)

ALLOCATING = "Inventory and/or allocations changed while attempting to allocate: "
UPDATE_CONFLICT = "update conflict: "
RESHAPE = {
    "inventories": {"$host": inventories(2, VCPU=8, MEMORY_MB=1024, DISK_GB=100)},
    "allocations": {"$consumer": holding(1, host={"VCPU": 1})},
}


@pytest.mark.parametrize(
    ("before", "call", "sentence", "attempts"),
    [
        (CLAIMED, claim(1, host={"VCPU": 2}), ALLOCATING, 10),
        (CLAIMED, Call("POST /allocations", {"$consumer": holding(1, host={"VCPU": 2})}), ALLOCATING, 10),
        (CLAIMED, Call("DELETE /allocations/$consumer"), UPDATE_CONFLICT, ATTEMPTS),
        (CLAIMED, Call("POST /reshaper", RESHAPE), UPDATE_CONFLICT, ATTEMPTS),
        (HOST, stock("host", 1, VCPU=9), UPDATE_CONFLICT, ATTEMPTS),
        (
            HOST,
            Call("PUT /resource_providers/$host", {"name": "new", "parent_provider_uuid": None}),
            UPDATE_CONFLICT,
            TREE_ATTEMPTS,
        ),
        ((), HOST[0], UPDATE_CONFLICT, TREE_ATTEMPTS),
        (
            (),
            RESOURCE_CLASS,
            "Max retries of DB transaction exceeded attempting to create a resource class",
            CREATE_ATTEMPTS,
        ),
    ],
    ids=["claim", "claims", "release", "reshape", "inventories", "move", "creation", "class"],
)
def test_exhausted_attempts_are_a_conflict(database, no_pauses, before, call, sentence, attempts):
    """The error code shows clients that the same request may succeed later."""
    names, service = Names(), placement(database)
    for precondition in before:
        assert service(*names.fill(precondition)).status < 300
    plan = Plan("BEGIN", [faults.collisions("sqlite")[0]], permanent=True)
    plant(database, plan)
    answer = service(*names.fill(call))
    assert answer.status == 409
    assert answer.error["code"] == "placement.concurrent_update"
    assert sentence in answer.error["detail"]
    assert plan.injected == attempts
