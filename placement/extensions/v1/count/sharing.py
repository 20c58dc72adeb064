"""Sharing providers: which trees they connect, and a bound for these trees together."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from placement.extensions.v1.count.inputs import CountInputs, DemandKind, Integers
from placement.extensions.v1.count.upper_bounds import TightestBound, shortage_rule, upper_bounds
from placement.index.slots import EMPTY, Slots, SlotSet

#: Operations to find what one sharing provider reaches; the trees that cost one more.
_REACH, _AT_ONCE = 30, 100
#: Pairs of a sharing provider and a tree that it reaches: the most in arrays at once; those that one operation makes.
PAIRS, _PAIRS_AT_ONCE = 300_000, 10


class SharingProviders:
    """The sharing providers that can supply demands of one query.

    Attributes:
        roots: The roots of the trees that use them, their own included.
    """

    def __init__(self, inputs: CountInputs) -> None:
        """Find the trees.

        Raises:
            Exhausted: The budget is used up.
        """
        self._inputs = inputs
        self._snapshot = snapshot = inputs.snapshot
        found = inputs.narrowed.roots
        providers = SlotSet.union([kind.eligible.sharing for kind in inputs.kinds], inputs.size)
        self._providers = providers.slots()
        #: By provider, without its own tree unless another provider of that shares its aggregates.
        self._reached: dict[int, SlotSet] = {}
        self.roots = EMPTY
        for slot in self._providers.tolist():
            inputs.budget.spend(_REACH + found.count // _AT_ONCE)
            aggregates = snapshot.provider(slot).aggregates
            members = SlotSet.union([snapshot.in_aggregate(name) for name in aggregates], inputs.size)
            self._reached[slot] = found & snapshot.forest.roots_of(members)
            self.roots |= self._reached[slot]
        self.roots |= found & SlotSet.of(np.unique(snapshot.forest.roots(self._providers)), inputs.size)

    @property
    def trees_at_once(self) -> int:
        """The number of trees whose domains are held at once: all sharing providers may reach each of them."""
        return max(1, PAIRS // max(1, len(self._providers)))

    def domain(self, kind: DemandKind, among: SlotSet) -> tuple[Slots, Slots]:
        """Return each sharing provider that can supply a kind once for each other tree, and the root of that tree.

        Args:
            kind: The demands.
            among: The roots of the trees that matter.

        Raises:
            Exhausted: The budget is used up.
        """
        slots, roots = [np.empty(0, np.intp)], [np.empty(0, np.intp)]
        for slot in kind.eligible.sharing.slots().tolist():
            others = (self._reached[slot] & among).slots()
            self._inputs.budget.spend(1 + len(others) // _PAIRS_AT_ONCE)
            others = others[others != self._snapshot.provider(slot).root]
            slots.append(np.full(len(others), slot))
            roots.append(others)
        return np.concatenate(slots), np.concatenate(roots)

    def connected(self) -> Iterator[tuple[Slots, Slots]]:
        """Yield sharing providers, and the roots of trees, that no other sharing provider connects with others.

        Raises:
            Exhausted: The budget is used up.
        """
        component = np.full(self._inputs.size, -1, np.intp)
        of_provider = {}
        for slot in self._providers.tolist():
            self._inputs.budget.spend(_REACH + self._inputs.size // _AT_ONCE)
            used = np.append(self._reached[slot].slots(), self._snapshot.provider(slot).root)
            joined = np.unique(component[used])
            component[np.isin(component, joined[joined >= 0])] = slot
            component[used] = slot
            of_provider[slot] = used[0]
        roots = self.roots.slots()
        for name in np.unique(component[roots]).tolist():
            providers = [slot for slot, used in of_provider.items() if component[used] == name]
            yield np.array(providers, np.intp), roots[component[roots] == name]

    def enough(self, count: int, providers: Slots) -> bool:
        """Whether there is enough for a count, even if any one of the sharing providers had to supply all of it."""
        for kind in self._inputs.kinds:
            slots = (kind.eligible.sharing & SlotSet.sparse(providers)).slots()
            for name in kind.amounts:
                if (self._inputs.free[name][slots] < count * self._inputs.requirements.total[name]).any():
                    return False
        return True

    def bound(self, roots: Slots, each: Integers, providers: Slots) -> TightestBound:
        """Return an upper bound for trees together, and the rule that it comes from.

        Sharing providers supply what exceeds the local copies of a tree.  So the trees together have at most their
        local copies of a kind, each limited by its own bound, and all shared copies.

        Args:
            each: An upper bound for each tree alone.
            providers: The sharing providers that reach the trees.
        """
        forest = self._snapshot.forest
        trees = forest.trees_of(SlotSet.of(roots, self._inputs.size))
        shared = SlotSet.sparse(providers)
        inside = []
        for kind in self._inputs.kinds:
            # What shares one kind may supply another one to its own tree only.
            sharing = kind.eligible.sharing & shared
            inside.append((kind, (kind.eligible.local & trees) - sharing, sharing))
        domains = [(local | sharing).slots() for _, local, sharing in inside]
        least = upper_bounds(self._inputs, [(slots, np.zeros(len(slots), np.intp)) for slots in domains], 1)
        for kind, local, sharing in inside:
            slots = local.slots()
            copies = np.bincount(
                forest.roots(slots), weights=self._inputs.copies(kind.amounts, slots), minlength=self._inputs.size
            )
            own = np.minimum(copies[roots], kind.times * each).sum()
            pooled = self._inputs.copies(kind.amounts, sharing.slots()).sum()
            least.limit(shortage_rule(kind.amounts), (own + pooled).astype(np.int64) // kind.times)
        return least
