"""Mistakes in a query, and their sentences in an explanation."""

from __future__ import annotations

from hypothesis import given

from placement.extensions.v1.explain.explain import explain
from placement.extensions.v1.explain.explanation import Explanation
from placement.extensions.v1.explain.recorded_search import BudgetedSearches
from placement.search.query.query import Group, NameCondition, SearchQuery
from tests import strategies
from tests.search.narrowing_oracle import Narrowing
from tests.search.oracle import SHARES, matching
from tests.strategies import examples
from tests.world import Stock, World


def traits(*names: str, none_of: tuple[str, ...] = ()) -> NameCondition:
    return NameCondition(tuple(frozenset({name}) for name in names), frozenset(none_of))


def explain_groups(world: World, *groups: Group, **more: object) -> Explanation:
    return explain(SearchQuery(groups, **more), world.snapshot())


def numa_hosts() -> World:
    """Return two hosts with two NUMA nodes, each with a GPU and a NIC."""
    world = World()
    for host in ("cn0", "cn1"):
        world.host(host, DISK_GB=100)
        for node in (f"{host}-numa0", f"{host}-numa1"):
            world.host(node, parent=host, traits=["HW_NUMA_ROOT"], VCPU=8)
            world.host(f"{node}-gpu", parent=node, PGPU=1)
            world.host(f"{node}-nic", parent=node, SRIOV_NET_VF=4)
    return world


# --- amounts ---


@examples(200)
@given(case=strategies.explanation_cases())
def test_an_amount_that_no_inventory_allows_is_a_mistake(case: tuple[World, SearchQuery]) -> None:
    world, query = case
    explanation = explain(query, world.snapshot())
    expected = 0
    for group in query.groups:
        demanded = group.resources.items()
        too_large = [is_too_much(world, class_, amount) for class_, amount in demanded if has_inventory(world, class_)]
        providers = [
            member
            for member in world.members.values()
            if all(is_ever_allowed(member, class_, amount) for class_, amount in demanded)
        ]
        cannot_combine = bool(group.suffix) and len(demanded) > 1 and len(too_large) == len(demanded) and not providers
        expected += sum(too_large) or cannot_combine
    assert sum(mistake.kind == "amount" for mistake in explanation.mistakes) == expected


def has_inventory(world: World, class_: str) -> bool:
    return any(class_ in member.stock for member in world.members.values())


def is_ever_allowed(member: object, class_: str, amount: int) -> bool:
    """Whether an unused inventory of the provider would allow the amount or a greater one."""
    stock = member.stock.get(class_)
    if stock is None:
        return False
    capacity = (stock.total - stock.reserved) * stock.allocation_ratio
    allowed = (n for n in range(amount, 65) if n <= capacity and stock.min_unit <= n <= stock.effective_max_unit)
    return any(n % stock.step_size == 0 for n in allowed)


def is_too_much(world: World, class_: str, amount: int) -> bool:
    return not any(is_ever_allowed(member, class_, amount) for member in world.members.values())


def test_the_largest_amount_is_suggested() -> None:
    world = World()
    world.host("cn0", VCPU=Stock(16, max_unit=4, used=3))
    (mistake,) = explain_groups(world, Group("1", {"VCPU": 5})).mistakes
    assert mistake.suggestion == "resources1=VCPU:4"
    assert mistake.text == (
        "No provider could ever supply resources1=VCPU:5: the most VCPU that any inventory allows is 4."
    )


def test_amounts_that_no_provider_can_serve_together_are_a_mistake() -> None:
    world = World()
    world.host("cn0", VCPU=4)
    world.host("cn1", DISK_GB=4)
    (mistake,) = explain_groups(world, Group("1", {"VCPU": 1, "DISK_GB": 1})).mistakes
    assert mistake.text == "No single provider could ever supply resources1=VCPU:1,DISK_GB:1."
    assert explain_groups(world, Group("", {"VCPU": 1, "DISK_GB": 1})).mistakes == ()


def test_a_step_counts_the_obstacles_of_an_amount_by_property() -> None:
    world = World()
    world.host("none")
    world.host("small", VCPU=4)
    world.host("reserved", VCPU=Stock(8, reserved=4))
    world.host("used", VCPU=Stock(8, used=3))
    world.host("units", VCPU=Stock(64, max_unit=5, min_unit=5, step_size=5))
    world.host("full", VCPU=Stock(12, min_unit=12, used=1))
    (step, _) = explain_groups(world, Group("1", {"VCPU": 6})).steps
    assert step.amounts.blocked_by == {
        "absent": 1,
        "total": 1,
        "reserved": 1,
        "used": 1,
        "max_unit": 2,
        "min_unit": 1,
        "step_size": 1,
    }
    assert step.amounts.most == 5
    (step, _) = explain_groups(world, Group("1", {"VCPU": 1}, in_tree="full")).steps[1:]
    assert (step.amounts.blocked_by, step.amounts.most) == ({"min_unit": 1}, 0)


# --- names ---


def test_the_most_similar_known_name_is_suggested_for_an_unknown_one() -> None:
    world = World()
    world.host("cn0", VCPU=4, traits=["HW_CPU_X86_AVX2"])
    query = SearchQuery((Group("", {"VCPUS": 1}, traits("HW_CPU_X86_AVX3", "STORAGE")),))
    explanation = explain(query, world.snapshot(), unknown_traits={"HW_CPU_X86_AVX3"})
    assert [(mistake.kind, mistake.text, mistake.suggestion) for mistake in explanation.mistakes] == [
        ("resource_class", "There is no resource class VCPUS.", "VCPU"),
        ("trait", "There is no trait HW_CPU_X86_AVX3.", "HW_CPU_X86_AVX2"),
        ("trait", "No provider has the trait STORAGE.", None),
    ]


def test_the_most_similar_used_name_is_suggested_for_an_unused_one() -> None:
    world = World()
    world.host("cn0", MEMORY_MB=4, VGPU_A=1, traits=["HW_CPU_X86_AVX2"])
    snapshot = world.snapshot()
    query = SearchQuery((Group("", {"VGPU_B": 1}, traits("HW_CPU_X86_AVX")),))
    snapshot.class_ids = {**snapshot.class_ids, "VGPU_B": 900, "VGPU_C": 901}
    explanation = explain(query, snapshot)
    assert [(mistake.kind, mistake.text, mistake.suggestion) for mistake in explanation.mistakes] == [
        ("resource_class", "No provider has inventory of VGPU_B.", "VGPU_A"),
        ("trait", "No provider has the trait HW_CPU_X86_AVX.", "HW_CPU_X86_AVX2"),
    ]


def test_an_unused_class_an_empty_aggregate_and_an_unknown_tree_are_mistakes() -> None:
    world = World()
    world.classes["PGPU"] = 0
    world.host("cn0", VCPU=4)
    inside = NameCondition((frozenset({"a"}),))
    explanation = explain_groups(world, Group("", {"PGPU": 1}, aggregates=inside, in_tree="nowhere"))
    assert [mistake.text for mistake in explanation.mistakes] == [
        "No provider has inventory of PGPU.",
        "No provider is in the aggregate a.",
        "There is no provider nowhere.",
    ]


# --- subtrees ---


def test_a_subtree_without_its_top_names_the_group_to_add() -> None:
    groups = (Group("_gpu", {"PGPU": 1}), Group("_nic", {"SRIOV_NET_VF": 1}))
    subtree = frozenset({"_gpu", "_nic"})
    explanation = explain_groups(numa_hosts(), *groups, same_subtrees=(subtree,))
    (mistake,) = explanation.mistakes
    assert (mistake.kind, mistake.suggestion) == (
        "same_subtree",
        "required_TOP=HW_NUMA_ROOT&same_subtree=_TOP,_gpu,_nic",
    )
    assert explanation.obstacle == ("same_subtree", None)
    top = Group("_TOP", traits=traits("HW_NUMA_ROOT"))
    assert explain_groups(numa_hosts(), *groups, top, same_subtrees=(subtree | {"_TOP"},)).found == 4


def test_the_suggested_suffix_is_free_and_the_suggested_trait_the_rarest() -> None:
    world = numa_hosts()
    world.host("cn0-numa0", parent="cn0", traits=["HW_NUMA_ROOT", "RARE"], VCPU=8)
    groups = Group("_TOP", {"PGPU": 1}), Group("_nic", {"SRIOV_NET_VF": 1})
    (mistake,) = explain_groups(world, *groups, same_subtrees=(frozenset({"_TOP", "_nic"}),)).mistakes
    assert mistake.suggestion == "required_TOP0=RARE&same_subtree=_TOP,_TOP0,_nic"


def test_only_the_subtree_without_its_top_gets_the_suggested_group() -> None:
    world = World()
    world.host("host")
    world.host("numa", parent="host", traits=["HW_NUMA_ROOT"])
    for name, parent, class_ in (("a", "numa", "A"), ("b", "numa", "B"), ("c", "host", "C"), ("d", "c", "D")):
        world.host(name, parent=parent, **{class_: 1})
    groups = (Group(f"_{class_}", {class_: 1}) for class_ in "ABCD")
    explanation = explain_groups(world, *groups, same_subtrees=(frozenset({"_A", "_B"}), frozenset({"_C", "_D"})))
    (mistake,) = explanation.mistakes
    assert mistake.suggestion == "required_TOP=HW_NUMA_ROOT&same_subtree=_A,_B,_TOP"


def test_the_suggested_group_leads_to_candidates() -> None:
    """The deepest common ancestor serves another group."""
    world = World()
    world.host("h1")
    world.host("numa", parent="h1", traits=["HW_NUMA_ROOT"], VCPU=8)
    world.host("h2", traits=["CUSTOM_HOST"])
    world.host("cpu", parent="h2", VCPU=8)
    for parent in ("numa", "h2"):
        world.host(f"{parent}-gpu", parent=parent, PGPU=1)
        world.host(f"{parent}-nic", parent=parent, NET=1)
    groups = Group("_cpu", {"VCPU": 1}), Group("_gpu", {"PGPU": 1}), Group("_nic", {"NET": 1})
    explanation = explain_groups(world, *groups, same_subtrees=(frozenset({"_gpu", "_nic"}),), isolate=True)
    assert explanation.mistakes[0].suggestion == "required_TOP=CUSTOM_HOST&same_subtree=_TOP,_gpu,_nic"
    top, subtree = Group("_TOP", traits=traits("CUSTOM_HOST")), frozenset({"_TOP", "_gpu", "_nic"})
    assert explanation.found == 0
    assert explain_groups(world, *groups, top, same_subtrees=(subtree,), isolate=True).found == 1


def test_a_subtree_with_its_top_is_not_a_mistake() -> None:
    world = numa_hosts()
    groups = (Group("_cpu", {"VCPU": 9}), Group("_gpu", {"PGPU": 1}))
    subtree = frozenset({"_cpu", "_gpu"})
    assert {mistake.kind for mistake in explain_groups(world, *groups, same_subtrees=(subtree,)).mistakes} == {"amount"}


def test_a_subtree_of_sharing_providers_is_not_a_mistake() -> None:
    world = World()
    world.host("host", aggregates=["a"], VCPU=3)
    world.sharing("pool", aggregates=["a"], DISK_GB=1)
    world.sharing("disk", parent="pool", aggregates=["a"], SSD=1)
    groups = Group("_1", {"DISK_GB": 1}), Group("_2", {"SSD": 1}), Group("_3", {"VCPU": 2}), Group("_4", {"VCPU": 2})
    explanation = explain_groups(world, *groups, same_subtrees=(frozenset({"_1", "_2"}),))
    assert (explanation.found, explanation.mistakes) == (0, ())


def test_a_subtree_is_not_a_mistake_if_its_last_group_fits_nowhere() -> None:
    world = World()
    world.host("host", traits=["HW_NUMA_ROOT"], VCPU=1)
    groups = (Group("_TOP", traits=traits("HW_NUMA_ROOT")), Group("_cpu", {"VCPU": 2}))
    mistakes = explain_groups(world, *groups, same_subtrees=(frozenset({"_TOP", "_cpu"}),)).mistakes
    assert [mistake.kind for mistake in mistakes] == ["amount"]


@examples(200)
@given(case=strategies.explanation_cases())
def test_a_subtree_is_a_mistake_if_no_provider_is_an_ancestor_of_the_others(
    case: tuple[World, SearchQuery],
) -> None:
    world, query = case
    if any(SHARES in member.traits for member in world.members.values()):
        return
    explanation = explain(query, world.snapshot())
    narrowing = Narrowing(world, query)
    list(narrowing.steps())
    expected = {
        ",".join(sorted(suffixes))
        for suffixes in query.same_subtrees
        if len(suffixes) > 1
        and narrowing.roots
        and not explanation.found
        and not any(has_common_ancestor(world, query, suffixes, root) for root in narrowing.roots)
    }
    texts = [mistake.text for mistake in explanation.mistakes if mistake.kind == "same_subtree"]
    assert len(texts) == len(expected)
    assert all(any(f"same_subtree={suffixes} " in text for text in texts) for suffixes in expected)


def has_common_ancestor(world: World, query: SearchQuery, suffixes: frozenset[str], root: str) -> bool:
    """Whether a provider for one group is an ancestor of, or the same as, one for each other group in the tree."""
    tree = [member for member in world.members.values() if world.root(member.name) == root]
    fitting = [
        {match[0][0] for match in matching(world, query, group, root, tree)}
        for group in query.groups
        if group.suffix in suffixes
    ]
    tops = frozenset().union(*fitting)
    return any(all(any(top in world.ancestry(name) for name in names) for names in fitting) for top in tops)


# --- bounds ---


def test_searches_that_exhaust_their_budget_are_incomplete() -> None:
    world = numa_hosts()
    groups = tuple(Group(f"_{number}", {"VCPU": 1}) for number in range(5))
    searches = BudgetedSearches(world.snapshot(), 1, 1)
    assert not searches.run(SearchQuery(groups, isolate=True), 1).candidates
    assert not searches.complete


def test_an_existing_tree_is_not_a_mistake_but_a_root_trait_may_be() -> None:
    world = World()
    world.host("cn0", VCPU=4)
    assert explain_groups(world, Group("", {"VCPU": 5}, in_tree="cn0")).mistakes[0].kind == "amount"
    assert explain_groups(world, Group("", {"VCPU": 1}, in_tree="cn0")).mistakes == ()
    (mistake,) = explain_groups(world, Group("", {"VCPU": 1}), root_traits=traits("NEW")).mistakes
    assert mistake.text == "No provider has the trait NEW."


def test_no_amount_is_suggested_where_none_is_allowed() -> None:
    world = World()
    world.host("cn0", VCPU=Stock(4, reserved=4))
    (mistake,) = explain_groups(world, Group("", {"VCPU": 1})).mistakes
    assert mistake.suggestion is None
