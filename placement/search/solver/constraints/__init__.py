"""The constraints between the demands of one tree, one module each (docs: api-combining).

A constraint looks ahead as far as that is cheap (forward checking): it refuses a value if it can tell that the
remaining variables could then not be assigned.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from placement.search.solver.canonical_form import CanonicalForm
from placement.search.solver.constraints.constraint import Constraint, Variable
from placement.search.solver.constraints.isolation import Isolation
from placement.search.solver.constraints.not_only_shared import NotOnlyShared
from placement.search.solver.constraints.one_per_tree import OnePerTree
from placement.search.solver.constraints.required_traits import RequiredTraits
from placement.search.solver.constraints.same_subtree import AncestorForest, SameSubtree
from placement.search.solver.constraints.summed_amounts import SummedAmounts
from placement.search.solver.problem import Requirements
from placement.search.solver.work_limit import WorkLimit

__all__ = [
    "Constraint",
    "Isolation",
    "NotOnlyShared",
    "OnePerTree",
    "RequiredTraits",
    "SameSubtree",
    "SummedAmounts",
    "Variable",
    "constraints_of",
]


def constraints_of(
    requirements: Requirements, form: CanonicalForm, variables: Sequence[Variable], limit: WorkLimit
) -> Iterator[Constraint]:
    """Yield the constraints that could refuse a value, in the order of their evaluation."""
    if form.shares:
        yield NotOnlyShared(form.shares, variables)
    if requirements.isolate and requirements.suffixed_count > 1:
        yield Isolation(variables, limit)
    for name, available in zip(requirements.summed_classes, form.available, strict=True):
        yield SummedAmounts(name, available, variables, limit)
    if requirements.same_subtrees:
        forest = AncestorForest(form.parents, limit)
        for suffixes in requirements.same_subtrees:
            yield SameSubtree(suffixes, forest, variables, limit)
    if requirements.required:
        yield RequiredTraits(requirements.required, form.traits, variables, limit)
    if not requirements.nested:
        yield OnePerTree(form.trees, variables)
