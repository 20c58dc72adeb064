"""Trees of the overview: the pieces of the document, and the pages, order and filters of trees."""

from __future__ import annotations

import json

import pytest

from placement.extensions.v1.overview.trees import TreeFilter, TreeOrder, depth_first, find_trees
from placement.extensions.v1.schemas import overview, provider
from tests.world import Stock, World


@pytest.fixture(scope="module")
def snapshot():
    """Return a snapshot of 2750 providers."""
    return forest(2500)


def forest(hosts):
    """Return a snapshot of hosts; every tenth one has a device."""
    world = World()
    for number in range(hosts):
        world.host(f"host{number}", VCPU=Stock(number % 7 + 1, used=number % 3))
        if number % 10 == 0:
            world.host(f"device{number}", parent=f"host{number}", PGPU=1)
    return world.snapshot()


def slots_of(snapshot, page):
    return [slot for root in page.roots for slot in depth_first(snapshot, root)]


def test_the_pieces_form_one_document(snapshot):
    slots = slots_of(snapshot, find_trees(snapshot, TreeFilter()))
    pieces = [*overview.pieces(snapshot, slots, {1: 5}, "http://next", {})]
    assert len(pieces) == 2 + 3
    document = json.loads(b"".join(pieces))
    assert document == {"providers": provider.documents(snapshot, slots, {1: 5}), "next": "http://next"}
    assert document["providers"][0]["consumers"] == 5


def test_pieces_are_generated_lazily(snapshot):
    """So a response needs the memory of one piece, whatever the number of providers."""
    slots = slots_of(snapshot, find_trees(snapshot, TreeFilter()))
    remaining = iter(slots)
    pieces = overview.pieces(snapshot, remaining, {}, None, {})
    assert [next(pieces)[:1], next(pieces)[:1]] == [b"{", b"{"]
    assert [*remaining] == slots[1000:]


def test_a_document_without_providers_has_an_empty_list(snapshot):
    assert json.loads(b"".join(overview.pieces(snapshot, [], {}, None, {}))) == {"providers": [], "next": None}


@pytest.mark.parametrize("order", [None, TreeOrder("free", "VCPU"), TreeOrder("used", "VCPU", least_first=True)])
@pytest.mark.parametrize("limit", [1, 2, 7, 10**9])
def test_consecutive_pages_contain_whole_trees(order, limit):
    snapshot = forest(50)
    all_trees = find_trees(snapshot, TreeFilter(), order)
    assert all_trees.last is None
    roots, after = [], None
    while True:
        page = find_trees(snapshot, TreeFilter(), order, limit, after)
        assert len(slots_of(snapshot, page)) <= limit or len(page.roots) == 1
        roots += page.roots
        after = page.last
        if after is None:
            break
    assert roots == all_trees.roots


def test_a_page_begins_after_its_mark_even_if_the_tree_of_the_mark_was_deleted(snapshot):
    page = find_trees(snapshot, TreeFilter(), limit=10)
    deleted = page.last._replace(id=page.last.id + 1)
    first = find_trees(snapshot, TreeFilter(), limit=1, after=deleted).roots[0]
    assert snapshot.provider(first).id == deleted.id + 1


def names(snapshot, page):
    return [snapshot.provider(slot).name for slot in slots_of(snapshot, page)]


def test_siblings_are_sorted_by_id():
    world = World()
    for name, parent in (("root", None), ("b", "root"), ("a", "root"), ("below b", "b"), ("below a", "a")):
        world.host(name, parent=parent, VCPU=1)
    snapshot = world.snapshot()
    assert names(snapshot, find_trees(snapshot, TreeFilter())) == ["root", "b", "below b", "a", "below a"]


def test_a_full_provider_is_not_over_committed():
    world = World()
    world.host("full", VCPU=Stock(4, used=4), PGPU=1)
    world.host("over", VCPU=Stock(4, reserved=1, used=4), PGPU=1)
    world.host("fraction", VCPU=Stock(3, allocation_ratio=1.5, used=4), PGPU=1)
    snapshot = world.snapshot()
    assert names(snapshot, find_trees(snapshot, TreeFilter(over_committed=True))) == ["over"]
    assert names(snapshot, find_trees(snapshot, TreeFilter(over_committed=True, resource_class="PGPU"))) == []


def test_an_over_committed_provider_does_not_reduce_the_free_sum_of_its_tree():
    world = World()
    world.host("two free", VCPU=Stock(8, used=6))
    world.host("three free", VCPU=Stock(3))
    world.host("over", parent="three free", VCPU=Stock(2, reserved=1, used=2))
    snapshot = world.snapshot()
    page = find_trees(snapshot, TreeFilter(), TreeOrder("free", "VCPU"))
    assert names(snapshot, page) == ["three free", "over", "two free"]
