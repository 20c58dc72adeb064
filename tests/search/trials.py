"""The candidates of many similar queries in one world, tree by tree: the rules of ``oracle``, with less repetition.

The providers that can serve a group in a tree are cached, and a combination is abandoned at the first group that does
not fit.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator

from placement.search.query.query import UNSUFFIXED, Group, SearchQuery
from tests.search import oracle
from tests.world import World

#: The properties of a group that determine which providers can serve it.
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
        """Return the roots of the trees with candidates, even if other trees share them."""
        return frozenset(root for root in self.roots if next(self.candidates(query, root), None) is not None)

    def number(self, query: SearchQuery, bound: int) -> int:
        """Return the number of different candidates, up to a bound."""
        numbers: dict[oracle.Candidate, int] = {}
        for root in self.roots:
            for combination, ways in self.candidates(query, root):
                numbers[oracle.as_candidate(query, combination)] = ways
                if len(numbers) >= bound:
                    return bound
        return sum(numbers.values())

    def candidates(self, query: SearchQuery, root: str) -> Iterator[tuple[Combination, int]]:
        """Yield the candidates of a tree.

        Candidates that differ only in the assignment of equal groups are yielded once, with their number.
        """
        if not self.meets_root_conditions(query, root):
            return
        options = [self.matches(group, root) for group in query.groups]
        if all(options):
            yield from self._combinations(query, options, twins(query))

    def meets_root_conditions(self, query: SearchQuery, root: str) -> bool:
        """Whether a tree meets the conditions on roots."""
        traits = self.world.members[root].traits
        return oracle.meets(query.root_traits, traits) and not query.avoided & traits

    def matches(self, group: Group, root: str) -> list[oracle.Match]:
        """Return every way to serve a group in a tree."""
        key = key_of(group), root
        if key not in self._matches:
            options = oracle.matching(self.world, SearchQuery((group,)), group, root, self._usable[root])
            self._matches[key] = list(options)
        return self._matches[key]

    def subtree_holds(self, names: frozenset[str]) -> bool:
        """Whether one of the providers is an ancestor of all others."""
        return any(all(top in self._above[name] for name in names) for top in names)

    # --- combining ---

    def _combinations(
        self, query: SearchQuery, options: list[list[oracle.Match]], twin_of: list[int | None]
    ) -> Iterator[tuple[Combination, int]]:
        chosen: list[int] = []

        def extend(sums: Counter[tuple[str, str]], used: frozenset[str]) -> Iterator[tuple[Combination, int]]:
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
                if alone and match[0][0] in used:
                    continue
                new_sums = self._add_match(sums, match)
                if new_sums is not None:
                    chosen.append(number)
                    yield from extend(new_sums, used | {match[0][0]} if alone else used)
                    chosen.pop()

        yield from extend(Counter(), frozenset())

    def _add_match(self, sums: Counter[tuple[str, str]], match: oracle.Match) -> Counter[tuple[str, str]] | None:
        """Return the sums with the amounts of a match; None if they exceed the capacity."""
        new_sums = sums.copy()
        for name, class_, amount in match:
            if class_ is not None:
                new_sums[name, class_] += amount
                if not oracle.sum_fits(self.world.members[name], class_, new_sums[name, class_]):
                    return None
        return new_sums

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
    """Return a key that is equal for groups that the same providers can serve."""
    return group.suffix == UNSUFFIXED, tuple(group.resources.items()), group.traits, group.aggregates, group.in_tree


def twins(query: SearchQuery) -> list[int | None]:
    """Return for each group the place of the last equal group before it under the same rules, or None."""
    last: dict[object, int] = {}
    places = []
    for place, group in enumerate(query.groups):
        key = key_of(group), tuple(group.suffix in suffixes for suffixes in query.same_subtrees)
        places.append(last.get(key))
        last[key] = place
    return places


def ways(chosen: list[int], twin_of: list[int | None]) -> int:
    """Return the number of ways in which equal groups can divide their matches."""
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
