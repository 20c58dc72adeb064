"""Regression tests of explanations: collective conditions, removed groups, and sharing."""

from __future__ import annotations

import pytest

from placement import microversion
from placement.extensions.v1.explain.explain import explain
from placement.extensions.v1.explain.explanation import Explanation
from placement.extensions.v1.query_text import query_string
from placement.schemas.document import Parameters
from placement.search.find import Settings
from placement.search.query import parse
from placement.search.query.query import Group, NameCondition, SearchQuery
from tests.search.oracle import SHARES
from tests.world import Stock, World


def traits(*names: str) -> NameCondition:
    return NameCondition(tuple(frozenset({name}) for name in names))


def explained(world: World, *groups: Group, **more: object) -> Explanation:
    return explain(SearchQuery(groups, **more), world.snapshot())  # type: ignore[arg-type]


def texts(explanation: Explanation) -> list[str]:
    return [relaxation.text for relaxation in explanation.relaxations]


def roots(explanation: Explanation) -> list[str]:
    return [explanation.snapshot.provider(near.root).uuid for near in explanation.near_misses]


def test_a_group_is_removed_with_its_last_class_and_its_conditions() -> None:
    world = World()
    world.host("h1", A=2, traits=["T0"])
    explanation = explained(world, Group("", {"A": 1}), Group("_G", {"C": 1}, traits("T0")))
    assert texts(explanation) == ["without resources_G=C:1&required_G=T0"]
    assert roots(explanation) == ["h1"]


def test_an_amount_is_lowered_though_the_query_without_it_fits_nowhere() -> None:
    """The provider of one class has a trait that the providers must have together."""
    world = World()
    world.host("p0", A=2, traits=["T2"], aggregates=["a"])
    world.sharing("s", A=3, C=14, traits=["T0"], aggregates=["a"])
    explanation = explained(world, Group("", {"A": 7, "C": 5}, traits("T0", "T2")))
    (relaxation,) = explanation.relaxations
    assert (relaxation.kind, relaxation.text) == ("amount", "with resources=A:2")


def test_an_amount_is_lowered_if_its_provider_is_an_ancestor_for_two_other_groups() -> None:
    world = World()
    world.host("n", A=2, traits=["T0"])
    world.host("x", parent="n", B=1)
    world.host("y", parent="n", C=1)
    groups = Group("_1", {"A": 4}), Group("_2", {"B": 1}), Group("_3", {"C": 1})
    explanation = explained(world, *groups, same_subtrees=(frozenset({"_1", "_2", "_3"}),))
    assert texts(explanation) == ["with resources_1=A:2"]


def test_the_amount_of_an_ancestor_is_lowered_together_with_another_one() -> None:
    world = World()
    world.host("p0", A=2, Z=1, traits=["T2"], aggregates=["a"])
    world.sharing("s", A=3, C=14, traits=["T0"], aggregates=["a"])
    explanation = explained(world, Group("", {"A": 7, "C": 5}, traits("T0", "T2")), Group("_1", {"Z": 2}))
    assert texts(explanation) == ["with resources=A:2 and resources_1=Z:1"]


def test_either_of_two_aggregates_is_removed_if_root_and_child_are_in_one_each() -> None:
    world = World()
    world.host("h1", aggregates=["b"])
    world.host("c1", parent="h1", A=5, aggregates=["a"])
    condition = NameCondition((frozenset("a"), frozenset("b")))
    explanation = explained(world, Group("", {"A": 5}, aggregates=condition))
    assert texts(explanation) == ["without member_of=a", "without member_of=b"]
    assert len({query_string(relaxation.query) for relaxation in explanation.relaxations}) == 2
    assert [lack.text for lack in explanation.near_misses[0].missing] == [
        "neither c1 nor the root is in all of the aggregates by itself"
    ]


def test_conditions_that_the_query_of_a_near_miss_drops_are_missing() -> None:
    world = World()
    world.host("h1", C=1)
    group = Group("_0", {"C": 2}, NameCondition((), frozenset({"T1"})))
    (near,) = explained(world, Group("", {"C": 1}), group).near_misses
    assert [lack.parameter for lack in near.missing] == ["resources_0=C:2&required_0=!T1"]
    assert query_string(near.query) == "resources=C:1"
    world = World()
    world.host("h1", B=1, C=3)
    (near,) = explained(world, Group("", {"C": 9, "B": 2}), Group("_0", {"B": 5})).near_misses
    assert [(lack.parameter, lack.available) for lack in near.missing] == [
        ("resources=C:9", 3),
        ("resources=B:2", 1),
        ("resources_0=B:5", 0),
    ]
    assert query_string(near.query) == "resources=C:3,B:1"


def test_a_tree_that_shares_its_candidates_is_counted_under_its_own_obstacle() -> None:
    world = World()
    world.host("h1", A=4, aggregates=["a"])
    for number in (2, 3, 4):
        world.host(f"h{number}", B=2, aggregates=["a"])
    world.sharing("pool", A=8, aggregates=["a"])
    explanation = explained(world, Group("_0", {"A": 6}), Group("_1", {"A": 6}), isolate=True)
    assert explanation.obstacle == ("group_policy", None)
    assert [(combination.rule, combination.trees) for combination in explanation.combinations] == [("group_policy", 5)]
    assert roots(explanation) == ["h1", "h2", "h3"]


def test_an_empty_cloud_has_no_provider() -> None:
    explanation = explained(World(), Group("", {"A": 1}))
    assert (explanation.obstacle, explanation.summary) == (("no providers", None), "There are no providers.")
    assert explanation.complete


def test_a_relaxed_query_names_nothing_unknown() -> None:
    """Placement refuses a query that forbids an unknown trait."""
    world = World()
    world.host("h1", A=2)
    group = Group("", {"A": 3}, NameCondition((frozenset({"UNKNOWN", "OLD"}),), frozenset({"NEVER"})))
    world.host("h2", A=2, traits=["OLD"])
    query = SearchQuery((group,), root_traits=NameCondition((), frozenset({"NEVER"})))
    explanation = explain(query, world.snapshot(), unknown_traits={"UNKNOWN", "NEVER"})
    assert [query_string(relaxation.query) for relaxation in explanation.relaxations] == ["resources=A:2&required=OLD"]
    assert {query_string(near.query) for near in explanation.near_misses} == {"resources=A:2&required=OLD"}
    assert [mistake.text for mistake in explanation.mistakes][:2] == [
        "There is no trait NEVER.",
        "There is no trait UNKNOWN.",
    ]
    never = NameCondition((), frozenset({"NEVER"}))
    inside = NameCondition((frozenset("b"),))
    world = World()
    world.host("h1", A=1)
    world.host("c1", parent="h1", A=1, aggregates=["a"])
    for group, expected in (
        (Group("", {"A": 2}, never), ["resources_1=A:1&resources_2=A:1&group_policy=none", "resources=A:1"]),
        (Group("", {"A": 1}, never, inside), ["resources=A:1&member_of=a", "resources=A:1"]),
    ):
        explanation = explain(SearchQuery((group,)), world.snapshot(), unknown_traits={"NEVER"})
        assert [query_string(relaxation.query) for relaxation in explanation.relaxations] == expected
    groups = Group("_1", {"A": 2}), Group("_R", {}, never)
    query = SearchQuery(groups, same_subtrees=(frozenset({"_1", "_R"}),))
    explanation = explain(query, world.snapshot(), unknown_traits={"NEVER"})
    assert query_string(explanation.relaxations[-1].query) == "resources_1=A:1"


def test_a_forbidden_or_alternative_name_is_not_a_mistake() -> None:
    world = World()
    world.host("h1", A=2, traits=["T1"], aggregates=["a"])
    either = NameCondition((frozenset({"T1", "T3"}),), frozenset({"T2"}))
    inside = NameCondition((frozenset({"a", "c"}),), frozenset({"b"}))
    assert explained(world, Group("", {"A": 3}, either, inside)).mistakes[0].kind == "amount"


def test_steps_count_only_sharing_providers_that_reach_a_remaining_tree() -> None:
    world = World()
    world.host("h1", A=1, aggregates=["a"])
    world.sharing("near", B=1, aggregates=["a"])
    world.sharing("far", B=1, aggregates=["b"])
    explanation = explained(world, Group("_1", {"A": 1}), Group("_2", {"B": 2}))
    (step,) = [step for step in explanation.steps if step.group == "_2" and step.amounts]
    assert (tuple(step.before), step.amounts.blocked_by) == ((2, 2), {"absent": 1, "total": 1, "max_unit": 1})


def test_a_group_policy_is_removed_with_the_last_but_one_group() -> None:
    world = World()
    world.host("h1", A=1)
    explanation = explained(world, Group("_1", {"A": 2}), Group("_2", {"C": 1}), isolate=True)
    (relaxation,) = explanation.relaxations
    assert (relaxation.kind, query_string(relaxation.query)) == ("several", "resources_1=A:1")


def test_candidates_are_counted_up_to_the_requested_limit() -> None:
    world = World()
    for number in range(3):
        world.host(f"h{number}", A=1)
    (relaxation,) = explained(world, Group("", {"A": 2}), limit=1).relaxations
    assert (relaxation.found, relaxation.limited) == (1, True)
    explanation = explain(SearchQuery((Group("", {"A": 1}),)), world.snapshot(), Settings(max_candidates=2))
    assert (explanation.found, explanation.limited) == (2, True)


@pytest.mark.parametrize("suffix", ["_gpu", ""])
def test_an_amount_above_each_provider_is_spread_over_groups(suffix: str) -> None:
    world = World()
    world.host("h1")
    for number in range(4):
        world.host(f"gpu{number}", parent="h1", PGPU=1)
    explanation = explained(world, Group(suffix, {"PGPU": 4}))
    first, second = explanation.relaxations
    assert (first.kind, first.text, first.found) == (
        "spread",
        f"with resources{suffix}=PGPU:4 as 4 groups of PGPU:1",
        24,
    )
    names = [f"{suffix}_{number}" for number in range(1, 5)]
    assert query_string(first.query) == "&".join(f"resources{name}=PGPU:1" for name in names) + "&group_policy=none"
    assert (second.kind, second.text) == ("amount", f"with resources{suffix}=PGPU:1")
    assert [lack.text for lack in explanation.near_misses[0].missing] == [
        "no provider that h1 can use has room for 4 PGPU: the most is 1"
    ]


@pytest.mark.parametrize(
    ("amount", "suffix", "offered"),
    [(16, "_1", True), (17, "_1", False), (2, f"_{'x' * 61}", True), (2, f"_{'x' * 62}", False)],
)
def test_an_amount_is_spread_over_sixteen_groups_with_suffixes_of_64_characters(
    amount: int, suffix: str, offered: bool
) -> None:
    world = World()
    world.host("h1")
    for number in range(amount):
        world.host(f"gpu{number}", parent="h1", PGPU=1)
    kinds = [relaxation.kind for relaxation in explained(world, Group(suffix, {"PGPU": amount})).relaxations]
    assert kinds == [*["spread"] * offered, "amount"]


def test_each_tree_has_its_own_number_of_groups() -> None:
    world = World()
    for host, devices in (("h1", 2), ("h2", 4)):
        world.host(host)
        for number in range(devices):
            world.host(f"{host}-{number}", parent=host, A=4 // devices)
    world.host("h3", A=2)
    explanation = explained(world, Group("", {"A": 4}))
    assert [len(near.query.groups) for near in explanation.near_misses] == [2, 4, 1]
    assert roots(explanation) == ["h1", "h2", "h3"]


def test_an_amount_that_fits_alone_is_spread_beside_the_others() -> None:
    world = World()
    world.host("h1")
    world.host("c1", parent="h1", A=5)
    world.host("c2", parent="h1", A=3)
    explanation = explained(world, Group("_1", {"A": 4}), Group("_2", {"A": 4}))
    assert texts(explanation)[0] == "with resources_1=A:4 as 4 groups of A:1"
    assert [(lack.available, lack.text) for lack in explanation.near_misses[0].missing] == [
        (1, "no provider that h1 can use has room for 4 A alongside the rest of the request")
    ]


def test_a_group_without_resources_is_relaxed_too() -> None:
    world = World()
    world.host("h1", traits=["T1"])
    world.host("c1", parent="h1", A=1)
    subtree = (frozenset({"_R", "_1"}),)
    explanation = explained(world, Group("_R", {}, traits("T0")), Group("_1", {"A": 1}), same_subtrees=subtree)
    assert texts(explanation) == ["without required_R=T0"]
    assert query_string(explanation.relaxations[0].query) == "resources_1=A:1"
    inside = Group("_R", aggregates=NameCondition((frozenset("a"),)))
    explanation = explained(world, inside, Group("_1", {"A": 1}), same_subtrees=subtree)
    assert texts(explanation) == ["without member_of_R=a"]
    world = World()
    world.host("h1", A=1, traits=["T0"])
    groups = Group("_R", {}, traits("T0")), Group("_1", {"A": 1})
    assert "without required_R=T0" in texts(explained(world, *groups, same_subtrees=subtree, isolate=True))
    groups = Group("_R", {}, NameCondition((), frozenset({"T1"}))), groups[1]
    (near,) = explained(world, *groups, same_subtrees=subtree, isolate=True).near_misses
    assert [lack.text for lack in near.missing] == [
        "no provider that h1 can use meets required_R=!T1 together with the rest of the request"
    ]


def test_the_parts_of_an_amount_are_in_the_subtree_of_its_group() -> None:
    world = World()
    for number in range(2):
        world.host(f"h{number}", A=1)
        for device in range(2):
            world.host(f"gpu{number}{device}", parent=f"h{number}", PGPU=1)
    groups = Group("_1", {"A": 1}), Group("_2", {"PGPU": 2})
    relaxation, _ = explained(world, *groups, same_subtrees=(frozenset({"_1", "_2"}),)).relaxations
    assert relaxation.found == 4
    assert query_string(relaxation.query).endswith("&same_subtree=_1,_2_1,_2_2")


def test_changes_that_differ_after_raising_amounts_are_all_offered() -> None:
    world = World()
    world.host("h1", A=8)
    inside = NameCondition((frozenset("a"),))
    explanation = explained(world, Group("_1", {"A": 1}, aggregates=inside), Group("_2", {"A": 10}), isolate=True)
    assert texts(explanation)[:2] == [
        "without member_of_1=a and resources_2=A:10",
        "with resources_2=A:8, without resources_1=A:1&member_of_1=a",
    ]


def test_amounts_are_raised_in_the_order_of_the_request_with_the_units_of_any_tree() -> None:
    world = World()
    world.host("h1", A=6)
    explanation = explained(world, Group("_1", {"A": 8}), Group("_2", {"A": 9}))
    assert texts(explanation) == ["with resources_1=A:5 and resources_2=A:1"]
    world = World()
    world.host("h1", A=3, B=1)
    world.host("h2", A=Stock(10, min_unit=5), B=1)
    explanation = explained(world, Group("_1", {"A": 20}), Group("_2", {"B": 9}))
    assert texts(explanation) == ["with resources_1=A:10 and resources_2=B:1"]


def test_amounts_are_lowered_in_the_units_of_every_inventory() -> None:
    world = World()
    world.host("cn1", DISK_GB=Stock(1_000, step_size=2))
    world.host("cn2", DISK_GB=Stock(1_000, step_size=3))
    pairs = [("resources1", "DISK_GB:1001"), ("resources2", "DISK_GB:700"), ("group_policy", "none")]
    query = parse.search_query(Parameters(pairs), microversion.LATEST)
    assert "with resources1=DISK_GB:300" in texts(explain(query, world.snapshot()))
    world = World()
    world.host("h1")
    world.host("c1", parent="h1", A=Stock(10, min_unit=5))
    world.host("c2", parent="h1", A=4)
    explanation = explained(world, Group("_1", {"A": 10}), Group("_2", {"A": 9}))
    assert texts(explanation) == ["with resources_2=A:4", "with resources_1=A:4"]


def test_an_avoided_host_is_the_nearest_and_not_counted_as_the_maximum() -> None:
    world = World()
    world.host("h1", A=4)
    world.host("h2", A=6, traits=["DISABLED"])
    explanation = explained(world, Group("", {"A": 5}), avoided=frozenset({"DISABLED"}))
    assert [[lack.text for lack in near.missing] for near in explanation.near_misses] == [
        ["the root h2 has DISABLED"],
        ["h1 has room for 4 of 5 A"],
    ]
    explanation = explained(world, Group("", {"A": 8}), avoided=frozenset({"DISABLED"}))
    assert "and none can supply more than 4. With resources=A:4, " in explanation.summary


def test_unknown_alternatives_and_forbidden_names_are_not_the_reason() -> None:
    world = World()
    world.host("h1", A=4, traits=["OLD"])
    group = Group("", {"A": 1}, NameCondition((), frozenset({"OLD", "NEVER"})))
    explanation = explain(SearchQuery((group,)), world.snapshot(), None, ["NEVER"])
    assert explanation.summary.startswith("The only remaining provider does not meet required=!NEVER,!OLD. ")


def test_an_avoided_host_is_a_near_miss_but_not_a_relaxation() -> None:
    world = World()
    world.host("h1", A=1, traits=["DISABLED"])
    world.host("h2", A=1, traits=["DISABLED"])
    explanation = explained(world, Group("", {"A": 1}), avoided=frozenset({"DISABLED"}))
    assert explanation.relaxations == ()
    assert explanation.summary.startswith("The service avoids all 2 remaining trees")
    assert [lack.text for lack in explanation.near_misses[0].missing] == ["the root h1 has DISABLED"]
    # It is not a near miss either if more must be changed.
    explanation = explained(world, Group("", {"A": 2}), avoided=frozenset({"DISABLED"}))
    assert (explanation.relaxations, explanation.near_misses) == ((), ())
    world.host("child", parent="h1", traits=["T0"])
    explanation = explained(world, Group("", {"A": 1}), avoided=frozenset({"DISABLED"}), root_traits=traits("T0"))
    assert explanation.summary.startswith("None of the 2 remaining trees meets root_required=T0.")


def test_a_group_is_removed_together_with_one_tied_to_it_by_same_subtree() -> None:
    world = World()
    world.host("h1", A=1, B=1, C=1)
    groups = (Group("_1", {"A": 1}), Group("_2", {"B": 1}, traits("T0", "T1", "T2")), Group("_3", {"C": 1}))
    assert texts(explained(world, *groups, same_subtrees=(frozenset({"_1", "_2"}),))) == [
        "without resources_1=A:1 and resources_2=B:1&required_2=T0,T1,T2",
        "without resources_2=B:1 and same_subtree=_1,_2&required_2=T0,T1,T2",
    ]


def test_the_rule_that_rejects_most_trees_comes_first() -> None:
    world = World()
    world.host("t0")
    for device, class_ in enumerate(("A", "A", "B", "C")):
        world.host(f"t0-{device}", parent="t0", **{class_: 1})
    for tree in ("t1", "t2"):
        world.host(tree)
        world.host(f"{tree}-a", parent=tree, A=2)
        world.host(f"{tree}-b", parent=tree, B=1)
        world.host(f"{tree}-c", parent=f"{tree}-b", C=1)
    groups = (Group(f"_{number}", {class_: 1}) for number, class_ in enumerate(("A", "A", "B", "C"), 1))
    explanation = explained(world, *groups, isolate=True, same_subtrees=(frozenset({"_3", "_4"}),))
    assert [(combination.rule, combination.trees) for combination in explanation.combinations] == [
        ("group_policy", 2),
        ("same_subtree", 1),
    ]


def test_a_rule_that_can_be_relaxed_comes_first() -> None:
    world = World()
    for tree in range(2):
        world.host(f"h{tree}")
        for number in range(3):
            world.host(f"h{tree}-{number}", parent=f"h{tree}", A=1, B=1, traits=[f"T{number}", "FAST"])
    world.host("one", A=1, B=2, traits=["T0", "T1", "T2", "FAST"])
    world.host("slow", parent="one", B=1)
    groups = (Group(f"_{number}", {"B": 1}, traits("FAST")) for number in range(2))
    explanation = explained(world, Group("", {"A": 1}, traits("T0", "T1", "T2")), *groups, isolate=True)
    assert {"without required_0=FAST", "without group_policy=isolate"} < {*texts(explanation)}
    assert [(combination.rule, combination.trees) for combination in explanation.combinations] == [
        ("group_policy", 1),
        ("required", 2),
    ]


def test_three_conditions_are_changed_together_if_no_two_suffice() -> None:
    world = World()
    world.host("h1", A=2, B=1, traits=[SHARES])
    explanation = explained(world, Group("", {"A": 4, "B": 3}, traits("T0")))
    (relaxation,) = explanation.relaxations
    assert relaxation.text == "with resources=A:2 and resources=B:1, without required=T0"
    assert (relaxation.kind, relaxation.found) == ("several", 1)
    world = World()
    world.host("h1", A=Stock(4, used=2), B=Stock(3, used=2))
    world.host("elsewhere", traits=["T0", "T1"])
    summary = explained(world, Group("_1", {"A": 3, "B": 2}, traits("T0", "T1"))).summary
    assert summary.endswith("None of the changes tried (up to three conditions at once) would be enough.")


def test_an_amount_that_a_pool_shares_is_lowered() -> None:
    world = World()
    for number in (1, 2):
        world.host(f"h{number}", VCPU=4, aggregates=["a"])
    world.sharing("pool", DISK_GB=10, aggregates=["a"])
    assert texts(explained(world, Group("", {"VCPU": 1, "DISK_GB": 20}))) == ["with resources=DISK_GB:10"]
    explanation = explained(world, Group("", {"VCPU": 9, "DISK_GB": 20}))
    assert texts(explanation) == ["with resources=VCPU:4 and resources=DISK_GB:10"]


def test_explaining_many_sharing_trees_leaves_the_budget_of_relaxations() -> None:
    world = World()
    for number in range(3_000):
        world.host(f"h{number}", aggregates=["a"])
    world.sharing("pool", DISK_GB=10, aggregates=["a"])
    groups = (Group("_a", {"DISK_GB": 6}), Group("_b", {"DISK_GB": 6}), Group("_c", {"DISK_GB": 200}))
    explanation = explained(world, *groups, isolate=True)
    assert "without resources_a=DISK_GB:6 and resources_c=DISK_GB:200" in texts(explanation)
    assert explanation.complete
    query = SearchQuery(groups[:2], isolate=True)
    assert not explain(query, explanation.snapshot, Settings(operations=5_000)).complete


def test_relaxing_one_of_equal_groups_keeps_the_candidates_of_the_others() -> None:
    world = World()
    world.host("h0", A=Stock(8, step_size=2), B=4)
    world.host("h1", A=Stock(9, step_size=2), B=Stock(1, min_unit=2))
    explanation = explained(world, *(Group(f"_{number}", {"A": 4, "B": 3}) for number in range(3)))
    assert {relaxation.kind for relaxation in explanation.relaxations} == {"several"}
    assert roots(explanation) == ["h0"]
