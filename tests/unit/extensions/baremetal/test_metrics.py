"""Metrics of the Bare Metal API."""

from __future__ import annotations

import pytest

from placement.extensions.baremetal import signals
from placement.extensions.baremetal.extension import EXTENSION
from tests.unit.metrics.registries import counting_registry, samples
from tests.unit.metrics.test_definitions import DOCUMENT


def test_requests_for_nodes_are_counted_by_outcome():
    with counting_registry(EXTENSION) as registry:
        assert registry.get_sample_value("placement_baremetal_allocations_total", {"outcome": "contended"}) == 0
        signals.node_requested("active", 2)
        signals.node_requested("no_traits", 1)
    assert samples(registry, "baremetal_allocations_total") == {("active",): 1, ("no_traits",): 1}
    assert samples(registry, "baremetal_lost_nodes_total") == {(): 3}


@pytest.mark.parametrize("outcome", signals.NodeOutcome.__args__)
def test_every_outcome_is_documented(outcome):
    assert f"``{outcome}``" in DOCUMENT
