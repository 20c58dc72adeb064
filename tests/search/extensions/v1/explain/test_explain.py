"""Relaxations and near misses of explanations, by examples."""

from __future__ import annotations

from dataclasses import replace

from placement.extensions.v1.explain.explain import explain
from placement.search.query.query import Group, NameCondition, SearchQuery
from tests.world import Stock, World

# --- relaxations ---


def texts(world: World, query: SearchQuery) -> list[str]:
    return [relaxation.text for relaxation in explain(query, world.snapshot()).relaxations]


def test_three_other_aggregates_are_offered_by_number_of_candidates() -> None:
    world = World()
    for number, aggregates in enumerate((("B",), ("E", "C"), ("D", "E"), ("E", "D", "C"))):
        world.host(f"host{number}", aggregates=aggregates, VCPU=1)
    in_a = NameCondition((frozenset({"A"}),))
    assert texts(world, SearchQuery((Group("", {"VCPU": 1}, aggregates=in_a),))) == [
        *(f"with member_of={name}" for name in "ECD"),
        "without member_of=A",
    ]


def test_aggregates_of_the_root_are_offered_to_the_unsuffixed_group() -> None:
    world = World()
    world.host("host", aggregates=["B"])
    world.host("child", parent="host", VCPU=1)
    in_a = NameCondition((frozenset({"A"}),))
    assert texts(world, SearchQuery((Group("", {"VCPU": 1}, aggregates=in_a),))) == [
        "with member_of=B",
        "without member_of=A",
    ]
    assert texts(world, SearchQuery((Group("1", {"VCPU": 1}, aggregates=in_a),))) == ["without member_of1=A"]


def test_the_twenty_smallest_changes_are_offered() -> None:
    world = World()
    world.host("host", A=sum(range(2, 24)) - 1)
    query = SearchQuery(tuple(Group(f"_{number}", {"A": number}) for number in range(2, 24)))
    assert texts(world, query) == [f"with resources_{number}=A:{number - 1}" for number in range(23, 3, -1)]


def test_requested_aggregates_are_not_offered() -> None:
    """Part of each candidate is in them."""
    world = World()
    world.host("host", aggregates=["P"], VCPU=1)
    world.sharing("pool", aggregates=["P", "A", "B", "C"], DISK_GB=1)
    in_any = NameCondition((frozenset("ABC"),))
    assert texts(world, SearchQuery((Group("", {"VCPU": 1, "DISK_GB": 1}, aggregates=in_any),))) == [
        "with member_of=P",
        "without member_of=in:A,B,C",
        "without resources=VCPU:1",
    ]


# --- near misses ---


def near_misses(world: World, query: SearchQuery) -> dict[str, list[str]]:
    """Return the texts of the missing conditions, by the root of the tree."""
    explanation = explain(query, world.snapshot())
    return {
        explanation.snapshot.provider(near.root).uuid: [lack.text for lack in near.missing]
        for near in explanation.near_misses
    }


def test_trees_are_ordered_by_the_smallest_sufficient_change() -> None:
    world = World()
    world.host("both", VCPU=2, aggregates=["B"])
    world.host("amount", VCPU=3, aggregates=["A"])
    world.host("more", VCPU=4, aggregates=["A"])
    world.host("aggregate", VCPU=8, aggregates=["B"])
    in_a = NameCondition((frozenset({"A"}),))
    assert near_misses(world, SearchQuery((Group("1", {"VCPU": 5}, aggregates=in_a),))) == {
        "more": ["more has room for 4 of 5 VCPU"],
        "amount": ["amount has room for 3 of 5 VCPU"],
        "aggregate": ["aggregate is not in A"],
    }


def test_equally_near_trees_are_in_the_order_of_their_creation() -> None:
    world = World()
    for name in ("third", "first", "second"):
        world.host(name, VCPU=4)
    world.ids.update({"third": 30, "first": 10, "second": 20})
    query = SearchQuery((Group("_1", {"VCPU": 1}), Group("_2", {"VCPU": 1})), isolate=True)
    assert [*near_misses(world, query)] == ["first", "second", "third"]


def test_a_provider_with_a_larger_min_unit_is_named_with_its_units() -> None:
    world = World()
    world.host("host", DISK_GB=4)
    world.host("child", parent="host", VCPU=Stock(4, min_unit=2))
    assert near_misses(world, SearchQuery((Group("", {"VCPU": 1}),))) == {
        "host": ["child allocates VCPU in units that allow 2, not 1"]
    }


def test_amounts_that_add_up_are_lowered_to_fit_beside_the_others() -> None:
    world = World()
    world.host("host", VCPU=2, traits=["FAST"])
    world.host("child", parent="host", VCPU=4, traits=["FAST"])
    fast = NameCondition((frozenset({"FAST"}),))
    query = SearchQuery((Group("", {"VCPU": 4}), Group("1", {"VCPU": 6}, fast)))
    assert near_misses(world, query) == {"host": ["host has room for 2 of 6 VCPU"]}
    query = SearchQuery((Group("_1", {"VCPU": 4}), Group("_2", {"VCPU": 3})))
    assert near_misses(world, query) == {"host": ["host has room for 2 of 3 VCPU"]}


def test_an_amount_that_would_fit_alone_is_lowered_to_fit_beside_the_others() -> None:
    """If same_subtree names one of two equal groups, both are relaxed."""
    world = World()
    world.host("host", A=4, B=1)
    groups = (Group("_1", {"A": 3}), Group("_2", {"A": 3}), Group("_3", {"B": 1}))
    query = SearchQuery(groups, same_subtrees=(frozenset({"_2", "_3"}),))
    assert texts(world, query) == ["with resources_1=A:1", "with resources_2=A:1"]
    assert near_misses(world, query) == {"host": ["host has room for 1 of 3 A alongside the rest of the request"]}
    (near,) = explain(query, world.snapshot()).near_misses
    assert near.missing[0].available == 1


def test_a_provider_used_by_another_group_serves_its_remaining_capacity() -> None:
    world = World()
    world.host("h1")
    world.host("a1", parent="h1", A=6, B=1, traits=["T"])
    world.host("a2", parent="h1", A=3)
    query = SearchQuery((Group("", {"B": 1, "A": 5}), Group("_1", {"A": 6}, NameCondition((frozenset({"T"}),)))))
    assert near_misses(world, query) == {"h1": ["a2 has room for 3 of 5 A"]}


def test_a_condition_that_the_root_does_not_meet_is_missing() -> None:
    world = World()
    world.host("host", VCPU=4, traits=["OLD"])
    root = NameCondition((frozenset({"FAST"}),), frozenset({"OLD", "BROKEN"}))
    explanation = explain(SearchQuery((Group("", {"VCPU": 1}),), root_traits=root), world.snapshot())
    (near,) = explanation.near_misses
    assert [lack.text for lack in near.missing] == ["the root host has OLD", "the root host does not have FAST"]
    assert near.query.root_traits == NameCondition((), frozenset({"BROKEN"}))
    (relaxation,) = explanation.relaxations
    assert (relaxation.kind, relaxation.text) == (
        "several",
        "without root_required=!OLD and root_required=FAST",
    )


def test_each_kind_of_missing_condition_has_a_text() -> None:
    """No provider is named for a condition on several providers, or if none is usable."""
    world = World()
    world.host("host", traits=["OLD"], aggregates=["A", "B"])
    world.host("gpu", parent="host", traits=["BAD"], aggregates=["C"], PGPU=1)
    world.host("nic", parent="host", aggregates=["C"], NET=1)
    world.host("fpga", parent="host", traits=["BAD"], FPGA=1)
    world.host("other")

    def missing_texts(*groups: Group, **more: object) -> list[tuple[str, int | None]]:
        (near,) = explain(SearchQuery(groups, **more), world.snapshot()).near_misses  # type: ignore[arg-type]
        return [(lack.text, lack.provider) for lack in near.missing]

    def name(text: str, *, forbidden: bool = False) -> NameCondition:
        return NameCondition((), frozenset({text})) if forbidden else NameCondition((frozenset({text}),))

    gpu, nic = Group("_g", {"PGPU": 1}), Group("_n", {"NET": 1})
    assert missing_texts(replace(gpu, traits=name("BAD", forbidden=True))) == [("gpu has BAD", 1)]
    assert missing_texts(replace(gpu, traits=name("GOOD"))) == [("gpu does not have GOOD", 1)]
    two_classes = Group("", {"PGPU": 1, "NET": 1}, name("GOOD"))
    assert missing_texts(two_classes) == [("neither gpu nor nic has GOOD", None)]
    three_classes = Group("", {"PGPU": 1, "NET": 1, "FPGA": 1}, name("GOOD"))
    assert missing_texts(three_classes) == [("none of gpu, nic and fpga has GOOD", None)]
    assert missing_texts(replace(three_classes, traits=name("BAD", forbidden=True))) == [
        ("gpu and fpga have BAD", None)
    ]
    assert missing_texts(replace(two_classes, traits=NameCondition(), in_tree="other")) == [
        ("gpu and nic are in another tree", None)
    ]
    assert missing_texts(replace(two_classes, traits=NameCondition(), aggregates=name("A", forbidden=True))) == [
        ("host is in A", 0)
    ]
    assert missing_texts(replace(two_classes, traits=NameCondition(), aggregates=name("C", forbidden=True))) == [
        ("gpu and nic are in C", None)
    ]
    assert missing_texts(replace(gpu, aggregates=name("A"))) == [("gpu is not in A", 1)]
    assert missing_texts(gpu, nic, same_subtrees=(frozenset({"_g", "_n"}),)) == [
        ("no provider that serves one of these groups is at or above the providers that serve the others", None)
    ]
    assert missing_texts(gpu, Group("_h", {"PGPU": 1}), isolate=True)[0] == (
        "no provider that host can use meets resources_g=PGPU:1 together with the rest of the request",
        None,
    )
    subtree = (frozenset({"_R", "_n"}),)
    assert missing_texts(Group("_R", traits=name("GOOD")), nic, same_subtrees=subtree) == [
        ("no provider that host can use has GOOD", None)
    ]
    assert missing_texts(gpu, Group("_v", {"VGPU": 1})) == [("no provider that host can use has VGPU", None)]
