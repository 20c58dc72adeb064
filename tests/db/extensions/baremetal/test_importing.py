"""The import of nodes: differences between the documents and the database are listed, and written once."""

from __future__ import annotations

import functools
import random

import pytest

from placement import errors
from placement.extensions.baremetal import importing
from placement.extensions.baremetal.objects.node import Node, traits_of
from placement.extensions.baremetal.objects.record import Record
from placement.objects.claims import release
from placement.objects.claims.claim import Claim
from placement.objects.claims.claim_set import ClaimSet
from placement.objects.claims.holding import Holding
from placement.objects.consumer import Owner
from placement.objects.inventory import Inventory
from placement.objects.locked_provider import LockedProvider
from placement.objects.resource_class import ResourceClass
from placement.objects.trait import Trait
from tests.db.extensions import bare_metal
from tests.db.extensions.bare_metal import ME, NODE, OTHER, YOU, inventories

DEFAULT = Owner("default", "importer")
#: Claims by an instance of another project, like a Placement client's.
claim = functools.partial(bare_metal.claim, owner=Owner("blue", "user", "INSTANCE"))


def document(uuid=NODE, **fields):
    """Return a node as Ironic shows it, available unless the fields state otherwise."""
    return {
        "uuid": uuid,
        "name": None,
        "driver": "ipmi",
        "resource_class": "bm.large",
        "traits": [],
        "extra": {},
        "owner": None,
        "lessee": None,
        "maintenance": False,
        "instance_uuid": None,
        "properties": {},
        "provision_state": "available",
        "target_provision_state": None,
        "power_state": "power off",
        **fields,
    }


def allocation(uuid=ME, **fields):
    return {
        "uuid": uuid,
        "name": "web",
        "state": "active",
        "resource_class": "bm.large",
        "owner": "red",
        "traits": ["CUSTOM_A"],
        "candidate_nodes": [NODE],
        "extra": {"a": 1},
        **fields,
    }


def compare(database, *documents, allocations=()):
    return database.read(lambda db: importing.compare(db, documents, allocations))


def run(database, *documents, allocations=()):
    """Import the documents; return the differences."""
    comparison = compare(database, *documents, allocations=allocations)
    importing.free_names(database, comparison)
    for node in comparison.nodes:
        if node.has_changes:
            importing.write(database, node, DEFAULT)
    second_comparison = compare(database, *documents, allocations=allocations)
    assert not any(node.has_changes for node in second_comparison.nodes), "an import that is repeated changes nothing"
    return comparison


def only_node(comparison):
    (node,) = comparison.nodes
    return node


def read(database, uuid=NODE):
    return database.read(lambda db: Node.find(db, uuid))


def holding_of(database, consumer):
    return database.read(lambda db: Holding.find(db, consumer))


def create_like_nova(database, traits=()):
    """Create the provider of the node like nova, before the node is imported."""
    database.write(lambda db: ResourceClass.create(db, "CUSTOM_BM_LARGE"))
    for name in traits:
        database.write(lambda db, name=name: Trait.create(db, name))

    def create(db):
        provider = LockedProvider.create(db, uuid=NODE, name=NODE)
        provider.replace_inventories([Inventory("CUSTOM_BM_LARGE", total=1, reserved=0, max_unit=1)])
        provider.replace_traits(set(traits))

    database.write(create)


def test_a_new_node_is_recorded_with_its_provider(database):
    node = document(name="n1", owner="red", lessee="blue", traits=["CUSTOM_A"], extra={"rack": 1}, description="old")
    assert not only_node(run(database, node)).exists
    node_read = read(database)
    assert (node_read.name, node_read.owner, node_read.lessee, node_read.available) == ("n1", "red", "blue", True)
    assert node_read.details == {"extra": {"rack": 1}, "description": "old"}
    assert database.read(lambda db: traits_of(db, [node_read.uuid])) == {NODE: ["CUSTOM_A"]}
    assert inventories(database) == {"CUSTOM_BM_LARGE": (1, 0)}


def test_a_comparison_writes_nothing(database):
    compare(database, document(instance_uuid=ME))
    assert read(database) is None
    assert holding_of(database, ME) is None


def test_differences_are_listed_and_written(database):
    run(database, document(name="n1", traits=["CUSTOM_A"], extra={"rack": 1}))
    changed_document = document(
        name="n1", traits=["CUSTOM_B"], maintenance=True, power_state=None, extra={}, description="new"
    )
    assert only_node(run(database, changed_document)).differences == (
        "power_state: power off -> none",
        "maintenance: false -> true",
        "description: none -> new",
        "extra",
        "traits: +CUSTOM_B -CUSTOM_A",
    )
    assert inventories(database) == {"CUSTOM_BM_LARGE": (1, 1)}
    assert read(database).details == {"description": "new"}


#: Two values of each imported field, and their texts in a comparison; None if it shows no values.
FIELDS = {
    "name": ("n1", "n2", "n1", "n2"),
    "driver": ("ipmi", "redfish", "ipmi", "redfish"),
    "resource_class": ("bm.large", "bm.small", "bm.large", "bm.small"),
    "owner": ("red", "blue", "red", "blue"),
    "lessee": ("red", "blue", "red", "blue"),
    "parent_node": (OTHER, ME, OTHER, ME),
    "provision_state": ("manageable", "active", "manageable", "active"),
    "target_provision_state": ("active", "available", "active", "available"),
    "power_state": ("power on", "power off", "power on", "power off"),
    "target_power_state": ("power on", "power off", "power on", "power off"),
    "maintenance": (True, False, "true", "false"),
    "description": ("old", "new", "old", "new"),
    "properties": ({"cpus": 1}, {"cpus": 2}, None, None),
    "extra": ({"rack": 1}, {"rack": 2}, None, None),
    "maintenance_reason": ("fan", "disk", "fan", "disk"),
    "fault": ("power failure", "clean failure", "power failure", "clean failure"),
    "last_error": ("one", "two", "one", "two"),
    "protected": (True, None, "true", "none"),
    "protected_reason": ("mine", "ours", "mine", "ours"),
    "retired": (True, None, "true", "none"),
    "retired_reason": ("old", "broken", "old", "broken"),
    "conductor_group": ("east", "west", "east", "west"),
    "shard": ("s1", "s2", "s1", "s2"),
    "instance_name": ("web1", "web2", "web1", "web2"),
}


@pytest.mark.parametrize("field", FIELDS)
def test_a_field_is_written_compared_and_written_again(database, field):
    first, second, old_text, new_text = FIELDS[field]

    def stored_value():
        node = read(database)
        return getattr(node, field) if hasattr(node, field) else node.details.get(field)

    run(database, document(**{field: first}))
    assert stored_value() == first
    difference = field if old_text is None else f"{field}: {old_text} -> {new_text}"
    assert only_node(run(database, document(**{field: second}))).differences == (difference,)
    assert stored_value() == second


def test_a_field_that_is_not_imported_is_not_compared(database):
    """This excludes the data of drivers, whose passwords are masked."""
    driver_fields = {"driver_info": {"ipmi_password": "******"}, "instance_info": {"a": 1}, "reservation": "here"}
    run(database, document())
    assert only_node(run(database, document(**driver_fields))).differences == ()
    assert read(database).details == {}


def test_a_node_in_use_gets_a_claim_of_its_instance(database):
    node = only_node(run(database, document(provision_state="active", instance_uuid=ME, owner="red")))
    assert node.unclaimed == ME
    holder = holding_of(database, ME)
    assert holder.resources == {NODE: {"CUSTOM_BM_LARGE": 1}}
    assert (holder.project, holder.user, holder.consumer_type) == ("red", "importer", "INSTANCE")
    assert inventories(database) == {"CUSTOM_BM_LARGE": (1, 1)}


def test_a_node_in_use_is_not_available_before_its_claim(database):
    run(database, document(OTHER))
    comparison = compare(database, document(instance_uuid=ME))
    claim(database, ME, {OTHER: {"CUSTOM_BM_LARGE": 1}})
    with pytest.raises(errors.Conflict, match=f"Instance {ME} is already associated with a node"):
        importing.write(database, only_node(comparison), DEFAULT)
    assert read(database).provision_state == "enroll"
    assert inventories(database) == {"CUSTOM_BM_LARGE": (1, 1)}


def test_an_active_allocation_becomes_a_record(database):
    documents = [allocation(), allocation(YOU, name="failed", state="error")]
    run(database, document(instance_uuid=ME), allocations=documents)
    record = database.read(lambda db: Record.get(db, "web"))
    assert (record.uuid, record.node_uuid, record.owner, record.extra) == (ME, NODE, "red", {"a": 1})
    assert (record.traits, record.candidate_nodes) == (["CUSTOM_A"], [NODE])
    assert holding_of(database, ME).consumer_type == "BAREMETAL"
    assert holding_of(database, ME).project == "red"
    assert database.read(lambda db: Record.find(db, "failed")) is None


def test_a_record_is_added_to_an_existing_claim(database):
    run(database, document(instance_uuid=ME))
    node = only_node(run(database, document(instance_uuid=ME), allocations=[allocation()]))
    assert (node.unclaimed, node.allocation["uuid"]) == (None, ME)
    assert read(database).allocation_uuid == ME


def test_a_consumer_that_has_ended_since_the_comparison_gets_no_record(database):
    """The row would appear once the consumer holds the node again."""
    run(database, document(instance_uuid=ME))
    comparison = compare(database, document(instance_uuid=ME), allocations=[allocation()])
    database.write(lambda db: release.end_consumer(db, ME))
    importing.write(database, only_node(comparison), DEFAULT)
    claim(database, ME, {NODE: {"CUSTOM_BM_LARGE": 1}})
    assert (read(database).instance_uuid, read(database).allocation_uuid) == (ME, None)


def test_a_consumer_whose_record_has_ended_is_claimed_without_it(database):
    """Its row would appear again with the claim."""
    run(database, document(instance_uuid=ME), allocations=[allocation()])
    database.write(lambda db: release.end_consumer(db, ME))
    run(database, document(instance_uuid=ME))
    assert (read(database).instance_uuid, read(database).allocation_uuid) == (ME, None)


def test_the_class_of_a_node_in_use_changes_with_its_claim(database):
    run(database, document(instance_uuid=ME))
    run(database, document(instance_uuid=ME, resource_class="bm.small"))
    assert holding_of(database, ME).resources == {NODE: {"CUSTOM_BM_SMALL": 1}}
    assert inventories(database) == {"CUSTOM_BM_SMALL": (1, 0)}


def test_a_free_node_changes_its_class_and_is_claimed(database):
    run(database, document(name="n1"))
    run(database, document(name="n2", instance_uuid=ME, resource_class="bm.small"))
    assert holding_of(database, ME).resources == {NODE: {"CUSTOM_BM_SMALL": 1}}
    assert read(database).name == "n2"


def test_the_provider_and_the_claim_of_a_placement_client_are_adopted(database):
    create_like_nova(database, ["CUSTOM_OLD"])
    database.write(lambda db: LockedProvider.lock(db, NODE).replace_traits({"CUSTOM_OLD", "COMPUTE_NODE"}))
    claim(database, ME, {NODE: {"CUSTOM_BM_LARGE": 1}})
    node = only_node(run(database, document(provision_state="active", instance_uuid=ME, traits=["CUSTOM_A"])))
    assert node.unclaimed is None
    assert holding_of(database, ME).project == "blue"
    assert read(database).instance_uuid == ME
    # nova's own trait stays
    assert database.read(lambda db: traits_of(db, [NODE])) == {NODE: ["COMPUTE_NODE", "CUSTOM_A"]}


@pytest.mark.parametrize("instance_in_ironic", [None, YOU])
def test_an_import_never_removes_a_holder(database, instance_in_ironic):
    create_like_nova(database)
    claim(database, ME, {NODE: {"CUSTOM_BM_LARGE": 1}})
    node = only_node(run(database, document(instance_uuid=instance_in_ironic)))
    assert node.findings == (
        f"held here by {ME}, " + (f"in use in Ironic by {YOU}" if instance_in_ironic else "free in Ironic"),
    )
    assert node.unclaimed is None
    assert read(database).instance_uuid == ME


def test_an_instance_that_holds_another_node_is_reported(database):
    run(database, document(OTHER, instance_uuid=ME))
    node = run(database, document(OTHER), document(instance_uuid=ME)).nodes[1]
    assert node.findings == (f"in use in Ironic by {ME}, which holds {OTHER} here",)
    assert read(database).instance_uuid is None


def test_an_instance_id_that_is_not_a_uuid_is_reported(database):
    node = only_node(run(database, document(instance_uuid="me")))
    assert node.findings == ("in use in Ironic by me, which is not a uuid",)


def test_uuids_in_capitals_are_recognized(database):
    run(database, document(NODE.upper(), instance_uuid=ME.upper()))
    assert read(database).instance_uuid == ME


def test_nodes_exchange_their_names(database):
    run(database, document(name="a"), document(OTHER, name="b"))
    run(database, document(name="b"), document(OTHER, name="a"))
    assert [read(database, uuid).name for uuid in (NODE, OTHER)] == ["b", "a"]


def test_a_name_in_use_by_a_node_outside_of_the_import_excludes_the_node(database):
    run(database, document(OTHER, name="a"))
    comparison = run(database, document(name="a"))
    assert only_node(comparison).findings == (f"the name is taken by another node here, {OTHER}",)
    assert only_node(comparison).excluded
    assert comparison.only_here == 1
    assert read(database) is None


def test_an_unknown_standard_trait_excludes_the_node(database):
    node = only_node(run(database, document(traits=["HW_OF_THE_FUTURE", "CUSTOM_A"])))
    assert node.findings == ("trait HW_OF_THE_FUTURE is unknown here: upgrade os-traits",)
    assert read(database) is None


@pytest.mark.parametrize("name", ["properties", "extra", "description"])
@pytest.mark.parametrize("too_deep", [True, False])
def test_details_that_cannot_be_stored_exclude_the_node(database, name, too_deep):
    value = functools.reduce(lambda inner, _: {"a": inner}, range(31), 1) if too_deep else "x" * 2**18
    for _ in range(2):
        comparison = compare(database, document(**{name: value}), document(OTHER))
        [finding] = comparison.nodes[0].findings
        assert ("nested too deeply" if too_deep else "bytes as JSON") in finding
        assert comparison.nodes[0].excluded
        run(database, document(**{name: value}), document(OTHER))
        assert set(database.read(lambda db: Node.of_uuids(db, [NODE, OTHER]))) == {OTHER}


def test_an_allocation_that_cannot_be_stored_excludes_the_node(database):
    unstorable = allocation(extra=functools.reduce(lambda inner, _: {"a": inner}, range(31), 1))
    comparison = compare(database, document(instance_uuid=ME), allocations=[unstorable])
    [finding] = comparison.nodes[0].findings
    assert f"allocation {ME}" in finding
    assert "nested too deeply" in finding
    assert not comparison.nodes[0].has_changes


def test_a_node_that_was_claimed_since_the_comparison_keeps_its_holder(database):
    run(database, document())
    comparison = compare(database, document(instance_uuid=ME))
    claim(database, YOU, {NODE: {"CUSTOM_BM_LARGE": 1}})
    with pytest.raises(errors.Conflict, match=f"{NODE} is associated with instance {YOU}"):
        importing.write(database, only_node(comparison), DEFAULT)
    assert read(database).instance_uuid == YOU
    assert holding_of(database, ME) is None


class RandomServices:
    """Random documents of two Ironic services in turn, and the writes of Placement clients in between."""

    UUIDS = tuple(f"6c1b0f5e-0b8e-4f6e-8a57-51a3f0a4c0a{number}" for number in range(4))
    CONSUMERS = tuple(f"11111111-1111-4111-8111-11111111111{number}" for number in range(4))

    def __init__(self, seed):
        self.random = random.Random(seed)

    def documents(self):
        """Return some of the nodes, with names and instances that are unique, as in one service."""
        uuids = self.random.sample(self.UUIDS, self.random.randint(1, 4))
        names = self.random.sample(["a", "b", "c", "d"], len(uuids))
        instances = self.random.sample(self.CONSUMERS, len(uuids))
        return [
            document(
                uuid,
                name=self.random.choice([name, None]),
                instance_uuid=self.random.choice([instance, None]),
                resource_class=self.random.choice(["bm.large", "bm-large", "bm.small", None]),
                traits=self.random.sample(["CUSTOM_A", "CUSTOM_B", "HW_CPU_X86_VMX"], self.random.randint(0, 3)),
                provision_state=self.random.choice(["enroll", "available", "active", "cleaning"]),
                power_state=self.random.choice(["power on", "error", None]),
                maintenance=self.random.choice([True, False]),
                owner=self.random.choice(["red", None]),
            )
            for uuid, name, instance in zip(uuids, names, instances, strict=True)
        ]

    def allocations(self, documents):
        """Return allocations of some of the instances."""
        instances = [node["instance_uuid"] for node in documents if node["instance_uuid"]]
        chosen = self.random.sample(instances, self.random.randint(0, len(instances)))
        return [allocation(uuid, name=f"of-{uuid}") for uuid in chosen]

    def release(self, database):
        """Delete the allocations of a consumer, like a Placement client."""
        consumer = self.random.choice(self.CONSUMERS)
        if holding := holding_of(database, consumer):
            empty_claim = Claim(consumer, {}, Owner("blue", "user"), generation=holding.generation)
            database.write(lambda db: ClaimSet(db, [empty_claim]).place())


def holders(database):
    nodes = database.read(lambda db: Node.of_uuids(db, RandomServices.UUIDS))
    return {uuid: node.instance_uuid for uuid, node in nodes.items() if node.instance_uuid is not None}


@pytest.mark.parametrize("seed", range(3))
def test_the_nodes_of_two_services_are_imported_in_turn(database, seed):
    """In any state of the database, an import writes the nodes that it does not exclude, and keeps all holders."""
    services = RandomServices(seed)
    for _ in range(12):
        documents = services.documents()
        holders_before = holders(database)
        comparison = run(database, *documents, allocations=services.allocations(documents))
        holders_after = holders(database)
        assert holders_before.items() <= holders_after.items()
        for node in comparison.nodes:
            document = node.document
            if node.excluded:
                continue
            imported = read(database, node.uuid)
            assert (imported.name, imported.provision_state) == (document["name"], document["provision_state"])
            assert imported.resource_class == document["resource_class"]
            assert holders_after.get(node.uuid) == document["instance_uuid"] or node.findings
            ((total, reserved),) = inventories(database, node.uuid).values()
            assert (total, reserved) == (1, 0 if imported.available else 1)
        if services.random.random() < 0.7:
            services.release(database)
