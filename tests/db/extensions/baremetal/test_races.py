"""Concurrent requests for nodes: each gets a node while there are enough, and no node has two holders."""

from __future__ import annotations

import contextlib
import uuid

import pytest
import sqlalchemy as sa

from placement import errors
from placement.db.schema.tables import allocations, resource_providers
from placement.extensions.baremetal import signals
from placement.extensions.baremetal.objects import placing
from placement.extensions.baremetal.objects.locked_node import LockedNode
from placement.extensions.baremetal.objects.node import Node
from placement.index.live import LiveIndex
from placement.objects.inventory import Inventory
from placement.objects.locked_provider import LockedProvider
from placement.objects.resource_class import ResourceClass
from tests.db import forks
from tests.db.crowd import together
from tests.db.extensions.bare_metal import OWNER, request
from tests.made import opened

pytestmark = pytest.mark.every_database

NODES = 12


def holders(metal):
    """Return the sorted consumers with allocations, by provider."""
    query = sa.select(resource_providers.c.uuid, allocations.c.consumer_id).join_from(
        allocations, resource_providers, resource_providers.c.id == allocations.c.resource_provider_id
    )
    consumers = {}
    for node, consumer in metal.database.read(lambda db: db.execute(query).all()):
        consumers.setdefault(node, []).append(consumer)
    return consumers


def check(metal, active, error=0):
    """Check that records, consumers and nodes agree, and the numbers of active records and records in error."""
    records = metal.page()
    assert sorted(record.state for record in records) == ["active"] * active + ["error"] * error
    consumers_by_node = {record.node_uuid: [record.uuid] for record in records if record.node_uuid}
    assert len(consumers_by_node) == active
    assert holders(metal) == consumers_by_node
    nodes = metal.database.read(lambda db: Node.of_uuids(db, consumers_by_node))
    assert {node.uuid: [node.allocation_uuid] for node in nodes.values()} == consumers_by_node


def run(works):
    """Run the functions in threads that start together; return the exceptions."""
    return [result for result in together(works) if isinstance(result, Exception)]


def requesters(processes, threads, url):
    return [
        failure
        for failures in forks.together(processes, requester, threads, url, threads=threads)
        for failure in failures
    ]


def requester(wait, threads, url):
    """Make one request in each of several threads; return the failures."""
    with opened(url) as database:
        index = LiveIndex(database)
        index.current()
        requests = [request(traits=["CUSTOM_A"]) for _ in range(threads)]
        works = [
            placing.NodeRequest(database, index, node_request, OWNER, attempts=10).place for node_request in requests
        ]
        return [repr(result) for result in together(works, wait) if isinstance(result, Exception)]


@pytest.mark.parametrize("more", [0, 3])
def test_every_request_of_a_thread_gets_a_node_while_there_are_enough(metal, more):
    for _ in range(NODES):
        metal.node()
    assert run([metal.allocate] * (NODES + more)) == []
    check(metal, NODES, more)


@pytest.mark.parametrize(("processes", "threads", "more"), [(4, 3, 0), (2, 8, 4)])
def test_every_request_of_a_process_gets_a_node_while_there_are_enough(metal, processes, threads, more):
    for number in range(processes * threads - more):
        metal.node(f"n{number}", traits=["CUSTOM_A"])
    url = metal.database.url.render_as_string(hide_password=False)
    assert forks.from_new_process(requesters, processes, threads, url) == []
    check(metal, processes * threads - more, more)


def test_one_of_many_requests_gets_the_only_node(metal):
    node = metal.node()
    for _ in range(5):
        metal.node()
    assert run([lambda: metal.allocate(candidate_nodes=[node])] * NODES) == []
    check(metal, 1, NODES - 1)


def test_one_of_many_requests_gets_the_name(metal):
    for _ in range(NODES):
        metal.node()
    failures = run([lambda: metal.allocate(name="mine")] * NODES)
    assert [str(failure) for failure in failures] == ["An allocation with name mine already exists."] * (NODES - 1)
    check(metal, 1)


def test_a_placement_client_claims_the_same_nodes(metal):
    """Every node is allocated once; the client, which names its nodes, gets a conflict if it comes second."""
    nodes = [metal.node() for _ in range(NODES)]
    consumers = [str(uuid.uuid4()) for _ in nodes]
    claims = [
        lambda node=node, consumer=consumer: metal.claim(consumer, node)
        for node, consumer in zip(nodes, consumers, strict=True)
    ]
    failures = run([work for claim in claims for work in (claim, metal.allocate)])
    assert all(isinstance(failure, errors.CapacityExceeded) for failure in failures), failures
    consumers_by_node = holders(metal)
    assert sorted(consumers_by_node) == sorted(nodes)
    assert all(len(consumers) == 1 for consumers in consumers_by_node.values())
    active = [record for record in metal.page() if record.state == "active"]
    assert len(active) + (NODES - len(failures)) == NODES
    assert all(consumers_by_node[record.node_uuid] == [record.uuid] for record in active)


def test_requests_succeed_while_allocations_end(metal):
    """With two nodes and two clients that end their allocations, each request gets a node."""
    for _ in range(2):
        metal.node()
    states = []

    def client():
        for _ in range(8):
            record = metal.allocate()
            states.append(record.state)
            metal.end(record.uuid)

    assert run([client] * 2) == []
    assert states == ["active"] * 16
    check(metal, 0)


# --- exactly between the choice and the claim -------------------------------------------------------------------------


@contextlib.contextmanager
def after_the_choice(metal, act):
    """Call ``act`` once, with the uuid of the node, between the choice and the claim of the next request."""
    claimed, acted = placing.NodeRequest._try_claim, []

    def claim(self, candidate):
        if not acted:
            acted.append(candidate)
            act(candidate.uuid)
        return claimed(self, candidate)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(placing.NodeRequest, "_try_claim", claim)
        yield
    assert acted


def is_claimed(metal, node):
    metal.claim(str(uuid.uuid4()), node)


def is_allocated(metal, node):
    assert metal.allocate(candidate_nodes=[node]).state == "active"


def is_in_maintenance(metal, node):
    metal.change(node, maintenance=True)


def gets_another_owner(metal, node):
    metal.change(node, owner="you")


def loses_its_trait(metal, node):
    metal.database.write(lambda db: LockedNode.lock(db, node).replace_traits([]))


def is_deleted(metal, node):
    metal.database.write(lambda db: LockedNode.lock(db, node).delete())


def loses_its_provider(metal, node):
    metal.database.write(lambda db: LockedProvider.lock(db, node).delete())


def changes_its_class(metal, node):
    metal.database.write(lambda db: LockedNode.lock(db, node).reclassify("other"))


def loses_its_inventory(metal, node):
    metal.database.write(lambda db: LockedProvider.lock(db, node).replace_inventories([]))


def loses_its_inventory_and_its_class(metal, node):
    loses_its_inventory(metal, node)
    with contextlib.suppress(errors.ResourceClassInUse):
        metal.database.write(lambda db: ResourceClass.delete(db, "CUSTOM_BM"))


def is_allocated_in_larger_units(metal, node):
    inventory = Inventory("CUSTOM_BM", total=2, min_unit=2, max_unit=2)
    metal.database.write(lambda db: LockedProvider.lock(db, node).update_inventory(inventory))


CHANGES = [
    is_claimed,
    is_allocated,
    is_in_maintenance,
    gets_another_owner,
    loses_its_trait,
    is_deleted,
    loses_its_provider,
    changes_its_class,
    loses_its_inventory,
    loses_its_inventory_and_its_class,
    is_allocated_in_larger_units,
]
REQUIREMENTS = {"traits": ["CUSTOM_A"], "owner": "me"}


@pytest.mark.parametrize("others", [0, 1])
@pytest.mark.parametrize("change", CHANGES)
def test_a_change_of_the_chosen_node_is_seen_by_the_claim(metal, change, others):
    for _ in range(1 + others):
        metal.node(traits=["CUSTOM_A"], owner="me")
    changed = []
    with after_the_choice(metal, lambda node: (changed.append(node), change(metal, node))):
        record = metal.allocate(**REQUIREMENTS)
    assert (record.state, record.node_uuid in changed) == ("active" if others else "error", False)


def test_a_chosen_node_with_a_raised_total_gets_one_holder(metal):
    """A Placement client claims the first unit meanwhile, so the claim for the request succeeds."""
    node = metal.node()
    inventory = Inventory("CUSTOM_BM", total=2, max_unit=2)
    metal.database.write(lambda db: LockedProvider.lock(db, node).update_inventory(inventory))
    with after_the_choice(metal, lambda node: is_claimed(metal, node)):
        assert metal.allocate().state == "error"
    assert [len(consumers) for consumers in holders(metal).values()] == [1]


@pytest.mark.parametrize(("others", "outcome"), [(0, "no_nodes"), (1, "active")])
def test_nodes_lost_to_other_clients_are_counted(metal, others, outcome):
    for _ in range(1 + others):
        metal.node()
    received = []

    def listener(*facts):
        received.append(facts)

    signals.node_requested.connect(listener)
    try:
        with after_the_choice(metal, lambda node: is_claimed(metal, node)):
            metal.allocate()
    finally:
        signals.node_requested.disconnect(listener)
    assert received == [(outcome, 1)]


def test_a_provider_created_again_is_claimed(metal):
    """The new provider has another id."""
    node = metal.node(traits=["CUSTOM_A"], owner="me")

    def again(node):
        loses_its_provider(metal, node)
        metal.database.write(lambda db: LockedNode.lock(db, node).replace_traits(["CUSTOM_A"]))

    with after_the_choice(metal, again):
        assert metal.allocate(**REQUIREMENTS).node_uuid == node


def test_a_node_that_is_free_again_is_chosen_again(metal, monkeypatch):
    """A node that was taken between the choice and the claim can be chosen later."""
    node, consumer = metal.node(), str(uuid.uuid4())
    metal.index.current()
    current = metal.index.current

    def free_and_current():
        if metal.read(node).instance_uuid == consumer:
            metal.claim(consumer)
        return current()

    monkeypatch.setattr(metal.index, "current", free_and_current)
    with after_the_choice(metal, lambda node: metal.claim(consumer, node)):
        assert metal.allocate().node_uuid == node


def test_a_request_succeeds_while_the_only_free_node_keeps_changing(metal, monkeypatch):
    """One node is released before the other is claimed, so a node is always free and no request ends in error."""
    first, second, consumer = metal.node(), metal.node(), str(uuid.uuid4())
    metal.claim(consumer, second)
    current, called = metal.index.current, []

    def current_and_then():
        snapshot = current()
        if not called:
            called.append(snapshot)
            metal.claim(consumer)
            metal.claim(str(uuid.uuid4()), first)
        return snapshot

    monkeypatch.setattr(metal.index, "current", current_and_then)
    assert metal.allocate(name="mine").node_uuid == second


def test_a_node_that_never_fits_under_the_lock_is_abandoned(metal, monkeypatch):
    for _ in range(3):
        metal.node(traits=["CUSTOM_A"])
    monkeypatch.setattr(placing, "_has_traits", lambda *_: False)
    assert metal.allocate(traits=["CUSTOM_A"]).state == "error"
    check(metal, 0, 1)
