"""A problem without the names of its providers.

A cloud has a thousand hosts and three kinds of them.  Where two problems have one shape, a solution of the one is a
solution of the other, and what has none in one tree has none in a thousand.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from placement.search.budget import Budget
from placement.search.solver.problem import Problem, Supplier

#: For each pick the number of the provider that serves it.
Assignment = tuple[int, ...]


#: Looking at so many numbers of a list is one operation.
_LISTED = 10
#: Bytes of a number in a tuple, and how many times as much a trait in a set is.
_NUMBER, _TRAIT = 8, 8


class Shape(NamedTuple):
    """Providers are numbered as they appear among the options; what no rule of the plan asks about is left out."""

    #: For each pick.
    options: tuple[tuple[int, ...], ...]
    #: For each contended class, how much each provider can give; not told beyond what is asked for.
    room: tuple[tuple[int, ...], ...] = ()
    #: The nearest of the options that is above each provider, or -1; and where its line ends.
    above: tuple[int, ...] = ()
    family: tuple[int, ...] = ()
    #: Those of the wanted traits that each provider has.
    traits: tuple[frozenset[str], ...] = ()
    #: Whether each provider shares; nothing, if that does not matter.
    shares: tuple[bool, ...] = ()

    @property
    def nbytes(self) -> int:
        """About what it holds in memory."""
        distinct = {id(places): places for places in self.options}
        numbers = len(self.options) + sum(map(len, distinct.values())) + sum(map(len, self.room))
        return _NUMBER * (numbers + sum(map(len, self[2:])) + _TRAIT * sum(map(len, self.traits)))


def shape_of(problem: Problem, budget: Budget) -> tuple[Shape, tuple[int, ...]]:
    """The shape of the problem, and its providers by number; raises Exhausted."""
    plan, suppliers = problem.plan, problem.suppliers
    numbers: dict[int, int] = {}
    known: dict[int, tuple[int, ...]] = {}
    # Lists where generators would do: this is done for every tree, and they cost half.
    numbered = []
    for places in problem.options:
        # Picks that ask for the same have the very same options.
        options_here = known.get(id(places))
        if options_here is None:
            options_here = tuple([numbers.setdefault(provider, len(numbers)) for provider in places])
            known[id(places)] = options_here
        numbered.append(options_here)
    options = tuple(numbered)
    providers = tuple(numbers)
    above: tuple[int, ...] = ()
    family: tuple[int, ...] = ()
    if plan.same_subtrees or not plan.nested:
        above, family = _lines(numbers, suppliers, budget)
    if len(providers) > _LISTED:
        budget.spend((len(providers) * (2 + len(plan.contended)) + sum(map(len, known.values()))) // _LISTED)
    return (
        Shape(
            options,
            tuple(
                tuple(min(suppliers[provider].room.get(name, 0), plan.whole[name]) for provider in providers)
                for name in plan.contended
            ),
            above,
            family,
            tuple(suppliers[provider].traits & plan.wanted for provider in providers) if plan.required else (),
            tuple(suppliers[provider].shares for provider in providers) if problem.repeated else (),
        ),
        providers,
    )


def _lines(
    numbers: Mapping[int, int], suppliers: Mapping[int, Supplier], budget: Budget
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    above, family = [], []
    walked = 0
    roots: dict[int, int] = {}
    for provider in numbers:
        supplier = suppliers[provider]
        steps, nearest = _nearest(supplier.ancestry, numbers)
        walked += steps
        if steps > _LISTED:
            budget.spend(steps)
        above.append(nearest)
        root = supplier.root if supplier.root is not None else deque(supplier.ancestry, 1).pop()
        family.append(roots.setdefault(root, len(roots)))
    budget.spend(walked)
    return tuple(above), tuple(family)


def _nearest(ancestry: Iterable[int], numbers: Mapping[int, int]) -> tuple[int, int]:
    """How many steps above the provider, and which of the options, the nearest is; -1 if none is above it."""
    steps = 0
    for steps, other in enumerate(ancestry):
        if steps and other in numbers:
            return steps, numbers[other]
    return steps, -1


class Known:
    """The solutions of a shape, looked for once and kept; whoever asks later is told from memory first."""

    def __init__(self, solutions: Iterator[Assignment]) -> None:
        self._found: list[Assignment] = []
        self._more = solutions

    def __iter__(self) -> Iterator[Assignment]:
        number = 0
        while True:
            if number == len(self._found):
                found = next(self._more, None)
                if found is None:
                    return
                self._found.append(found)
            yield self._found[number]
            number += 1


Memory = dict[Shape, Known]
