"""Combining of handwritten tree problems, without index and database."""

from __future__ import annotations

import doctest
import itertools
import types
from collections import Counter

import pytest

from placement.search.budget import FRUITLESS, OPERATIONS, Budget, Exhausted
from placement.search.choose import BREADTH_FIRST, DEPTH_FIRST, choose
from placement.search.solver import canonical_form, matching
from placement.search.solver import combine as combine_module
from placement.search.solver.combine import SolutionCache, combine
from placement.search.solver.problem import Candidate, Demand, ProviderFacts, Requirements, TreeProblem
from placement.search.solver.work_limit import WorkLimit

ROOT = 100


def devices(groups: int, count: int, *, isolate: bool = True, root: int = ROOT, capacity: int = 1) -> TreeProblem:
    """Return a problem of a root with ``count`` children, each of which can supply any of the groups."""
    requirements = Requirements(tuple(Demand(f"_{number}", {"PGPU": 1}) for number in range(groups)), isolate=isolate)
    children = tuple(range(root + 1, root + 1 + count))
    facts = {child: ProviderFacts((child, root), available={"PGPU": capacity}) for child in children}
    return TreeProblem(requirements, (children,) * groups, facts)


def assignment(candidate: Candidate) -> tuple[int, ...]:
    return tuple(provider for providers in candidate.mappings.values() for provider in providers)


@pytest.mark.parametrize("module", [canonical_form, combine_module, matching], ids=lambda module: module.__name__)
def test_the_examples_in_the_docstrings_are_right(module: types.ModuleType) -> None:
    result = doctest.testmod(module)
    assert (result.failed, result.attempted > 0) == (0, True)


@pytest.mark.parametrize("isolate", [True, False], ids=["isolated", "by capacity"])
def test_every_assignment_of_devices_to_groups_is_a_candidate(isolate: bool) -> None:
    assignments = [assignment(candidate) for candidate in combine(devices(3, 4, isolate=isolate))]
    assert assignments == [*itertools.permutations(range(ROOT + 1, ROOT + 5), 3)]


@pytest.mark.parametrize("isolate", [True, False], ids=["isolated", "by capacity"])
def test_more_groups_than_devices_are_refused_before_any_assignment(isolate: bool) -> None:
    # Backtracking alone would visit 16! dead ends.
    assert not [*combine(devices(17, 16, isolate=isolate))]


@pytest.mark.parametrize("isolate", [True, False], ids=["isolated", "by capacity"])
def test_candidates_are_generated_lazily(isolate: bool) -> None:
    # The problem has 16! candidates.
    assert len([*itertools.islice(combine(devices(16, 16, isolate=isolate)), 1000)]) == 1000


def test_a_group_with_a_larger_domain_avoids_the_providers_that_other_groups_need() -> None:
    # Groups 1 and 2 fit on providers 1 and 2 only, so group 0 has to take the third.
    requirements = Requirements(tuple(Demand(name, {}) for name in "012"), isolate=True)
    facts = {provider: ProviderFacts((provider, ROOT)) for provider in range(1, 5)}
    candidates = combine(TreeProblem(requirements, ((1, 2, 3), (1, 2), (2, 1)), facts))
    assert sorted(map(assignment, candidates)) == [(3, 1, 2), (3, 2, 1)]


def test_the_common_ancestor_may_be_assigned_last() -> None:
    requirements = Requirements(tuple(Demand(name, {}) for name in "0123"), same_subtrees=(frozenset("0123"),))
    facts = {ROOT: ProviderFacts((ROOT,)), **{child: ProviderFacts((child, ROOT)) for child in (1, 2, 3, 4)}}
    candidates = combine(TreeProblem(requirements, ((1,), (2,), (3,), (4, ROOT)), facts))
    assert [*map(assignment, candidates)] == [(1, 2, 3, ROOT)]


@pytest.mark.parametrize("alike", [True, False], ids=["interchangeable devices", "devices that differ"])
def test_a_dead_end_is_not_repeated_for_every_permutation(alike: bool) -> None:
    """Twelve groups have 12! assignments, but the two classes always need a second provider of one tree."""
    names = [f"_{number}" for number in range(12)]
    children, processors, disks = range(1, 13), tuple(range(20, 40)), tuple(range(40, 60))
    groups = [Demand(name, {}) for name in names]
    requirements = Requirements((*groups, Demand("", {"VCPU": 1}), Demand("", {"DISK_GB": 1})), True, nested=False)
    domains = [tuple(child for child in children if alike or child != number) for number in range(12)]
    facts = {provider: ProviderFacts((provider, ROOT)) for provider in range(1, 60)}
    assert not [*combine(TreeProblem(requirements, (*domains, processors, disks), facts))]


def test_an_assigned_provider_is_not_interchangeable_with_an_equal_one() -> None:
    """Using both children has no solution, as the root is full; using one of them twice does."""
    requirements = Requirements(
        (Demand("_root", {"VCPU": 1}), Demand("_A", {}), Demand("_B", {}), Demand("_C", {"VCPU": 1})),
        same_subtrees=(frozenset({"_A", "_B", "_C"}),),
    )
    lineages = {ROOT: (ROOT,), 1: (1, ROOT), 2: (2, ROOT)}
    facts = {provider: ProviderFacts(lineage, available={"VCPU": 1}) for provider, lineage in lineages.items()}
    candidates = combine(TreeProblem(requirements, ((ROOT,), (1, 2), (2, 1), (1, 2, ROOT)), facts))
    assert [*map(assignment, candidates)] == [(ROOT, 1, 1, 1), (ROOT, 2, 2, 2)]


def test_equal_providers_in_different_domains_are_not_interchangeable() -> None:
    requirements = Requirements((Demand("_A", {}), Demand("_B", {})), same_subtrees=(frozenset({"_A", "_B"}),))
    facts = {child: ProviderFacts((child, ROOT)) for child in (1, 2, 3)}
    candidates = combine(TreeProblem(requirements, ((1, 2), (2, 3)), facts))
    assert [*map(assignment, candidates)] == [(2, 2)]


def test_amounts_of_groups_on_one_provider_are_summed() -> None:
    requirements = Requirements((Demand("", {"VCPU": 1}), Demand("", {"DISK_GB": 5}), Demand("_A", {"VCPU": 2})))

    def candidates(available: int) -> list[Candidate]:
        facts = {1: ProviderFacts((1,), available={"VCPU": available})}
        return [*combine(TreeProblem(requirements, ((1,), (1,), (1,)), facts))]

    assert candidates(3) == [Candidate({1: {"VCPU": 3, "DISK_GB": 5}}, {"": (1,), "_A": (1,)})]
    assert candidates(2) == []


def test_a_group_without_resources_takes_nothing_from_its_provider() -> None:
    requirements = Requirements((Demand("_A", {"VCPU": 1}), Demand("_B", {})))
    (candidate,) = combine(TreeProblem(requirements, ((1,), (2,)), {1: ProviderFacts((1,)), 2: ProviderFacts((2,))}))
    assert candidate == Candidate({1: {"VCPU": 1}}, {"_A": (1,), "_B": (2,)})


def test_one_provider_cannot_supply_two_isolated_groups() -> None:
    requirements = Requirements((Demand("_A", {"VCPU": 1}), Demand("_B", {"DISK_GB": 1})), isolate=True)
    assert not [*combine(TreeProblem(requirements, ((1,), (1,)), {1: ProviderFacts((1,))}))]


def test_a_single_provider_must_have_all_required_traits() -> None:
    requirements = Requirements((Demand("", {"VCPU": 1}),), required=(frozenset({"T0"}), frozenset({"T1", "T2"})))
    assert not [*combine(TreeProblem(requirements, ((1,),), {1: ProviderFacts((1,), frozenset({"T1", "T2"}))}))]
    assert len([*combine(TreeProblem(requirements, ((1,),), {1: ProviderFacts((1,), frozenset({"T0", "T2"}))}))]) == 1


def test_trees_with_equal_canonical_forms_share_solutions() -> None:
    cache, remaining = SolutionCache(), []
    for root in (100, 200, 300):
        assignments = [assignment(candidate) for candidate in combine(devices(3, 3, root=root), cache)]
        assert assignments == [*itertools.permutations(range(root + 1, root + 4))]
        remaining.append(cache.budget.operations)
    assert OPERATIONS > remaining[0] == remaining[1] == remaining[2], "only the first tree is searched"


EVEN = tuple(2 * half for half in (230, 195, 154, 206, 163, 244, 150, 164, 194, 228, 152, 214, 184, 145, 198, 184, 161))


def packing_problem(root: int, *available: int) -> TreeProblem:
    """Return a problem of groups that demand even amounts, on devices with the given amounts available."""
    requirements = Requirements(tuple(Demand(f"_{number}", {"VGPU": amount}) for number, amount in enumerate(EVEN)))
    devices = enumerate(available, root + 1)
    facts = {child: ProviderFacts((child, root), available={"VGPU": amount}) for child, amount in devices}
    return TreeProblem(requirements, (tuple(facts),) * len(EVEN), facts)


def hard_problem(root: int, difference: int = 0) -> TreeProblem:
    """Return a problem without a solution whose proof needs up to 4**17 assignments.

    The total is just enough, but each device has an odd amount and every demand is even.
    """
    capacity = sum(EVEN) // 4
    assert (capacity % 2, sum(EVEN) % 4) == (1, 0)
    return packing_problem(root, capacity - difference, capacity + difference, capacity, capacity)


# --- limits ---


def test_a_tree_above_its_work_limit_is_abandoned() -> None:
    budget = Budget()
    assert not choose([hard_problem(0)], budget=budget)
    assert budget.shortage == "operations"


def test_abandoned_trees_do_not_use_up_the_budget_of_others() -> None:
    budget = Budget()
    hard = [hard_problem(100 * number, 2 * number) for number in range(20)]
    assert [
        assignment(candidate)[0] for candidate in choose([*hard, packing_problem(5000, *[5000] * 4)], 1, budget=budget)
    ] == [5001]
    assert budget.shortage == "operations"


def test_the_budget_limits_a_search_of_large_trees() -> None:
    """The numbers of devices differ, so that no two trees have the same canonical form."""
    budget = Budget()
    requirements = Requirements(tuple(Demand(f"_{number}", {"VGPU": 1}) for number in range(250)), isolate=True)
    problems = []
    for count in range(300, 360):
        facts = {child: ProviderFacts((child, ROOT)) for child in range(count)}
        problems.append(TreeProblem(requirements, (tuple(facts),) * 250, facts))
    assert 10 <= len(choose(problems, budget=budget)) < 60
    assert budget.shortage == "operations"


def test_small_trees_may_use_twice_the_fruitless_budget() -> None:
    budget = Budget()
    budget.count_fruitless(2 * FRUITLESS - 1)
    assert not budget.fruitless_exhausted()
    assert budget.shortage is None
    budget.count_fruitless(1000)
    assert budget.fruitless_exhausted()
    assert budget.shortage == "operations"


def test_fruitless_work_reduces_the_allowance_of_the_same_and_of_later_trees() -> None:
    budget = Budget()
    limit = WorkLimit(budget, 0)
    limit.work = 80_000
    limit.restart()
    limit.work = (FRUITLESS - 80_000) // 8 - 1
    assert not limit.exceeded()
    limit.work += 1
    assert limit.exceeded()
    limit.finish()
    assert budget.allowance(0) == (FRUITLESS - 80_000) * 7 // 64
    for _ in range(1000):
        budget.count_fruitless(500)  # amounts as small as this are not counted
    assert budget.allowance(0) == (FRUITLESS - 80_000) * 7 // 64


def test_the_budget_is_charged_once_for_all_work() -> None:
    budget = Budget(1000)
    limit = WorkLimit(budget, 0)
    limit.work = 100
    limit.restart()
    limit.work = 50
    assert not limit.exceeded()
    limit.finish()
    assert budget.operations == 850
    limit.work += 851
    with pytest.raises(Exhausted):
        limit.exceeded()


def test_easy_trees_do_no_fruitless_work() -> None:
    """Neither many candidates nor trees that are refused at once count as fruitless."""
    budget = Budget(fruitless=1000)
    problems = [devices(5, 5 - number % 2, isolate=number % 3 > 0, root=100 * number) for number in range(50)]
    assert len(choose(problems, budget=budget)) > 1000
    assert budget.shortage is None


# --- the choice among trees ---


def test_the_strategies_choose_round_robin_or_tree_by_tree() -> None:
    problems = [devices(2, 2, root=root) for root in (100, 200, 300)]

    def trees(strategy: str) -> list[int]:
        return [assignment(candidate)[0] // 100 for candidate in choose(problems, 4, strategy)]

    assert trees(BREADTH_FIRST) == [1, 2, 3, 1]
    assert trees(DEPTH_FIRST) == [1, 1, 2, 2]


def test_choose_returns_up_to_its_limit_or_all_candidates() -> None:
    problems = [devices(2, 3, root=root) for root in (100, 200)]
    assert [len(choose(problems, limit)) for limit in (0, 1, 5, 12, 13, None)] == [0, 1, 5, 12, 12, 12]


# --- refusals ---


def refusals(*problems: TreeProblem, budget: Budget | None = None, limit: int | None = None) -> Counter[str]:
    names: Counter[str] = Counter()
    choose(problems, limit, budget=budget, refused=lambda _tree, name: names.update([name]))
    return names


def two_groups(
    *domains: tuple[int, ...], isolate: bool = False, skip_shared: bool = False, may_repeat: bool = False
) -> TreeProblem:
    """Return a problem of two groups of one PGPU each.

    Provider 10 is the root of 11 and 12, which have one PGPU each; provider 20 is shared.
    """
    requirements = Requirements((Demand("_A", {"PGPU": 1}), Demand("_B", {"PGPU": 1})), isolate=isolate)
    available = {"PGPU": 1}
    facts = {number: ProviderFacts((number, 10), available=available) for number in (11, 12)}
    facts[20] = ProviderFacts((20,), shares=True, available={"PGPU": 9})
    return TreeProblem(requirements, domains, facts, may_repeat, skip_shared)


@pytest.mark.parametrize("single", [True, False], ids=["one provider", "several"])
def test_the_constraint_that_refuses_a_tree_is_reported(single: bool) -> None:
    unshared = (11,) if single else (11, 11)
    shared = (20,) if single else (20, 20)
    assert refusals(two_groups(unshared, unshared, isolate=True)) == {"group_policy": 1}
    assert refusals(two_groups(unshared, unshared)) == {"resources:PGPU": 1}
    assert refusals(two_groups(shared, shared, skip_shared=True)) == {"already searched in another tree": 1}
    traits = Requirements((Demand("", {"VCPU": 1}), Demand("", {"DISK_GB": 1})), required=(frozenset({"T0"}),))
    facts = {1: ProviderFacts((1,)), 2: ProviderFacts((2,))}
    domains = ((1,), (1,)) if single else ((1,), (2,))
    assert refusals(TreeProblem(traits, domains, facts)) == {"required": 1}


def test_constraints_and_empty_domains_are_reported() -> None:
    facts = {1: ProviderFacts((1, ROOT)), 2: ProviderFacts((2, ROOT))}
    groups = Demand("_A", {"VCPU": 1}), Demand("_B", {"DISK_GB": 1})
    in_one_subtree = Requirements(groups, same_subtrees=(frozenset({"_A", "_B"}),))
    assert refusals(TreeProblem(in_one_subtree, ((1,), (2,)), facts)) == {"same_subtree": 1}
    assert refusals(TreeProblem(Requirements(groups, nested=False), ((1,), (2,)), facts)) == {
        "one provider per tree": 1
    }
    assert refusals(TreeProblem(Requirements(groups), ((1,), ()), facts)) == {"group": 1}


def test_the_deepest_refusal_is_reported() -> None:
    """Isolation excludes one provider of the second group, but the search fails at the third group."""
    requirements = Requirements(
        (Demand("_A", {}), Demand("_B", {}), Demand("_C", {})),
        isolate=True,
        same_subtrees=(frozenset({"_B", "_C"}),),
    )
    facts = {number: ProviderFacts((number, ROOT)) for number in range(1, 8)}
    problem = TreeProblem(requirements, ((1, 2), (1, 2, 3), (4, 5, 6, 7)), facts)
    assert refusals(problem) == {"same_subtree": 1}


def test_each_of_several_equivalent_trees_is_reported_as_refused() -> None:
    problems = [devices(3, 2, root=root)._replace(tree=root) for root in (100, 200, 300)]
    refused: list[tuple[int, str]] = []
    assert not choose(problems, refused=lambda *refusal: refused.append(refusal))
    assert refused == [(100, "group_policy"), (200, "group_policy"), (300, "group_policy")]


def test_a_tree_with_candidates_is_not_reported() -> None:
    assert refusals(devices(2, 2), devices(3, 2, root=200)) == {"group_policy": 1}


def test_a_tree_that_is_not_searched_is_not_reported() -> None:
    assert refusals(devices(2, 2), devices(3, 2, root=200), limit=1) == {}


def test_a_tree_with_the_candidates_of_another_is_reported() -> None:
    problems = [two_groups((20,), (20,), may_repeat=True) for _ in range(3)]
    assert refusals(*problems) == {"already searched in another tree": 2}


def test_a_tree_with_its_own_candidates_is_not_reported() -> None:
    problems = [two_groups((20, number), (20, number), may_repeat=True) for number in (11, 12)]
    assert [*map(assignment, choose(problems, strategy=DEPTH_FIRST))] == [
        (20, 20),
        (20, 11),
        (11, 20),
        (20, 12),
        (12, 20),
    ]
    assert refusals(*problems) == {}


def test_abandoned_trees_are_reported() -> None:
    assert refusals(hard_problem(0), hard_problem(100)) == {"work limit": 2}
    exhausted = Budget(fruitless=-FRUITLESS)
    assert refusals(devices(2, 2), budget=exhausted) == {"work limit": 1}
