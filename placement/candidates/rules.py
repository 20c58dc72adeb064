"""What must hold between the picks of one combination: a chain of small rules, asked before each pick is made.

Every rule looks ahead as far as it can do so cheaply: it admits a provider only if, by this rule alone, the picks that
are still open can be made.  ``state`` is all of the past that the answers of the future depend on.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol

from placement.candidates import seating
from placement.candidates.problem import Pick, Plan, Supplier
from placement.candidates.request import AnyOf


class Choice(NamedTuple):
    """A pick, with who can serve it."""

    pick: Pick
    options: tuple[int, ...]
    #: Its place in the plan.
    place: int


class Rule(Protocol):
    """Choices are numbered in the order in which they are made."""

    name: str

    def hopeless(self) -> bool:
        """Whether there is no combination at all."""

    def admits(self, number: int, provider: int) -> bool:
        """Whether the provider may be chosen now."""

    def choose(self, number: int, provider: int) -> None: ...

    def undo(self, number: int, provider: int) -> None: ...

    def state(self) -> Hashable: ...


def rules_of(
    plan: Plan, choices: Sequence[Choice], suppliers: Mapping[int, Supplier], *, repeated: bool
) -> Iterator[Rule]:
    """The rules that can refuse anything."""
    if repeated:
        yield Unrepeated(choices, suppliers)
    if plan.isolate and sum(bool(choice.pick.suffix) for choice in choices) > 1:
        yield Isolation(choices)
    if plan.contended:
        yield Room(plan.contended, choices, suppliers)
    for suffixes in plan.same_subtrees:
        yield Subtree(suffixes, choices, suppliers)
    if plan.required:
        yield Traits(plan.required, choices, suppliers)
    if not plan.nested:
        yield Flatness(choices, suppliers)


class Isolation:
    """Suffixed groups are served by different providers."""

    name = "group_policy"

    def __init__(self, choices: Sequence[Choice]) -> None:
        self._suffixed = [bool(choice.pick.suffix) for choice in choices]
        self._options = [choice.options for choice in choices]
        self._taken: set[int] = set()
        self._tight = not seating.roomy(self._from(0), self._seats)

    def _from(self, number: int) -> list[tuple[int, ...]]:
        """The options of the suffixed choices that are still to be made."""
        return [self._options[later] for later in range(number, len(self._options)) if self._suffixed[later]]

    def _seats(self, provider: int) -> int:
        return provider not in self._taken

    def hopeless(self) -> bool:
        return self._tight and not seating.seated(self._from(0), self._seats)

    def admits(self, number: int, provider: int) -> bool:
        if not self._suffixed[number]:
            return True
        if provider in self._taken:
            return False
        if not self._tight:
            return True
        self._taken.add(provider)
        possible = seating.seated(self._from(number + 1), self._seats)
        self._taken.discard(provider)
        return possible

    def choose(self, number: int, provider: int) -> None:
        if self._suffixed[number]:
            self._taken.add(provider)

    def undo(self, number: int, provider: int) -> None:
        if self._suffixed[number]:
            self._taken.discard(provider)

    def state(self) -> Hashable:
        return frozenset(self._taken)


class Room:
    """What one provider gives of a class to all picks together fits, and is not more than one consumer may have."""

    name = "capacity"

    def __init__(self, classes: frozenset[str], choices: Sequence[Choice], suppliers: Mapping[int, Supplier]) -> None:
        self._suppliers = suppliers
        self._options = [choice.options for choice in choices]
        self._asked = [
            [(name, amount) for name, amount in choice.pick.amounts.items() if name in classes] for choice in choices
        ]
        self._used: dict[tuple[int, str], int] = {}
        self._tight = [name for name in sorted(classes) if not self._roomy(name)]

    def _left(self, provider: int, name: str) -> int:
        free, most = self._suppliers[provider].room[name]
        return min(free, most) - self._used.get((provider, name), 0)

    def _from(self, number: int, name: str) -> tuple[list[tuple[int, ...]], list[int]]:
        """The options and the amounts of the choices still to be made that ask for the class."""
        options, amounts = [], []
        for later in range(number, len(self._options)):
            for asked, amount in self._asked[later]:
                if asked == name:
                    options.append(self._options[later])
                    amounts.append(amount)
        return options, amounts

    def _roomy(self, name: str) -> bool:
        options, amounts = self._from(0, name)
        return seating.roomy(options, lambda provider: self._left(provider, name) // max(amounts))

    def _seated(self, number: int, name: str) -> bool:
        """Whether everybody finds room if all were as modest as the most modest."""
        options, amounts = self._from(number, name)
        if not amounts:
            return True
        within = {provider for places in options for provider in places}
        if sum(amounts) > sum(max(self._left(provider, name), 0) for provider in within):
            return False
        return seating.seated(options, lambda provider: self._left(provider, name) // min(amounts))

    def hopeless(self) -> bool:
        return not all(self._seated(0, name) for name in self._tight)

    def admits(self, number: int, provider: int) -> bool:
        asked = self._asked[number]
        if any(amount > self._left(provider, name) for name, amount in asked):
            return False
        if not any(name in self._tight for name, _ in asked):
            return True
        self.choose(number, provider)
        possible = all(self._seated(number + 1, name) for name, _ in asked if name in self._tight)
        self.undo(number, provider)
        return possible

    def choose(self, number: int, provider: int) -> None:
        for name, amount in self._asked[number]:
            self._used[provider, name] = self._used.get((provider, name), 0) + amount

    def undo(self, number: int, provider: int) -> None:
        for name, amount in self._asked[number]:
            self._used[provider, name] -= amount

    def state(self) -> Hashable:
        return frozenset((where, amount) for where, amount in self._used.items() if amount)


class Subtree:
    """One of the providers that serve the groups is above, or is, all the others."""

    name = "same_subtree"

    def __init__(self, suffixes: frozenset[str], choices: Sequence[Choice], suppliers: Mapping[int, Supplier]) -> None:
        self._mine = [choice.pick.suffix in suffixes for choice in choices]
        #: By number: everybody who may still be chosen after it.
        self._later: list[frozenset[int]] = [frozenset()] * len(choices)
        for number in range(len(choices) - 2, -1, -1):
            following = choices[number + 1].options if self._mine[number + 1] else ()
            self._later[number] = self._later[number + 1].union(following)
        self._suppliers = suppliers
        #: Who was chosen, and who is above, or is, all of them.
        self._chosen: list[int] = []
        self._above: list[frozenset[int]] = []

    def hopeless(self) -> bool:
        return False

    def _over(self, provider: int) -> frozenset[int]:
        line = frozenset(self._suppliers[provider].ancestry)
        return line & self._above[-1] if self._above else line

    def admits(self, number: int, provider: int) -> bool:
        if not self._mine[number]:
            return True
        over = self._over(provider)
        if not over:
            return False
        return provider in over or not over.isdisjoint(self._chosen) or not over.isdisjoint(self._later[number])

    def choose(self, number: int, provider: int) -> None:
        if self._mine[number]:
            self._above.append(self._over(provider))
            self._chosen.append(provider)

    def undo(self, number: int, provider: int) -> None:  # noqa: ARG002 - the last one chosen is the one to undo
        if self._mine[number]:
            self._above.pop()
            self._chosen.pop()

    def state(self) -> Hashable:
        above = self._above[-1] if self._above else None
        return above, above is not None and above.intersection(self._chosen)


class Traits:
    """The providers of the unsuffixed group have the required traits between them."""

    name = "required"

    def __init__(self, required: AnyOf, choices: Sequence[Choice], suppliers: Mapping[int, Supplier]) -> None:
        self._suppliers = suppliers
        self._mine = [not choice.pick.suffix for choice in choices]
        traits = [
            frozenset().union(*(suppliers[provider].traits for provider in choice.options)) if mine else frozenset()
            for mine, choice in zip(self._mine, choices, strict=True)
        ]
        #: By number: what those who may be chosen after it could bring.
        self._later: list[frozenset[str]] = [frozenset()] * len(choices)
        for number in range(len(choices) - 2, -1, -1):
            self._later[number] = self._later[number + 1] | traits[number + 1]
        self._open: list[AnyOf] = [required]
        self._possible = self._later[0] | traits[0] if choices else frozenset()

    def hopeless(self) -> bool:
        return any(any_of.isdisjoint(self._possible) for any_of in self._open[0])

    def _without(self, provider: int) -> AnyOf:
        traits = self._suppliers[provider].traits
        return tuple(any_of for any_of in self._open[-1] if any_of.isdisjoint(traits))

    def admits(self, number: int, provider: int) -> bool:
        left = self._without(provider) if self._mine[number] else self._open[-1]
        return not any(any_of.isdisjoint(self._later[number]) for any_of in left)

    def choose(self, number: int, provider: int) -> None:
        if self._mine[number]:
            self._open.append(self._without(provider))

    def undo(self, number: int, provider: int) -> None:  # noqa: ARG002 - the last one chosen is the one to undo
        if self._mine[number]:
            self._open.pop()

    def state(self) -> Hashable:
        return self._open[-1]


class Flatness:
    """No two of the providers that give anything are of one tree."""

    name = "nested"

    def __init__(self, choices: Sequence[Choice], suppliers: Mapping[int, Supplier]) -> None:
        self._mine = [bool(choice.pick.amounts) for choice in choices]
        self._suppliers = suppliers
        #: By root: who was chosen of its tree, as often as it was.
        self._chosen: dict[int, list[int]] = {}

    def hopeless(self) -> bool:
        return False

    def admits(self, number: int, provider: int) -> bool:
        chosen = self._chosen.get(self._suppliers[provider].root)
        return not chosen or chosen[-1] == provider or not self._mine[number]

    def choose(self, number: int, provider: int) -> None:
        if self._mine[number]:
            self._chosen.setdefault(self._suppliers[provider].root, []).append(provider)

    def undo(self, number: int, provider: int) -> None:
        if self._mine[number]:
            self._chosen[self._suppliers[provider].root].pop()

    def state(self) -> Hashable:
        return frozenset(chosen[-1] for chosen in self._chosen.values() if chosen)


class Unrepeated:
    """Not everybody shares: those candidates were found in another tree already."""

    name = "repeated"

    def __init__(self, choices: Sequence[Choice], suppliers: Mapping[int, Supplier]) -> None:
        self._suppliers = suppliers
        own = [not all(suppliers[provider].shares for provider in choice.options) for choice in choices]
        self._possible = any(own)
        self._later = [any(own[number + 1 :]) for number in range(len(own))]
        self._found = 0

    def hopeless(self) -> bool:
        return not self._possible

    def admits(self, number: int, provider: int) -> bool:
        return self._found > 0 or self._later[number] or not self._suppliers[provider].shares

    def choose(self, number: int, provider: int) -> None:  # noqa: ARG002 - of every choice
        self._found += not self._suppliers[provider].shares

    def undo(self, number: int, provider: int) -> None:  # noqa: ARG002
        self._found -= not self._suppliers[provider].shares

    def state(self) -> Hashable:
        return self._found > 0
