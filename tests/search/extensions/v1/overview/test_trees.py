"""The overview of a random forest contains the trees that its definition selects, in the defined order."""

from __future__ import annotations

import math

from hypothesis import event, given
from hypothesis import strategies as st

from placement.extensions.v1.overview.trees import Amount, TreeFilter, TreeOrder, depth_first, find_trees
from tests.strategies import AGGREGATES, CLASSES, TRAITS, examples, worlds
from tests.world import Member, Stock, World


def capacity(stock: Stock) -> int:
    return math.trunc((stock.total - stock.reserved) * stock.allocation_ratio)


AMOUNTS = {
    Amount.CAPACITY: lambda stock: max(capacity(stock), 0),
    Amount.USED: lambda stock: stock.used,
    Amount.FREE: lambda stock: max(capacity(stock) - stock.used, 0),
}


def is_over(stock: Stock) -> bool:
    return stock.used > (stock.total - stock.reserved) * stock.allocation_ratio


def meets(member: Member, conditions: TreeFilter) -> bool:
    """Whether one provider meets all conditions of the filter except the tree."""
    stocks = [stock for name, stock in member.stock.items() if conditions.resource_class in (None, name)]
    return (
        (conditions.resource_class is None or bool(stocks))
        and (conditions.trait is None or conditions.trait in member.traits)
        and (conditions.aggregate is None or conditions.aggregate in member.aggregates)
        and (not conditions.over_committed or any(map(is_over, stocks)))
    )


def sums(world: World, order: TreeOrder) -> dict[str, int]:
    """Return the sum of each tree with the class, by the name of its root."""
    totals: dict[str, int] = {}
    for member in world.members.values():
        if order.resource_class in member.stock:
            root = world.root(member.name)
            totals[root] = totals.get(root, 0) + AMOUNTS[order.amount](member.stock[order.resource_class])
    return totals


def expected_trees(world: World, conditions: TreeFilter, root: str | None, order: TreeOrder | None) -> list[str]:
    roots = {world.root(member.name) for member in world.members.values() if meets(member, conditions)}
    roots &= {root} if root else roots
    if order is None:
        return sorted(roots, key=lambda name: world.ids[name])
    amounts, sign = sums(world, order), 1 if order.least_first else -1
    return sorted(roots & amounts.keys(), key=lambda name: (sign * amounts[name], world.ids[name]))


def value_or_none(*values: object) -> st.SearchStrategy:
    """Draw None, mostly, or one of the values, so that several conditions together leave some trees."""
    return st.sampled_from((*[None] * 3 * max(len(values), 1), *values))


@given(st.data())
@examples(400)
def test_the_overview_contains_the_selected_trees_in_order(data):
    world = data.draw(worlds())
    snapshot = world.snapshot()
    root = data.draw(value_or_none(*sorted({world.root(name) for name in world.members})))
    conditions = TreeFilter(
        root=None if root is None else snapshot.by_uuid[root],
        resource_class=data.draw(value_or_none(*sorted(world.classes))) if world.classes else None,
        aggregate=data.draw(value_or_none(*AGGREGATES)),
        trait=data.draw(value_or_none(*TRAITS)),
        over_committed=data.draw(st.sampled_from((False, False, True))),
    )
    order = data.draw(
        st.none() | st.builds(TreeOrder, st.sampled_from(Amount), st.sampled_from(CLASSES), st.booleans())
    )
    limit = data.draw(st.none() | st.integers(1, 4))
    roots, last, slots = [], None, []
    while True:
        page = find_trees(snapshot, conditions, order, limit, last)
        members = [slot for slot in page.roots for slot in depth_first(snapshot, slot)]
        assert limit is None or len(members) <= limit or len(page.roots) == 1
        assert len(roots) <= len(world.members), "a tree is on two pages"
        roots += [snapshot.provider(slot).uuid for slot in page.roots]
        slots += members
        last = page.last
        if last is None:
            break
    assert roots == expected_trees(world, conditions, root, order)
    assert len(slots) == len(set(slots)) == sum(world.root(name) in roots for name in world.members)
    event(f"{len(roots)} trees")


def test_an_over_committed_provider_does_not_reduce_the_free_capacity_of_its_tree():
    world = World()
    world.host("large")
    world.host("full", parent="large", VCPU=Stock(4, used=10))
    world.host("free", parent="large", VCPU=8)
    world.host("small", VCPU=6)
    snapshot = world.snapshot()
    page = find_trees(snapshot, TreeFilter(), TreeOrder(Amount.FREE, "VCPU"))
    assert [snapshot.provider(slot).uuid for slot in page.roots] == ["large", "small"]
