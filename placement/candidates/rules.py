"""What must hold between the picks of one combination: a chain of small rules, asked before each pick is made.

Every rule looks ahead as far as it can do so cheaply: it admits a provider only if, by this rule alone, the picks that
are still open can be made.  ``state`` is all of the past that the answers of the future depend on.
"""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Iterator, Sequence
from typing import NamedTuple, Protocol

from placement.candidates import seating
from placement.candidates.patience import Turn
from placement.candidates.problem import Pick, Plan
from placement.candidates.request import UNSUFFIXED, AnyOf
from placement.candidates.shape import Shape


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
    for suffixes in plan.same_subtrees:
        yield Subtree(suffixes, shape.above, choices)
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
        self._tight = not seating.roomy(self._open(0), self._seats)

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
        return seating.seated(options, self._seats)

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
        self._tight = not seating.roomy(options, lambda provider: self._left[provider] // amounts[0])

    def _still_open(self, number: int) -> _Open:
        """The picks of the class from this one on."""
        if number not in self._open:
            mine = [later for later in range(number, len(self._amounts)) if self._amounts[later]]
            amounts = sorted((self._amounts[later] for later in mine), reverse=True)
            options = [self._options[later] for later in mine]
            distinct = {id(places): places for places in options}
            within = frozenset().union(*distinct.values())
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
        return seating.seated(options, lambda provider: self._left[provider] // amounts[-1])

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


class Subtree:
    """One of the providers that serve the groups is above, or is, all the others."""

    def __init__(self, suffixes: frozenset[str], above: tuple[frozenset[int], ...], choices: Sequence[Choice]) -> None:
        self._mine = [choice.pick.suffix in suffixes for choice in choices]
        self._line = [line | {provider} for provider, line in enumerate(above)]
        #: By number: everybody who may still be chosen after it.
        self._later: list[frozenset[int]] = [frozenset()] * len(choices)
        for number in range(len(choices) - 2, -1, -1):
            following = choices[number + 1].options if self._mine[number + 1] else ()
            self._later[number] = self._later[number + 1].union(following)
        self._chosen: list[int] = []
        #: Who is above, or is, all that were chosen.
        self._over: list[frozenset[int]] = []

    def hopeless(self) -> bool:
        return False

    def _over_all(self, provider: int) -> frozenset[int]:
        line = self._line[provider]
        return line & self._over[-1] if self._over else line

    def admits(self, number: int, provider: int) -> bool:
        if not self._mine[number]:
            return True
        over = self._over_all(provider)
        return provider in over or not over.isdisjoint(self._chosen) or not over.isdisjoint(self._later[number])

    def choose(self, number: int, provider: int) -> None:
        if self._mine[number]:
            self._over.append(self._over_all(provider))
            self._chosen.append(provider)

    def undo(self, number: int, provider: int) -> None:  # noqa: ARG002 - it is the last one chosen
        if self._mine[number]:
            self._over.pop()
            self._chosen.pop()

    def state(self) -> Hashable:
        return (self._over[-1], self._over[-1].intersection(self._chosen)) if self._over else None


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
            self._coming[number] = self._coming[number + 1].union(*(traits[provider] for provider in options))
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
