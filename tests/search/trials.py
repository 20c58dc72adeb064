"""The candidates of many similar queries in one world, tree by tree: the rules of ``oracle``, with less repetition.

What can serve a group in a tree is remembered, and combinations are given up at the first group that does not fit.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator

from placement.search.query.query import UNSUFFIXED, Group, SearchQuery
from tests.search import oracle
from tests.world import World

#: What decides which providers can serve a group.
GroupKey = tuple[object, ...]
Combination = tuple[oracle.Match, ...]


class Trials:
    """The candidates of queries in a world."""

    def __init__(self, world: World) -> None:
        self.world = world
        #: In the order of creation.
        self.roots = [name for name in sorted(world.members, key=world.ids.__getitem__) if world.root(name) == name]
        self._usable = {
            root: [member for member in world.members.values() if oracle.serves(world, member, root)]
            for root in self.roots
        }
        self._above = {name: frozenset(world.ancestry(name)) for name in world.members}
        self._matches: dict[tuple[GroupKey, str], list[oracle.Match]] = {}

    def trees(self, query: SearchQuery) -> frozenset[str]:
        """Return the roots of the trees with candidates, those that other trees have, too, included."""
        return frozenset(root for root in self.roots if next(self.candidates(query, root), None) is not None)

    def number(self, query: SearchQuery, bound: int) -> int:
        """Return the number of different candidates; those beyond a bound may be left out."""
        numbers: dict[oracle.Answer, int] = {}
        for root in self.roots:
            for combination, ways in self.candidates(query, root):
                numbers[oracle.answer(query, combination)] = ways
                if len(numbers) >= bound:
                    return bound
        return sum(numbers.values())

    def candidates(self, query: SearchQuery, root: str) -> Iterator[tuple[Combination, int]]:
        """Yield the candidates of a tree.

        Of candidates that differ only in which of several equal groups has which provider one stands for all; the
        number says for how many.
        """
        if not self.stands(query, root):
            return
        options = [self.matches(group, root) for group in query.groups]
        if all(options):
            yield from self._combined(query, options, twins(query))

    def stands(self, query: SearchQuery, root: str) -> bool:
        """Whether a tree meets the conditions on roots."""
        traits = self.world.members[root].traits
        return oracle.meets(query.root_traits, traits) and not query.avoided & traits

    def matches(self, group: Group, root: str) -> list[oracle.Match]:
        """Return every way to serve a group in a tree."""
        key = key_of(group), root
        if key not in self._matches:
            found = oracle.matching(self.world, SearchQuery((group,)), group, root, self._usable[root])
            self._matches[key] = list(found)
        return self._matches[key]

    def subtree_holds(self, names: frozenset[str]) -> bool:
        """Whether one of the providers is above all others."""
        return any(all(top in self._above[name] for name in names) for top in names)

    # --- combining ---

    def _combined(
        self, query: SearchQuery, options: list[list[oracle.Match]], twin_of: list[int | None]
    ) -> Iterator[tuple[Combination, int]]:
        chosen: list[int] = []

        def extend(sums: Counter[tuple[str, str]], taken: frozenset[str]) -> Iterator[tuple[Combination, int]]:
            place = len(chosen)
            if place == len(options):
                combination = tuple(options[at][number] for at, number in enumerate(chosen))
                if self._subtrees_hold(query, combination):
                    yield combination, ways(chosen, twin_of)
                return
            twin = twin_of[place]
            for number in range(0 if twin is None else chosen[twin], len(options[place])):
                match = options[place][number]
                alone = query.isolate and query.groups[place].suffix != UNSUFFIXED
                if alone and match[0][0] in taken:
                    continue
                more = self._added(sums, match)
                if more is not None:
                    chosen.append(number)
                    yield from extend(more, taken | {match[0][0]} if alone else taken)
                    chosen.pop()

        yield from extend(Counter(), frozenset())

    def _added(self, sums: Counter[tuple[str, str]], match: oracle.Match) -> Counter[tuple[str, str]] | None:
        """Return what is used together; None if it is too much."""
        more = sums.copy()
        for name, class_, amount in match:
            if class_ is not None:
                more[name, class_] += amount
                if not oracle.sum_fits(self.world.members[name], class_, more[name, class_]):
                    return None
        return more

    def _subtrees_hold(self, query: SearchQuery, combination: Combination) -> bool:
        if not query.same_subtrees:
            return True
        used = {
            group.suffix: {name for name, _, _ in match} for group, match in zip(query.groups, combination, strict=True)
        }
        return all(
            self.subtree_holds(frozenset().union(*(used[suffix] for suffix in suffixes)))
            for suffixes in query.same_subtrees
        )


def key_of(group: Group) -> GroupKey:
    """Return what is equal for groups that the same providers can serve."""
    return group.suffix == UNSUFFIXED, tuple(group.resources.items()), group.traits, group.aggregates, group.in_tree


def twins(query: SearchQuery) -> list[int | None]:
    """Return for each group the place of the last equal one before it, which the same rules concern; or None."""
    last: dict[object, int] = {}
    found = []
    for place, group in enumerate(query.groups):
        key = key_of(group), tuple(group.suffix in suffixes for suffixes in query.same_subtrees)
        found.append(last.get(key))
        last[key] = place
    return found


def ways(chosen: list[int], twin_of: list[int | None]) -> int:
    """Return in how many ways equal groups can divide what was chosen for them."""
    first: list[int] = []
    for place, twin in enumerate(twin_of):
        first.append(place if twin is None else first[twin])
    number = 1
    for block in set(first):
        of_block = [choice for place, choice in zip(first, chosen, strict=True) if place == block]
        number *= math.factorial(len(of_block))
        for times in Counter(of_block).values():
            number //= math.factorial(times)
    return number
