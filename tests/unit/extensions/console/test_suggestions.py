"""Names that fields suggest."""

from __future__ import annotations

import pytest

from placement.extensions.console.views import suggestions
from tests.world import World


@pytest.fixture(scope="module")
def snapshot():
    world = World()
    world.host(
        "gpu-2", CUSTOM_GPU=1, GPU_A=1, VCPU=1, traits=["HW_GPU", "GPU_B", "COLD"], aggregates=["a-gpu", "gpu-a"]
    )
    world.host("GPU-1", GPU_B=1, aggregates=["b"])
    world.host("a-gpu")
    world.host("other", traits=["GPU_A"])
    return world.snapshot()


@pytest.mark.parametrize("part", ["gpu", "GPU", "Gpu"])
@pytest.mark.parametrize(
    ("kind", "names"),
    [
        ("classes", ["GPU_A", "GPU_B", "CUSTOM_GPU"]),
        ("traits", ["GPU_A", "GPU_B", "HW_GPU"]),
        ("aggregates", ["gpu-a", "a-gpu"]),
        ("providers", ["GPU-1", "gpu-2", "a-gpu"]),
    ],
)
def test_names_that_begin_with_the_text_come_before_others_that_contain_it(snapshot, kind, names, part):
    assert suggestions.suggest(snapshot, kind, part) == names
    assert suggestions.suggest(snapshot, kind, f"{part}x") == []


def test_only_the_first_of_many_names_are_suggested():
    world = World()
    for number in range(30):
        world.host(f"{'x-' if number < 15 else ''}host{number:02}")
    expected = [f"host{number}" for number in range(15, 30)] + [f"x-host{number:02}" for number in range(5)]
    assert suggestions.suggest(world.snapshot(), "providers", "host") == expected
