"""The result of each rule of narrowing, by brute force over sets of names (docs: v1-explain).

Nothing here uses the search or the index.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from placement.search.query.query import AnyOf, Group, SearchQuery
from tests.search.oracle import SHARES, fits
from tests.world import World


class Expected(NamedTuple):
    """A rule, with the numbers of providers and trees before and after it."""

    rule: str
    group: str | None
    before: tuple[int, int]
    after: tuple[int, int]
    removed: frozenset[str]
    #: The class and the providers before the rule, for a rule about an amount.
    amount: tuple[str, int, frozenset[str]] | None = None


class Narrowing:
    """The rules of a query, applied one by one."""

    def __init__(self, world: World, query: SearchQuery) -> None:
        self.world = world
        self.query = query
        self.members = world.members
        self.roots = frozenset(name for name in world.members if world.root(name) == name)
        self.sharing = frozenset(name for name, member in world.members.items() if SHARES in member.traits)

    def steps(self) -> Iterator[Expected]:
        yield from self._root_steps()
        known = set()
        for group in self.query.groups:
            if not self.roots:
                return
            if not group.suffix:
                yield from self._unsuffixed(group)
                continue
            key = (frozenset(group.resources.items()), group.traits, group.aggregates, group.in_tree)
            if key not in known:
                known.add(key)
                yield from self._suffixed(group)

    # --- helpers ---

    def _tree(self, root: str) -> frozenset[str]:
        return frozenset(name for name in self.members if self.world.root(name) == root)

    def _in_trees(self, roots: frozenset[str]) -> frozenset[str]:
        return frozenset(name for name in self.members if self.world.root(name) in roots)

    def _roots_of(self, names: frozenset[str]) -> frozenset[str]:
        return frozenset(map(self.world.root, names))

    def _supplied(self, own: frozenset[str], sharing: frozenset[str]) -> frozenset[str]:
        """Return the roots of the trees that contain one of the providers, or with which one shares."""
        aggregates = frozenset().union(*(self.members[name].aggregates for name in sharing))
        reached = {name for name, member in self.members.items() if member.aggregates & aggregates}
        return self._roots_of(own | reached)

    def _having(self, any_of: AnyOf) -> list[frozenset[str]]:
        return [frozenset(n for n, member in self.members.items() if member.traits & names) for names in any_of]

    def _inside(self, any_of: AnyOf) -> frozenset[str]:
        return frozenset(n for n, member in self.members.items() if all(member.aggregates & names for names in any_of))

    def _keep(self, rule: str, group: str | None, roots: frozenset[str]) -> Expected:
        before, self.roots = self.roots, roots
        extents = [(len(self._in_trees(each)), len(each)) for each in (before, roots)]
        return Expected(rule, group, extents[0], extents[1], before - roots)

    def _record(
        self,
        rule: str,
        group: Group,
        before: frozenset[str],
        after: frozenset[str],
        amount: tuple[str, int, frozenset[str]] | None = None,
    ) -> Expected:
        reached = self._reached()
        before, after = before & reached, after & reached
        extents = [(len(each), len(self._roots_of(each))) for each in (before, after)]
        if amount is not None:
            amount = (*amount[:2], amount[2] & reached)
        return Expected(rule, group.suffix, extents[0], extents[1], before - after, amount)

    def _reached(self) -> frozenset[str]:
        """Return the providers that can supply a remaining tree: its members, and those that share with it."""
        own = self._in_trees(self.roots)
        aggregates = frozenset().union(*(self.members[name].aggregates for name in own))
        return own | {name for name in self.sharing if self.members[name].aggregates & aggregates}

    # --- rules ---

    def _root_steps(self) -> Iterator[Expected]:
        wanted = self.query.root_traits
        if wanted.any_of:
            kept = frozenset(name for name in self.roots if all(self.members[name].traits & n for n in wanted.any_of))
            yield self._keep("root_required", None, kept)
        if wanted.none_of:
            kept = frozenset(name for name in self.roots if not self.members[name].traits & wanted.none_of)
            yield self._keep("root_required", None, kept)
        for group in self.query.groups:
            if group.suffix:
                continue
            if none_of := group.aggregates.none_of:
                outside = frozenset(name for name in self.roots if not self.members[name].aggregates & none_of)
                yield self._keep("member_of", "", outside)
            if group.traits.any_of:
                yield self._with_traits(group, frozenset(self.members))

    def _with_traits(self, group: Group, members: frozenset[str]) -> Expected:
        kept = self.roots
        for having in self._having(group.traits.any_of):
            kept &= self._supplied(having & members, having & members & self.sharing)
        return self._keep("required", "", kept)

    def _common(self, group: Group) -> Iterator[Expected]:
        self.chosen = self._in_trees(self.roots) | self.sharing
        if group.in_tree is not None:
            known = group.in_tree in self.members
            tree = self._tree(self.world.root(group.in_tree)) if known else frozenset()
            yield self._choose("in_tree", group, tree)
        if group.traits.none_of:
            allowed = frozenset(n for n in self.members if not self.members[n].traits & group.traits.none_of)
            yield self._choose("required", group, allowed)
        if group.aggregates.none_of:
            allowed = frozenset(n for n in self.members if not self.members[n].aggregates & group.aggregates.none_of)
            yield self._choose("member_of", group, allowed)

    def _choose(self, rule: str, group: Group, allowed: frozenset[str]) -> Expected:
        before, self.chosen = self.chosen, self.chosen & allowed
        return self._record(rule, group, before, self.chosen)

    def _suffixed(self, group: Group) -> Iterator[Expected]:
        yield from self._common(group)
        if group.aggregates.any_of:
            yield self._choose("member_of", group, self._inside(group.aggregates.any_of))
        if group.traits.any_of:
            yield self._choose("required", group, frozenset.intersection(*self._having(group.traits.any_of)))
        fitting = self.chosen
        for class_, amount in group.resources.items():
            yield self._fitting(group, fitting, class_, amount)
            fitting = self._with_room(fitting, class_, amount)
        yield self._keep("group", group.suffix, self.roots & self._supplied(fitting, fitting & self.sharing))

    def _fitting(self, group: Group, before: frozenset[str], class_: str, amount: int) -> Expected:
        after = self._with_room(before, class_, amount)
        return self._record("resources", group, before, after, (class_, amount, before))

    def _with_room(self, names: frozenset[str], class_: str, amount: int) -> frozenset[str]:
        return frozenset(name for name in names if fits(self.members[name], class_, amount))

    def _unsuffixed(self, group: Group) -> Iterator[Expected]:
        yield from self._common(group)
        may_share = self.sharing
        if group.aggregates.any_of:
            inside = self._inside(group.aggregates.any_of)
            may_share &= inside
            spanned = self._in_trees(frozenset(name for name in inside if self.world.root(name) == name))
            yield self._choose("member_of", group, inside | spanned)
        eligible: frozenset[str] = frozenset()
        for class_, amount in group.resources.items():
            yield self._fitting(group, self.chosen, class_, amount)
            local = self._with_room(self.chosen, class_, amount)
            eligible |= local
            yield self._keep("group", "", self.roots & self._supplied(local, local & may_share))
        if group.traits.any_of:
            yield self._with_traits(group, eligible)


def blocking(world: World, class_: str, amount: int, removed: frozenset[str]) -> dict[str, int]:
    """Return how many of the removed providers cannot serve the amount, by the property of the inventory to blame."""
    counts: dict[str, int] = {}

    def count(name: str) -> None:
        counts[name] = counts.get(name, 0) + 1

    for name in removed:
        stock = world.members[name].stock.get(class_)
        if stock is None:
            count("absent")
            continue
        capacity = (stock.total - stock.reserved) * stock.allocation_ratio
        if amount > stock.total * stock.allocation_ratio:
            count("total")
        elif amount > capacity:
            count("reserved")
        elif stock.used + amount > capacity:
            count("used")
        if amount > stock.most:
            count("max_unit")
        if amount < stock.min_unit:
            count("min_unit")
        if amount % stock.step_size:
            count("step_size")
    return counts


def most(world: World, class_: str, providers: frozenset[str], bound: int = 64) -> int:
    """Return the largest amount up to a bound that fits on one of the providers, or 0."""
    amounts = range(1, bound + 1)
    return max((n for n in amounts for name in providers if fits(world.members[name], class_, n)), default=0)
