"""The canonical form of a tree problem: the problem without the ids of its providers.

A cloud may have a thousand hosts of three kinds.  The problems of equivalent hosts differ only in the ids, so they have
the same solutions, or none (ADR 8).

Providers are renumbered in the order in which they appear in the domains, and facts that no constraint of the request
reads are omitted.  Equal forms have equal solutions.  The converse does not hold: domains in another order yield
another form, because a canonical labelling under reordering is as hard as graph isomorphism.

An example with two hosts of two devices each:

>>> from placement.search.solver.problem import Demand, Requirements
>>> groups = Requirements((Demand("1", {"PGPU": 1}), Demand("2", {"PGPU": 1})), isolate=True)
>>> for host in (10, 20):
...     devices = host + 1, host + 2
...     facts = {device: ProviderFacts((device, host)) for device in devices}
...     form, providers = canonical_form(TreeProblem(groups, (devices, devices), facts), Budget())
...     print(form.domains, providers)
((0, 1), (0, 1)) (11, 12)
((0, 1), (0, 1)) (21, 22)
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from placement.search.budget import Budget
from placement.search.solver.problem import ProviderFacts, TreeProblem

#: The number of the provider that supplies each demand, by demand.
Assignment = tuple[int, ...]

#: Elements of a list per operation.
_PER_OPERATION = 10
#: Bytes of a number in a tuple; the size of a trait in a set, in numbers.
_NUMBER, _TRAIT = 8, 8


class CanonicalForm(NamedTuple):
    """A tree problem on providers 0, 1, 2, ...; every tuple except ``domains`` is indexed by provider."""

    #: The numbers of the providers that can supply each demand, by demand.
    domains: tuple[tuple[int, ...], ...]
    #: The available amounts of each of ``summed_classes``, limited to the total demanded.
    available: tuple[tuple[int, ...], ...] = ()
    #: The nearest ancestor among the numbered providers, or -1; empty if not needed.
    parents: tuple[int, ...] = ()
    #: The number of the tree; empty if not needed.
    trees: tuple[int, ...] = ()
    #: The traits in ``required``; empty if not needed.
    traits: tuple[frozenset[str], ...] = ()
    #: Whether the provider shares; empty if not needed.
    shares: tuple[bool, ...] = ()

    @property
    def nbytes(self) -> int:
        """The estimated size in bytes."""
        distinct = {id(domain): domain for domain in self.domains}
        numbers = len(self.domains) + sum(map(len, distinct.values())) + sum(map(len, self.available))
        return _NUMBER * (numbers + sum(map(len, self[2:])) + _TRAIT * sum(map(len, self.traits)))


def canonical_form(problem: TreeProblem, budget: Budget) -> tuple[CanonicalForm, tuple[int, ...]]:
    """Return the canonical form of a problem, and the providers by number.

    Raises:
        Exhausted: The budget is exhausted.
    """
    requirements, facts = problem.requirements, problem.facts
    numbers: dict[int, int] = {}
    renumbered: dict[int, tuple[int, ...]] = {}
    domains = []
    # This runs for every tree: lists instead of generators halve the time.
    for domain in problem.domains:
        # Equal demands have the same domain object.
        numbered = renumbered.get(id(domain))
        if numbered is None:
            numbered = tuple([numbers.setdefault(provider, len(numbers)) for provider in domain])
            renumbered[id(domain)] = numbered
        domains.append(numbered)
    providers = tuple(numbers)
    parents: tuple[int, ...] = ()
    trees: tuple[int, ...] = ()
    if requirements.same_subtrees or not requirements.nested:
        parents, trees = _forest(numbers, facts, budget)
    if len(providers) > _PER_OPERATION:
        elements = len(providers) * (2 + len(requirements.summed_classes)) + sum(map(len, renumbered.values()))
        budget.spend(elements // _PER_OPERATION)
    available = [
        tuple([min(facts[provider].available.get(name, 0), requirements.total[name]) for provider in providers])
        for name in requirements.summed_classes
    ]
    form = CanonicalForm(
        tuple(domains),
        tuple(available),
        parents,
        trees,
        tuple([facts[id_].traits & requirements.named_traits for id_ in providers]) if requirements.required else (),
        tuple([facts[id_].shares for id_ in providers]) if problem.skip_shared else (),
    )
    return form, providers


def _forest(
    numbers: Mapping[int, int], facts: Mapping[int, ProviderFacts], budget: Budget
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return, by provider, the nearest numbered ancestor and the number of the tree."""
    parents, trees = [], []
    walked = 0
    roots: dict[int, int] = {}
    for provider in numbers:
        own_facts = facts[provider]
        steps, parent = _nearest_ancestor(own_facts.ancestry, numbers)
        walked += steps
        if steps > _PER_OPERATION:
            budget.spend(steps)
        parents.append(parent)
        root = own_facts.root if own_facts.root is not None else deque(own_facts.ancestry, 1).pop()
        trees.append(roots.setdefault(root, len(roots)))
    budget.spend(walked)
    return tuple(parents), tuple(trees)


def _nearest_ancestor(ancestry: Iterable[int], numbers: Mapping[int, int]) -> tuple[int, int]:
    """Return the steps taken up the ancestry, and the number of the first numbered proper ancestor, or -1."""
    steps = 0
    for steps, ancestor in enumerate(ancestry):
        if steps and ancestor in numbers:
            return steps, numbers[ancestor]
    return steps, -1
