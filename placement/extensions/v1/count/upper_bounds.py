"""Upper bounds for the counts of all trees at once, by arithmetic.

``upper_bounds`` works for any tree; its bound is the exact count if the demands are separable (``is_separable``).
``single_provider_counts`` is exact for every query, in trees of one provider.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from itertools import combinations

import numpy as np

from placement.extensions.v1.count.inputs import MAX_COPIES, Bools, CountInputs, Integers
from placement.index.slots import Slots, SlotSet
from placement.search.solver.constraints import Isolation, RequiredTraits, SummedAmounts

#: The limiting rule if each class can still be supplied, but not all classes of a group by one provider.
GROUP = "group"


class TightestBound:
    """The smallest of several upper bounds for each tree, with the rule that it comes from.

    Attributes:
        counts: By tree, the bound.
        rules: By tree, the position of this rule in ``CountInputs.rules``.
    """

    __slots__ = ("_inputs", "counts", "rules")

    def __init__(self, inputs: CountInputs, trees: int) -> None:
        self._inputs = inputs
        self.counts = np.full(trees, MAX_COPIES, np.int64)
        self.rules = np.zeros(trees, np.int64)

    def tighten(self, rule: str, limit: Integers | int) -> None:
        """Apply the upper bounds of a rule; in a tie, the first rule stays."""
        self.rules[limit < self.counts] = self._inputs.position(rule)
        np.minimum(self.counts, limit, out=self.counts)


def shortage_rule(amounts: Collection[str]) -> str:
    """Return the rule that limits a count for lack of providers with all of the classes."""
    return SummedAmounts.name_for(*amounts) if len(amounts) == 1 else GROUP


def is_separable(inputs: CountInputs) -> bool:
    """Whether the bound of a tree is its exact count: the kinds of demands can be placed independently.

    No two kinds share a class, or a provider that isolation reserves for one of them.
    """
    requirements = inputs.requirements
    if requirements.same_subtrees or requirements.required or not requirements.nested:
        return False
    if any(first.amounts.keys() & second.amounts.keys() for first, second in combinations(inputs.kinds, 2)):
        return False
    isolated = [kind.eligible.local for kind in inputs.kinds if kind.isolated]
    return not any(first & second for first, second in combinations(isolated, 2))


def single_provider_counts(inputs: CountInputs, roots: Slots) -> TightestBound:
    """Return the counts of trees of one provider, which supplies all demands of each placement."""
    requirements, bound = inputs.requirements, TightestBound(inputs, len(roots))
    for name, amount in requirements.total.items():
        copies = inputs.free[name][roots] // amount
        copies[inputs.largest[name][roots] < amount] = 0
        bound.tighten(SummedAmounts.name_for(name), copies)
    for any_of in requirements.required:
        has_trait = SlotSet.union([inputs.snapshot.with_trait(trait) for trait in any_of], inputs.size).mask(
            inputs.size
        )
        bound.tighten(RequiredTraits.name, np.where(has_trait[roots], MAX_COPIES, 0))
    if requirements.isolate and requirements.suffixed_count > 1:
        bound.tighten(Isolation.name, 0)
    return bound


def upper_bounds(inputs: CountInputs, domains: Sequence[tuple[Slots, Slots]], trees: int) -> TightestBound:
    """Return upper bounds for the counts of trees.

    Args:
        domains: For each kind of demand, the providers that can supply it, and the number of the tree of each.
        trees: Number of trees.
    """
    bound, kinds = TightestBound(inputs, trees), list(zip(inputs.kinds, domains, strict=True))
    for name, amount in inputs.requirements.total.items():
        demanding = [domain for kind, domain in kinds if name in kind.amounts]
        if len(demanding) > 1:
            # Each provider counts once per tree; a sharing provider is in several trees.
            pairs = np.unique(np.concatenate([tree * inputs.size + slots for slots, tree in demanding]))
            tree, slots = np.divmod(pairs, inputs.size)
            bound.tighten(SummedAmounts.name_for(name), _sums(inputs.free[name][slots], tree, trees) // amount)
    for kind, (slots, tree) in kinds:
        # Each class alone, then all classes together.
        parts = [{name: amount} for name, amount in kind.amounts.items()]
        for amounts in [*parts, kind.amounts] if len(parts) != 1 else parts:
            copies, at_once = inputs.copies(amounts, slots), inputs.at_once(amounts, slots)
            bound.tighten(shortage_rule(amounts), full_rounds(copies, at_once, kind.times, tree, trees))
        if kind.isolated and kind.times > 1:
            bound.tighten(Isolation.name, full_rounds(copies, np.ones_like(copies), kind.times, tree, trees))
    return bound


def full_rounds(copies: Integers, at_once: Integers, times: int, tree: Slots, trees: int) -> Integers:
    """Return the number of full rounds that the copies of each tree allow; a round takes a fixed number of copies.

    n rounds are possible if and only if the sum of min(copies, at_once * n) over the providers of the tree is at least
    times * n: these copies are dealt to the rounds in turn, provider by provider.  So no round gets more than
    ``at_once`` from a provider (the wrap-around rule of McNaughton, "Scheduling with deadlines and loss functions",
    Management Science 6, 1959).  The sum is concave in n, so bisection finds the largest n.

    Args:
        copies: Copies that each provider can supply.
        at_once: Maximum number of copies that each provider may supply to one round; at least 1.
        times: Copies per round.
        tree: The number of the tree of each provider.
        trees: Number of trees.
    """
    max_rounds = _sums(copies, tree, trees) // times
    if times == 1:
        return max_rounds

    def fit(rounds: Integers) -> Bools:
        dealt = np.minimum(copies, at_once.astype(np.float64) * rounds[tree])
        return np.bincount(tree, weights=dealt, minlength=trees) >= times * rounds

    return bisect_largest(max_rounds, fit)


def bisect_largest(limit: Integers, fits: Callable[[Integers], Bools]) -> Integers:
    """Return the largest number that fits for each tree, by bisection.

    Args:
        limit: Upper bounds.  Zero always fits, and so does any number below one that fits.
        fits: A function that returns the mask of the trees for which the given numbers fit.
    """
    low, high = np.zeros_like(limit), limit
    while (low < high).any():
        middle = (low + high + 1) // 2
        fitting = fits(middle)
        low, high = np.where(fitting, middle, low), np.where(fitting, high, middle - 1)
    return low


def _sums(numbers: Integers, tree: Slots, trees: int) -> Integers:
    """Return the sum of the numbers by tree."""
    sums: Integers = np.bincount(tree, weights=numbers, minlength=trees).astype(np.int64)
    return sums
