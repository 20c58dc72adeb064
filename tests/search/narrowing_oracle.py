"""The result of each rule of narrowing, by brute force over sets of names (docs: v1-explain).

Nothing here uses the search or the index.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from placement.search.query.query import AnyOf, Group, SearchQuery
from tests.search.oracle import SHARES, fits
from tests.world import World


class ExpectedStep(NamedTuple):
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

    def steps(self) -> Iterator[ExpectedStep]:
        yield from self._root_steps()
        checked = set()
        for group in self.query.groups:
            if not self.roots:
                return
            if not group.suffix:
                yield from self._unsuffixed_steps(group)
                continue
            key = (frozenset(group.resources.items()), group.traits, group.aggregates, group.in_tree)
            if key not in checked:
                checked.add(key)
                yield from self._suffixed_steps(group)

    # --- helpers ---

    def _tree(self, root: str) -> frozenset[str]:
        return frozenset(name for name in self.members if self.world.root(name) == root)

    def _in_trees(self, roots: frozenset[str]) -> frozenset[str]:
        return frozenset(name for name in self.members if self.world.root(name) in roots)

    def _roots_of(self, names: frozenset[str]) -> frozenset[str]:
        return frozenset(map(self.world.root, names))

    def _roots_supplied_by(self, local: frozenset[str], sharing: frozenset[str]) -> frozenset[str]:
        """Return the roots of the trees that contain a local provider, or with which a sharing provider shares."""
        aggregates = frozenset().union(*(self.members[name].aggregates for name in sharing))
        members_reached = {name for name, member in self.members.items() if member.aggregates & aggregates}
        return self._roots_of(local | members_reached)

    def _members_with_any(self, any_of: AnyOf) -> list[frozenset[str]]:
        return [frozenset(n for n, member in self.members.items() if member.traits & names) for names in any_of]

    def _members_in_aggregates(self, any_of: AnyOf) -> frozenset[str]:
        return frozenset(n for n, member in self.members.items() if all(member.aggregates & names for names in any_of))

    def _keep(self, rule: str, group: str | None, roots: frozenset[str]) -> ExpectedStep:
        before, self.roots = self.roots, roots
        extents = [(len(self._in_trees(trees)), len(trees)) for trees in (before, roots)]
        return ExpectedStep(rule, group, extents[0], extents[1], before - roots)

    def _record(
        self,
        rule: str,
        group: Group,
        before: frozenset[str],
        after: frozenset[str],
        amount: tuple[str, int, frozenset[str]] | None = None,
    ) -> ExpectedStep:
        reachable = self._reachable_members()
        before, after = before & reachable, after & reachable
        extents = [(len(names), len(self._roots_of(names))) for names in (before, after)]
        if amount is not None:
            amount = (*amount[:2], amount[2] & reachable)
        return ExpectedStep(rule, group.suffix, extents[0], extents[1], before - after, amount)

    def _reachable_members(self) -> frozenset[str]:
        """Return the providers that can supply a remaining tree: its members, and those that share with it."""
        local = self._in_trees(self.roots)
        aggregates = frozenset().union(*(self.members[name].aggregates for name in local))
        return local | {name for name in self.sharing if self.members[name].aggregates & aggregates}

    # --- rules ---

    def _root_steps(self) -> Iterator[ExpectedStep]:
        requirement = self.query.root_traits
        if requirement.any_of:
            roots = frozenset(
                name for name in self.roots if all(self.members[name].traits & n for n in requirement.any_of)
            )
            yield self._keep("root_required", None, roots)
        if requirement.none_of:
            roots = frozenset(name for name in self.roots if not self.members[name].traits & requirement.none_of)
            yield self._keep("root_required", None, roots)
        for group in self.query.groups:
            if group.suffix:
                continue
            if none_of := group.aggregates.none_of:
                allowed_roots = frozenset(name for name in self.roots if not self.members[name].aggregates & none_of)
                yield self._keep("member_of", "", allowed_roots)
            if group.traits.any_of:
                yield self._traits_step(group, frozenset(self.members))

    def _traits_step(self, group: Group, members: frozenset[str]) -> ExpectedStep:
        roots = self.roots
        for with_traits in self._members_with_any(group.traits.any_of):
            roots &= self._roots_supplied_by(with_traits & members, with_traits & members & self.sharing)
        return self._keep("required", "", roots)

    def _common_steps(self, group: Group) -> Iterator[ExpectedStep]:
        self.chosen = self._in_trees(self.roots) | self.sharing
        if group.in_tree is not None:
            exists = group.in_tree in self.members
            tree = self._tree(self.world.root(group.in_tree)) if exists else frozenset()
            yield self._choose("in_tree", group, tree)
        if group.traits.none_of:
            allowed = frozenset(n for n in self.members if not self.members[n].traits & group.traits.none_of)
            yield self._choose("required", group, allowed)
        if group.aggregates.none_of:
            allowed = frozenset(n for n in self.members if not self.members[n].aggregates & group.aggregates.none_of)
            yield self._choose("member_of", group, allowed)

    def _choose(self, rule: str, group: Group, allowed: frozenset[str]) -> ExpectedStep:
        before, self.chosen = self.chosen, self.chosen & allowed
        return self._record(rule, group, before, self.chosen)

    def _suffixed_steps(self, group: Group) -> Iterator[ExpectedStep]:
        yield from self._common_steps(group)
        if group.aggregates.any_of:
            yield self._choose("member_of", group, self._members_in_aggregates(group.aggregates.any_of))
        if group.traits.any_of:
            yield self._choose("required", group, frozenset.intersection(*self._members_with_any(group.traits.any_of)))
        fitting = self.chosen
        for class_, amount in group.resources.items():
            yield self._amount_step(group, fitting, class_, amount)
            fitting = self._with_capacity(fitting, class_, amount)
        yield self._keep("group", group.suffix, self.roots & self._roots_supplied_by(fitting, fitting & self.sharing))

    def _amount_step(self, group: Group, before: frozenset[str], class_: str, amount: int) -> ExpectedStep:
        after = self._with_capacity(before, class_, amount)
        return self._record("resources", group, before, after, (class_, amount, before))

    def _with_capacity(self, names: frozenset[str], class_: str, amount: int) -> frozenset[str]:
        return frozenset(name for name in names if fits(self.members[name], class_, amount))

    def _unsuffixed_steps(self, group: Group) -> Iterator[ExpectedStep]:
        yield from self._common_steps(group)
        sharing_members = self.sharing
        if group.aggregates.any_of:
            in_aggregates = self._members_in_aggregates(group.aggregates.any_of)
            sharing_members &= in_aggregates
            in_trees = self._in_trees(frozenset(name for name in in_aggregates if self.world.root(name) == name))
            yield self._choose("member_of", group, in_aggregates | in_trees)
        eligible: frozenset[str] = frozenset()
        for class_, amount in group.resources.items():
            yield self._amount_step(group, self.chosen, class_, amount)
            local = self._with_capacity(self.chosen, class_, amount)
            eligible |= local
            yield self._keep("group", "", self.roots & self._roots_supplied_by(local, local & sharing_members))
        if group.traits.any_of:
            yield self._traits_step(group, eligible)


def count_blocked(world: World, class_: str, amount: int, removed: frozenset[str]) -> dict[str, int]:
    """Return the number of removed providers that each property of their inventory excludes."""
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
        if amount > stock.effective_max_unit:
            count("max_unit")
        if amount < stock.min_unit:
            count("min_unit")
        if amount % stock.step_size:
            count("step_size")
    return counts


def largest_amount(world: World, class_: str, providers: frozenset[str], bound: int = 64) -> int:
    """Return the largest amount up to a bound that fits on one of the providers, or 0."""
    amounts = range(1, bound + 1)
    return max((n for n in amounts for name in providers if fits(world.members[name], class_, n)), default=0)
