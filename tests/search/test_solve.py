"""Combining finds the solutions of brute force, even for problems that no real tree has."""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Iterator

import pytest

from placement.search.solver.combine import combine
from placement.search.solver.problem import Demand, ProviderFacts, Requirements, TreeProblem
from tests.strategies import TRAITS, scale

CLASSES = ("a", "b")
SUFFIXES = ("1", "2", "3", "4")
#: The providers of each group, by suffix.
Mappings = tuple[tuple[str, frozenset[int]], ...]


def random_problem(chance: random.Random) -> TreeProblem:
    """Return a problem of up to six demands, with the few providers and many constraints of hard problems."""
    count = chance.randint(2, 5)
    facts: dict[int, ProviderFacts] = {}
    for number in range(count):
        ancestors = facts[chance.randrange(number)].ancestry if number and chance.random() < 0.8 else ()
        facts[number] = ProviderFacts(
            (number, *ancestors),
            frozenset(trait for trait in TRAITS[:2] if chance.random() < 0.4),
            chance.random() < 0.3,
            {name: chance.choice((1, 1, 2, 3)) for name in CLASSES},
        )
    classes = chance.choice(((), (), CLASSES[:1], CLASSES))
    demands = [Demand("", {name: 1}) for name in classes]
    for suffix in SUFFIXES[: chance.randint(0 if demands else 1, 4)]:
        demanded_classes = chance.choice(((), CLASSES[:1], CLASSES[:1], CLASSES[1:], CLASSES))
        demands.append(Demand(suffix, {name: chance.choice((1, 1, 2)) for name in demanded_classes}))
    chance.shuffle(demands)
    some_domains = [tuple(chance.sample(range(count), chance.randint(1, count))) for _ in range(3)]
    names = [demand.suffix for demand in demands if demand.suffix]
    subtrees = [
        frozenset(chance.sample(names, chance.randint(1, len(names)))) for _ in range(chance.randint(0, 2)) if names
    ]
    traits = [frozenset({trait}) for trait in TRAITS[:2] if classes and chance.random() < 0.4]
    isolate, nested = chance.random() < 0.4, chance.random() < 0.7
    requirements = Requirements(tuple(demands), isolate, tuple(subtrees), tuple(traits), nested)
    domains = [
        tuple(
            provider
            for provider in chance.choice(some_domains)
            if all(facts[provider].available[name] >= amount for name, amount in demand.amounts.items())
        )
        for demand in demands
    ]
    skip_shared = chance.random() < 0.2
    return TreeProblem(requirements, tuple(domains), facts, skip_shared, skip_shared)


def is_solution(problem: TreeProblem, assignment: tuple[int, ...]) -> bool:
    requirements, facts = problem.requirements, problem.facts
    pairs = [*zip(requirements.demands, assignment, strict=True)]
    suffixed = [number for demand, number in pairs if demand.suffix]
    suppliers = {number for demand, number in pairs if demand.amounts}
    sums = Counter[tuple[int, str]]()
    for demand, number in pairs:
        sums.update({(number, name): amount for name, amount in demand.amounts.items()})
    unsuffixed = frozenset[str]().union(*(facts[number].traits for demand, number in pairs if not demand.suffix))
    providers_of_subtrees = [
        {number for demand, number in pairs if demand.suffix in suffixes} for suffixes in requirements.same_subtrees
    ]
    return (
        not (requirements.isolate and len(suffixed) > len(set(suffixed)))
        and all(
            any(all(top in facts[number].ancestry for number in numbers) for top in numbers)
            for numbers in providers_of_subtrees
        )
        and all(names & unsuffixed for names in requirements.required)
        and not (not requirements.nested and len(suppliers) > len({facts[number].ancestry[-1] for number in suppliers}))
        and not (problem.skip_shared and all(facts[number].shares for number in assignment))
        and all(amount <= facts[number].available[name] for (number, name), amount in sums.items())
    )


def brute_force(problem: TreeProblem) -> Iterator[Mappings]:
    for assignment in itertools.product(*problem.domains):
        if is_solution(problem, assignment):
            mappings: dict[str, set[int]] = {}
            for demand, number in zip(problem.requirements.demands, assignment, strict=True):
                mappings.setdefault(demand.suffix, set()).add(number)
            yield tuple((suffix, frozenset(numbers)) for suffix, numbers in mappings.items())


@pytest.mark.parametrize("piece", range(4))
def test_combining_finds_the_solutions_of_brute_force(piece: int) -> None:
    """Seeds are enumerated instead of drawn by Hypothesis, because some errors show in one problem of ten thousand."""
    for number in range(piece, scale(12_000), 4):
        problem = random_problem(random.Random(number))
        solutions = [
            tuple((suffix, frozenset(providers)) for suffix, providers in candidate.mappings.items())
            for candidate in combine(problem)
        ]
        # Two ways to divide the classes of the unsuffixed group among the same providers are two candidates.
        assert Counter(solutions) == Counter(brute_force(problem)), problem
