"""Sharing providers: the trees they connect, and an upper bound for these trees together."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from placement.extensions.v1.count.inputs import CountInputs, DemandKind, Integers
from placement.extensions.v1.count.upper_bounds import TightestBound, shortage_rule, upper_bounds
from placement.index.slots import EMPTY, Slots, SlotSet

#: Operations to find the trees that a sharing provider reaches; trees per further operation.
_OPERATIONS_PER_REACH, _TREES_PER_OPERATION = 30, 100
#: Pairs of a sharing provider and a tree that it reaches: pairs held at once; pairs per operation.
PAIRS, _PAIRS_PER_OPERATION = 300_000, 10


class SharingProviders:
    """The sharing providers that can supply demands of one query.

    Attributes:
        roots: Roots of the trees that use them, including their own trees.
    """

    def __init__(self, inputs: CountInputs) -> None:
        """Find the trees that the providers reach.

        Raises:
            Exhausted: The budget is exhausted.
        """
        self._inputs = inputs
        self._snapshot = snapshot = inputs.snapshot
        eligible_roots = inputs.narrowed.roots
        providers = SlotSet.union([kind.eligible.sharing for kind in inputs.kinds], inputs.size)
        self._providers = providers.slots()
        #: Roots of the trees that each provider reaches; its own only if another provider there is in its aggregates.
        self._reached: dict[int, SlotSet] = {}
        self.roots = EMPTY
        for slot in self._providers.tolist():
            inputs.budget.spend(_OPERATIONS_PER_REACH + eligible_roots.count // _TREES_PER_OPERATION)
            aggregates = snapshot.provider(slot).aggregates
            members = SlotSet.union([snapshot.in_aggregate(name) for name in aggregates], inputs.size)
            self._reached[slot] = eligible_roots & snapshot.forest.roots_of(members)
            self.roots |= self._reached[slot]
        self.roots |= eligible_roots & SlotSet.from_slots(
            np.unique(snapshot.forest.roots(self._providers)), inputs.size
        )

    @property
    def trees_at_once(self) -> int:
        """Maximum number of trees whose domains are held at once, in case all sharing providers reach each tree."""
        return max(1, PAIRS // max(1, len(self._providers)))

    def domain(self, kind: DemandKind, tree_roots: SlotSet) -> tuple[Slots, Slots]:
        """Return sharing providers that can supply a kind of demand, each paired with the root of a tree it reaches.

        Its own tree is left out.

        Args:
            tree_roots: Roots of the trees to include.

        Raises:
            Exhausted: The budget is exhausted.
        """
        slots, roots = [np.empty(0, np.intp)], [np.empty(0, np.intp)]
        for slot in kind.eligible.sharing.slots().tolist():
            reached = (self._reached[slot] & tree_roots).slots()
            self._inputs.budget.spend(1 + len(reached) // _PAIRS_PER_OPERATION)
            reached = reached[reached != self._snapshot.provider(slot).root]
            slots.append(np.full(len(reached), slot))
            roots.append(reached)
        return np.concatenate(slots), np.concatenate(roots)

    def connected_components(self) -> Iterator[tuple[Slots, Slots]]:
        """Yield the connected components: sharing providers, and the roots of the trees that they connect.

        Raises:
            Exhausted: The budget is exhausted.
        """
        component = np.full(self._inputs.size, -1, np.intp)
        root_used_by = {}
        for slot in self._providers.tolist():
            self._inputs.budget.spend(_OPERATIONS_PER_REACH + self._inputs.size // _TREES_PER_OPERATION)
            used = np.append(self._reached[slot].slots(), self._snapshot.provider(slot).root)
            joined = np.unique(component[used])
            component[np.isin(component, joined[joined >= 0])] = slot
            component[used] = slot
            root_used_by[slot] = used[0]
        roots = self.roots.slots()
        for label in np.unique(component[roots]).tolist():
            providers = [slot for slot, root in root_used_by.items() if component[root] == label]
            yield np.array(providers, np.intp), roots[component[roots] == label]

    def suffices(self, count: int, providers: Slots) -> bool:
        """Whether each sharing provider alone could supply ``count`` placements, so that the trees do not contend."""
        for kind in self._inputs.kinds:
            slots = (kind.eligible.sharing & SlotSet.sparse(providers)).slots()
            for name in kind.amounts:
                if (self._inputs.free[name][slots] < count * self._inputs.requirements.total[name]).any():
                    return False
        return True

    def bound(self, roots: Slots, tree_bounds: Integers, providers: Slots) -> TightestBound:
        """Return an upper bound for trees together, and the rule that it comes from.

        For each kind of demand, the bound is the copies in the trees, capped by the bound of each tree, plus the copies
        of all sharing providers.

        Args:
            tree_bounds: The upper bound of each tree by itself.
            providers: The sharing providers that reach the trees.
        """
        forest = self._snapshot.forest
        trees = forest.trees_of(SlotSet.from_slots(roots, self._inputs.size))
        shared = SlotSet.sparse(providers)
        supplies = []
        for kind in self._inputs.kinds:
            # A provider that shares one kind may supply another kind only to its own tree.
            sharing = kind.eligible.sharing & shared
            supplies.append((kind, (kind.eligible.local & trees) - sharing, sharing))
        domains = [(local | sharing).slots() for _, local, sharing in supplies]
        tightest = upper_bounds(self._inputs, [(slots, np.zeros(len(slots), np.intp)) for slots in domains], 1)
        for kind, local, sharing in supplies:
            slots = local.slots()
            copies = np.bincount(
                forest.roots(slots), weights=self._inputs.copies(kind.amounts, slots), minlength=self._inputs.size
            )
            local_copies = np.minimum(copies[roots], kind.times * tree_bounds).sum()
            sharing_copies = self._inputs.copies(kind.amounts, sharing.slots()).sum()
            tightest.tighten(
                shortage_rule(kind.amounts), (local_copies + sharing_copies).astype(np.int64) // kind.times
            )
        return tightest
