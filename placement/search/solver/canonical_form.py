"""The canonical form of a tree problem: the problem without the ids of its providers.

A cloud has a thousand hosts of three kinds.  Hosts of one kind pose equal problems but for the ids, so that a solution
for one of them is a solution for all, and what has no solution in one tree has none in the others (ADR 8).

Providers are renumbered in the order in which they appear in the domains, and facts that no constraint of the request
reads are left out.  Equal forms have equal solutions.  The reverse need not hold: domains in another order give another
form, since a labelling that is canonical under reordering is as hard as graph isomorphism.

The two devices of two hosts:

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

#: For each demand, the number of the provider that supplies it.
Assignment = tuple[int, ...]

#: Elements of a list that one operation handles.
_PER_OPERATION = 10
#: Bytes of a number in a tuple; and how many times as many a trait in a set takes.
_NUMBER, _TRAIT = 8, 8


class CanonicalForm(NamedTuple):
    """A tree problem on providers 0, 1, 2, ...; every tuple but ``domains`` is indexed by provider."""

    #: For each demand.
    domains: tuple[tuple[int, ...], ...]
    #: For each of ``summed_classes``: the amount available, at most the total that is demanded.
    available: tuple[tuple[int, ...], ...] = ()
    #: The nearest ancestor among the numbered providers, or -1; and the number of the tree.  Empty if not needed.
    parents: tuple[int, ...] = ()
    trees: tuple[int, ...] = ()
    #: The traits that ``required`` names; empty if not needed.
    traits: tuple[frozenset[str], ...] = ()
    #: Whether the provider is shared; empty if not needed.
    shares: tuple[bool, ...] = ()

    @property
    def nbytes(self) -> int:
        """An estimate of its size in memory."""
        distinct = {id(domain): domain for domain in self.domains}
        numbers = len(self.domains) + sum(map(len, distinct.values())) + sum(map(len, self.available))
        return _NUMBER * (numbers + sum(map(len, self[2:])) + _TRAIT * sum(map(len, self.traits)))


def canonical_form(problem: TreeProblem, budget: Budget) -> tuple[CanonicalForm, tuple[int, ...]]:
    """Return the canonical form of a problem, and the provider that each number stands for.

    Raises:
        Exhausted: The budget is used up.
    """
    requirements, facts = problem.requirements, problem.facts
    numbers: dict[int, int] = {}
    renumbered: dict[int, tuple[int, ...]] = {}
    domains = []
    # Lists, where generators would do, halve the time; this runs for every tree.
    for domain in problem.domains:
        # Equal demands have the same domain object.
        same = renumbered.get(id(domain))
        if same is None:
            same = renumbered[id(domain)] = tuple([numbers.setdefault(one, len(numbers)) for one in domain])
        domains.append(same)
    providers = tuple(numbers)
    parents: tuple[int, ...] = ()
    trees: tuple[int, ...] = ()
    if requirements.same_subtrees or not requirements.nested:
        parents, trees = _forest(numbers, facts, budget)
    if len(providers) > _PER_OPERATION:
        elements = len(providers) * (2 + len(requirements.summed_classes)) + sum(map(len, renumbered.values()))
        budget.spend(elements // _PER_OPERATION)
    available = [
        tuple([min(facts[one].available.get(name, 0), requirements.total[name]) for one in providers])
        for name in requirements.summed_classes
    ]
    form = CanonicalForm(
        tuple(domains),
        tuple(available),
        parents,
        trees,
        tuple([facts[one].traits & requirements.named_traits for one in providers]) if requirements.required else (),
        tuple([facts[one].shares for one in providers]) if problem.skip_shared else (),
    )
    return form, providers


def _forest(
    numbers: Mapping[int, int], facts: Mapping[int, ProviderFacts], budget: Budget
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the nearest numbered ancestor and the number of the tree of each provider."""
    parents, trees = [], []
    walked = 0
    roots: dict[int, int] = {}
    for provider in numbers:
        known = facts[provider]
        steps, parent = _nearest(known.ancestry, numbers)
        walked += steps
        if steps > _PER_OPERATION:
            budget.spend(steps)
        parents.append(parent)
        root = known.root if known.root is not None else deque(known.ancestry, 1).pop()
        trees.append(roots.setdefault(root, len(roots)))
    budget.spend(walked)
    return tuple(parents), tuple(trees)


def _nearest(ancestry: Iterable[int], numbers: Mapping[int, int]) -> tuple[int, int]:
    """Return the number of steps taken up the ancestry, and the first proper ancestor with a number, or -1."""
    steps = 0
    for steps, other in enumerate(ancestry):
        if steps and other in numbers:
            return steps, numbers[other]
    return steps, -1
