"""What must hold between the picks of one combination: a chain of small rules, asked before each pick is made.

Every rule looks ahead as far as it can do so cheaply: it admits a provider only if, by this rule alone, the picks that
are still open can be made.  ``state`` is all of the past that the answers of the future depend on.
"""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Iterator, Sequence
from typing import NamedTuple, Protocol

from placement.search.query.query import UNSUFFIXED, AnyOf
from placement.search.solver import matching
from placement.search.solver.canonical import Shape
from placement.search.solver.effort import Turn
from placement.search.solver.problem import Pick, Plan

#: Looking at so many numbers of a list is one operation, and each takes so many bytes; in a set it takes more.
_LISTED, _NUMBER, _IN_A_SET = 10, 8, 60


class Choice(NamedTuple):
    """A pick, with who can serve it."""

    pick: Pick
    options: tuple[int, ...]
    #: Its place in the plan.
    place: int


class Rule(Protocol):
    """Choices are numbered in the order in which they are made, and undone in the opposite order."""

    def hopeless(self) -> bool:
        """Whether there is no combination at all."""

    def admits(self, number: int, provider: int) -> bool:
        """Whether the provider may be chosen now."""

    def choose(self, number: int, provider: int) -> None: ...

    def undo(self, number: int, provider: int) -> None: ...

    def state(self) -> Hashable: ...


def rules_of(plan: Plan, shape: Shape, choices: Sequence[Choice], turn: Turn) -> Iterator[Rule]:
    """The rules that could refuse anything."""
    if shape.shares:
        yield Unrepeated(shape.shares, choices)
    if plan.isolate and plan.suffixed > 1:
        yield Isolation(choices, turn)
    for name, room in zip(plan.contended, shape.room, strict=True):
        yield Room(name, room, choices, turn)
    if plan.same_subtrees:
        lineage = Lineage(shape.above, turn)
        for suffixes in plan.same_subtrees:
            turn.budget.hold(_NUMBER * len(lineage.above))
            turn.budget.spend(len(lineage.above) // _LISTED)
            yield Subtree(suffixes, lineage, choices)
    if plan.required:
        yield Traits(plan.required, shape.traits, choices, turn)
    if not plan.nested:
        yield Flatness(shape.family, choices)


class Isolation:
    """Suffixed groups are served by different providers."""

    def __init__(self, choices: Sequence[Choice], turn: Turn) -> None:
        self._turn = turn
        self._mine = [choice.pick.suffix != UNSUFFIXED for choice in choices]
        self._options = [choice.options for choice in choices]
        self._taken: set[int] = set()
        self._tight = not matching.roomy(self._open(0), self._seats, turn)

    def _open(self, number: int) -> list[tuple[int, ...]]:
        """The options of the suffixed groups that are still to be served."""
        return [options for mine, options in zip(self._mine[number:], self._options[number:], strict=True) if mine]

    def _seats(self, provider: int) -> int:
        return provider not in self._taken

    def hopeless(self) -> bool:
        return self._tight and not self._possible(0)

    def _possible(self, number: int) -> bool:
        options = self._open(number)
        self._turn.work += len(options)
        return matching.seated(options, self._seats, self._turn)

    def admits(self, number: int, provider: int) -> bool:
        if not self._mine[number]:
            return True
        if provider in self._taken:
            return False
        if not self._tight:
            return True
        self._taken.add(provider)
        possible = self._possible(number + 1)
        self._taken.discard(provider)
        return possible

    def choose(self, number: int, provider: int) -> None:
        if self._mine[number]:
            self._taken.add(provider)

    def undo(self, number: int, provider: int) -> None:
        if self._mine[number]:
            self._taken.discard(provider)

    def state(self) -> Hashable:
        return frozenset(self._taken)


#: Sizes of pieces that are looked at.
_SIZES = 8


class _Open(NamedTuple):
    """Picks of one class."""

    options: list[tuple[int, ...]]
    #: From the greatest to the smallest.
    amounts: list[int]
    #: Everybody among the options.
    within: frozenset[int]
    #: How many ask for so much or more, for some of the amounts.
    askers: list[tuple[int, int]]


class Room:
    """What a provider gives of one class to all picks together is no more than it can give."""

    def __init__(self, name: str, room: tuple[int, ...], choices: Sequence[Choice], turn: Turn) -> None:
        self._turn = turn
        self._amounts = [choice.pick.amounts.get(name, 0) for choice in choices]
        self._options = [choice.options for choice in choices]
        self._left = list(room)
        self._open: dict[int, _Open] = {}
        options, amounts = self._still_open(0).options, self._still_open(0).amounts
        self._tight = not matching.roomy(options, lambda provider: self._left[provider] // amounts[0], turn)

    def _still_open(self, number: int) -> _Open:
        """The picks of the class from this one on."""
        if number not in self._open:
            mine = [later for later in range(number, len(self._amounts)) if self._amounts[later]]
            amounts = sorted((self._amounts[later] for later in mine), reverse=True)
            options = [self._options[later] for later in mine]
            distinct = {id(places): places for places in options}
            self._turn.budget.spend((len(self._amounts) + sum(map(len, distinct.values()))) // _LISTED)
            within = frozenset().union(*distinct.values())
            self._turn.budget.hold(_NUMBER * len(amounts) * 3 + _IN_A_SET * len(within))
            askers = [*dict(zip(amounts, itertools.count(1), strict=False)).items()]
            self._open[number] = _Open(options, amounts, within, askers[:: 1 + len(askers) // _SIZES])
        return self._open[number]

    def _possible(self, number: int) -> bool:
        """Whether everybody would be served if all were as modest as the most modest, and in total, and if of each
        provider there were nothing but pieces of one size for those who ask for that or more."""
        options, amounts, within, askers = self._still_open(number)
        if not amounts:
            return True
        self._turn.work += len(amounts) + len(within)
        left = [self._left[provider] for provider in within]
        if sum(amounts) > sum(left):
            return False
        if any(sum(free // amount for free in left) < count for amount, count in askers):
            return False
        return matching.seated(options, lambda provider: self._left[provider] // amounts[-1], self._turn)

    def hopeless(self) -> bool:
        return self._tight and not self._possible(0)

    def admits(self, number: int, provider: int) -> bool:
        amount = self._amounts[number]
        if amount > self._left[provider]:
            return False
        if not (amount and self._tight):
            return True
        self._left[provider] -= amount
        possible = self._possible(number + 1)
        self._left[provider] += amount
        return possible

    def choose(self, number: int, provider: int) -> None:
        self._left[provider] -= self._amounts[number]

    def undo(self, number: int, provider: int) -> None:
        self._left[provider] += self._amounts[number]

    def state(self) -> Hashable:
        return tuple(self._left)


class Lineage:
    """Who is above whom: a forest of the providers, each below the nearest of the others that is above it."""

    def __init__(self, above: tuple[int, ...], turn: Turn) -> None:
        self.above = above
        self._turn = turn
        #: Preorder numbers: everything below a provider has a number between these two of its own.
        self._first, self._last = [0] * len(above), [0] * len(above)
        #: All providers in preorder: ancestors before descendants.
        self.downward: list[int] = []
        self._number()

    def _number(self) -> None:
        children: list[list[int]] = [[] for _ in self.above]
        for provider, nearest in enumerate(self.above):
            if nearest >= 0:
                children[nearest].append(provider)
        waiting = [provider for provider, nearest in enumerate(self.above) if nearest < 0]
        while waiting:
            provider = waiting.pop()
            self._first[provider] = len(self.downward)
            self.downward.append(provider)
            waiting.extend(children[provider])
        below = [1] * len(self.above)
        for provider in reversed(self.downward):
            self._last[provider] = self._first[provider] + below[provider]
            if self.above[provider] >= 0:
                below[self.above[provider]] += below[provider]

    def covers(self, top: int, provider: int) -> bool:
        """Whether the one is the other, or above it."""
        return self._first[top] <= self._first[provider] < self._last[top]

    def over_both(self, some: int, other: int) -> int:
        """The nearest provider that is, or is above, both of them; -1 if there is none."""
        if self.covers(other, some):
            return other
        while some >= 0 and not self.covers(some, other):
            self._turn.work += 1
            some = self.above[some]
        return some


class Subtree:
    """One of the providers that serve the groups is above, or is, all the others."""

    def __init__(self, suffixes: frozenset[str], lineage: Lineage, choices: Sequence[Choice]) -> None:
        self._lineage = lineage
        self._mine = [choice.pick.suffix in suffixes for choice in choices]
        #: By provider: the last choice by which it, or one that is above it, may still be chosen.
        self._until = [-1] * len(lineage.above)
        options = {
            id(choice.options): (number, choice.options) for number, choice in enumerate(choices) if self._mine[number]
        }
        for number, places in options.values():
            for provider in places:
                self._until[provider] = max(self._until[provider], number)
        for provider in lineage.downward:
            if (nearest := lineage.above[provider]) >= 0:
                self._until[provider] = max(self._until[provider], self._until[nearest])
        #: Who is the nearest to be above, or be, all that were chosen, and whether it is one of them; -1: none is.
        self._over: list[tuple[int, bool]] = []

    def hopeless(self) -> bool:
        return False

    def _with(self, provider: int) -> tuple[int, bool]:
        if not self._over:
            return provider, True
        over, chosen = self._over[-1]
        if over < 0:
            return -1, False
        nearest = self._lineage.over_both(over, provider)
        return nearest, nearest == provider or (nearest == over and chosen)

    def admits(self, number: int, provider: int) -> bool:
        if not self._mine[number]:
            return True
        over, chosen = self._with(provider)
        return chosen or (over >= 0 and self._until[over] > number)

    def choose(self, number: int, provider: int) -> None:
        if self._mine[number]:
            self._over.append(self._with(provider))

    def undo(self, number: int, provider: int) -> None:  # noqa: ARG002 - it is the last one chosen
        if self._mine[number]:
            self._over.pop()

    def state(self) -> Hashable:
        return self._over[-1] if self._over else None


class Traits:
    """The providers of the unsuffixed group have the required traits between them."""

    def __init__(
        self, required: AnyOf, traits: tuple[frozenset[str], ...], choices: Sequence[Choice], turn: Turn
    ) -> None:
        self._turn = turn
        self._traits = traits
        self._mine = [choice.pick.suffix == UNSUFFIXED for choice in choices]
        #: By number: what those who may be chosen from it on could bring.
        self._coming: list[frozenset[str]] = [frozenset()] * (len(choices) + 1)
        for number in range(len(choices) - 1, -1, -1):
            options = choices[number].options if self._mine[number] else ()
            turn.budget.spend(len(options))
            found = self._coming[number + 1].union(*(traits[provider] for provider in options))
            if len(found) == len(self._coming[number + 1]):
                found = self._coming[number + 1]
            else:
                turn.budget.hold(_IN_A_SET * len(found))
            self._coming[number] = found
        #: What is still to be met.
        self._open: list[AnyOf] = [required]

    def hopeless(self) -> bool:
        return not self._possible(0, self._open[0])

    def _possible(self, number: int, still: AnyOf) -> bool:
        self._turn.work += len(still)
        return not any(any_of.isdisjoint(self._coming[number]) for any_of in still)

    def _without(self, provider: int) -> AnyOf:
        return tuple(any_of for any_of in self._open[-1] if any_of.isdisjoint(self._traits[provider]))

    def admits(self, number: int, provider: int) -> bool:
        return not self._mine[number] or self._possible(number + 1, self._without(provider))

    def choose(self, number: int, provider: int) -> None:
        if self._mine[number]:
            self._open.append(self._without(provider))

    def undo(self, number: int, provider: int) -> None:  # noqa: ARG002 - it is the last one chosen
        if self._mine[number]:
            self._open.pop()

    def state(self) -> Hashable:
        return self._open[-1]


class Flatness:
    """No two of the providers that give anything are of one tree."""

    def __init__(self, family: tuple[int, ...], choices: Sequence[Choice]) -> None:
        self._mine = [bool(choice.pick.amounts) for choice in choices]
        self._family = family
        #: By tree: who was chosen of it, as often as it was.
        self._chosen: list[list[int]] = [[] for _ in family]

    def hopeless(self) -> bool:
        return False

    def admits(self, number: int, provider: int) -> bool:
        chosen = self._chosen[self._family[provider]]
        return not chosen or chosen[-1] == provider or not self._mine[number]

    def choose(self, number: int, provider: int) -> None:
        if self._mine[number]:
            self._chosen[self._family[provider]].append(provider)

    def undo(self, number: int, provider: int) -> None:
        if self._mine[number]:
            self._chosen[self._family[provider]].pop()

    def state(self) -> Hashable:
        return tuple(chosen[-1] if chosen else None for chosen in self._chosen)


class Unrepeated:
    """Not everybody shares: those candidates were found in another tree already."""

    def __init__(self, shares: tuple[bool, ...], choices: Sequence[Choice]) -> None:
        self._shares = shares
        own = [not all(shares[provider] for provider in choice.options) for choice in choices]
        #: By number: whether somebody who does not share may be chosen from it on.
        self._coming = [any(own[number:]) for number in range(len(own) + 1)]
        self._found = 0

    def hopeless(self) -> bool:
        return not self._coming[0]

    def admits(self, number: int, provider: int) -> bool:
        return self._found > 0 or self._coming[number + 1] or not self._shares[provider]

    def choose(self, number: int, provider: int) -> None:  # noqa: ARG002 - whatever the pick
        self._found += not self._shares[provider]

    def undo(self, number: int, provider: int) -> None:  # noqa: ARG002
        self._found -= not self._shares[provider]

    def state(self) -> Hashable:
        return self._found > 0
