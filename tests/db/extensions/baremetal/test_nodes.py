"""Nodes and their providers: changes of one appear in the other, and every holder is a consumer of Placement."""

from __future__ import annotations

import uuid

import pytest

from placement import errors
from placement.extensions.baremetal import failures
from placement.extensions.baremetal.objects import holding, node_page
from placement.extensions.baremetal.objects.keyset import Paging
from placement.extensions.baremetal.objects.locked_node import LockedNode
from placement.extensions.baremetal.objects.node import UNCLASSIFIED, Node, traits_of
from placement.extensions.baremetal.objects.node_page import NodeFilter
from placement.objects.allocation import ProviderAllocations
from placement.objects.claims.holding import Holding
from placement.objects.claims.release import end_consumer
from placement.objects.consumer import Owner
from placement.objects.inventory import Inventory
from placement.objects.locked_provider import LockedProvider
from placement.objects.provider import ResourceProvider
from placement.objects.trait import Trait
from tests.db.extensions.bare_metal import ME, NODE, OTHER, OWNER, YOU, claim, inventories

READY = {"provision_state": "available", "power_state": "power off"}


def accept(_locked):
    pass


def create(database, node=NODE, **columns):
    columns = {"driver": "fake", "resource_class": "bm.large", **columns}
    return database.write(lambda db: LockedNode.create(db, node, **columns).node)


def read(database, ident=NODE):
    return database.read(lambda db: Node.find(db, ident))


def update(database, ident=NODE, **columns):
    return database.write(lambda db: LockedNode.lock(db, ident).update(**columns))


def assign(database, consumer=ME, ident=NODE, **options):
    def work(db):
        node = Node.get(db, ident)
        return holding.assign(db, node.uuid, node.inventory_class, consumer, OWNER, **options).node

    return database.write(work)


def release(database, ident=NODE, check=accept):
    return database.write(lambda db: holding.release(db, Node.get(db, ident), check).node)


def reclassify(database, resource_class, ident=NODE, check=accept):
    return database.write(lambda db: holding.reclassify(db, Node.get(db, ident), resource_class, check).node)


def provider(database, uuid=NODE):
    return database.read(lambda db: ResourceProvider.find(db, uuid))


def replace_inventory(database, inventory):
    """Write an inventory like a Placement client."""
    database.write(lambda db: LockedProvider.lock(db, NODE).update_inventory(inventory))


def allocations_on(database, uuid=NODE):
    """Return the allocations on the provider, by consumer."""
    allocations = database.read(lambda db: ProviderAllocations.of_provider(db, ResourceProvider.get(db, uuid)))
    return {consumer: share.resources for consumer, share in allocations.shares.items()}


def nodes_of_instance(database, consumer):
    """Return the nodes in a list filtered by this instance."""
    condition = NodeFilter(instance_uuid=consumer)
    rows = database.read(lambda db: node_page.read(db, Paging(5), ["uuid"], condition))
    return [row["uuid"] for row in rows]


def traits(database, uuid=NODE):
    return database.read(lambda db: traits_of(db, [uuid]))[uuid]


# --- a node and its provider ---


def test_a_change_without_effect_on_claims_leaves_the_generation(database):
    create(database, **READY)
    before = provider(database).generation
    update(database, name="new", details={"extra": {"a": 1}})
    assert provider(database).generation == before
    update(database, owner="mine")
    assert provider(database).generation > before


@pytest.mark.parametrize(
    "change",
    [
        *({"owner": "o"}, {"lessee": "o"}, {"parent_node": OTHER}, {"provision_state": "active"}),
        *({"power_state": "power on"}, {"power_state": None}, {"maintenance": True}),
    ],
)
def test_a_change_that_affects_requests_increments_the_generation(database, change):
    """The unit may stay the same: a request without a match reads nodes with a new generation again."""
    create(database, **READY)
    before = provider(database).generation
    update(database, **change)
    assert provider(database).generation > before


def test_unchanged_values_are_not_written(database):
    create(database, details={"extra": {"a": 1}})
    update(database, name=None, details={"extra": {"a": 1}, "fault": None})
    assert read(database).updated_at is None
    update(database, details={"description": "big"})
    changed = read(database)
    assert changed.details == {"extra": {"a": 1}, "description": "big"}
    assert changed.updated_at is not None
    update(database, details={"extra": None})
    assert read(database).details == {"description": "big"}


def test_a_name_or_a_uuid_belongs_to_one_node(database):
    create(database, name="one")
    with pytest.raises(failures.NodeUuidTaken):
        create(database)
    with pytest.raises(failures.NodeNameTaken):
        create(database, OTHER, name="one")
    assert provider(database, OTHER) is None
    create(database, OTHER, name="two")
    with pytest.raises(failures.NodeNameTaken):
        update(database, OTHER, name="one")
    update(database, name="three")
    update(database, OTHER, name="one")


def test_a_node_has_the_traits_of_its_provider_and_new_traits_are_created(database):
    create(database)
    database.write(lambda db: LockedNode.lock(db, NODE).replace_traits(["HW_CPU_X86_VMX", "CUSTOM_B", "CUSTOM_A"]))
    assert traits(database) == ["CUSTOM_A", "CUSTOM_B", "HW_CPU_X86_VMX"]
    names = database.read(lambda db: [trait.name for trait in Trait.of_provider(db, ResourceProvider.get(db, NODE))])
    assert names == traits(database)
    with pytest.raises(errors.UnknownProviderTraits):
        database.write(lambda db: LockedNode.lock(db, NODE).replace_traits(["CUSTOM_C", "HW_NO_SUCH"]))
    with pytest.raises(errors.InvalidTrait):
        database.write(lambda db: LockedNode.lock(db, NODE).replace_traits(["CUSTOM_c"]))
    assert database.read(lambda db: Trait.find(db, "CUSTOM_C")) is None
    assert len(traits(database)) == 3


def test_a_provider_that_a_placement_client_made_is_adopted_with_traits_and_holder(database):
    def by_nova(db):
        created = LockedProvider.create(db, uuid=NODE, name="compute")
        created.replace_inventories([Inventory("VCPU", 4)])
        created.replace_traits(["HW_CPU_X86_VMX"])

    database.write(by_nova)
    claim(database, YOU, {NODE: {"VCPU": 1}})
    node = create(database, **READY)
    assert node.instance_uuid == YOU
    assert node.allocation_uuid is None
    assert traits(database) == ["HW_CPU_X86_VMX"]
    assert inventories(database) == {"VCPU": (4, 0), "CUSTOM_BM_LARGE": (1, 0)}
    assert provider(database).name == "compute"


def test_a_deleted_provider_is_created_again_by_the_next_change(database):
    create(database, **READY)
    database.write(lambda db: LockedProvider.lock(db, NODE).delete())
    assert read(database).instance_uuid is None
    update(database, name="back")
    assert inventories(database) == {"CUSTOM_BM_LARGE": (1, 0)}
    database.write(lambda db: LockedProvider.lock(db, NODE).delete())
    assert assign(database).instance_uuid == ME


# --- holders ---


def test_the_first_of_several_holders_is_the_instance(database):
    create(database, **READY)
    for consumer in (YOU, ME):
        replace_inventory(database, Inventory("CUSTOM_BM_LARGE", 2))
        claim(database, consumer, {NODE: {"CUSTOM_BM_LARGE": 1}})
    assert read(database).instance_uuid == YOU
    assert [nodes_of_instance(database, consumer) for consumer in (YOU, ME)] == [[NODE], []]
    database.write(lambda db: end_consumer(db, YOU))
    assert read(database).instance_uuid == ME
    assert [nodes_of_instance(database, consumer) for consumer in (YOU, ME)] == [[], [NODE]]


def test_an_unavailable_node_is_assigned_only_on_request(database):
    create(database, provision_state="active", power_state="power on")
    with pytest.raises(failures.NodeUnavailable):
        assign(database)
    assert allocations_on(database) == {}
    assert assign(database, unavailable=True).instance_uuid == ME
    assert inventories(database) == {"CUSTOM_BM_LARGE": (1, 1)}
    assert allocations_on(database) == {ME: {"CUSTOM_BM_LARGE": 1}}


def test_a_unit_reserved_by_a_placement_client_is_unavailable_and_a_removed_unit_is_restored(database):
    create(database, **READY)
    replace_inventory(database, Inventory("CUSTOM_BM_LARGE", 1, 1))
    with pytest.raises(failures.NodeUnavailable):
        assign(database)
    database.write(lambda db: LockedProvider.lock(db, NODE).replace_inventories([]))
    assert assign(database).instance_uuid == ME
    assert allocations_on(database) == {ME: {"CUSTOM_BM_LARGE": 1}}


def test_a_consumer_keeps_other_allocations_and_gets_no_second_node(database):
    create(database, **READY)
    create(database, OTHER, **READY)
    other = str(uuid.uuid4())
    database.write(
        lambda db: LockedProvider.create(db, uuid=other, name="cn").replace_inventories([Inventory("VCPU", 4)])
    )
    claim(database, ME, {other: {"VCPU": 1}})
    assign(database)
    assert allocations_on(database, other) == {ME: {"VCPU": 1}}
    with pytest.raises(failures.ConsumerHoldsElsewhere):
        assign(database, ident=OTHER)
    assert release(database).instance_uuid is None
    assert allocations_on(database, other) == {ME: {"VCPU": 1}}
    assert allocations_on(database) == {}


def claim_elsewhere(database):
    """Claim for ME on a provider without a node; return the provider's uuid."""
    other = str(uuid.uuid4())
    database.write(
        lambda db: LockedProvider.create(db, uuid=other, name="cn").replace_inventories([Inventory("VCPU", 4)])
    )
    claim(database, ME, {other: {"VCPU": 1}})
    return other


def test_allocations_of_the_consumer_elsewhere_are_not_checked_again(database):
    """The allocations may be above or below the amounts that could be claimed now."""
    create(database, **READY)
    other = claim_elsewhere(database)
    database.write(lambda db: LockedProvider.lock(db, other).update_inventory(Inventory("VCPU", 4, 4, min_unit=2)))
    before = provider(database, other)
    assert assign(database).instance_uuid == ME
    reclassify(database, "bm.small")
    assert allocations_on(database) == {ME: {"CUSTOM_BM_SMALL": 1}}
    assert release(database).instance_uuid is None
    assert allocations_on(database) == {}
    assert allocations_on(database, other) == {ME: {"VCPU": 1}}
    assert provider(database, other) == before
    assert database.read(lambda db: Holding.find(db, ME)).generation == 4


def test_a_consumer_of_another_project_gets_a_node_only_if_allowed(database):
    create(database, **READY)
    other = claim_elsewhere(database)
    before = database.read(lambda db: Holding.find(db, ME))
    owner = Owner("another", "user", "BAREMETAL")
    with pytest.raises(failures.ConsumerHoldsElsewhere):
        database.write(lambda db: holding.assign(db, NODE, Node.get(db, NODE).inventory_class, ME, owner))
    assert database.read(lambda db: Holding.find(db, ME)) == before
    assert allocations_on(database) == {}
    database.write(lambda db: holding.assign(db, NODE, Node.get(db, NODE).inventory_class, ME, owner, any_project=True))
    after = database.read(lambda db: Holding.find(db, ME))
    assert (after.project, set(after.resources)) == (before.project, {NODE, other})


def test_a_unit_that_cannot_be_held_alone_is_not_available(database):
    """A Placement client has raised min_unit."""
    create(database, **READY)
    replace_inventory(database, Inventory("CUSTOM_BM_LARGE", 4, min_unit=2))
    with pytest.raises(failures.NodeUnavailable):
        assign(database)


def test_a_node_can_be_assigned_to_the_consumer_that_holds_it(database):
    """The consumer keeps its other allocations on the provider."""
    create(database, **READY)
    database.write(lambda db: LockedProvider.lock(db, NODE).add_inventory(Inventory("VCPU", 4)))
    claim(database, YOU, {NODE: {"CUSTOM_BM_LARGE": 1, "VCPU": 2}})
    before = database.read(lambda db: Holding.find(db, YOU))
    assert assign(database, YOU).instance_uuid == YOU
    after = database.read(lambda db: Holding.find(db, YOU))
    assert (after.resources, after.project, after.consumer_type) == (
        *(before.resources, before.project, before.consumer_type),
    )


def test_a_refusal_by_the_caller_changes_nothing(database):
    create(database, **READY)

    def refuse(locked):
        locked.update(name="refused")
        raise failures.NodeNameTaken(name="x")

    for change in (lambda: assign(database, check=refuse), lambda: reclassify(database, "y", check=refuse)):
        with pytest.raises(failures.NodeNameTaken):
            change()
    assign(database)
    for change in (lambda: release(database, check=refuse), lambda: reclassify(database, "y", check=refuse)):
        with pytest.raises(failures.NodeNameTaken):
            change()
    assert read(database).name is None
    assert allocations_on(database) == {ME: {"CUSTOM_BM_LARGE": 1}}


def test_changes_of_the_caller_count_in_the_check_of_the_claim(database):
    create(database, power_state="power on")
    node = assign(database, check=lambda locked: locked.update(provision_state="available"), unavailable=True)
    assert node.available
    node = release(database, check=lambda locked: locked.update(maintenance=True))
    assert (node.instance_uuid, node.maintenance) == (None, True)
    assert inventories(database) == {"CUSTOM_BM_LARGE": (1, 1)}


def test_the_release_of_a_free_node_only_applies_the_changes_of_the_caller(database):
    create(database, **READY)
    assert release(database, check=lambda locked: locked.update(name="new")).name == "new"


# --- the class of a node ---


@pytest.mark.parametrize("consumer", [None, ME])
@pytest.mark.parametrize("maintenance", [False, True])
def test_the_unit_moves_to_the_new_class_with_its_holder(database, consumer, maintenance):
    create(database, **READY)
    if consumer:
        assign(database)
    update(database, maintenance=maintenance)
    node = reclassify(database, "bm.small")
    assert (node.resource_class, node.instance_uuid) == ("bm.small", consumer)
    assert read(database) == node
    assert inventories(database) == {"CUSTOM_BM_SMALL": (1, int(maintenance))}
    assert allocations_on(database) == ({consumer: {"CUSTOM_BM_SMALL": 1}} if consumer else {})
    reclassify(database, "bm-small")
    assert inventories(database) == {"CUSTOM_BM_SMALL": (1, int(maintenance))}
    assert read(database).resource_class == "bm-small"
    reclassify(database, None)
    assert inventories(database) == {UNCLASSIFIED: (1, int(maintenance))}


def test_a_node_is_not_reclassified_while_another_consumer_holds_the_old_class(database):
    create(database, **READY)
    assign(database)
    replace_inventory(database, Inventory("CUSTOM_BM_LARGE", 2))
    claim(database, YOU, {NODE: {"CUSTOM_BM_LARGE": 1}})
    with pytest.raises(errors.InventoryNotDeletable):
        reclassify(database, "bm.small")
    assert allocations_on(database) == {ME: {"CUSTOM_BM_LARGE": 1}, YOU: {"CUSTOM_BM_LARGE": 1}}
    assert inventories(database) == {"CUSTOM_BM_LARGE": (2, 0)}
