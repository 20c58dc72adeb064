"""The places of a finding, with links."""

from __future__ import annotations

import pytest

from placement.extensions.console.views import places
from placement.extensions.console.views.timeline import Thing
from tests.world import World

HOST, OTHER = "11111111-1111-4111-8111-111111111111", "22222222-2222-4222-8222-222222222222"


@pytest.mark.parametrize(
    ("place", "parts"),
    [
        (f"{HOST} (old name): VCPU, 16 of 12", [Thing("providers", HOST, HOST), ": VCPU, 16 of 12"]),
        (f"{HOST} below {HOST}", [Thing("providers", HOST, HOST), " below ", Thing("providers", HOST, HOST)]),
        (f"{OTHER} (gone): VCPU", [f"{OTHER} (gone): VCPU"]),
        (f"consumer {OTHER}: user", ["consumer ", Thing("consumers", OTHER, OTHER), ": user"]),
        (f"consumer {OTHER}: provider {HOST}, class VCPU", [
            "consumer ", Thing("consumers", OTHER, OTHER), ": provider ", Thing("providers", HOST, HOST), ", class VCPU"
        ]),
        ("writer 7", ["writer 7"]),
        ("/etc/placement/policy.yaml (old)", ["/etc/placement/policy.yaml (old)"]),
    ],
)  # fmt: skip
def test_what_has_a_page_is_linked(place, parts):
    world = World()
    world.host(HOST)
    assert [part for part in places.linked(place, world.snapshot()) if part] == parts
