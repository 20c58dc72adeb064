"""Trees of one provider, combined all at once with arrays.

Each has one candidate, or is refused for one of three reasons.  The reasons, and their order, are those of
``solver/combine.py``.
"""

from __future__ import annotations

from itertools import islice

from placement.index.slots import EMPTY, SlotSet
from placement.search.narrow.narrowing import Narrowed
from placement.search.refusals import Refusals
from placement.search.solver.constraints import Isolation, RequiredTraits, SummedAmounts
from placement.search.solver.problem import Candidate, Requirements


def single_providers(narrowed: Narrowed) -> SlotSet:
    """Return the trees in which the root alone can supply every demand; none if some provider shares."""
    if any(eligible.sharing for eligible in narrowed.eligible):
        return EMPTY
    forest = narrowed.snapshot.forest
    if not len(forest.children):
        return narrowed.roots
    return narrowed.roots - forest.roots_of(SlotSet.of(forest.children, forest.size))


def candidates_of(narrowed: Narrowed, roots: SlotSet, limit: int, refusals: Refusals) -> list[Candidate]:
    """Return the first candidates of trees of one provider, and record the trees that have none."""
    requirements, snapshot = Requirements.of(narrowed.query), narrowed.snapshot
    if requirements.isolate and requirements.suffixed_count > 1:
        refusals.all_refused(roots, Isolation.name)
        return []
    for names in requirements.required:
        having = SlotSet.union([snapshot.with_trait(name) for name in names], snapshot.size)
        refusals.all_refused(roots - having, RequiredTraits.name)
        roots &= having
    for name in requirements.summed_classes:
        column = snapshot.column(name)
        if column is None:
            continue
        enough = SlotSet.dense(column.available(snapshot.size) >= requirements.total[name])
        refusals.all_refused(roots - enough, SummedAmounts.name_for(name))
        roots &= enough
    return [
        Candidate({root: requirements.total}, dict.fromkeys(requirements.suffixes, (root,)))
        for root in islice(roots.slots().tolist(), limit)
    ]
