"""The resources that a flavor requests for a server."""

from __future__ import annotations

import pytest

from placement.extensions.orphans import flavors

SMALL = {"vcpus": 2, "ram": 512, "disk": 20, "ephemeral": 0, "swap": 0, "extra_specs": {}}


def demand(specs=None, *, boots_from_volume=False, **fields):
    flavor = {**SMALL, "extra_specs": specs or {}, **fields}
    result = flavors.demand(flavor, boots_from_volume=boots_from_volume)
    return dict(result.exact), dict(result.minimum)


def exactly(processors=2, memory=512, disk=20):
    return {"VCPU+PCPU": processors, "MEMORY_MB": memory, "DISK_GB": disk}


@pytest.mark.parametrize(
    ("fields", "disk"),
    [
        ({}, 20),
        ({"ephemeral": 5}, 25),
        ({"swap": 1}, 21),
        ({"swap": 1024}, 21),
        ({"swap": 1025}, 22),
        ({"swap": ""}, 20),
    ],
)
def test_disks_are_added_and_swap_is_rounded_up(fields, disk):
    assert demand(**fields)[0]["DISK_GB"] == disk
    assert demand(boots_from_volume=True, **fields)[0]["DISK_GB"] == disk - 20


@pytest.mark.parametrize(
    ("specs", "exact", "least"),
    [
        ({"hw:cpu_policy": "dedicated"}, exactly(), {}),
        ({"hw:cpu_policy": "dedicated", "hw:emulator_threads_policy": "isolate"}, exactly(3), {}),
        ({"hw:cpu_policy": "dedicated", "hw:emulator_threads_policy": "share"}, exactly(), {}),
        ({"resources:VCPU": "4"}, exactly(4), {}),
        ({"resources:PCPU": "4"}, exactly(4), {}),
        ({"resources:VCPU": "1", "resources:PCPU": "2"}, exactly(3), {}),
        ({"resources:MEMORY_MB": "1", "resources:DISK_GB": "0"}, exactly(2, 1, 0), {}),
        (
            {"resources:VCPU": "0", "resources:MEMORY_MB": "0", "resources:DISK_GB": "0", "resources:CUSTOM_BM": "1"},
            exactly(0, 0, 0),
            {"CUSTOM_BM": 1},
        ),
        ({"resources1:VCPU": "1"}, {"MEMORY_MB": 512, "DISK_GB": 20}, {}),
        ({"resources1:PCPU": "1"}, {"MEMORY_MB": 512, "DISK_GB": 20}, {}),
        ({"resources_DISK:DISK_GB": "1", "resources2:VGPU": "1"}, {"VCPU+PCPU": 2, "MEMORY_MB": 512}, {}),
        ({"trait:HW_CPU_X86_AVX": "required", "resources:vcpu": "9", "resources:VGPU": "x"}, exactly(), {}),
    ],
)
def test_extra_specs_override_the_flavor(specs, exact, least):
    assert demand(specs) == (exact, least)


def test_a_flavor_without_extra_specs_has_an_unknown_demand():
    hidden = {name: value for name, value in SMALL.items() if name != "extra_specs"}
    assert flavors.demand(hidden, boots_from_volume=False) is None


def test_differences_from_a_flavor_are_listed():
    expected = flavors.FlavorDemand(exactly(), {"VGPU": 1})
    assert [
        *expected.differences({"VCPU": 1, "PCPU": 1, "MEMORY_MB": 512, "DISK_GB": 20, "VGPU": 2, "IPV4_ADDRESS": 1})
    ] == []
    assert [*expected.differences({"VCPU": 3, "MEMORY_MB": 512})] == [
        ("VCPU+PCPU", 2, 3),
        ("DISK_GB", 20, 0),
        ("VGPU", 1, 0),
    ]
