"""Every rule as one mask over all providers: who could serve which pick, and in which trees everything could be served.

What is left is no candidate yet, only small: rules that concern several providers of a candidate are for ``combine``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from placement.index.slots import Mask
from placement.index.snapshot import SHARES, Snapshot
from placement.search.budget import Budget
from placement.search.narrow.selection import Selection
from placement.search.query.query import UNSUFFIXED, AnyOf, Group, SearchQuery
from placement.search.refusals import Refusal
from placement.search.solver.problem import Requirements

#: Looking at one provider by itself, or beginning to look at all of them, takes some operations; looking at so many
#: providers at once is another; and whether an amount fits, which is calculated, takes so many looks.
_FEW_OPERATIONS, _AT_ONCE, _FITTING = 5, 2_000, 5
#: So many glances may be done before they are counted.
_UNCOUNTED = 50


@dataclass(frozen=True, slots=True, eq=False)
class Field:
    """Everybody who could serve a pick by itself."""

    #: In its own tree.
    own: Selection
    #: In trees that it shares with.
    visiting: Selection


class Narrowed(NamedTuple):
    """What is left for combining."""

    snapshot: Snapshot
    requirements: Requirements
    #: For each pick; the same object where picks ask for the same.
    fields: tuple[Field, ...]
    #: Of the trees in which every pick could be served.
    roots: Selection
    #: What was done, in order.
    steps: tuple[Refusal, ...]


def narrow(request: SearchQuery, snapshot: Snapshot, budget: Budget) -> Narrowed:
    """Providers and trees that could serve the request; no fields if there are none.  Raises Exhausted."""
    narrowing = _Narrowing(snapshot, budget)
    requirements = Requirements.of(request)
    narrowing.look_at_roots(request)
    fields: list[Field] = []
    for group in request.groups:
        if not narrowing.roots:
            return Narrowed(snapshot, requirements, (), narrowing.roots, tuple(narrowing.steps))
        fields.extend(narrowing.fields(group))
    narrowing.count()
    return Narrowed(snapshot, requirements, tuple(fields), narrowing.roots, tuple(narrowing.steps))


def serving(group: Group, snapshot: Snapshot) -> Selection:
    """Those who can serve the whole group by themselves, wherever they are."""
    narrowing = _Narrowing(snapshot, None)
    return narrowing.fitting(group, group.resources, narrowing.suffixed(group))


class _Narrowing:
    def __init__(self, snapshot: Snapshot, budget: Budget | None) -> None:
        """:param budget: None: what is left has to be right, at any cost."""
        self._budget = budget
        #: What looking at all providers once takes.
        self._glance = _FEW_OPERATIONS + snapshot.size // _AT_ONCE
        #: What the budget does not know of yet: telling it of every glance would take as long as some glances do.
        self._glances = self._held = 0
        self.steps: list[Refusal] = []
        self.roots = Selection(snapshot.forest, snapshot.forest.is_root)
        self._snapshot = snapshot
        self._forest = snapshot.forest
        self._nobody = Selection(self._forest, None, np.empty(0, np.intp))
        self._sharing = snapshot.with_trait(SHARES)
        self._anybody_shares = bool(self._sharing.any())
        self._known: dict[Hashable, Field] = {}
        self._reached: dict[frozenset[str], Mask] = {}

    def _step(self, rule: str, suffix: str | None, before: Selection, after: Selection) -> Selection:
        self._held += after.nbytes
        self._spend(1)
        self.steps.append(Refusal(rule, suffix, before, after))
        return after

    def _spend(self, glances: int) -> None:
        self._glances += glances
        if self._glances > _UNCOUNTED:
            self.count()

    def count(self) -> None:
        """Let the budget know what was done and is held since it was told last."""
        if self._budget is not None:
            self._budget.spend(self._glances * self._glance)
            self._budget.hold(self._held)
        self._glances = self._held = 0

    # --- trees ---

    def look_at_roots(self, request: SearchQuery) -> None:
        """Leave out trees that cannot serve, whatever their providers have."""
        has = self._snapshot.with_trait
        if request.root_traits.any_of:
            self._keep_roots("root_required", None, self._in_all(has, request.root_traits.any_of))
        if request.root_traits.none_of:
            self._keep_roots("root_required", None, ~self._any_of(has, request.root_traits.none_of))
        for group in request.groups:
            if group.suffix != UNSUFFIXED:
                continue
            if group.aggregates.none_of:
                outside = ~self._any_of(self._snapshot.in_aggregate, group.aggregates.none_of)
                self._keep_roots("member_of", UNSUFFIXED, outside)
            self._keep_trees_with(group.traits.any_of)

    def _keep_roots(self, rule: str, suffix: str | None, roots: Mask) -> None:
        self.roots = self._step(rule, suffix, self.roots, self.roots.within(roots))

    def _keep_trees_with(self, required: AnyOf, among: Mask | None = None) -> None:
        """Leave out trees where no provider (among these) has one of each set of traits."""
        if not required:
            return
        roots = self._forest.is_root.copy()
        for traits in required:
            having = self._any_of(self._snapshot.with_trait, traits)
            if among is not None:
                having &= among
            roots &= self._trees_with(having)
        self._keep_roots("required", UNSUFFIXED, roots)

    def _trees_with(self, providers: Mask) -> Mask:
        """The roots of the trees that have, or are shared with by, one of the providers."""
        roots = self._forest.roots_of(providers)
        if self._anybody_shares:
            roots |= self._reach(Selection(self._forest, providers & self._sharing))
        return roots

    def _reach(self, visiting: Selection) -> Mask:
        """The roots of the trees that these providers share with, their own perhaps not among them."""
        self._spend(1 + len(visiting) // _FEW_OPERATIONS)
        aggregates = frozenset().union(*(self._snapshot.provider(int(slot)).aggregates for slot in visiting.slots()))
        if aggregates not in self._reached:
            members = self._any_of(self._snapshot.in_aggregate, aggregates)
            self._reached[aggregates] = self._forest.roots_of(members)
        return self._reached[aggregates]

    def _any_of(self, mask: Callable[[str], Mask], names: Collection[str]) -> Mask:
        """Those that are in the mask of one of the names; a new array."""
        self._spend(len(names))
        found = np.zeros(self._forest.size, dtype=np.bool_)
        for name in names:
            found |= mask(name)
        return found

    def _in_all(self, mask: Callable[[str], Mask], sets: Iterable[Collection[str]]) -> Mask:
        """Those that are in the mask of one name of each of the sets, of which there is one; a new array."""
        each = (self._any_of(mask, names) for names in sets)
        found = next(each)
        for others in each:
            found &= others
        return found

    # --- groups ---

    def fields(self, group: Group) -> list[Field]:
        """For each pick of the group, those who could serve it; trees without any of them are left out."""
        if group.suffix == UNSUFFIXED:
            common, visitors = self._unsuffixed(group)
            fields = [
                self._serving(group, {name: amount}, common, visitors) for name, amount in group.resources.items()
            ]
            self._meet_together(group, fields)
            return fields
        key = (frozenset(group.resources.items()), *_rules(group))
        if key not in self._known:
            self._known[key] = self._serving(group, group.resources, self.suffixed(group), self._sharing)
        return [self._known[key]]

    def _everybody(self, group: Group) -> Selection:
        """Those in the trees that are left, those who share, less those who may not be in the group by themselves."""
        chosen = self._forest.trees_of(self.roots.mask())
        if self._anybody_shares:
            chosen = chosen | self._sharing
        selection = Selection(self._forest, chosen)
        if group.in_tree is not None:
            tree = np.zeros(self._forest.size, dtype=np.bool_)
            slot = self._snapshot.by_uuid.get(group.in_tree)
            if slot is not None:
                tree[list(self._forest.tree(self._snapshot.provider(slot).root))] = True
            selection = self._step("in_tree", group.suffix, selection, selection.within(tree))
        if group.traits.none_of:
            without = selection.within(~self._any_of(self._snapshot.with_trait, group.traits.none_of))
            selection = self._step("required", group.suffix, selection, without)
        if group.aggregates.none_of:
            outside = selection.within(~self._any_of(self._snapshot.in_aggregate, group.aggregates.none_of))
            selection = self._step("member_of", group.suffix, selection, outside)
        return selection

    def suffixed(self, group: Group) -> Selection:
        """Those who meet every rule of a suffixed group but have not been asked what they have."""
        selection = self._everybody(group)
        if group.aggregates.any_of:
            inside = selection.within(self._in_all(self._snapshot.in_aggregate, group.aggregates.any_of))
            selection = self._step("member_of", group.suffix, selection, inside)
        if group.traits.any_of:
            having = selection.within(self._in_all(self._snapshot.with_trait, group.traits.any_of))
            selection = self._step("required", group.suffix, selection, having)
        return selection

    def _unsuffixed(self, group: Group) -> tuple[Selection, Mask]:
        """The same for the unsuffixed group, and who of them may leave its tree: the root only speaks for its own."""
        selection = self._everybody(group)
        if not group.aggregates.any_of:
            return selection, self._sharing
        inside = self._in_all(self._snapshot.in_aggregate, group.aggregates.any_of)
        spanned = self._forest.trees_of(inside & self._forest.is_root)
        spanned |= inside
        return self._step("member_of", UNSUFFIXED, selection, selection.within(spanned)), self._sharing & inside

    def _serving(self, group: Group, resources: Mapping[str, int], selection: Selection, visitors: Mask) -> Field:
        selection = self.fitting(group, resources, selection)
        visiting = selection.within(visitors).few() if self._anybody_shares else self._nobody
        roots = selection.roots()
        if len(visiting):
            roots = roots | self._reach(visiting)
        self._keep_roots("group", group.suffix, roots)
        return Field(selection, visiting)

    def fitting(self, group: Group, resources: Mapping[str, int], selection: Selection) -> Selection:
        """Those of the selection who have room for everything."""
        for name, amount in resources.items():
            self._spend(_FITTING)
            fitting = selection.fitting(self._snapshot.column(name), amount)
            selection = self._step(f"resources:{name}", group.suffix, selection, fitting)
        return selection

    def _meet_together(self, group: Group, fields: Iterable[Field]) -> None:
        """Leave out trees where no combination of providers can have the required traits."""
        if not group.traits.any_of:
            return
        anybody = np.zeros(self._forest.size, dtype=np.bool_)
        for field in fields:
            anybody |= field.own.mask()
        self._keep_trees_with(group.traits.any_of, anybody)


def _rules(group: Group) -> tuple[Hashable, ...]:
    return group.traits, group.aggregates, group.in_tree
