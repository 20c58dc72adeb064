"""The trees that lack least: what is missing in each, and by how much.

A tree is a near miss if a search finds candidates in it after all that is missing was left out of the query, or
lowered.  Trees are looked at in the order of the lower bounds of their distances (``tree_scores``), until no other can
be nearer than those that were found: best-first search.
"""

from __future__ import annotations

from placement.extensions.v1 import query_text as write
from placement.extensions.v1.explain.amounts import AmountsByClass
from placement.extensions.v1.explain.conditions import Condition, conditions, group_of, parameter, with_amounts, without
from placement.extensions.v1.explain.excerpt import excerpt, usable
from placement.extensions.v1.explain.explanation import Missing, NearMiss
from placement.extensions.v1.explain.searching import Outcome, Searches
from placement.extensions.v1.explain.tree_scores import CONDITION, DECIMALS, TreeScores
from placement.index.slots import SlotSet
from placement.search.query.query import UNSUFFIXED, Group, SearchQuery
from placement.search.solver.constraints import Isolation, RequiredTraits, SameSubtree

#: How many near misses are returned, of how many trees that are looked at at most.
RETURNED, _LOOKED_AT = 3, 16
#: Scoring every provider for more demands than this takes too long.
_DEMANDS = 32
#: How many conditions between providers may be left out in one tree; a tree that lacks more than so many is not near.
_COMBINING, _MISSING = 4, 8


def near_misses(
    query: SearchQuery, combined: SlotSet, searches: Searches, amounts: AmountsByClass
) -> tuple[NearMiss, ...]:
    """Return up to three trees with what they lack, the nearest first; none for a query of more than 32 demands.

    Whether all trees that could be nearer were looked at is recorded in ``searches.complete``.

    Args:
        combined: The roots of the trees where each demand can be supplied, but not all together.
    """
    if query.demand_count > _DEMANDS:
        searches.complete = False
        return ()
    scores = TreeScores(query, searches.snapshot, amounts)
    found: list[tuple[float, int, NearMiss]] = []
    bounds = scores.bounds(combined, _LOOKED_AT + 1)
    for number, (bound, root) in enumerate(bounds):
        if len(found) == RETURNED and (bound, root) > found[-1][:2]:
            break
        if number == _LOOKED_AT:
            searches.complete = False
            break
        tree = _Tree(query, root, scores, searches, amounts)
        near = tree.near_miss()
        if near is not None:
            found = sorted([*found, (tree.distance, root, near)], key=lambda one: one[:2])[:RETURNED]
    searches.complete &= scores.complete
    return tuple(near for *_, near in found)


class _TooFar(Exception):
    """A tree lacks too much."""


class _Tree:
    """Relaxes a query until one tree has candidates."""

    def __init__(
        self, query: SearchQuery, root: int, scores: TreeScores, searches: Searches, amounts: AmountsByClass
    ) -> None:
        self._original = query
        self._root = root
        self._scores = scores
        self._searches = searches
        self._snapshot = searches.snapshot
        self._amounts = amounts
        self._query: SearchQuery | None = query
        #: By parameter: each condition is missing once.
        self._missing: dict[str, Missing] = {}
        #: Of the tree, once ``near_miss`` has returned; comparable with the bounds of ``TreeScores``.
        self.distance = 0.0
        #: By what was requested.
        self._changes: dict[str, str] = {}
        self._usable = usable(self._snapshot, root)
        named = (self._snapshot.by_uuid.get(group.in_tree or "") for group in query.groups)
        self._excerpt = excerpt(self._snapshot, [*self._usable, *(slot for slot in named if slot is not None)])
        self._excerpt_root = self._excerpt.by_uuid[self._snapshot.provider(root).uuid]

    def _search(self, query: SearchQuery) -> Outcome:
        """Return the outcome of a search in this tree."""
        return self._searches.run(query, 1, self._excerpt, self._excerpt_root)

    def near_miss(self) -> NearMiss | None:
        """Return what the tree lacks; None if the search finds no candidates without that either."""
        try:
            return self._relaxed()
        except _TooFar:
            return None

    def _relaxed(self) -> NearMiss | None:
        self._relax_rules_of_tree()
        self._relax_rules_of_providers()
        parts = (1 - (lack.available or 0) / lack.needed for lack in self._missing.values() if lack.needed)
        self.distance = round(CONDITION * len(self._missing) + sum(parts), DECIMALS)
        for number in range(_COMBINING):
            if self._query is None:
                return None
            outcome = self._search(self._query)
            if not (outcome.found or number):
                # What has to be relaxed so that demands combine counts as one condition, however much it is.
                self.distance = round(self.distance + CONDITION, DECIMALS)
            if outcome.found:
                return NearMiss(self._root, tuple(self._missing.values()), self._query, tuple(self._changes.values()))
            if not outcome.complete or not self._relax_combination(outcome):
                return None
        return None

    # --- relaxing ---

    def _without(self, condition: Condition) -> None:
        if self._query is not None:
            self._query = without(self._query, condition)
            words = parameter(condition, self._original)
            self._changes[words] = f"without {words}"

    def _lack(self, words: str, provider: int | None, text: str, *, needed: int | None = None, has: int = 0) -> bool:
        """Record what is missing; return False if it was recorded before.

        Raises:
            _TooFar: So much is missing already that the tree is not near.
        """
        if words in self._missing:
            return False
        if len(self._missing) == _MISSING:
            raise _TooFar
        self._missing[words] = Missing(words, provider, needed, None if needed is None else has, text)
        return True

    def _name(self, slot: int) -> str:
        provider = self._snapshot.provider(slot)
        return provider.name or provider.uuid

    def _relax_rules_of_tree(self) -> None:
        """Leave out the rules about the root, and the traits that no provider of the tree has."""
        root = self._snapshot.provider(self._root)
        for condition in self._scores.conditions:
            words = parameter(condition, self._original)
            if condition.kind == "root_required" and condition.forbidden == root.traits.isdisjoint(condition.names):
                continue
            if condition.kind == "root_required":
                self._lack(words, self._root, f"the root {self._name(self._root)} {_has(condition)}")
            elif condition.kind == "trait" and condition.suffix == UNSUFFIXED and not condition.forbidden:
                if any(not self._snapshot.provider(slot).traits.isdisjoint(condition.names) for slot in self._usable):
                    continue
                self._lack(words, None, f"no provider of the tree has {_either(condition)}")
            else:
                continue
            self._without(condition)

    def _relax_rules_of_providers(self) -> None:
        """For each demand, leave out or lower what its best provider does not meet."""
        for number, _ in enumerate(self._scores.demands):
            best = self._scores.nearest(number, self._usable, self._root)
            for condition in self._scores.conditions_of(number):
                if not self._scores.meets(condition, best, self._root):
                    self._relax_rule_of_provider(condition, best)

    def _relax_rule_of_provider(self, condition: Condition, slot: int) -> None:
        words, name = parameter(condition, self._original), self._name(slot)
        if condition.kind == "amount":
            self._relax_amount(condition, slot)
            return
        match condition.kind:
            case "trait":
                text = f"{name} {_has(condition)}"
            case "aggregate":
                text = f"{name} is {'in' if condition.forbidden else 'not in'} {_either(condition)}"
            case _:
                text = f"{name} is in another tree"
        if self._lack(words, slot, text):
            self._without(condition)

    def _relax_amount(self, condition: Condition, slot: int) -> None:
        """Lower an amount to what the provider has room for; raise it where units require that; or leave it out."""
        class_, amount, suffix = condition.resource_class, condition.amount, condition.suffix or ""
        words, name = parameter(condition, self._original), self._name(slot)
        stocks = self._amounts.stocks(class_)
        own = None if stocks is None else stocks.at(slot)
        if not own:
            if self._lack(words, slot, f"{name} has no {class_}", needed=amount):
                self._without(Condition("resource", suffix, condition.names, amount=amount))
            return
        lower, higher = int(own.largest(amount)[0]), int(own.smallest_above(amount)[0])
        fitting = lower or higher
        text = f"{name} has room for {lower} of {amount} {class_}"
        if higher:
            text = f"{name} has units of {class_} that allow {' or '.join(str(n) for n in (lower, higher) if n)}"
        if not self._lack(words, slot, text, needed=amount, has=lower):
            return
        if not fitting:
            self._without(Condition("resource", suffix, condition.names, amount=amount))
        elif self._query is not None:
            self._lower(suffix, class_, fitting)

    # --- conditions between providers ---

    def _relax_combination(self, outcome: Outcome) -> bool:
        """Leave out a condition of the kind that rejected the last combination; return False if there is none."""
        assert self._query is not None
        for constraint in outcome.refusals.combining or (RequiredTraits.name,):
            rule, _, class_ = constraint.partition(":")
            if rule == "resources":
                return self._relax_sum(class_)
            kinds = {Isolation.name: "group_policy", SameSubtree.name: "same_subtree", RequiredTraits.name: "trait"}
            kind = kinds.get(rule)
            choice = [one for one in conditions(self._query) if one.kind == kind and one.suffix in (None, UNSUFFIXED)]
            choice = [one for one in choice if not one.forbidden]
            if choice:
                self._relax_one_of(choice)
                return True
        return False

    def _relax_one_of(self, choice: list[Condition]) -> None:
        """Leave out the first condition that is enough by itself, or else the first one."""
        assert self._query is not None
        chosen = choice[0]
        for condition in choice[: _COMBINING if len(choice) > 1 else 0]:
            relaxed = without(self._query, condition)
            if relaxed is not None and self._search(relaxed).found:
                chosen = condition
                break
        texts = {
            "group_policy": "there are not enough different providers for the groups",
            "same_subtree": "no provider that serves one of these groups is at or above those of the others",
            "trait": f"the providers that fit do not have {_either(chosen)} together",
        }
        self._lack(parameter(chosen, self._original), None, texts[chosen.kind])
        self._without(chosen)

    def _relax_sum(self, class_: str) -> bool:
        """Lower, or leave out, a demand of a class whose demands do not fit together."""
        assert self._query is not None
        demanding = [group for group in self._query.groups if class_ in group.resources]
        column = self._snapshot.column(class_)
        if len(demanding) < 2 or column is None:
            return False
        available = column.available(self._snapshot.size)
        room = int(sum(available[slot] for slot in self._usable))
        needed = sum(group.resources[class_] for group in demanding)
        words = write.text(write.resources(group.suffix, [(class_, group.resources[class_])]) for group in demanding)
        text = f"the amounts of {class_} do not fit together: {needed} are needed, and there is room for {room}"
        lacking = [group for group in demanding if self._words(group.suffix, class_) in self._missing]
        if not lacking:
            self._lack(words, None, text, needed=needed, has=room)
        largest_first = sorted(demanding, key=lambda group: -group.resources[class_])
        return self._lower_one_of([*lacking, *(group for group in largest_first if group not in lacking)], class_)

    def _words(self, suffix: str, class_: str) -> str:
        """Return the parameter of an amount of the query as it was stated."""
        return write.text([write.resources(suffix, [(class_, group_of(self._original, suffix).resources[class_])])])

    def _lower_one_of(self, groups: list[Group], class_: str) -> bool:
        """Lower the amount of the first group where that is enough; or else leave one out that can be left out."""
        assert self._query is not None
        for group in groups:
            lowered = self._lowered(group, class_)
            if lowered is not None:
                self._lower(group.suffix, class_, lowered)
                return True
        for group in groups:
            amount = group_of(self._original, group.suffix).resources[class_]
            condition = Condition("resource", group.suffix, frozenset({class_}), amount=amount)
            if without(self._query, condition) is not None:
                self._without(condition)
                return True
        return False

    def _lowered(self, group: Group, class_: str) -> int | None:
        """Return the largest smaller amount of a group with which the tree has candidates, found by bisection."""
        assert self._query is not None
        fits, beyond = 0, group.resources[class_]
        while beyond - fits > 1:
            middle = (fits + beyond) // 2
            if self._search(with_amounts(self._query, group.suffix, {class_: middle})).found:
                fits = middle
            else:
                beyond = middle
        return fits or None

    def _lower(self, suffix: str, class_: str, amount: int) -> None:
        """State another amount."""
        assert self._query is not None
        self._query = with_amounts(self._query, suffix, {class_: amount})
        changed = write.text([write.resources(suffix, [(class_, amount)])])
        self._changes[self._words(suffix, class_)] = f"with {changed}"


def _either(condition: Condition) -> str:
    return " or ".join(sorted(condition.names))


def _has(condition: Condition) -> str:
    return f"has {_either(condition)}" if condition.forbidden else f"does not have {_either(condition)}"
