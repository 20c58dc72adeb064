"""The smallest changes of a query that give candidates: each is searched before it is offered."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from math import lcm
from typing import NamedTuple

import numpy as np

from placement.extensions.v1 import query_text as write
from placement.extensions.v1.explain.amounts import AmountsByClass, Stocks
from placement.extensions.v1.explain.conditions import (
    Condition,
    conditions,
    parameter,
    with_aggregate,
    with_amounts,
    without,
)
from placement.extensions.v1.explain.explanation import NearMiss, Relaxation
from placement.extensions.v1.explain.searching import Outcome, Searches
from placement.index.snapshot import SHARES
from placement.search.query.query import UNSUFFIXED, Group, SearchQuery
from placement.search.refusals import Refusals

#: How many candidates are counted.
COUNTED = 100
#: How many conditions are tried, and how many changes are offered at most.
_TRIED, _OFFERED = 40, 20
#: The size of a change that leaves out an amount altogether: more than that of leaving out another condition.
_RESOURCE = 1.5
#: How many amounts are tried one by one, where units are in the way, and how many other aggregates.
_TRIALS, _AGGREGATES = 12, 3


def relaxations(
    query: SearchQuery, refusals: Refusals, searches: Searches, amounts: AmountsByClass
) -> tuple[Relaxation, ...]:
    """Return changes of one condition that give candidates, the smallest first.

    Whether all conditions were tried is recorded in ``searches.complete``.

    Args:
        refusals: Those of the search, which had no candidate.
    """
    relaxing = _Relaxing(query, refusals, searches, amounts)
    promising = _promising(query, refusals)
    searches.complete &= len(promising) <= _TRIED
    found = [relaxation for condition in promising[:_TRIED] for relaxation in relaxing.of(condition)]
    return tuple(sorted(found, key=lambda relaxation: relaxation.size)[:_OFFERED])


def of_several(query: SearchQuery, near_misses: Iterable[NearMiss], searches: Searches) -> tuple[Relaxation, ...]:
    """Return the changes that give the nearest trees all that they lack: for a query where no single change helps."""
    changed = {write.query_string(near.query): near for near in near_misses if near.query.avoided == query.avoided}
    found = []
    for near in changed.values():
        outcome = searches.run(near.query, COUNTED)
        if outcome.found:
            words = "&".join(dict.fromkeys(missing.parameter for missing in near.missing))
            text, size = " and ".join(near.changes), max(len(near.changes), 2)
            found.append(Relaxation("several", text, words, near.query, outcome.found, outcome.limited, size))
    return tuple(found)


def _promising(query: SearchQuery, refusals: Refusals) -> list[Condition]:
    """Return the conditions whose relaxation could make a difference: those that removed anything, or may combine."""
    narrowed_as = _narrowed_as(query)
    removed = {
        (refusal.rule, refusal.suffix)
        for refusal in refusals.narrowing
        if refusal.before.count != refusal.after.count
    }  # fmt: skip
    promising = [c for c in conditions(query) if _may_matter(c, narrowed_as, removed, bool(refusals.combining))]
    # Amounts take the most searches, and rules between groups the least.
    return sorted(promising, key=lambda condition: (condition.kind == "amount", condition.suffix is not None))


def _narrowed_as(query: SearchQuery) -> dict[str, str]:
    """Return, for each suffix, that of the first group which is equal: the one whose rules are recorded."""
    first: dict[object, str] = {}
    return {
        group.suffix: group.suffix if group.suffix == UNSUFFIXED else first.setdefault(_rules(group), group.suffix)
        for group in query.groups
    }


def _rules(group: Group) -> object:
    return frozenset(group.resources.items()), group.traits, group.aggregates, group.in_tree


def _may_matter(
    condition: Condition,
    narrowed_as: dict[str, str],
    removed: Collection[tuple[str, str | None]],
    combined: bool,
) -> bool:
    if condition.kind in ("group_policy", "same_subtree"):
        return combined
    if condition.avoided:
        return False
    if condition.kind == "root_required":
        return ("root_required", None) in removed
    suffix = narrowed_as[condition.suffix or ""]
    if suffix == UNSUFFIXED and condition.kind in ("trait", "aggregate"):
        # These also decide which sharing providers help, and which providers combine.
        return True
    if condition.kind == "amount":
        return combined or (f"resources:{condition.resource_class}", suffix) in removed
    return ({"trait": "required", "aggregate": "member_of"}.get(condition.kind, condition.kind), suffix) in removed


def _interchangeable(query: SearchQuery) -> object:
    """Return a value that is equal for queries that differ in the suffixes of groups that no same_subtree names."""
    named = frozenset().union(*query.same_subtrees, {UNSUFFIXED})
    groups = Counter((_rules(group), group.suffix if group.suffix in named else None) for group in query.groups)
    return frozenset(groups.items()), query.isolate, query.same_subtrees, query.root_traits


class _Relaxing:
    """Tries changes of one query."""

    def __init__(self, query: SearchQuery, refusals: Refusals, searches: Searches, amounts: AmountsByClass) -> None:
        self._query = query
        self._narrowed_as = _narrowed_as(query)
        #: The providers that met the rules before that of an amount, by rule and suffix.
        self._before = {(refusal.rule, refusal.suffix): refusal.before for refusal in refusals.narrowing}
        self._searches = searches
        self._amounts = amounts
        #: Outcomes by what is searched for: equal groups give equal numbers, whichever of them is changed.
        self._known: dict[object, Outcome] = {}

    def _search(self, query: SearchQuery | None, *, candidates: bool = False) -> Outcome | None:
        """Return the outcome of a search that found candidates; None if there is none.

        Args:
            candidates: Whether to return those of this very query; otherwise equal groups can have each other's.
        """
        if query is None:
            return None
        key = write.query_string(query) if candidates else _interchangeable(query)
        if key not in self._known:
            self._known[key] = self._searches.run(query, COUNTED)
        return self._known[key] if self._known[key].found else None

    def of(self, condition: Condition) -> Iterator[Relaxation]:
        """Yield the changes of one condition that give candidates."""
        relaxed = without(self._query, condition)
        outcome = self._search(relaxed, candidates=condition.kind == "aggregate")
        if relaxed is not None and outcome is None:
            return
        if condition.kind == "amount":
            changed = [*self._of_amount(condition, outcome)]
            yield from changed
            if changed:
                return
            condition = Condition("resource", condition.suffix, condition.names, amount=condition.amount)
        if relaxed is None or outcome is None:
            return
        if condition.kind == "aggregate" and not condition.forbidden:
            yield from self._of_other_aggregates(condition, outcome)
        size = _RESOURCE if condition.kind == "resource" else 1
        yield self._offered(condition, f"without {parameter(condition, self._query)}", relaxed, outcome, size)

    def _offered(
        self, condition: Condition, text: str, query: SearchQuery, outcome: Outcome, size: float
    ) -> Relaxation:
        words = parameter(condition, self._query)
        return Relaxation(condition.kind, text, words, query, outcome.found, outcome.limited, size)

    # --- amounts ---

    def _of_amount(self, condition: Condition, dropped: Outcome | None) -> Iterator[Relaxation]:
        """Yield the largest smaller amount that gives candidates, and where units are in the way the least larger.

        Args:
            dropped: The outcome of the search without the amount; None if nothing else is requested.
        """
        stocks = self._reachable(condition, dropped)
        if stocks is None:
            return
        for tried in (_lower(stocks, condition.amount), _higher(stocks, condition.amount)):
            found = self._first(condition, tried)
            if found is not None:
                yield found

    def _reachable(self, condition: Condition, dropped: Outcome | None) -> Stocks | None:
        """Return the inventories of the class that the rules before leave, in the trees that remain."""
        stocks = self._amounts.stocks(condition.resource_class)
        suffix = self._narrowed_as[condition.suffix or ""]
        reachable = self._before.get((f"resources:{condition.resource_class}", suffix))
        if stocks is None or reachable is None:
            return None
        snapshot = self._searches.snapshot
        if dropped is not None and dropped.narrowed is not None:
            reachable &= snapshot.forest.trees_of(dropped.narrowed.roots) | snapshot.with_trait(SHARES)
        return stocks.of(reachable.mask(snapshot.size)[stocks.slots])

    def _first(self, condition: Condition, tried: _Amounts) -> Relaxation | None:
        """Return the first of some amounts that gives candidates."""
        for amount in tried.one_by_one:
            if found := self._with_amount(condition, amount):
                return found
        if not tried.bisected:
            return None
        # Larger amounts do not fit where smaller ones do not.
        best = self._with_amount(condition, tried.bisected[0])
        fits, beyond = 0, len(tried.bisected)
        while best is not None and beyond - fits > 1:
            middle = (fits + beyond) // 2
            found = self._with_amount(condition, tried.bisected[middle])
            if found is None:
                beyond = middle
            else:
                fits, best = middle, found
        return best

    def _with_amount(self, condition: Condition, amount: int) -> Relaxation | None:
        name, suffix = condition.resource_class, condition.suffix or ""
        changed = with_amounts(self._query, suffix, {name: amount})
        outcome = self._search(changed)
        if outcome is None:
            return None
        text = write.text([write.resources(suffix, [(name, amount)])])
        size = abs(amount - condition.amount) / max(amount, condition.amount)
        return self._offered(condition, f"with {text}", changed, outcome, size)

    # --- aggregates ---

    def _of_other_aggregates(self, condition: Condition, dropped: Outcome) -> Iterator[Relaxation]:
        """Yield the aggregates, of those that the candidates without the condition are in, that give some."""
        provider = self._searches.snapshot.provider
        suffix = condition.suffix or ""
        inside: Counter[str] = Counter()
        for candidate in dropped.candidates:
            used = candidate.mappings.get(suffix, ())
            roots = {provider(slot).root for slot in used} if suffix == UNSUFFIXED else set()
            inside.update(frozenset().union(*(provider(slot).aggregates for slot in {*used, *roots})))
        others = sorted(inside.keys() - condition.names, key=lambda name: (-inside[name], name))
        for aggregate in others[:_AGGREGATES]:
            changed = with_aggregate(self._query, condition, aggregate)
            outcome = self._search(changed)
            if outcome is not None:
                text = "with " + write.text(write.member_of(suffix, (frozenset({aggregate}),), ()))
                yield self._offered(condition, text, changed, outcome, 1)


#: Bits of an amount in the database.
_BITS = 31


class _Amounts(NamedTuple):
    """Amounts to try, the best first; then those to bisect, ascending."""

    one_by_one: Iterable[int]
    bisected: Sequence[int] = ()


def _lower(stocks: Stocks, wanted: int) -> _Amounts:
    """Return the amounts below the wanted one that some inventory has room for: the largest, and some to bisect."""
    most = stocks.largest(wanted - 1).astype(np.int64)
    fitting = most > 0
    if not fitting.any():
        return _Amounts(())
    most, steps = most[fitting], stocks.step_size[fitting]
    # A step and a smallest amount as one number: arrays of pairs take long to sort.
    units = steps << _BITS | np.maximum(stocks.min_unit[fitting], 1)
    pairs = [(unit >> _BITS, unit & (1 << _BITS) - 1) for unit in np.unique(units).tolist()]
    # With units in common every allowed amount below one that fits does fit, too.
    trials = 1 if len(pairs) == 1 else _TRIALS
    tried: set[int] = set()
    for amount in np.unique(most)[-trials:].tolist():
        for unit in np.unique(units[most == amount]).tolist():
            step, least = unit >> _BITS, unit & (1 << _BITS) - 1
            tried.update(range(amount, max(least - 1, amount - step * trials), -step))
    return _Amounts(sorted(tried, reverse=True)[:trials], _allowed_by_all(pairs, int(most.max())))


def _allowed_by_all(units: Iterable[tuple[int, int]], most: int) -> Sequence[int]:
    """Return the amounts up to one that are whole steps, and at least the smallest amount, of all inventories.

    Args:
        units: Steps with smallest amounts.
    """
    common, least = 1, 1
    for step, low in units:
        common, least = lcm(common, step), max(least, low)
        if max(common, least) > most:
            return ()
    return range(-(-least // common) * common, most + 1, common)


def _higher(stocks: Stocks, wanted: int) -> _Amounts:
    """Return the least amount above the wanted one that each inventory has room for."""
    not_allowed = (wanted < stocks.min_unit) | (wanted % stocks.step_size != 0)
    above = np.unique(stocks.smallest_above(wanted + 1)[not_allowed]) if not_allowed.any() else np.empty(0)
    return _Amounts(above[above > 0][:_TRIALS].astype(int).tolist())
