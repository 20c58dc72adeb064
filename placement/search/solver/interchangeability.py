"""Which providers can replace each other in a search.

Freuder, "Eliminating interchangeable values in constraint satisfaction problems", AAAI 1991: if one of two
interchangeable values leads to no solution, neither does the other.
"""

from __future__ import annotations

from collections.abc import Hashable

from placement.search.solver.canonical_form import CanonicalForm
from placement.search.solver.work_limit import WorkLimit

#: Domains that one unit of work looks a provider up in.
_PER_WORK = 20


class Interchangeability:
    """Classes of providers with equal facts that are in the same domains.

    Two of a class are interchangeable while neither is assigned: swapping them keeps every constraint satisfied.
    """

    def __init__(self, form: CanonicalForm, limit: WorkLimit) -> None:
        self._form = form
        self._limit = limit
        distinct = {id(domain): domain for domain in form.domains}
        self._domains = [frozenset(domain) for domain in distinct.values()]
        self._parents = frozenset(form.parents)
        self._classes: dict[int, Hashable] = {}

    def class_of(self, provider: int) -> Hashable:
        """Return the class of the provider; None if no other provider is in it."""
        if provider not in self._classes:
            self._classes[provider] = self._find(provider)
        return self._classes[provider]

    def _find(self, provider: int) -> Hashable:
        form = self._form
        if provider in self._parents:
            # Its descendants are not those of another.
            return None
        self._limit.work += len(self._domains) // _PER_WORK
        facts = (form.parents, form.trees, form.traits, form.shares, *form.available)
        return (
            tuple(known[provider] if known else None for known in facts),
            tuple(provider in domain for domain in self._domains),
        )
