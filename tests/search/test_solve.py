"""Combining finds what trying everything finds, in problems that no forest would pose as well."""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Iterator

import pytest

from placement.search.solver.combine import combine
from placement.search.solver.problem import Pick, Plan, Problem, Supplier
from tests.strategies import TRAITS, scaled

CLASSES = ("a", "b")
SUFFIXES = ("1", "2", "3", "4")
Chosen = tuple[tuple[str, frozenset[int]], ...]


def random_problem(chance: random.Random) -> Problem:
    """Up to five providers for up to six picks.  What is rare is what is hard: many picks and rules, and few places."""
    count = chance.randint(2, 5)
    suppliers: dict[int, Supplier] = {}
    for number in range(count):
        above = suppliers[chance.randrange(number)].ancestry if number and chance.random() < 0.8 else ()
        suppliers[number] = Supplier(
            (number, *above),
            frozenset(trait for trait in TRAITS[:2] if chance.random() < 0.4),
            chance.random() < 0.3,
            {name: chance.choice((1, 1, 2, 3)) for name in CLASSES},
        )
    classes = chance.choice(((), (), CLASSES[:1], CLASSES))
    picks = [Pick("", {name: 1}) for name in classes]
    for suffix in SUFFIXES[: chance.randint(0 if picks else 1, 4)]:
        asked = chance.choice(((), CLASSES[:1], CLASSES[:1], CLASSES[1:], CLASSES))
        picks.append(Pick(suffix, {name: chance.choice((1, 1, 2)) for name in asked}))
    chance.shuffle(picks)
    lists = [tuple(chance.sample(range(count), chance.randint(1, count))) for _ in range(3)]
    names = [pick.suffix for pick in picks if pick.suffix]
    subtrees = [
        frozenset(chance.sample(names, chance.randint(1, len(names)))) for _ in range(chance.randint(0, 2)) if names
    ]
    traits = [frozenset({trait}) for trait in TRAITS[:2] if classes and chance.random() < 0.4]
    plan = Plan(tuple(picks), chance.random() < 0.4, tuple(subtrees), tuple(traits), chance.random() < 0.7)
    options = [
        tuple(
            one
            for one in chance.choice(lists)
            if all(suppliers[one].room[name] >= of for name, of in pick.amounts.items())
        )
        for pick in picks
    ]
    repeated = chance.random() < 0.2
    return Problem(plan, tuple(options), suppliers, repeated, repeated)


def allowed(problem: Problem, chosen: tuple[int, ...]) -> bool:
    plan, suppliers = problem.plan, problem.suppliers
    pairs = [*zip(plan.picks, chosen, strict=True)]
    suffixed = [number for pick, number in pairs if pick.suffix]
    givers = {number for pick, number in pairs if pick.amounts}
    sums = Counter[tuple[int, str]]()
    for pick, number in pairs:
        sums.update({(number, name): amount for name, amount in pick.amounts.items()})
    unsuffixed = frozenset[str]().union(*(suppliers[number].traits for pick, number in pairs if not pick.suffix))
    together = [{number for pick, number in pairs if pick.suffix in suffixes} for suffixes in plan.same_subtrees]
    return (
        not (plan.isolate and len(suffixed) > len(set(suffixed)))
        and all(any(all(top in suppliers[one].ancestry for one in of) for top in of) for of in together)
        and all(names & unsuffixed for names in plan.required)
        and not (not plan.nested and len(givers) > len({suppliers[number].ancestry[-1] for number in givers}))
        and not (problem.repeated and all(suppliers[number].shares for number in chosen))
        and all(amount <= suppliers[number].room[name] for (number, name), amount in sums.items())
    )


def naive(problem: Problem) -> Iterator[Chosen]:
    for chosen in itertools.product(*problem.options):
        if allowed(problem, chosen):
            served: dict[str, set[int]] = {}
            for pick, number in zip(problem.plan.picks, chosen, strict=True):
                served.setdefault(pick.suffix, set()).add(number)
            yield tuple((suffix, frozenset(numbers)) for suffix, numbers in served.items())


@pytest.mark.parametrize("piece", range(4))
def test_combining_finds_what_trying_everything_finds(piece: int) -> None:
    """Not drawn but counted: some mistakes show in one problem of ten thousand."""
    for number in range(piece, scaled(12_000), 4):
        problem = random_problem(random.Random(number))
        found = [
            tuple((suffix, frozenset(places)) for suffix, places in candidate.mappings.items())
            for candidate in combine(problem)
        ]
        # Two ways to share the classes of the unsuffixed group among the same providers are two candidates.
        assert Counter(found) == Counter(naive(problem)), problem
