"""Allocation candidates as each version presents them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from placement.handlers.allocation_candidate import present
from placement.http.response import encode
from placement.microversion import LATEST, Version
from placement.search.find import find
from placement.search.query.query import Group, SearchQuery
from tests.world import Stock, World


def response_document(world: World, group: Group, version: Version = LATEST) -> dict[str, Any]:
    candidates = find(SearchQuery((group,)), world.snapshot())
    body: dict[str, Any] = json.loads(encode(present(candidates, version).document))
    return body


@pytest.mark.parametrize("ratio", [1.5, 3.40282e38], ids=["small", "absurd"])
def test_capacity_is_a_whole_number_however_large(ratio: float) -> None:
    world = World()
    world.host("cn", VCPU=Stock(2**31 - 1, allocation_ratio=ratio, used=7))
    summaries = response_document(world, Group(resources={"VCPU": 1}))["provider_summaries"]
    assert summaries["cn"]["resources"] == {"VCPU": {"capacity": int((2**31 - 1) * ratio), "used": 7}}


@pytest.mark.parametrize(
    ("minor", "fields"),
    [
        (10, {"resources"}),
        (17, {"resources", "traits"}),
        (29, {"resources", "traits", "parent_provider_uuid", "root_provider_uuid"}),
    ],
)
def test_the_fields_of_summaries_depend_on_the_version(minor: int, fields: set[str]) -> None:
    world = World()
    traits = [f"T{number}" for number in (3, 1, 4, 0, 5, 9, 2, 6)]
    world.host("cn", VCPU=1, DISK_GB=1, traits=traits)
    world.host("numa", parent="cn")
    summaries = response_document(world, Group(resources={"VCPU": 1}), Version(1, minor))["provider_summaries"]
    assert set(summaries["cn"]) == fields
    assert summaries["cn"].get("traits", traits) == traits, "traits are in the order of their ids"
    assert set(summaries) == ({"cn", "numa"} if minor >= 29 else {"cn"})
    assert set(summaries["cn"]["resources"]) == ({"VCPU", "DISK_GB"} if minor >= 27 else {"VCPU"})


def test_the_form_of_allocation_requests_depends_on_the_version() -> None:
    world = World()
    world.host("cn", VCPU=1)
    group, allocation = Group(resources={"VCPU": 1}), {"resources": {"VCPU": 1}}
    requests = [response_document(world, group, Version(1, minor))["allocation_requests"] for minor in (11, 12, 34)]
    assert requests == [
        [{"allocations": [{"resource_provider": {"uuid": "cn"}, **allocation}]}],
        [{"allocations": {"cn": allocation}}],
        [{"allocations": {"cn": allocation}, "mappings": {"": ["cn"]}}],
    ]
