"""GET /v1/capacity returns the number of claims that succeed, one after another."""

from __future__ import annotations

import random
import uuid

import pytest

from tests.caller import NEW_CONSUMER
from tests.db.in_process import placement

TRAIT = "HW_NUMA_ROOT"
SHARES = "MISC_SHARES_VIA_AGGREGATE"


class Cloud:
    """A service with providers."""

    def __init__(self, database):
        self.call = placement(database)
        self.order = random.Random(1)

    def provider(self, parent=None, traits=(), aggregates=(), **inventories):
        """Create a provider, and return its uuid; an inventory is a total, or a mapping of its fields."""
        ident = str(uuid.uuid4())
        self.write("POST", "/resource_providers", {"uuid": ident, "name": ident, "parent_provider_uuid": parent})
        path = f"/resource_providers/{ident}"
        stocks = {name: {"total": stock} if isinstance(stock, int) else stock for name, stock in inventories.items()}
        for part, content in (("inventories", stocks), ("traits", [*traits]), ("aggregates", [*aggregates])):
            generation = self.call("GET", path, 39).body["generation"]
            self.write("PUT", f"{path}/{part}", {"resource_provider_generation": generation, part: content})
        return ident

    def write(self, method, path, body):
        assert self.call(method, path, 39, body).status in (200, 204), path

    def capacity(self, query):
        return self.call("GET", f"/v1/capacity?{query}", 39).body

    def claim(self, query):
        """Claim one of the candidates; return whether there was one."""
        candidates = self.call("GET", f"/allocation_candidates?{query}", 39).body["allocation_requests"]
        if not candidates:
            return False
        chosen = self.order.choice(candidates)
        self.write("PUT", f"/allocations/{uuid.uuid4()}", chosen | NEW_CONSUMER)
        return True

    def claims(self, query):
        """Claim until nothing fits; check the count before each claim, and return the number of claims."""
        remaining = self.capacity(query)["count"]
        claimed = 0
        while self.claim(query):
            claimed += 1
            remaining -= 1
            assert self.capacity(query)["count"] == remaining
        return claimed


@pytest.fixture
def cloud(database):
    return Cloud(database)


def test_claims_on_hosts_without_children_are_counted(cloud):
    cloud.provider(VCPU={"total": 5, "allocation_ratio": 1.5}, MEMORY_MB=1024)
    cloud.provider(VCPU={"total": 8, "reserved": 1, "step_size": 2, "max_unit": 6}, MEMORY_MB=1024)
    cloud.provider(VCPU={"total": 8, "min_unit": 4}, MEMORY_MB=1024)
    query = "resources=VCPU:2,MEMORY_MB:256"
    counted = cloud.capacity(query)
    assert (counted["count"], counted["exact"]) == (6, True)
    assert cloud.claims(query) == 6
    assert cloud.capacity(query)["limiting"]["resource_class"] == "VCPU"


def test_claims_on_hosts_with_numa_nodes_are_counted(cloud):
    for sizes in ((4, 2), (3, 3)):
        host = cloud.provider(DISK_GB=100)
        for size in sizes:
            cloud.provider(parent=host, traits=[TRAIT], VCPU=size)
    query = f"resources=DISK_GB:10&resources1=VCPU:2&required1={TRAIT}"
    assert cloud.capacity(query)["exact"]
    assert cloud.claims(query) == 5


def test_claims_on_hosts_that_use_a_pool_are_counted(cloud):
    aggregate = str(uuid.uuid4())
    cloud.provider(traits=[SHARES], aggregates=[aggregate], DISK_GB=55)
    for _ in range(2):
        cloud.provider(aggregates=[aggregate], VCPU=4)
    query = "resources=VCPU:1,DISK_GB:10"
    counted = cloud.capacity(query)
    assert (counted["count"], counted["exact"], [root["count"] for root in counted["roots"]]) == (5, True, [4, 4])
    assert counted["aggregates"] == [{"uuid": aggregate, "count": 5}]
    assert cloud.claims(query) == 5
