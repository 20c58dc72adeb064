"""A problem without the names of its providers.

A cloud has a thousand hosts and three kinds of them.  Where two problems have one shape, a solution of the one is a
solution of the other, and what has none in one tree has none in a thousand.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from placement.candidates.problem import Problem, Supplier

#: For each pick the number of the provider that serves it.
Assignment = tuple[int, ...]


class Shape(NamedTuple):
    """Providers are numbered as they appear among the options; what no rule of the plan asks about is left out."""

    #: For each pick.
    options: tuple[tuple[int, ...], ...]
    #: For each contended class, how much each provider can give; not told beyond what is asked for.
    room: tuple[tuple[int, ...], ...] = ()
    #: Those of the options that are each provider's parent, its parent's parent, and so on; and where its line ends.
    above: tuple[frozenset[int], ...] = ()
    family: tuple[int, ...] = ()
    #: Those of the wanted traits that each provider has.
    traits: tuple[frozenset[str], ...] = ()
    #: Whether each provider shares; nothing, if that does not matter.
    shares: tuple[bool, ...] = ()


def shape_of(problem: Problem) -> tuple[Shape, tuple[int, ...]]:
    """The shape of the problem, and its providers by number."""
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
    above: tuple[frozenset[int], ...] = ()
    family: tuple[int, ...] = ()
    if plan.same_subtrees or not plan.nested:
        above, family = _lines(numbers, suppliers)
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
    numbers: Mapping[int, int], suppliers: Mapping[int, Supplier]
) -> tuple[tuple[frozenset[int], ...], tuple[int, ...]]:
    above, family = [], []
    roots: dict[int, int] = {}
    for provider in numbers:
        ancestry = suppliers[provider].ancestry
        above.append(frozenset(numbers[other] for other in ancestry[1:] if other in numbers))
        family.append(roots.setdefault(ancestry[-1], len(roots)))
    return tuple(above), tuple(family)


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
