"""Two Galera nodes that both accept writes: a lock of one is unknown to the other until its transaction is certified.

The two requests of every test are always concurrent: while the slow node applies a long change, the commits of the
quick node wait in its queue, and a request at the slow node neither sees them nor waits for their locks.
"""

from __future__ import annotations

import datetime

import pytest
import sqlalchemy as sa

from placement.db.schema.tables import resource_providers
from tests import made
from tests.db.galera_pair import AGGREGATE, OTHER, aggregates, arguments_of, create_child, either_first, retry_if_missed
from tests.db.in_process import placement
from tests.load.storm import Call, claim, name, new, stock
from tests.made import opened

pytestmark = [pytest.mark.xdist_group("galera"), pytest.mark.long]

TRAIT = "HW_CPU_X86_AVX"


def move(provider, parent):
    return Call("PUT", f"/resource_providers/{provider}", {"name": provider, "parent_provider_uuid": parent})


def delete(provider):
    return Call("DELETE", f"/resource_providers/{provider}")


def traits(provider, *names):
    return Call(
        "PUT", f"/resource_providers/{provider}/traits", {"resource_provider_generation": 0, "traits": [*names]}
    )


def guarded_aggregates(provider, *uuids):
    body = {"resource_provider_generation": 0, "aggregates": [*uuids]}
    return Call("PUT", f"/resource_providers/{provider}/aggregates", body)


# --- reads -----------------------------------------------------------------------------------------------------------


def test_a_node_returns_every_change_that_another_has_acknowledged(pair):
    provider = pair.provider(VCPU=1)
    with opened(pair.databases[0].url) as database:
        at_slow_node = placement(database)
        pair.occupy()
        assert pair.quick(*arguments_of(stock(provider, 1, VCPU=1, PCPU=1))).status == 200
        candidates = at_slow_node("GET", "/allocation_candidates?resources=PCPU:1", 39, None)
        assert provider in candidates.body["provider_summaries"]
        pair.occupy()
        assert pair.quick(*arguments_of(stock(provider, 2, VCPU=5))).status == 200
        assert at_slow_node(*arguments_of(claim({provider: {"VCPU": 5}}))).status == 204
    pair.settle()


# --- claims ----------------------------------------------------------------------------------------------------------


@retry_if_missed
def test_one_device_is_allocated_once(pair):
    provider = pair.provider(VGPU=1)
    assert pair.meet(claim({provider: {"VGPU": 1}}), claim({provider: {"VGPU": 1}})) == [204, 409]


@retry_if_missed
def test_one_of_two_first_claims_of_a_consumer_wins(pair):
    consumer, here, there = new(), pair.provider(VCPU=1), pair.provider(VCPU=1)
    assert pair.meet(claim([here], consumer=consumer), claim([there], consumer=consumer)) == [204, 409]


@retry_if_missed
@either_first
def test_a_consumer_deleted_at_one_node_gains_nothing_at_the_other(pair, order):
    consumer, provider = new(), pair.provider(VCPU=2)
    assert pair.ask(claim([provider], consumer=consumer)).status == 204
    grow = claim({provider: {"VCPU": 2}}, 1, consumer)
    statuses = pair.meet(*[Call("DELETE", f"/allocations/{consumer}"), grow][::order])[::order]
    assert statuses in ([204, 409], [204, 204])
    assert statuses == [204, 409] or order == -1


@retry_if_missed
@either_first
def test_inventory_is_deleted_only_if_it_is_not_claimed_at_the_other_node(pair, order):
    provider = pair.provider(VCPU=1)
    remove = Call("DELETE", f"/resource_providers/{provider}/inventories")
    assert pair.meet(*[remove, claim([provider])][::order]) == [204, 409]


# --- names -----------------------------------------------------------------------------------------------------------


def sweeper(table):
    """Return a function that sweeps a database and returns the numbers of removed and marked rows of this table."""

    def work(database):
        [sweep] = [sweep for sweep in made.sweep_database(database, grace=0) if sweep.table == table]
        return sweep.removed, sweep.marked

    return work


def claim_for(pair, consumer, **owner):
    """Return a claim of a new provider for this owner."""
    call = claim([pair.provider(VCPU=1)], consumer=consumer)
    return call._replace(body={**call.body, **owner})


class Owner:
    """A project, a user or a type, and the claims that need it."""

    def __init__(self, pair, kind):
        self._pair, self._owner = pair, {kind: name("OWNER")}

    def request_to_use(self):
        """Return a request that uses the name."""
        self._consumer = new()
        return claim_for(self._pair, self._consumer, **self._owner)

    def request_to_free(self):
        """Return a request after which the name is unused."""
        return Call("DELETE", f"/allocations/{self._consumer}")

    def check(self):
        """Check that the last request used this name."""
        consumer = self._pair.ask(Call("GET", f"/allocations/{self._consumer}")).body
        assert self._owner.items() <= consumer.items()


class Aggregate:
    """An aggregate, and the providers in it."""

    def __init__(self, pair, _):
        self._pair, self._aggregate = pair, new()

    def request_to_use(self):
        self._provider = self._pair.provider()
        return guarded_aggregates(self._provider, self._aggregate)

    def request_to_free(self):
        return aggregates(self._provider)

    def check(self):
        body = self._pair.ask(Call("GET", f"/resource_providers/{self._provider}/aggregates")).body
        assert body["aggregates"] == [self._aggregate]


#: By table: the kind of its users, and the field in which a client names it.
NAMES = {
    "projects": (Owner, "project_id"),
    "users": (Owner, "user_id"),
    "consumer_types": (Owner, "consumer_type"),
    "placement_aggregates": (Aggregate, None),
}


@pytest.fixture
def nothing_unused(pair):
    """Remove unused rows of other tests before the test."""
    for _ in range(2):
        made.sweep_database(pair.databases[0], grace=0)
    pair.settle()


@retry_if_missed
@either_first
@pytest.mark.parametrize("table", NAMES)
def test_a_name_that_is_in_use_again_is_not_removed(pair, nothing_unused, table, order):
    """The name was marked long ago; one node removes the name while the other uses it."""
    kind, field = NAMES[table]
    names = kind(pair, field)
    for call in (names.request_to_use(), names.request_to_free()):
        assert pair.ask(call).status in (200, 204)
    assert sweeper(table)(pair.databases[0]) == (0, 1)
    pair.settle()
    removed, used = pair.meet(*[sweeper(table), names.request_to_use()][::order])[::order]
    assert (removed, used // 100) == ((1, 0) if order == 1 else (0, 0), 2)
    names.check()


@retry_if_missed
@either_first
@pytest.mark.parametrize("table", NAMES)
def test_a_name_that_is_marked_while_it_is_used_stays(pair, nothing_unused, table, order):
    """The sweep does not see the use, or the use does not see the mark; the next sweep sees both."""
    kind, field = NAMES[table]
    names = kind(pair, field)
    for call in (names.request_to_use(), names.request_to_free()):
        assert pair.ask(call).status in (200, 204)
    marked, used = pair.meet(*[sweeper(table), names.request_to_use()][::order])[::order]
    assert (marked, used // 100) == ((0, 1), 2)
    assert sweeper(table)(pair.databases[0]) == (0, 0)
    names.check()


@retry_if_missed
def test_two_claims_of_a_new_project_share_its_row(pair):
    owner, consumers = name("OWNER"), [new(), new()]
    claims = [claim_for(pair, consumer, project_id=owner, user_id=owner) for consumer in consumers]
    assert pair.meet(*claims) == [204, 204]
    usages = pair.ask(Call("GET", f"/usages?project_id={owner}&user_id={owner}")).body["usages"]
    assert usages == {"INSTANCE": {"consumer_count": 2, "VCPU": 2}}


@retry_if_missed
def test_two_providers_may_join_a_new_aggregate(pair):
    aggregate, providers = new(), [pair.provider(), pair.provider()]
    assert pair.meet(*(guarded_aggregates(provider, aggregate) for provider in providers)) == [200, 200]
    listed = pair.ask(Call("GET", f"/resource_providers?member_of={aggregate}")).body["resource_providers"]
    assert {provider["uuid"] for provider in listed} == {*providers}


# --- providers -------------------------------------------------------------------------------------------------------

USES = {
    "aggregates": aggregates,
    "guarded aggregates": guarded_aggregates,
    "traits": traits,
    "inventory": lambda provider, *_: stock(provider, 0, VCPU=1),
    "child": lambda provider, *_: create_child(new(), provider),
    "name": lambda provider, *_: Call("PUT", f"/resource_providers/{provider}", {"name": f"new {provider}"}),
}


@retry_if_missed
@either_first
@pytest.mark.parametrize("use", USES)
def test_a_provider_is_deleted_with_everything_that_refers_to_it(pair, use, order):
    """The provider is deleted completely; a provider with a child stays."""
    provider = pair.provider()
    name = TRAIT if use == "traits" else AGGREGATE
    deleted, used = pair.meet(*[delete(provider), USES[use](provider, name)][::order])[::order]
    if order == 1:
        assert (deleted, used // 100) == (204, 4)
    else:
        assert (deleted, used) == (409 if use == "child" else 204, 200)


@retry_if_missed
@either_first
def test_a_provider_that_is_claimed_at_the_other_node_stays(pair, order):
    provider = pair.provider(VCPU=1)
    statuses = pair.meet(*[delete(provider), claim([provider])][::order])
    assert statuses == ([204, 400] if order == 1 else [204, 409])


@retry_if_missed
def test_the_last_request_determines_the_aggregates(pair):
    """Two requests without a generation each replace the state."""
    provider = pair.provider()
    assert pair.meet(aggregates(provider, AGGREGATE), aggregates(provider, OTHER)) == [200, 200]
    assert pair.ask(Call("GET", f"/resource_providers/{provider}/aggregates")).body["aggregates"] == [OTHER]


# --- trees -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def same_second(pair, monkeypatch):
    """Give every row, old and new, the same date, so that a row without other changes is not written."""
    date = datetime.datetime(2026, 1, 1)
    monkeypatch.setattr(resource_providers.c.updated_at.onupdate, "arg", lambda _context: date)
    return lambda: pair.databases[0].write(lambda db: db.execute(sa.update(resource_providers)))


@retry_if_missed
@pytest.mark.parametrize("trees", ["one", "two"])
@pytest.mark.parametrize("below", ["itself", "its child"])
def test_two_moves_create_no_loop(pair, same_second, trees, below):
    root = pair.provider() if trees == "one" else None
    provider, other = pair.provider(root), pair.provider(root)
    below_one, below_other = (pair.provider(parent) if below == "its child" else parent for parent in (provider, other))
    same_second()
    assert pair.meet(move(provider, below_other), move(other, below_one)) == [200, 400]


@retry_if_missed
@either_first
@pytest.mark.parametrize("moving", ["parent", "grandparent"])
def test_a_child_moves_along_with_its_parent(pair, moving, order):
    """A child created there afterwards has the root of its parent, too."""
    root, target = pair.provider(), pair.provider()
    middle = pair.provider(root)
    parent = pair.provider(middle)
    moved = {"parent": parent, "grandparent": middle}[moving]
    assert pair.meet(*[move(moved, target), create_child(new(), parent)][::order]) == [200, 200]


@retry_if_missed
def test_children_of_one_parent_are_created_at_both_nodes(pair):
    parent = pair.provider()
    assert pair.meet(create_child(new(), parent), create_child(new(), parent)) == [200, 200]


@retry_if_missed
@either_first
def test_a_provider_does_not_move_below_a_deleted_one(pair, order):
    provider, target = pair.provider(), pair.provider()
    statuses = pair.meet(*[delete(target), move(provider, target)][::order])
    assert statuses == ([204, 400] if order == 1 else [200, 409])


# --- classes and traits ----------------------------------------------------------------------------------------------


def post_inventory(provider, resource_class):
    return Call("POST", f"/resource_providers/{provider}/inventories", {"resource_class": resource_class, "total": 5})


def reshape(provider, resource_class):
    inventories = {provider: stock(provider, 0, **{resource_class: 5}).body}
    return Call("POST", "/reshaper", {"inventories": inventories, "allocations": {}})


ADDING = {
    "PUT": lambda provider, resource_class: stock(provider, 0, **{resource_class: 5}),
    "POST": post_inventory,
    "reshape": reshape,
}


@retry_if_missed
@either_first
@pytest.mark.parametrize("how", ADDING)
def test_a_class_is_deleted_only_if_no_provider_gets_inventory_of_it(pair, how, order):
    """Without a lock, 15 of 80 inventories remained, and the next class inherited them."""
    resource_class = pair.create_name(Call("PUT", f"/resource_classes/{name('C')}"))
    provider = pair.provider()
    calls = [Call("DELETE", f"/resource_classes/{resource_class}"), ADDING[how](provider, resource_class)]
    deleted, added = pair.meet(*calls[::order])[::order]
    pair.create_name(Call("PUT", f"/resource_classes/{name('C')}"))
    inventories = pair.ask(Call("GET", f"/resource_providers/{provider}/inventories")).body["inventories"]
    if order == 1:
        assert (deleted, added, [*inventories]) == (204, 400, [])
    else:
        assert (deleted, added // 100, [*inventories]) == (409, 2, [resource_class])


@retry_if_missed
@either_first
def test_a_trait_is_deleted_only_if_no_provider_gets_it(pair, order):
    trait = pair.create_name(Call("PUT", f"/traits/{name('T')}"))
    calls = [Call("DELETE", f"/traits/{trait}"), traits(pair.provider(), trait)]
    assert pair.meet(*calls[::order]) == ([204, 400] if order == 1 else [200, 409])


@retry_if_missed
def test_a_class_is_created_once(pair):
    resource_class = Call("PUT", f"/resource_classes/{name('C')}")
    assert pair.meet(resource_class, resource_class) == [201, 204]


@retry_if_missed
def test_classes_created_at_both_nodes_are_distinct(pair):
    calls = [Call("PUT", f"/resource_classes/{name('C')}") for _ in range(2)]
    assert pair.meet(*calls) == [201, 201]
    assert [pair.ask(Call("GET", call.path)).status for call in calls] == [200, 200]
