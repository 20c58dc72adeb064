"""The places of a finding, with links."""

from __future__ import annotations

import pytest

from placement.extensions.console.views import finding_places
from placement.extensions.console.views.event_text import ObjectLink
from tests.world import World

HOST, OTHER = "11111111-1111-4111-8111-111111111111", "22222222-2222-4222-8222-222222222222"


@pytest.mark.parametrize(
    ("place", "parts"),
    [
        (f"{HOST} (old name): VCPU, 16 of 12", [ObjectLink("providers", HOST, HOST), ": VCPU, 16 of 12"]),
        (f"{HOST} below {HOST}", [ObjectLink("providers", HOST, HOST), " below ", ObjectLink("providers", HOST, HOST)]),
        (f"{OTHER} (gone): VCPU", [f"{OTHER} (gone): VCPU"]),
        (f"consumer {OTHER}: user", ["consumer ", ObjectLink("consumers", OTHER, OTHER), ": user"]),
        (f"consumer {OTHER}: provider {HOST}, class VCPU", [
            "consumer ",
            ObjectLink("consumers", OTHER, OTHER),
            ": provider ",
            ObjectLink("providers", HOST, HOST),
            ", class VCPU",
        ]),
        ("writer 7", ["writer 7"]),
        ("/etc/placement/policy.yaml (old)", ["/etc/placement/policy.yaml (old)"]),
    ],
)  # fmt: skip
def test_places_with_a_page_are_linked(place, parts):
    world = World()
    world.host(HOST)
    assert [part for part in finding_places.linked_parts(place, world.snapshot()) if part] == parts
