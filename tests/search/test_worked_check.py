"""The numbers of the worked example (docs: api-worked-example).

         aggregate A
 ______/    |   |   \\_______
ss        cn1   cn2        ss2          ss, ss2: DISK_GB, sharing; cn2 has its own disk
         /   \\  ...
   numa1_1   numa1_2
      |         |
    pf1_1     pf1_2                     pf*: SRIOV_NET_VF
"""

from __future__ import annotations

import pytest

from placement.handlers.allocation_candidate import present
from placement.microversion import Version
from placement.search.find import find
from placement.search.query.query import Group, NameCondition, SearchQuery
from tests.world import Stock, World

SSE = "HW_CPU_X86_SSE"
THREE_CLASSES = {"VCPU": 1, "MEMORY_MB": 1024, "DISK_GB": 100}


@pytest.fixture(scope="module")
def world() -> World:
    world = World()
    disk = Stock(2000, reserved=100)
    for number in (1, 2):
        world.host(
            f"cn{number}",
            aggregates="A",
            traits=[SSE, "HW_CPU_X86_SSE2"] if number == 1 else [],
            VCPU=Stock(24, allocation_ratio=16.0),
            MEMORY_MB=Stock(131072, allocation_ratio=1.5),
            **({"DISK_GB": disk} if number == 2 else {}),
        )
        for numa in (1, 2):
            world.host(f"numa{number}_{numa}", parent=f"cn{number}")
            world.host(f"pf{number}_{numa}", parent=f"numa{number}_{numa}", SRIOV_NET_VF=8)
    world.sharing("ss", aggregates="A", DISK_GB=disk)
    world.sharing("ss2", aggregates="A", DISK_GB=disk)
    return world


@pytest.mark.parametrize(
    ("resources", "required", "forbidden", "version", "candidates", "summaries"),
    [
        (THREE_CLASSES, None, None, 10, 5, 4),
        (THREE_CLASSES, None, None, 28, 5, 4),
        (THREE_CLASSES, SSE, None, 28, 2, 3),
        (THREE_CLASSES, None, SSE, 28, 3, 3),
        ({"VCPU": 1}, None, None, 29, 2, 10),
        ({"VCPU": 1}, None, None, 28, 2, 2),
        ({"SRIOV_NET_VF": 4}, None, None, 28, 4, 4),
        ({"SRIOV_NET_VF": 4}, None, None, 29, 4, 10),
        ({"VCPU": 1, "SRIOV_NET_VF": 4}, None, None, 28, 0, 0),
        ({"VCPU": 1, "SRIOV_NET_VF": 4}, None, None, 29, 4, 10),
        ({"DISK_GB": 10, "SRIOV_NET_VF": 4}, None, None, 28, 8, 6),
    ],
)
def test_the_numbers_of_the_worked_example_are_right(
    world: World,
    resources: dict[str, int],
    required: str | None,
    forbidden: str | None,
    version: int,
    candidates: int,
    summaries: int,
) -> None:
    group = Group(
        resources=resources,
        traits=NameCondition((frozenset({required}),) if required else (), frozenset({forbidden} if forbidden else ())),
    )
    result = find(SearchQuery((group,), nested=version >= 29), world.snapshot())
    body = present(result, Version(1, version)).document
    assert len(body["allocation_requests"]) == candidates
    assert len(body["provider_summaries"]) == summaries


def test_a_request_for_three_classes_has_five_candidates(world: World) -> None:
    result = find(SearchQuery((Group(resources=THREE_CLASSES),)), world.snapshot())
    providers = [{result.snapshot.provider(slot).uuid for slot in candidate.amounts} for candidate in result.candidates]
    assert sorted(map(sorted, providers)) == [["cn1", "ss"], ["cn1", "ss2"], ["cn2"], ["cn2", "ss"], ["cn2", "ss2"]]
