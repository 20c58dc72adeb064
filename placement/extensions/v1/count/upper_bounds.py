"""Upper bounds for the counts of all trees at once, by arithmetic.

``upper_bounds`` works for any tree; its bound is the exact count if the demands are separable (``is_separable``).
``single_provider_counts`` is exact for every query, in trees of one provider.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from itertools import combinations

import numpy as np

from placement.extensions.v1.count.inputs import MOST, Bools, CountInputs, Integers
from placement.index.slots import Slots, SlotSet
from placement.search.solver.constraints import Isolation, RequiredTraits, SummedAmounts

#: The rule if each class is still supplied, but not all classes of a group by one provider.
GROUP = "group"


class TightestBound:
    """The least of several numbers for each tree, and the rule that it comes from.

    Attributes:
        counts: The number of each tree.
        endings: The position of the rule of each tree in those of the basis.
    """

    __slots__ = ("_inputs", "counts", "endings")

    def __init__(self, inputs: CountInputs, trees: int) -> None:
        self._inputs = inputs
        self.counts = np.full(trees, MOST, np.int64)
        self.endings = np.zeros(trees, np.int64)

    def limit(self, rule: str, most: Integers | int) -> None:
        """Apply the numbers that a rule allows; of equal numbers the first rule counts."""
        self.endings[most < self.counts] = self._inputs.position(rule)
        np.minimum(self.counts, most, out=self.counts)


def shortage_rule(amounts: Collection[str]) -> str:
    """Return the rule that ends a count for lack of providers with all of the classes."""
    return SummedAmounts.name_for(*amounts) if len(amounts) == 1 else GROUP


def is_separable(inputs: CountInputs) -> bool:
    """Whether the bound of a tree is its count, because each kind can be placed as if there were no other.

    No two kinds share a class, or a provider that isolation gives to one of them only.
    """
    requirements = inputs.requirements
    if requirements.same_subtrees or requirements.required or not requirements.nested:
        return False
    if any(one.amounts.keys() & other.amounts.keys() for one, other in combinations(inputs.kinds, 2)):
        return False
    isolated = [kind.eligible.local for kind in inputs.kinds if kind.isolated]
    return not any(one & other for one, other in combinations(isolated, 2))


def single_provider_counts(inputs: CountInputs, roots: Slots) -> TightestBound:
    """Return the counts of trees of one provider, which supplies the total of all demands each time."""
    requirements, least = inputs.requirements, TightestBound(inputs, len(roots))
    for name, amount in requirements.total.items():
        copies = inputs.free[name][roots] // amount
        copies[inputs.largest[name][roots] < amount] = 0
        least.limit(SummedAmounts.name_for(name), copies)
    for any_of in requirements.required:
        having = SlotSet.union([inputs.snapshot.with_trait(trait) for trait in any_of], inputs.size).mask(inputs.size)
        least.limit(RequiredTraits.name, np.where(having[roots], MOST, 0))
    if requirements.isolate and requirements.suffixed_count > 1:
        least.limit(Isolation.name, 0)
    return least


def upper_bounds(inputs: CountInputs, domains: Sequence[tuple[Slots, Slots]], trees: int) -> TightestBound:
    """Return upper bounds for the counts of trees.

    Args:
        domains: For each kind the providers that can supply it, and for each of these the number of its tree.
        trees: How many trees there are.
    """
    least, kinds = TightestBound(inputs, trees), list(zip(inputs.kinds, domains, strict=True))
    for name, amount in inputs.requirements.total.items():
        concerned = [domain for kind, domain in kinds if name in kind.amounts]
        if len(concerned) > 1:
            # Each provider once in each tree: one that shares is in several.
            pairs = np.unique(np.concatenate([tree * inputs.size + slots for slots, tree in concerned]))
            tree, slots = np.divmod(pairs, inputs.size)
            least.limit(SummedAmounts.name_for(name), _sums(inputs.free[name][slots], tree, trees) // amount)
    for kind, (slots, tree) in kinds:
        # Each class alone, then all together.
        parts = [{name: amount} for name, amount in kind.amounts.items()]
        for amounts in [*parts, kind.amounts] if len(parts) != 1 else parts:
            copies, at_once = inputs.copies(amounts, slots), inputs.at_once(amounts, slots)
            least.limit(shortage_rule(amounts), full_rounds(copies, at_once, kind.times, tree, trees))
        if kind.isolated and kind.times > 1:
            least.limit(Isolation.name, full_rounds(copies, np.ones_like(copies), kind.times, tree, trees))
    return least


def full_rounds(copies: Integers, at_once: Integers, times: int, tree: Slots, trees: int) -> Integers:
    """Return how many rounds each tree has copies for, where a round takes a number of copies.

    n rounds are possible if and only if the sum of min(copies, at_once * n) over the providers of the tree is at least
    times * n: the copies that count, provider by provider, are dealt to the rounds in turn, so that no round gets more
    than ``at_once`` of a provider (the wrap-around rule of McNaughton, "Scheduling with deadlines and loss functions",
    Management Science 6, 1959).  The sum is concave in n, so bisection finds the largest.

    Args:
        copies: What each provider has.
        at_once: What each provider may give to one round, at least 1.
        times: How many copies a round takes.
        tree: The number of the tree of each provider.
        trees: How many trees there are.
    """
    most = _sums(copies, tree, trees) // times
    if times == 1:
        return most

    def enough(rounds: Integers) -> Bools:
        dealt = np.minimum(copies, at_once.astype(np.float64) * rounds[tree])
        return np.bincount(tree, weights=dealt, minlength=trees) >= times * rounds

    return bisect_largest(most, enough)


def bisect_largest(most: Integers, fits: Callable[[Integers], Bools]) -> Integers:
    """Return the largest number of each tree that fits, by bisection.

    Args:
        most: Numbers that may fit; less fits wherever a number fits, and zero fits everywhere.
        fits: Returns in which trees one number for each of them fits.
    """
    low, high = np.zeros_like(most), most
    while (low < high).any():
        middle = (low + high + 1) // 2
        enough = fits(middle)
        low, high = np.where(enough, middle, low), np.where(enough, high, middle - 1)
    return low


def _sums(numbers: Integers, tree: Slots, trees: int) -> Integers:
    """Return the sum of the numbers of each tree."""
    sums: Integers = np.bincount(tree, weights=numbers, minlength=trees).astype(np.int64)
    return sums
