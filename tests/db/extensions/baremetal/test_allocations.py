"""Allocations of nodes: the claim and the record are written in one transaction, and end together."""

from __future__ import annotations

import itertools
import random
import uuid

import pytest

from placement import errors
from placement.db.writes import retry
from placement.extensions.baremetal import failures, signals
from placement.extensions.baremetal.objects import candidates, holding, placing
from placement.extensions.baremetal.objects.node import Node
from placement.extensions.baremetal.objects.record import Record
from placement.extensions.baremetal.objects.record_page import SORT_KEYS
from placement.objects.claims import release
from placement.objects.claims.claim import Claim
from placement.objects.claims.claim_set import ClaimSet
from placement.objects.claims.holding import Holding
from placement.objects.consumer import Owner
from placement.objects.inventory import Inventory
from placement.objects.locked_provider import LockedProvider
from tests import made
from tests.db.extensions.bare_metal import request

# --- the choice ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [None, "mine"])
def test_the_order_of_candidates_is_not_a_preference(metal, name):
    nodes = [metal.node() for _ in range(2)]
    chosen = set()
    for _ in range(60):
        record = metal.allocate(candidate_nodes=nodes, name=name)
        chosen.add(record.node_uuid)
        metal.end(record.uuid)
        if len(chosen) == 2:
            return
    pytest.fail("the same node sixty times")


@pytest.mark.parametrize("sample", [1000, 2])
def test_nodes_of_other_spellings_and_owners_hide_no_match(metal, monkeypatch, sample):
    """A few free nodes are all read; from many, a sample and the result of an indexed query are read."""
    for name, value in {"SAMPLE_SIZE": 1, "LARGER_SAMPLE_SIZE": 2, "FIRST_ROWS": 3, "MAX_SAMPLED": sample}.items():
        monkeypatch.setattr(candidates, name, value)
    for number in range(50):
        metal.node(resource_class="b-m" if number % 2 else "b.m", owner="you")
    mine = {metal.node(resource_class="b.m", owner="me"), metal.node(resource_class="b.m", lessee="me")}
    assert {metal.allocate(resource_class="b.m", owner="me").node_uuid for _ in range(3)} == {*mine, None}
    spelt = metal.node(resource_class="b_m")
    assert [metal.allocate(resource_class="b_m").node_uuid for _ in range(2)] == [spelt, None]


@pytest.mark.parametrize("sample", [1000, 2])
def test_nodes_that_the_request_does_not_name_hide_no_match(metal, monkeypatch, sample):
    """Many rows match, and the first ones belong to nodes that may not be chosen."""
    for name, value in {"SAMPLE_SIZE": 1, "LARGER_SAMPLE_SIZE": 2, "FIRST_ROWS": 3, "MAX_SAMPLED": sample}.items():
        monkeypatch.setattr(candidates, name, value)
    foreign = [metal.node(owner="you") for _ in range(40)]
    mine = [metal.node(owner="me") for _ in range(8)]
    record = metal.allocate(owner="me", candidate_nodes=[*foreign, mine[5]])
    assert record.node_uuid == mine[5]


def test_a_node_that_matches_by_its_rows_meets_the_requirements(metal):
    """The choice and the check of the claim apply the same rules."""
    values = {
        "resource_class": ["bm", "BM", None],
        "provision_state": ["available", "active"],
        "power_state": ["power off", "error", None],
        "maintenance": [False, True],
        "parent_node": [None, str(uuid.uuid4())],
        "owner": ["me", "you", None],
        "lessee": ["me", None],
    }
    combinations = [dict(zip(values, chosen, strict=True)) for chosen in itertools.product(*values.values())]
    nodes = [metal.node(**columns) for columns in random.sample(combinations, 60)]
    for owner in (None, "me"):
        node_request = request(owner=owner)
        fitting = {node for node in nodes if candidates.fits(node_request, metal.read(node))}
        records = [metal.allocate(owner=owner) for _ in range(len(fitting) + 1)]
        assert {record.node_uuid for record in records} == {*fitting, None}
        for record in records:
            metal.end(record.uuid)


# --- one truth with Placement ----------------------------------------------------------------------------------------


def test_a_provider_without_a_node_is_not_chosen(metal):
    metal.node(provision_state="enroll")

    def work(db):
        provider = LockedProvider.create(db, uuid=str(uuid.uuid4()), name="foreign")
        provider.add_inventory(Inventory("CUSTOM_BM", total=1, max_unit=1))

    metal.database.write(work)
    assert metal.allocate().state == "error"


@pytest.mark.parametrize("field", ["name", "uuid", "node_uuid"])
def test_the_name_uuid_and_node_of_an_ended_record_are_free_again(metal, field):
    node, other = metal.node(), metal.node()
    first = metal.allocate(name="mine", candidate_nodes=[node])
    metal.claim(first.uuid)
    columns = {
        "name": {"name": "mine", "candidate_nodes": [other]},
        "uuid": {"uuid": first.uuid, "candidate_nodes": [other]},
        "node_uuid": {"candidate_nodes": [node]},
    }[field]
    second = metal.allocate(**columns)
    assert second.state == "active"
    assert getattr(second, field) == getattr(first, field)
    assert [record.uuid for record in metal.page()] == [second.uuid]


def test_name_and_node_of_two_ended_records_are_free_again(metal):
    nodes = [metal.node() for _ in range(2)]
    ended = [
        metal.allocate(name=name, candidate_nodes=[node]) for name, node in zip(("mine", None), nodes, strict=True)
    ]
    for record in ended:
        metal.claim(record.uuid)
    new_record = metal.allocate(name="mine", candidate_nodes=[nodes[1]])
    assert (new_record.state, new_record.name, new_record.node_uuid) == ("active", "mine", nodes[1])
    assert [record.uuid for record in metal.page()] == [new_record.uuid]


def test_the_uuid_of_an_ended_record_gets_the_same_node_again(metal):
    """The claim would make the ended record active again."""
    metal.node()
    first = metal.allocate(name="first")
    metal.claim(first.uuid)
    second = metal.allocate(uuid=first.uuid, name="second")
    assert (second.state, second.node_uuid, second.name) == ("active", first.node_uuid, "second")
    assert [record.uuid for record in metal.page()] == [second.uuid]


def test_a_request_for_a_consumer_with_allocations_fails(metal):
    consumer = str(uuid.uuid4())
    metal.claim(consumer, metal.node())
    node = metal.node()
    record = metal.allocate(uuid=consumer)
    assert record.last_error == (
        f"Unexpected exception during allocation: Instance {consumer} is already associated with a node, "
        f"it cannot be associated with this other node {node}"
    )
    assert metal.read(node).instance_uuid is None


def test_a_record_whose_consumer_comes_back_during_a_sweep_stays(metal, monkeypatch):
    for _ in range(5):
        metal.allocate()  # so that no project or user has the id of the record
    node = metal.node()
    record = metal.allocate()
    metal.claim(record.uuid)
    read, candidates = metal.database.read, []

    def read_and_then(work):
        rows = read(work)
        if rows == [record.id] and not candidates:
            candidates.append(rows)
            metal.claim(record.uuid, node)
        return rows

    monkeypatch.setattr(metal.database, "read", read_and_then)
    removed = {result.table: result.removed for result in made.sweep_database(metal.database)}
    assert (len(candidates), removed["baremetal_allocations"]) == (1, 0)
    assert metal.record(record.uuid) == record


# --- names and uuids -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("state", ["active", "error"])
def test_names_and_uuids_are_unique(metal, state):
    if state == "active":
        metal.node()
    first = metal.allocate(name="mine")
    assert first.state == state
    free = metal.node()
    with pytest.raises(failures.RecordNameTaken, match="mine"):
        metal.allocate(name="mine")
    with pytest.raises(failures.RecordUuidTaken, match=first.uuid):
        metal.allocate(uuid=first.uuid)
    assert [record.uuid for record in metal.page()] == [first.uuid]
    assert metal.read(free).instance_uuid is None


# --- backfill --------------------------------------------------------------------------------------------------------

IN_USE = {"provision_state": "active"}


def test_the_holder_of_a_node_in_use_stays(metal):
    node, instance = metal.node(), str(uuid.uuid4())
    metal.claim(instance, node)
    metal.change(node, **IN_USE)
    before = metal.database.read(lambda db: Holding.find(db, instance))
    record = metal.backfill(node)
    assert (record.uuid, record.state) == (instance, "active")
    assert metal.database.read(lambda db: Holding.find(db, instance)) == before
    with pytest.raises(failures.RecordUuidTaken):
        metal.backfill(node)
    with pytest.raises(failures.NodeTaken, match=instance):
        metal.backfill(node, uuid=str(uuid.uuid4()))


def test_a_backfill_survives_the_end_of_the_holder(metal, monkeypatch):
    """DELETE /allocations locks no provider, so the holder may be gone once the node is locked."""
    node, instance = metal.node(), str(uuid.uuid4())
    metal.claim(instance, node)
    metal.change(node, **IN_USE)
    attempts, insert = [], Record.insert

    def end_meanwhile(record, db):
        insert(record, db)
        attempts.append(record.uuid)
        if len(attempts) == 1:
            release.end_consumer(db, instance)

    monkeypatch.setattr(Record, "insert", end_meanwhile)
    record = metal.backfill(node)
    assert attempts == [instance] * 2, "the end was rolled back with the first attempt"
    assert (record.uuid, record.state) == (instance, "active")


# --- deletion --------------------------------------------------------------------------------------------------------


def test_a_deleted_record_does_not_come_back_with_its_consumer(metal):
    """A Placement client claims the node for the uuid that the allocation had."""
    node = metal.node()
    record = metal.allocate(name="mine")
    metal.end(record.uuid)
    metal.claim(record.uuid, node)
    assert metal.read(node).instance_uuid == record.uuid
    assert metal.read(node).allocation_uuid is None
    assert metal.record(record.uuid) is metal.record("mine") is None


@pytest.mark.parametrize(
    ("columns", "ends"),
    [
        ({"provision_state": "active"}, False),
        ({"provision_state": "active", "maintenance": True}, True),
        ({"provision_state": "manageable"}, True),
        ({"provision_state": "cleaning", "target_provision_state": "available"}, False),
        ({"provision_state": "clean failed", "target_provision_state": "available"}, True),
    ],
)
def test_the_state_of_the_node_may_prevent_the_end_of_the_record(metal, columns, ends):
    node = metal.node()
    record = metal.allocate()
    metal.change(node, **columns)
    if ends:
        metal.end(record.uuid)
        assert metal.record(record.uuid) is None
    else:
        with pytest.raises(failures.AllocationNeeded, match=node):
            metal.end(record.uuid)
        assert metal.record(record.uuid) == record
    assert metal.read(node).provision_state == columns["provision_state"]


def test_the_end_of_a_record_leaves_the_allocation_of_another_consumer(metal):
    """A Placement client has raised the total, and the other consumer, which counts as the holder, keeps its unit."""
    node, elsewhere, other = metal.node(), metal.node(resource_class="x"), str(uuid.uuid4())
    record = metal.allocate()
    inventory = Inventory("CUSTOM_BM", total=2, max_unit=2)
    metal.database.write(lambda db: LockedProvider.lock(db, node).update_inventory(inventory))
    metal.claim(other, node)
    # Write the allocations of the record again, after the allocations of the other consumer.
    record_holding = metal.database.read(lambda db: Holding.find(db, record.uuid))
    amounts = {node: {"CUSTOM_BM": 1}, elsewhere: {"CUSTOM_X": 1}}
    claim = Claim(record.uuid, amounts, Owner("project", "user"), record_holding.generation)
    metal.database.write(lambda db: ClaimSet(db, [claim]).place())
    assert metal.read(node).instance_uuid == other
    metal.change(node, provision_state="active")
    with pytest.raises(failures.AllocationNeeded):
        metal.end(record.uuid)
    metal.change(node, provision_state="available")
    # It keeps more than it could claim again.
    small = Inventory("CUSTOM_X", total=4, min_unit=2)
    metal.database.write(lambda db: LockedProvider.lock(db, elsewhere).update_inventory(small))
    metal.end(record.uuid)
    assert metal.record(record.uuid) is None
    assert metal.read(node).instance_uuid == other
    assert metal.read(elsewhere).instance_uuid == record.uuid
    metal.database.write(lambda db: LockedProvider.lock(db, node).update_inventory(inventory))
    metal.claim(record.uuid, node)
    assert metal.record(record.uuid) is None


def test_the_end_of_a_record_in_error_leaves_its_consumer(metal):
    record = metal.allocate()
    consumer = record.uuid
    metal.claim(consumer, metal.node())
    metal.end(record.uuid)
    assert metal.record(record.uuid) is None
    assert metal.database.read(lambda db: Holding.find(db, consumer)) is not None


def test_a_record_in_error_stays_when_the_consumer_of_its_uuid_ends(metal):
    record, node = metal.allocate(), metal.node()
    metal.claim(record.uuid, node)
    metal.database.write(lambda db: holding.release(db, Node.get(db, node), lambda _locked: None))
    assert metal.read(node).instance_uuid is None
    assert metal.record(record.uuid) == record


# --- lists -----------------------------------------------------------------------------------------------------------


def test_every_combination_of_filters_selects_the_matching_records(metal):
    node = metal.node(owner="me")
    for owner in (None, "me"):
        for resource_class in ("bm", "BM"):
            metal.allocate(owner=owner, resource_class=resource_class)
    everything = metal.page()
    assert len(everything) == 4
    filters = {
        "node_uuid": [None, node, str(uuid.uuid4())],
        "resource_class": [None, "bm", "BM", ""],
        "state": [None, "active", "error", "allocating", "x"],
        "owner": [None, "me", "you"],
    }
    for chosen in itertools.product(*filters.values()):
        conditions = dict(zip(filters, chosen, strict=True))
        expected = [
            record
            for record in everything
            if all(value is None or getattr(record, name) == value for name, value in conditions.items())
        ]
        assert metal.page(**conditions) == expected


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("sort_key", SORT_KEYS)
def test_pages_of_every_order_contain_each_record_once(metal, sort_key, descending):
    metal.node()
    for name, owner, resource_class in [("b", None, "bm"), (None, "x", "bm"), ("a", "x", "y"), (None, None, "y")]:
        metal.allocate(name=name, owner=owner, resource_class=resource_class)
    everything = metal.page(sort_key=sort_key, descending=descending)
    assert {record.uuid for record in everything} == {record.uuid for record in metal.page()}
    keys = [((value := getattr(record, sort_key)) is not None, value, record.id) for record in everything]
    comparable = [(is_set, value if is_set else 0, id_) for is_set, value, id_ in keys]
    assert comparable == sorted(comparable, reverse=descending)
    records, marker = [], None
    while page := metal.page(sort_key=sort_key, descending=descending, limit=1, after=marker):
        records += page
        marker = page[-1]
    assert records == everything


def test_a_request_that_loses_every_race_pauses_and_is_counted(metal, monkeypatch):
    metal.node()
    pauses, received = [], []
    monkeypatch.setattr(placing.NodeRequest, "_try_claim", lambda *_: None)
    monkeypatch.setattr(retry, "pause", pauses.append)
    monkeypatch.setattr(retry, "has_passed", lambda _: len(pauses) == 2)

    def listener(*facts):
        received.append(facts)

    signals.node_requested.connect(listener)
    try:
        with pytest.raises(errors.AllocationsChanged):
            metal.allocate()
    finally:
        signals.node_requested.disconnect(listener)
    assert pauses == [3, 4]
    assert received == [("contended", 0)]
