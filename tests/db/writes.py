"""Every route that writes, as a small scenario: preconditions, one request, and its changes (tests/db/scenarios.py)."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

import pytest

from placement.db.feed import GONE, NAMES, SHAPE, USAGE
from tests import extension_modules
from tests.db.scenario_requests import (
    CLAIMED,
    FULL,
    HOST,
    OLD_CLAIM,
    OTHER,
    RESOURCE_CLASS,
    TRAIT,
    TREE,
    aggregates,
    claim,
    holding,
    inventories,
    provider,
    stock,
    traits,
)
from tests.db.scenarios import NO_PROVIDER, Call, Write

PROVIDERS = (
    Write("create a provider", (), provider("host"), {"host": SHAPE}, 200),
    Write("create a child", (provider("host"),), provider("child", "host"), {"child": SHAPE}, 200),
    Write(
        "rename a provider",
        (provider("host"),),
        Call("PUT /resource_providers/$host", {"name": "named $RUN"}),
        {"host": SHAPE},
        200,
    ),
    Write(
        "move a subtree",
        TREE,
        Call("PUT /resource_providers/$middle", {"name": "$middle", "parent_provider_uuid": "$elsewhere"}),
        {"middle": SHAPE, "leaf": SHAPE},
        200,
    ),
    Write(
        "cut a subtree off",
        TREE,
        Call("PUT /resource_providers/$middle", {"name": "$middle", "parent_provider_uuid": None}),
        {"middle": SHAPE, "leaf": SHAPE},
        200,
    ),
    Write(
        "delete a provider",
        (*HOST, traits("host", 1, "HW_CPU_X86_AVX"), aggregates("host", 2, "$aggregate")),
        Call("DELETE /resource_providers/$host"),
        {"host": GONE},
    ),
)

INVENTORIES = (
    Write(
        "add an inventory",
        (*HOST, RESOURCE_CLASS),
        Call("POST /resource_providers/$host/inventories", {"resource_class": "CUSTOM_C_$RUN", "total": 4}),
        {"host": SHAPE},
        201,
    ),
    Write(
        "replace inventories",
        (*HOST, RESOURCE_CLASS),
        stock("host", 1, VCPU=16, MEMORY_MB=1024, CUSTOM_C_RUN=5),
        {"host": SHAPE},
        200,
    ),
    Write(
        "change an inventory",
        HOST,
        Call("PUT /resource_providers/$host/inventories/VCPU", {"resource_provider_generation": 1, "total": 16}),
        {"host": SHAPE},
        200,
    ),
    Write("remove an inventory", HOST, Call("DELETE /resource_providers/$host/inventories/VCPU"), {"host": SHAPE}),
    Write("remove inventories", HOST, Call("DELETE /resource_providers/$host/inventories"), {"host": SHAPE}),
)

NAMED = (
    Write("create a class", (), Call("POST /resource_classes", {"name": "CUSTOM_C_$RUN"}), {NO_PROVIDER: NAMES}, 201),
    Write("ensure a class", (), RESOURCE_CLASS, {NO_PROVIDER: NAMES}, 201),
    Write(
        "rename a class",
        (RESOURCE_CLASS, provider("host"), stock("host", CUSTOM_C_RUN=5)),
        Call("PUT /resource_classes/CUSTOM_C_$RUN", {"name": "CUSTOM_D_$RUN"}, 6),
        {NO_PROVIDER: NAMES},
        200,
    ),
    Write("delete a class", (RESOURCE_CLASS,), Call("DELETE /resource_classes/CUSTOM_C_$RUN"), {NO_PROVIDER: NAMES}),
    Write("ensure a trait", (), TRAIT, {}, 201),
    Write("delete a trait", (TRAIT,), Call("DELETE /traits/CUSTOM_T_$RUN"), {NO_PROVIDER: NAMES}),
    Write(
        "set traits",
        (provider("host"), TRAIT, traits("host", 0, "HW_CPU_X86_AVX")),
        traits("host", 1, "CUSTOM_T_$RUN", "HW_CPU_X86_AVX2"),
        {"host": SHAPE},
        200,
    ),
    Write(
        "remove traits",
        (provider("host"), traits("host", 0, "HW_CPU_X86_AVX")),
        Call("DELETE /resource_providers/$host/traits"),
        {"host": SHAPE},
    ),
    Write(
        "set aggregates",
        (provider("host"), aggregates("host", 0, "$aggregate")),
        aggregates("host", 1, "$aggregate_2", "$aggregate_3"),
        {"host": SHAPE},
        200,
    ),
    Write(
        "set aggregates in an old version",
        (provider("host"), aggregates("host", 0, "$aggregate")),
        Call("PUT /resource_providers/$host/aggregates", ["$aggregate_2"], 12),
        {"host": SHAPE},
        200,
    ),
)

ALLOCATIONS = (
    Write(
        "claim for the first time",
        (*HOST, *OTHER),
        claim(host={"VCPU": 1, "MEMORY_MB": 64, "DISK_GB": 5}, other={"VCPU": 1}),
        {"host": USAGE, "other": USAGE},
    ),
    Write("claim again", CLAIMED, claim(1, host={"VCPU": 2}), {"host": USAGE}),
    Write("move a claim", CLAIMED, claim(1, other={"VCPU": 2}), {"host": USAGE, "other": USAGE}),
    Write("empty a claim", CLAIMED, claim(1), {"host": USAGE}),
    Write(
        "claim in an old version",
        (*HOST, OLD_CLAIM),  # which creates the rows of its owner
        dataclasses.replace(OLD_CLAIM, target="PUT /allocations/$consumer"),
        {"host": USAGE},
    ),
    Write(
        "claim for several",
        (*CLAIMED, claim(consumer="consumer_2", host={"DISK_GB": 5})),
        Call(
            "POST /allocations",
            {
                "$consumer": holding(1, other={"VCPU": 1}),
                "$consumer_2": holding(1),
                "$consumer_3": holding(None, host={"VCPU": 3}, other={"VCPU": 3}),
            },
        ),
        {"host": USAGE, "other": USAGE},
    ),
    Write("release", CLAIMED, Call("DELETE /allocations/$consumer"), {"host": USAGE}),
    Write(
        "reshape",
        (*CLAIMED, provider("child", "host")),
        Call(
            "POST /reshaper",
            {
                "inventories": {"$host": inventories(2, VCPU=8, DISK_GB=100), "$child": inventories(0, MEMORY_MB=1024)},
                "allocations": {"$consumer": holding(1, host={"VCPU": 1}, child={"MEMORY_MB": 64})},
            },
        ),
        {"host": SHAPE, "child": SHAPE},
    ),
)

REFUSED = (
    Write("a claim beyond capacity", FULL, claim(host={"VCPU": 1, "DISK_GB": 1}), status=409),
    Write("a claim with a wrong generation", CLAIMED, claim(7, host={"VCPU": 1}), status=409),
    Write("a claim on an unknown provider", HOST, claim(host={"VCPU": 1}, nowhere={"VCPU": 1}), status=400),
    Write("release of nothing", HOST, Call("DELETE /allocations/$consumer"), status=404),
    Write("deleting a parent", TREE, Call("DELETE /resource_providers/$middle"), status=409),
    Write("deleting a provider in use", FULL, Call("DELETE /resource_providers/$host"), status=409),
    Write("inventories with a wrong generation", HOST, stock("host", 7, VCPU=1), status=409),
    Write("removing an inventory in use", FULL, stock("host", 2, DISK_GB=1), status=409),
    Write("a name that is taken", (provider("host"),), provider("host"), status=409),
    Write(
        "deleting a class in use",
        (RESOURCE_CLASS, provider("host"), stock("host", CUSTOM_C_RUN=5)),
        Call("DELETE /resource_classes/CUSTOM_C_$RUN"),
        status=409,
    ),
    Write(
        "deleting a trait in use",
        (TRAIT, provider("host"), traits("host", 0, "CUSTOM_T_$RUN")),
        Call("DELETE /traits/CUSTOM_T_$RUN"),
        status=409,
    ),
    Write(
        "a reshape that does not fit",
        FULL,
        Call(
            "POST /reshaper",
            {
                "inventories": {"$host": inventories(2, VCPU=8, VGPU=1)},
                "allocations": {"$consumer": holding(None, host={"VGPU": 2})},
            },
        ),
        status=409,
    ),
)

#: Modules with the writes of extensions: ACCEPTED and REFUSED, the names in DRY_RUN_NAMES and DEADLY, MALFORMED
#: requests, and the tables of HOUSEKEEPING, which even reads change.
ADDED = extension_modules.load("db", "writes")
ACCEPTED = (*PROVIDERS, *INVENTORIES, *NAMED, *ALLOCATIONS, *(write for module in ADDED for write in module.ACCEPTED))
REFUSED = (*REFUSED, *(write for module in ADDED for write in module.REFUSED))
ALL = (*ACCEPTED, *REFUSED)


def dry_run_of(write: Write) -> Write:
    """Return the dry run of a write."""
    separator = "&" if "?" in write.call.target else "?"
    call = dataclasses.replace(write.call, target=f"{write.call.target}{separator}dry_run=true")
    return dataclasses.replace(write, name=f"a dry run: {write.name}", call=call, changes={}, status=200)


_DRY_RUN_NAMES = {
    *("add an inventory", "set traits", "set aggregates", "claim for the first time", "reshape"),
    *("a claim beyond capacity", "a reshape that does not fit"),
    *(name for module in ADDED for name in module.DRY_RUN_NAMES),
}
#: Dry runs, one for each of their paths; they change nothing.
DRY_RUNS = tuple(dry_run_of(write) for write in ALL if write.name in _DRY_RUN_NAMES)

OLDER_CLAIM = {name: value for name, value in holding(None, other={"VCPU": 2}).items() if "consumer" not in name}
#: Other forms of requests to the same routes, for tests of the changes of writes.
VARIANTS = (
    Write(
        "create a provider in an old version",
        (),
        Call("POST /resource_providers", {"uuid": "$host", "name": "$host"}, 0),
        status=201,
    ),
    Write(
        "give a root a parent, and another name",
        TREE,
        Call("PUT /resource_providers/$top", {"name": "named $RUN", "parent_provider_uuid": "$elsewhere"}, 14),
        status=200,
    ),
    Write(
        "rename a provider that names its parent",
        TREE,
        Call("PUT /resource_providers/$middle", {"name": "named $RUN", "parent_provider_uuid": "$top"}),
        status=200,
    ),
    Write("delete a leaf", TREE, Call("DELETE /resource_providers/$leaf")),
    Write(
        "add the first inventory",
        (provider("host"),),
        Call("POST /resource_providers/$host/inventories", {"resource_class": "VCPU", "total": 4}),
        status=201,
    ),
    Write("replace inventories by the same", HOST, stock("host", 1, VCPU=8, MEMORY_MB=1024, DISK_GB=100), status=200),
    Write("replace inventories by none", HOST, stock("host", 1), status=200),
    Write(
        "remove inventories where there are none",
        (provider("host"),),
        Call("DELETE /resource_providers/$host/inventories"),
    ),
    Write("shrink an inventory below its usage", FULL, stock("host", 2, VCPU=4), status=200),
    Write("set the first traits", (provider("host"),), traits("host", 0, "HW_CPU_X86_AVX"), status=200),
    Write(
        "remove one trait",
        (provider("host"), traits("host", 0, "HW_CPU_X86_AVX", "HW_CPU_X86_AVX2")),
        traits("host", 1, "HW_CPU_X86_AVX"),
        status=200,
    ),
    Write("set the first aggregates", (provider("host"),), aggregates("host", 0, "$aggregate"), status=200),
    Write(
        "leave aggregates",
        (provider("host"), aggregates("host", 0, "$aggregate", "$aggregate_2")),
        aggregates("host", 1, "$aggregate"),
        status=200,
    ),
    Write(
        "set the same aggregates",
        (provider("host"), aggregates("host", 0, "$aggregate")),
        aggregates("host", 1, "$aggregate"),
        status=200,
    ),
    Write(
        "leave aggregates in an old version",
        (provider("host"), aggregates("host", 0, "$aggregate")),
        Call("PUT /resource_providers/$host/aggregates", [], 1),
        status=200,
    ),
    Write(
        "rename a class in the first version",
        (RESOURCE_CLASS,),
        Call("PUT /resource_classes/CUSTOM_C_$RUN", {"name": "CUSTOM_D_$RUN"}, 2),
        status=200,
    ),
    Write("ensure a trait that was removed", (TRAIT, Call("DELETE /traits/CUSTOM_T_$RUN")), TRAIT, status=201),
    Write("move a claim in an old version", CLAIMED, Call("PUT /allocations/$consumer", OLDER_CLAIM, 12)),
    Write("move a claim by POST in an old version", CLAIMED, Call("POST /allocations", {"$consumer": OLDER_CLAIM}, 13)),
    Write("empty a claim by POST", CLAIMED, Call("POST /allocations", {"$consumer": holding(1)})),
    Write("claim the same again", CLAIMED, claim(1, host={"VCPU": 1, "MEMORY_MB": 64})),
    Write(
        "release on two providers",
        (*HOST, *OTHER, claim(host={"VCPU": 1}, other={"VCPU": 1})),
        Call("DELETE /allocations/$consumer"),
    ),
    Write(
        "reshape inventories alone",
        (provider("host"),),
        Call("POST /reshaper", {"inventories": {"$host": inventories(0, VCPU=8)}, "allocations": {}}),
    ),
    Write(
        "reshape to no inventory",
        HOST,
        Call("POST /reshaper", {"inventories": {"$host": inventories(1)}, "allocations": {}}),
    ),
    Write(
        "reshape and end a claim elsewhere",
        CLAIMED,
        Call(
            "POST /reshaper",
            {"inventories": {"$other": inventories(1, VCPU=4)}, "allocations": {"$consumer": holding(1)}},
        ),
    ),
    Write(
        "reshape in the first version",
        CLAIMED,
        Call(
            "POST /reshaper",
            {
                "inventories": {"$other": inventories(1, VCPU=4)},
                "allocations": {
                    "$consumer": {
                        key: value for key, value in holding(1, other={"VCPU": 1}).items() if "type" not in key
                    }
                },
            },
            30,
        ),
    ),
)
#: Writes after which an index has nothing to read.
SAME = (
    *(write for write in (*ALL, *VARIANTS) if "ensure a trait" in write.name),
    *(write for module in ADDED for write in module.ACCEPTED if not write.changes),
)


def every_tenth(writes: Iterable[Write]) -> list[object]:
    """Return the writes as parameters of a test: a short run has every tenth of them, a long one all."""
    return [
        pytest.param(write, id=write.name, marks=[pytest.mark.long] if at % 10 else [])
        for at, write in enumerate(writes)
    ]
