"""The required content of an explanation, by brute force: every change of the query is tried (docs: v1-explain).

Nothing here uses the search, the index, or the code of explanations.  ``explanation_judge`` compares the two.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache, cached_property

from placement.search.query.query import UNSUFFIXED, SearchQuery
from tests.search import changes, oracle
from tests.search.changes import Condition
from tests.search.narrowing_oracle import Narrowing
from tests.search.trials import Trials
from tests.world import Stock, World

#: Maximum number of counted candidates.
COUNTED = 1000
#: The greatest amount that an inventory of these worlds can serve.
LARGEST = 64


@dataclass(frozen=True)
class Change:
    """A change of the query that leads to candidates in some trees."""

    kind: str
    size: float
    conditions: tuple[Condition, ...]
    query: SearchQuery
    trees: frozenset[str]
    #: None if the documents do not specify the wording.
    text: str | None = None

    @property
    def place(self) -> tuple[changes.Place, ...]:
        return tuple(condition.place for condition in self.conditions)


class Expected:
    """The facts about a query in a world.

    Args:
        unknown: The traits that do not exist.
    """

    def __init__(self, world: World, query: SearchQuery, unknown: frozenset[str] = frozenset()) -> None:
        self.world = world
        self.query = query
        self.trials = Trials(world)
        self.unknown = unknown
        self.conditions = changes.conditions(query)
        members = world.members.values()
        self.provided = frozenset().union(*(member.traits | member.aggregates for member in members))
        self._allowed: dict[str, list[int]] = {}

    @cached_property
    def number(self) -> int:
        return self.trials.number(self.query, COUNTED + 1)

    def key(self, query: SearchQuery) -> str:
        """Return a canonical form, equal for queries that are equivalent in this world."""
        return changes.canonical(query, self.provided, self._suffixes)

    def key_as_written(self, query: SearchQuery) -> str:
        """Return a canonical form, equal for queries that are equivalent in any world."""
        names = frozenset().union(query.trait_names, *(group.aggregates.names for group in query.groups))
        return changes.canonical(query, self.provided | names, self._suffixes)

    @property
    def _suffixes(self) -> frozenset[str]:
        return frozenset(group.suffix for group in self.query.groups)

    # --- single changes ---

    @cached_property
    def amounts(self) -> dict[Condition, list[Change]]:
        """Smaller and larger amounts for each condition, the nearest first; each helps a further tree."""
        amount_conditions = [condition for condition in self.conditions if condition.kind == "amount"]
        return {condition: [*self._smaller(condition), *self._larger(condition)] for condition in amount_conditions}

    def _smaller(self, condition: Condition) -> Iterator[Change]:
        yield from self._first_for_trees(condition, range(condition.amount - 1, 0, -1))

    def _larger(self, condition: Condition) -> Iterator[Change]:
        yield from self._first_for_trees(condition, range(condition.amount + 1, LARGEST + 1))

    def _first_for_trees(self, condition: Condition, amounts: Iterable[int]) -> Iterator[Change]:
        served_trees: frozenset[str] = frozenset()
        for amount in amounts:
            if amount not in self._fitting(condition.resource_class):
                continue
            relaxed = changes.with_amounts(self.query, {condition: amount})
            trees = self.trials.trees(relaxed)
            if trees - served_trees:
                served_trees |= trees
                size = abs(condition.amount - amount) / max(condition.amount, amount)
                text = f"with resources{condition.suffix}={condition.resource_class}:{amount}"
                yield Change("amount", size, (condition,), relaxed, trees, text)

    def _fitting(self, class_: str) -> list[int]:
        """Return the amounts that fit on some provider."""
        if class_ not in self._allowed:
            members = self.world.members.values()
            fitting = (n for n in range(1, LARGEST + 1) if any(oracle.fits(member, class_, n) for member in members))
            self._allowed[class_] = list(fitting)
        return self._allowed[class_]

    @cached_property
    def spreads(self) -> dict[Condition, list[Change]]:
        """Amounts spread over groups, the fewest groups first; each leads to candidates in a further tree."""
        spreading = {group.suffix for group in self.query.groups if changes.can_be_spread(group)}
        amount_conditions = [
            condition for condition in self.conditions if condition.kind == "amount" and condition.suffix in spreading
        ]
        return {condition: list(self._spread(condition)) for condition in amount_conditions}

    def _spread(self, condition: Condition) -> Iterator[Change]:
        served_trees: frozenset[str] = frozenset()
        for number in range(2, changes.MAX_GROUPS + 1):
            if condition.amount % number:
                continue
            relaxed = changes.spread(self.query, condition, number)
            trees = self.trials.trees(relaxed)
            if trees - served_trees:
                served_trees |= trees
                yield Change("spread", number / 100, (condition,), relaxed, trees)

    @cached_property
    def left_out(self) -> list[Change]:
        """The conditions, including classes, whose removal leads to candidates."""
        removals = []
        for condition in self.conditions:
            relaxed = changes.without(self.query, self.unknown, condition)
            if relaxed is not None and (trees := self.trials.trees(relaxed)):
                kind, size = ("resource", 1.5) if condition.kind == "amount" else (condition.kind, 1)
                text = f"without {self._removal_text(condition)}"
                removals.append(Change(kind, size, (condition,), relaxed, trees, text))
        return removals

    def _removal_text(self, condition: Condition) -> str:
        """Return the text of a removed condition, with the groups that it removes."""
        relaxed = changes.without(self.query, self.unknown, condition)
        suffixes = {group.suffix for group in relaxed.groups} if relaxed is not None else set()
        removed_groups = [changes.text_of_group(group) for group in self.query.groups if group.suffix not in suffixes]
        if condition.kind == "same_subtree":
            return "&".join([condition.parameter, *removed_groups])
        return "&".join(removed_groups) if condition.kind == "amount" and removed_groups else condition.parameter

    @cached_property
    def other_aggregates(self) -> list[Change]:
        """The aggregates that lead to candidates in place of a condition, except those that the group already names."""
        existing = frozenset().union(*(member.aggregates for member in self.world.members.values()))
        requested = {group.suffix: changes.any_names(group.aggregates.any_of) for group in self.query.groups}
        replacements = []
        for condition in self.conditions:
            if condition.kind != "aggregate" or condition.forbidden:
                continue
            for name in sorted(existing - requested[condition.suffix]):
                relaxed = changes.with_aggregate(self.query, condition, name)
                if trees := self.trials.trees(relaxed):
                    text = f"with member_of{condition.suffix}={name}"
                    replacements.append(Change("aggregate", 1, (condition,), relaxed, trees, text))
        return replacements

    @cached_property
    def singles(self) -> list[Change]:
        """The single changes that must be offered, except other aggregates."""
        offered = []
        for condition in self.conditions:
            nearest = [self._nearest(condition, larger) for larger in (False, True)]
            offered += [change for change in nearest if change is not None]
            offered += self.spreads.get(condition, [])[:1]
        solved = {change.conditions[0] for change in offered}
        offered += [change for change in self.left_out if change.conditions[0] not in solved]
        return offered

    def _nearest(self, condition: Condition, larger: bool) -> Change | None:
        """Return the change to the largest smaller amount, or to the least larger one."""
        offered = self.amounts.get(condition, [])
        return next((change for change in offered if is_larger(change) == larger), None)

    # --- several changes ---

    @cached_property
    def several(self) -> list[list[Change]]:
        """The combinations of two or three changes that help, if no single change does."""
        if self.singles:
            return []
        for number in (2, 3):
            ways = (
                self._combined_changes(conditions) for conditions in itertools.combinations(self.conditions, number)
            )
            if helpful := [way for way in ways if way]:
                return helpful
        return []

    @property
    def few_changes_help(self) -> bool:
        """Whether one or two changes suffice."""
        return bool(self.singles or (self.several and len(self.several[0][0].conditions) == 2))

    def _combined_changes(self, conditions: tuple[Condition, ...]) -> list[Change]:
        """Return the changes of these conditions that remove the fewest classes, with the other amounts raised."""
        amount_conditions = [condition for condition in conditions if condition.kind == "amount"]
        other_conditions = [condition for condition in conditions if condition.kind != "amount"]
        for number in range(len(amount_conditions) + 1):
            ways = [
                relaxed
                for dropped in itertools.combinations(amount_conditions, number)
                for relaxed in self._lowered_queries(
                    other_conditions,
                    [condition for condition in amount_conditions if condition not in dropped],
                    dropped,
                )
            ]
            if ways:
                return [Change("several", len(conditions), conditions, way, self.trials.trees(way)) for way in ways]
        return []

    def _lowered_queries(
        self, other_conditions: list[Condition], lowered: list[Condition], dropped: tuple[Condition, ...]
    ) -> Iterator[SearchQuery]:
        """Yield the queries with the smallest amounts, raised; the smallest amount depends on the inventory."""
        base = changes.without(self.query, self.unknown, *other_conditions, *dropped)
        if base is None:
            return
        for least in itertools.product(*(self._smallest(condition) for condition in lowered)):
            smallest = dict(zip(lowered, least, strict=True))
            if self.trials.trees(changes.with_amounts(base, smallest)):
                yield self._raise_amounts(base, smallest)

    def _raise_amounts(self, base: SearchQuery, smallest: dict[Condition, int]) -> SearchQuery:
        amounts = dict(smallest)
        for condition, least in smallest.items():
            for amount in range(condition.amount - 1, least, -1):
                raised = {**amounts, condition: amount}
                if self.trials.trees(changes.with_amounts(base, raised)):
                    amounts = raised
                    break
        return changes.with_amounts(base, amounts)

    def _smallest(self, condition: Condition) -> list[int]:
        """Return the smallest other amount that each inventory of the class allows.

        A provider with free capacity for another amount has free capacity for this one.
        """
        least = {allowed(stock)[0] for stock in self.stocks(condition.resource_class) if allowed(stock)}
        return sorted(least - {condition.amount})

    def stocks(self, class_: str | None) -> list[Stock]:
        return [member.stock[class_] for member in self.world.members.values() if class_ in member.stock]

    # --- trees ---

    @cached_property
    def nearest(self) -> dict[str, list[Change]]:
        """The smallest changes that lead to candidates in a tree, by root; several if they are equal in size."""
        single = [
            change for offered in (self.amounts, self.spreads) for options in offered.values() for change in options
        ]
        all_changes = [*single, *self._avoided_hosts_allowed, *self.other_aggregates]
        smallest = {}
        for root in self.trials.roots:
            helping = [change for change in all_changes if root in change.trees]
            solved = {change.conditions[0] for change in helping if change.kind in ("amount", "spread")}
            helping += [
                change
                for change in self.left_out
                if root in change.trees and not (change.kind == "resource" and change.conditions[0] in solved)
            ]
            # The first amount that helps a tree is that tree's amount.
            if helping:
                least = min(change.size for change in helping)
                smallest[root] = [change for change in helping if change.size == least]
        return smallest

    @cached_property
    def _avoided_hosts_allowed(self) -> list[Change]:
        """The change that only a near miss makes: avoided hosts are allowed."""
        if not self.query.avoided:
            return []
        condition = Condition("root_required", "", (0, 0, 0))
        relaxed = replace(self.query, avoided=frozenset())
        trees = self.trials.trees(relaxed)
        return [Change("root_required", 0, (condition,), relaxed, trees)] if trees else []

    # --- obstacles ---

    @cached_property
    def narrowing(self) -> Narrowed:
        return Narrowed.of(self.world, self.query)

    def violations(self, root: str) -> frozenset[frozenset[str]]:
        """Return the set of rules that each combination of a tree violates; each demand alone can be supplied."""
        options = []
        for group in self.query.groups:
            loose = replace(group, traits=replace(group.traits, any_of=())) if group.suffix == UNSUFFIXED else group
            options.append(self.trials.matches(loose, root))
        combinations = itertools.product(*options)
        return frozenset(frozenset(_violated(self.trials, self.query, combination)) for combination in combinations)


def is_larger(change: Change) -> bool:
    """Whether a change raises the amount."""
    (condition,) = change.conditions
    (amount,) = {
        group.resources[condition.resource_class] for group in change.query.groups if group.suffix == condition.suffix
    }
    return amount > condition.amount


@cache
def allowed(stock: Stock) -> list[int]:
    """Return the amounts that an inventory allows if nothing is used."""
    member = oracle.Member("", None, {"": replace(stock, used=0)}, frozenset(), frozenset())
    return [amount for amount in range(1, LARGEST + 1) if oracle.fits(member, "", amount)]


# --- the number of candidates, and the obstacle ---


@dataclass(frozen=True)
class Narrowed:
    """The result of narrowing."""

    #: The first rule that leaves no tree, with the suffix of its group, or None.
    obstacle: tuple[str, str | None] | None
    roots: frozenset[str]

    @classmethod
    def of(cls, world: World, query: SearchQuery) -> Narrowed:
        narrowing = Narrowing(world, query)
        steps = list(narrowing.steps())
        emptied = next(((step.rule, step.group) for step in steps if not step.after[1]), None)
        roots = frozenset(root for root in narrowing.roots if not query.avoided & world.members[root].traits)
        if narrowing.roots and not roots:
            return cls(("root_required", None), roots)
        return cls(emptied, roots)


def _violated(trials: Trials, query: SearchQuery, combination: tuple[oracle.Match, ...]) -> Iterator[str]:
    used = {
        group.suffix: {name for name, _, _ in match} for group, match in zip(query.groups, combination, strict=True)
    }
    suffixed = [name for suffix, names in used.items() if suffix != UNSUFFIXED for name in names]
    if query.isolate and len(suffixed) > len(set(suffixed)):
        yield "group_policy"
    for suffixes in query.same_subtrees:
        if not trials.subtree_holds(frozenset().union(*(used[suffix] for suffix in suffixes))):
            yield "same_subtree"
    sums = oracle.sum_amounts(combination)
    members = trials.world.members
    if not all(oracle.sum_fits(members[name], class_, amount) for (name, class_), amount in sums.items()):
        yield "resources"
    for group in query.groups:
        if group.suffix == UNSUFFIXED:
            traits = frozenset().union(*(members[name].traits for name in used[UNSUFFIXED]))
            if not all(names & traits for names in group.traits.any_of):
                yield "required"


# --- mistakes ---


def mistakes(expected: Expected) -> Iterator[tuple[str, frozenset[str]]]:
    """Yield the parts of the query that fail at any usage: the kind, and names; the text contains one of them."""
    query, members = expected.query, expected.world.members.values()
    traits = frozenset().union(*(member.traits for member in members))
    aggregates = frozenset().union(*(member.aggregates for member in members))
    for sets in (query.root_traits.any_of, *(group.traits.any_of for group in query.groups)):
        yield from (("trait", names) for names in sets if not names & traits)
    yield from (("trait", frozenset({name})) for name in sorted(query.trait_names & expected.unknown))
    for group in query.groups:
        yield from (("aggregate", names) for names in group.aggregates.any_of if not names & aggregates)
        if group.in_tree is not None and group.in_tree not in expected.world.members:
            yield "in_tree", frozenset({group.in_tree})
        for class_, amount in group.resources.items():
            stocks = expected.stocks(class_)
            if not stocks:
                yield "resource_class", frozenset({class_})
            elif not any(amount <= allowed_amount for stock in stocks for allowed_amount in allowed(stock)):
                yield "amount", frozenset({f"resources{group.suffix}={class_}:{amount}"})


def impossible_together(expected: Expected, text: str) -> bool:
    """Whether a sentence is about the amounts of one group that no single provider could serve together."""

    def can_serve(member: oracle.Member, resources: Mapping[str, int]) -> bool:
        largest = {
            class_: max(allowed(member.stock[class_]), default=0) for class_ in resources if class_ in member.stock
        }
        return all(amount <= largest.get(class_, 0) for class_, amount in resources.items())

    for group in expected.query.groups:
        together = "resources{}={}".format(group.suffix, ",".join(f"{c}:{n}" for c, n in group.resources.items()))
        if group.suffix != UNSUFFIXED and len(group.resources) > 1 and together in text:
            return not any(can_serve(member, group.resources) for member in expected.world.members.values())
    return False
