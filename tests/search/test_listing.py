"""A list contains the providers that each match every filter."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from placement.index.edit import with_providers
from placement.search.find import find_providers
from placement.search.query.query import Group, NameCondition, ProviderFilter
from tests.search import oracle
from tests.strategies import CLASS_BITS, CLASSES, NAMES, RULES, examples, groups, names_at_bits, worlds
from tests.world import Member, World


def matches(world: World, member: Member, conditions: ProviderFilter) -> bool:
    group = conditions.group
    tree = [None] + [name for name in world.members if world.root(name) == world.root(member.name)]
    return (
        group.in_tree in tree
        and conditions.name in (None, member.name)
        and conditions.uuid in (None, member.name)
        and not group.traits.none_of & member.traits
        and oracle.serves_suffixed(group, member)
    )


@st.composite
def filters(draw: st.DrawFn, world: World) -> ProviderFilter:
    resources = {
        class_: draw(st.integers(1, 2)) for class_ in names_at_bits(CLASSES, draw(st.sampled_from(CLASS_BITS)))
    }
    group = draw(groups(world, "", resources, draw(st.sampled_from((*RULES, "none")))))
    choice = draw(st.integers(0, 15))
    return ProviderFilter(
        name=draw(st.sampled_from(NAMES)) if choice == 1 else None,
        uuid=draw(st.sampled_from(NAMES)) if choice in (2, 3) else None,
        group=group,
    )


@examples(300)
@given(data=st.data(), world=worlds())
def test_a_list_contains_the_providers_that_match_every_filter(data: st.DataObject, world: World) -> None:
    snapshot = world.snapshot()
    for _ in range(5):
        conditions = data.draw(filters(world))
        providers = [snapshot.provider(slot) for slot in find_providers(conditions, snapshot)]
        assert [provider.uuid for provider in providers] == [
            name for name, member in world.members.items() if matches(world, member, conditions)
        ]
        ids = [provider.id for provider in providers]
        assert ids == sorted(ids)


def test_a_filter_may_have_many_conditions() -> None:
    world = World()
    world.host("one", aggregates=["A"])
    world.host("many", aggregates=[f"A{number}" for number in range(2000)])
    group = Group(aggregates=NameCondition(tuple(frozenset({f"A{number}"}) for number in range(2000))))
    snapshot = world.snapshot()
    assert find_providers(ProviderFilter(group=group), snapshot) == [snapshot.by_uuid["many"]]


def test_providers_are_listed_in_the_order_of_creation() -> None:
    """The order holds although a new provider takes the slot of a deleted one."""
    world = World()
    for name in ("gone", "old"):
        world.host(name)
    snapshot = world.snapshot()
    for names in (["gone"], ["new"]):
        if names == ["gone"]:
            del world.members["gone"]
        else:
            world.host("new")
        snapshot = with_providers(snapshot, [world.ids[name] for name in names], world.rows(names))
    assert snapshot.by_uuid["new"] < snapshot.by_uuid["old"]
    assert [snapshot.provider(slot).uuid for slot in find_providers(ProviderFilter(), snapshot)] == ["old", "new"]
