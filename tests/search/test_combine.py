"""Combining on problems written by hand: no index, no numpy, no database."""

from __future__ import annotations

import doctest
import itertools

import pytest

from placement.search.budget import Budget, Exhausted
from placement.search.choose import BREADTH_FIRST, DEPTH_FIRST, choose
from placement.search.solver import combine as module
from placement.search.solver.canonical import Memory
from placement.search.solver.combine import combine
from placement.search.solver.effort import WORK, Patience, Turn
from placement.search.solver.problem import Candidate, Pick, Plan, Problem, Supplier

ROOT = 100


def devices(groups: int, count: int, *, isolate: bool = True, root: int = ROOT, room: int = 1) -> Problem:
    """A root with ``count`` children, each of which can serve any of the groups."""
    plan = Plan(tuple(Pick(f"_{number}", {"PGPU": 1}) for number in range(groups)), isolate=isolate)
    children = tuple(range(root + 1, root + 1 + count))
    suppliers = {child: Supplier((child, root), room={"PGPU": room}) for child in children}
    return Problem(plan, (children,) * groups, suppliers)


def chosen(candidate: Candidate) -> tuple[int, ...]:
    return tuple(provider for places in candidate.mappings.values() for provider in places)


def test_the_example_in_the_docstring() -> None:
    assert doctest.testmod(module).failed == 0


@pytest.mark.parametrize("isolate", [True, False], ids=["isolated", "by capacity"])
def test_every_way_to_give_devices_to_groups_is_a_candidate(isolate: bool) -> None:
    found = [chosen(candidate) for candidate in combine(devices(3, 4, isolate=isolate))]
    assert found == [*itertools.permutations(range(ROOT + 1, ROOT + 5), 3)]


@pytest.mark.parametrize("isolate", [True, False], ids=["isolated", "by capacity"])
def test_more_groups_than_devices_is_seen_before_anything_is_tried(isolate: bool) -> None:
    # Tried one by one, 16 devices for 17 groups are 16! ways to nowhere.
    assert not [*combine(devices(17, 16, isolate=isolate))]


@pytest.mark.parametrize("isolate", [True, False], ids=["isolated", "by capacity"])
def test_the_first_candidates_do_not_wait_for_the_others(isolate: bool) -> None:
    # There are 16! of them.
    assert len([*itertools.islice(combine(devices(16, 16, isolate=isolate)), 1000)]) == 1000


def test_some_places_for_many_groups_and_many_for_one() -> None:
    # Groups 1 and 2 fit nowhere but in 1 and 2, so group 0 must leave them alone.
    plan = Plan(tuple(Pick(name, {}) for name in "012"), isolate=True)
    suppliers = {provider: Supplier((provider, ROOT)) for provider in range(1, 5)}
    found = combine(Problem(plan, ((1, 2, 3), (1, 2), (2, 1)), suppliers))
    assert sorted(map(chosen, found)) == [(3, 1, 2), (3, 2, 1)]


def test_whoever_is_above_all_may_be_chosen_last() -> None:
    plan = Plan(tuple(Pick(name, {}) for name in "0123"), same_subtrees=(frozenset("0123"),))
    suppliers = {ROOT: Supplier((ROOT,)), **{child: Supplier((child, ROOT)) for child in (1, 2, 3, 4)}}
    found = combine(Problem(plan, ((1,), (2,), (3,), (4, ROOT)), suppliers))
    assert [*map(chosen, found)] == [(1, 2, 3, ROOT)]


@pytest.mark.parametrize("alike", [True, False], ids=["devices that are alike", "devices that are not"])
def test_what_cannot_work_out_is_not_tried_in_every_way(alike: bool) -> None:
    """Twelve groups can be served in 12! ways, but the two classes never without a second provider of one tree."""
    names = [f"_{number}" for number in range(12)]
    children, processors, disks = range(1, 13), tuple(range(20, 40)), tuple(range(40, 60))
    plan = Plan(
        (*(Pick(name, {}) for name in names), Pick("", {"VCPU": 1}), Pick("", {"DISK_GB": 1})), True, nested=False
    )
    options = [tuple(child for child in children if alike or child != number) for number in range(12)]
    suppliers = {provider: Supplier((provider, ROOT)) for provider in range(1, 60)}
    assert not [*combine(Problem(plan, (*options, processors, disks), suppliers))]


def test_a_provider_that_serves_already_is_not_like_its_twin() -> None:
    """One after the other lead nowhere with two twins, because the root has nothing left; with one of them they do."""
    plan = Plan(
        (Pick("_root", {"VCPU": 1}), Pick("_A", {}), Pick("_B", {}), Pick("_C", {"VCPU": 1})),
        same_subtrees=(frozenset({"_A", "_B", "_C"}),),
    )
    room = {"VCPU": 1}
    suppliers = {ROOT: Supplier((ROOT,), room=room), **{twin: Supplier((twin, ROOT), room=room) for twin in (1, 2)}}
    found = combine(Problem(plan, ((ROOT,), (1, 2), (2, 1), (1, 2, ROOT)), suppliers))
    assert [*map(chosen, found)] == [(ROOT, 1, 1, 1), (ROOT, 2, 2, 2)]


def test_a_provider_that_can_serve_others_too_is_not_like_its_twin() -> None:
    plan = Plan((Pick("_A", {}), Pick("_B", {})), same_subtrees=(frozenset({"_A", "_B"}),))
    suppliers = {child: Supplier((child, ROOT)) for child in (1, 2, 3)}
    found = combine(Problem(plan, ((1, 2), (2, 3)), suppliers))
    assert [*map(chosen, found)] == [(2, 2)]


def test_groups_that_meet_on_one_provider_are_summed() -> None:
    plan = Plan((Pick("", {"VCPU": 1}), Pick("", {"DISK_GB": 5}), Pick("_A", {"VCPU": 2})))
    (candidate,) = combine(Problem(plan, ((1,), (1,), (1,)), {1: Supplier((1,), room={"VCPU": 3})}))
    assert candidate == Candidate({1: {"VCPU": 3, "DISK_GB": 5}}, {"": (1,), "_A": (1,)})
    assert not [*combine(Problem(plan, ((1,), (1,), (1,)), {1: Supplier((1,), room={"VCPU": 2})}))]


def test_who_serves_a_group_without_resources_gives_nothing() -> None:
    plan = Plan((Pick("_A", {"VCPU": 1}), Pick("_B", {})))
    (candidate,) = combine(Problem(plan, ((1,), (2,)), {1: Supplier((1,)), 2: Supplier((2,))}))
    assert candidate == Candidate({1: {"VCPU": 1}}, {"_A": (1,), "_B": (2,)})


def test_one_provider_cannot_serve_two_isolated_groups() -> None:
    plan = Plan((Pick("_A", {"VCPU": 1}), Pick("_B", {"DISK_GB": 1})), isolate=True)
    assert not [*combine(Problem(plan, ((1,), (1,)), {1: Supplier((1,))}))]


def test_one_provider_meets_the_traits_alone_or_not_at_all() -> None:
    plan = Plan((Pick("", {"VCPU": 1}),), required=(frozenset({"T0"}), frozenset({"T1", "T2"})))
    assert not [*combine(Problem(plan, ((1,),), {1: Supplier((1,), frozenset({"T1", "T2"}))}))]
    assert len([*combine(Problem(plan, ((1,),), {1: Supplier((1,), frozenset({"T0", "T2"}))}))]) == 1


def test_what_was_found_for_one_tree_is_true_of_its_like() -> None:
    memory: Memory = {}
    problems = [devices(3, 3, root=root) for root in (100, 200, 300)]
    found = [[chosen(candidate) for candidate in combine(problem, memory)] for problem in problems]
    assert len(memory) == 1
    for root, answers in zip((100, 200, 300), found, strict=True):
        assert answers == [*itertools.permutations(range(root + 1, root + 4))]


EVEN = tuple(2 * half for half in (230, 195, 154, 206, 163, 244, 150, 164, 194, 228, 152, 214, 184, 145, 198, 184, 161))


def packing(root: int, *rooms: int) -> Problem:
    """Groups that ask for even amounts of devices with so much."""
    plan = Plan(tuple(Pick(f"_{number}", {"VGPU": amount}) for number, amount in enumerate(EVEN)))
    suppliers = {child: Supplier((child, root), room={"VGPU": room}) for child, room in enumerate(rooms, root + 1)}
    return Problem(plan, (tuple(suppliers),) * len(EVEN), suppliers)


def odd(root: int, difference: int = 0) -> Problem:
    """Just enough room, were it not that each device has an odd one: there are 4**17 ways to find out."""
    room = sum(EVEN) // 4
    assert (room % 2, sum(EVEN) % 4) == (1, 0)
    return packing(root, room - difference, room + difference, room, room)


def test_what_cannot_be_told_without_trying_everything_is_given_up() -> None:
    patience = Patience()
    assert not choose([odd(0)], patience=patience)
    assert patience.lost


def test_trees_that_were_given_up_leave_patience_for_others() -> None:
    patience = Patience()
    hard = [odd(100 * number, 2 * number) for number in range(20)]
    assert [chosen(one)[0] for one in choose([*hard, packing(5000, *[5000] * 4)], 1, patience=patience)] == [5001]
    assert patience.lost


def test_there_is_an_end_to_large_trees_too() -> None:
    """Each has another number of devices, so that nothing is known from those before."""
    patience = Patience()
    plan = Plan(tuple(Pick(f"_{number}", {"VGPU": 1}) for number in range(250)), isolate=True)
    problems = []
    for count in range(300, 360):
        suppliers = {child: Supplier((child, ROOT)) for child in range(count)}
        problems.append(Problem(plan, (tuple(suppliers),) * 250, suppliers))
    assert 10 <= len(choose(problems, patience=patience)) < 60
    assert patience.budget.shortage == "operations"


def test_trees_that_make_no_trouble_have_as_much_again() -> None:
    patience = Patience()
    patience.lose(2 * WORK - 1)
    assert not patience.exhausted()
    assert not patience.lost
    patience.lose(1000)
    assert patience.exhausted()
    assert patience.lost


def test_work_in_vain_leaves_less_for_each_tree_after_it_and_for_what_follows_in_the_same() -> None:
    patience = Patience()
    turn = Turn(patience, 0)
    turn.work = 80_000
    turn.found()
    turn.work = (WORK - 80_000) // 8 - 1
    assert not turn.over()
    turn.work += 1
    assert turn.over()
    turn.end()
    assert patience.share(0) == (WORK - 80_000) * 7 // 64
    for _ in range(1000):
        patience.lose(500)  # so little is not counted
    assert patience.share(0) == (WORK - 80_000) * 7 // 64


def test_the_budget_knows_of_all_work_once() -> None:
    budget = Budget(1000)
    turn = Turn(Patience(budget=budget), 0)
    turn.work = 100
    turn.found()
    turn.work = 50
    assert not turn.over()
    turn.end()
    assert budget.operations == 850
    turn.work += 851
    with pytest.raises(Exhausted):
        turn.over()


def test_little_that_is_found_takes_no_patience() -> None:
    """However many candidates there are, and trees that are seen through at once."""
    patience = Patience(1000)
    problems = [devices(5, 5 - number % 2, isolate=number % 3 > 0, root=100 * number) for number in range(50)]
    assert len(choose(problems, patience=patience)) > 1000
    assert not patience.lost


def test_choosing_goes_round_the_trees_or_through_them() -> None:
    problems = [devices(2, 2, root=root) for root in (100, 200, 300)]

    def trees(strategy: str) -> list[int]:
        return [chosen(candidate)[0] // 100 for candidate in choose(problems, 4, strategy)]

    assert trees(BREADTH_FIRST) == [1, 2, 3, 1]
    assert trees(DEPTH_FIRST) == [1, 1, 2, 2]


def test_a_limit_is_not_exceeded_and_all_are_given_without() -> None:
    problems = [devices(2, 3, root=root) for root in (100, 200)]
    assert [len(choose(problems, limit)) for limit in (0, 1, 5, 12, 13, None)] == [0, 1, 5, 12, 12, 12]
