"""Groups of trees that differ only in free capacity, and so have the same alternatives."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from placement.extensions.v1.count.inputs import CountInputs, Integers
from placement.index.slots import Slots, SlotSet
from placement.search.narrow.tree_problems import TreeProblems
from placement.search.solver.canonical_form import CanonicalForm, canonical_form
from placement.search.solver.problem import ProviderFacts, Requirements, TreeProblem

#: Providers compared per operation.
_PROVIDERS_PER_OPERATION = 20
#: Operations to compare a tree with others; operations per provider that can supply a demand.
_OPERATIONS_PER_TREE, _OPERATIONS_PER_PROVIDER = 20, 2


class Shape(NamedTuple):
    """Trees of one shape.

    Attributes:
        requirements: The requirements of their problems.
        form: The canonical form of the trees, free capacity aside.
        roots: The roots of the trees.
        providers: By tree, the slots of the providers that can supply demands, in the order of their numbers in
            ``form``.
    """

    requirements: Requirements
    form: CanonicalForm
    roots: Slots
    providers: Slots


class Shapes:
    """The problems of trees, and the trees grouped by shape."""

    def __init__(self, inputs: CountInputs, sharing: SlotSet) -> None:
        """Compute the masks of traits and eligible providers.

        Args:
            sharing: The roots of the trees that use sharing providers.
        """
        self._inputs = inputs
        self._snapshot = inputs.snapshot
        self._requirements = inputs.requirements
        self._problems = TreeProblems(inputs.narrowed, None, inputs.budget)
        self._sharing = sharing.mask(inputs.size)
        traits = [inputs.snapshot.with_trait(name) for name in inputs.requirements.named_traits]
        sets = [*traits, *(eligible.local for eligible in dict.fromkeys(inputs.narrowed.eligible))]
        self._masks = [providers.mask(inputs.size) for providers in sets]
        self._facts: dict[int, ProviderFacts] = {}

    def _problem(self, root: int) -> TreeProblem:
        """Return the problem of one tree as if nothing were used: only max_unit limits the amounts.

        Raises:
            Exhausted: The budget is exhausted.
        """
        problem = self._problems.complete_problem(root)
        self._inputs.budget.spend(_OPERATIONS_PER_TREE + _OPERATIONS_PER_PROVIDER * sum(map(len, problem.domains)))
        if not self._requirements.summed_classes:
            return problem
        for domain in problem.domains:
            for provider in domain:
                if provider not in self._facts:
                    largest = {name: self._inputs.largest[name].item(provider) for name in self._requirements.total}
                    self._facts[provider] = problem.facts[provider]._replace(available=largest)
        return problem._replace(facts=self._facts)

    def shapes_of(self, roots: Slots) -> Iterator[Shape]:
        """Yield the trees by shape.

        Raises:
            Exhausted: The budget is exhausted.
        """
        requirements: dict[CanonicalForm, Requirements] = {}
        trees: dict[CanonicalForm, list[tuple[Slots, Slots]]] = {}
        for members in self._equal_groups(roots):
            problem = self._problem(members.item(0, 0))
            form, providers = canonical_form(problem, self._inputs.budget)
            if form not in trees:
                self._inputs.budget.hold(form.nbytes)
                requirements[form], trees[form] = problem.requirements, []
            positions = {slot: position for position, slot in enumerate(members[0].tolist())}
            if all(provider in positions for provider in providers):
                trees[form].append((members[:, 0], members[:, [positions[provider] for provider in providers]]))
            else:
                trees[form].append((members[:, 0], np.array([providers], np.intp)))
        for form, groups in trees.items():
            root_arrays, provider_arrays = zip(*groups, strict=True)
            yield Shape(requirements[form], form, np.concatenate(root_arrays), np.concatenate(provider_arrays))

    def _equal_groups(self, roots: Slots) -> Iterator[Slots]:
        """Yield the providers of trees with equal solver inputs, in the same order for each tree.

        The root comes first.  A tree that uses sharing providers forms a group by itself.
        """
        members: dict[int, list[tuple[int, ...]]] = {}
        for root, uses_sharing in zip(roots.tolist(), self._sharing[roots].tolist(), strict=True):
            tree = self._snapshot.forest.tree(root)
            tree = (root, *(slot for slot in tree if slot != root)) if tree[0] != root else tree
            if uses_sharing:
                yield np.array([tree], np.intp)
            else:
                members.setdefault(len(tree), []).append(tree)
        for size, trees_of_size in members.items():
            self._inputs.budget.spend(len(trees_of_size) * size // _PROVIDERS_PER_OPERATION)
            slots = np.array(trees_of_size, np.intp)
            facts = np.ascontiguousarray(self._facts_of(slots))
            rows = facts.view(np.dtype((np.void, facts.itemsize * facts.shape[1]))).ravel()
            inverse = np.unique(rows, return_inverse=True)[1].ravel()
            order = np.argsort(inverse, kind="stable")
            yield from (slots[equal] for equal in np.split(order, np.bincount(inverse)[:-1].cumsum()))

    def _facts_of(self, slots: Slots) -> Integers:
        """Return the solver inputs of each tree as numbers, as if nothing were used.

        Args:
            slots: The providers, by tree and position in it.
        """
        facts: list[Integers] = [mask[slots].astype(np.int64) for mask in self._masks]
        for name in self._requirements.summed_classes:
            facts.append(np.minimum(self._inputs.largest[name][slots], self._requirements.total[name]))
        if self._requirements.same_subtrees or not self._requirements.nested:
            # By slot; the last element is the parent of roots, -1.
            position = np.full(self._inputs.size + 1, -1, np.int64)
            position[slots] = np.arange(slots.shape[1])
            parents = self._snapshot.providers.parents(slots.ravel())
            facts.append(position[parents].reshape(slots.shape))
        return np.concatenate(facts, axis=1)
