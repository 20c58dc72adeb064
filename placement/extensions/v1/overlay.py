"""The usage that picks add to a snapshot, and tree problems at that usage."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping

from placement.index.column import Amounts
from placement.index.edit import with_usage_by_slot
from placement.index.snapshot import Snapshot
from placement.search.solver.problem import Candidate, Demand, ProviderFacts, Requirements, TreeProblem

#: Amounts that a consumer releases, by slot and resource class.
ReleasedAmounts = Mapping[tuple[int, str], int]


class UsageOverlay:
    """The usage of providers after the picks so far.

    The amounts that one consumer takes from one provider in several picks form one allocation, whose sum must be within
    ``max_unit``.  ``begin_consumer`` starts the picks of the next consumer.

    Attributes:
        changes: Number of candidates taken or released so far.
    """

    def __init__(self, snapshot: Snapshot) -> None:
        """Start with the usage in the snapshot."""
        self._base = snapshot
        #: Inventories read from the base, by slot and resource class.
        self._inventories: dict[tuple[int, str], Amounts] = {}
        #: Amounts taken since the base, by slot and resource class.
        self._taken: dict[int, dict[str, int]] = {}
        #: The base snapshot plus amounts taken; slots whose usage is not merged into it yet.
        self._current = snapshot
        self._unmerged: set[int] = set()
        self.changes = 0
        #: Amounts that the current consumer releases; amounts that its picks have taken.
        self._released: ReleasedAmounts = {}
        self._taken_by_consumer: dict[tuple[int, str], int] = {}

    def begin_consumer(self, released: ReleasedAmounts) -> None:
        """Start the picks of the next consumer; the amounts that it releases are free only for this consumer."""
        self._released = released
        self._taken_by_consumer.clear()

    def take(self, candidate: Candidate, times: int = 1) -> None:
        """Take the amounts of a candidate a number of times; -1 releases them."""
        self.changes += 1
        taken_by_consumer = self._taken_by_consumer
        for slot, amounts in candidate.amounts.items():
            self._unmerged.add(slot)
            taken_amounts = self._taken.setdefault(slot, {})
            for name, amount in amounts.items():
                taken_amounts[name] = taken_amounts.get(name, 0) + times * amount
                taken_by_consumer[slot, name] = taken_by_consumer.get((slot, name), 0) + times * amount

    def _inventory(self, slot: int, name: str, released: ReleasedAmounts) -> Amounts:
        """Return an inventory at the current usage, minus the amounts that a consumer releases."""
        inventory = self._inventories.get((slot, name))
        if inventory is None:
            column = self._base.column(name)
            assert column is not None, name  # or no provider would be eligible
            inventory = self._inventories[slot, name] = column.amounts(slot)
        amount = self._taken.get(slot, {}).get(name, 0)
        return inventory._replace(used=inventory.used + amount - released.get((slot, name), 0))

    def _inventory_for_consumer(self, slot: int, name: str) -> Amounts:
        """Return the inventory for the current consumer, with max_unit reduced by the amounts that it has taken."""
        inventory = self._inventory(slot, name, self._released)
        amount = self._taken_by_consumer.get((slot, name))
        return inventory._replace(max_unit=inventory.max_unit - amount) if amount else inventory

    def snapshot(self, released: ReleasedAmounts) -> Snapshot:
        """Return the snapshot at the current usage, minus the amounts that a consumer releases."""
        if self._unmerged:
            keys = [(slot, name) for slot in self._unmerged for name in self._taken[slot]]
            self._current = with_usage_by_slot(self._current, self._usage(keys, {}))
            self._unmerged.clear()
        return with_usage_by_slot(self._current, self._usage(released, released)) if released else self._current

    def _usage(self, keys: Iterable[tuple[int, str]], released: ReleasedAmounts) -> dict[int, dict[int, int]]:
        """Return the usage of inventories, minus the amounts that a consumer releases, by class id and slot."""
        used: dict[int, dict[int, int]] = defaultdict(dict)
        for slot, name in keys:
            used[self._base.class_ids[name]][slot] = int(self._inventory(slot, name, released).used)
        return used

    def rebase(self) -> None:
        """Make the current usage the base; problems from earlier snapshots become invalid."""
        self._base = self.snapshot({})
        self._taken, self._inventories = {}, {}

    def times(self, slot: int, amounts: Mapping[str, int]) -> int:
        """Return an upper bound for the number of times that the provider can supply the current consumer."""
        return min(self._inventory_for_consumer(slot, name).available // amount for name, amount in amounts.items())

    def reduced_problem(self, problem: TreeProblem) -> TreeProblem | None:
        """Return the problem of a tree at the current usage; None if a demand fits on none of its providers.

        Args:
            problem: The problem at the same or a smaller usage, minus the amounts that the consumer releases.
        """
        touched = {slot for domain in problem.domains for slot in domain if slot in self._taken}
        if not touched:
            return problem
        requirements = problem.requirements
        # Equal demands must keep sharing one domain object.
        reduced: dict[Hashable, tuple[int, ...]] = {}
        domains = []
        for demand, domain in zip(requirements.demands, problem.domains, strict=True):
            key = id(domain), frozenset(demand.amounts.items())
            if key not in reduced:
                reduced[key] = tuple([slot for slot in domain if slot not in touched or self._fits(slot, demand)])
                if not reduced[key]:
                    return None
            domains.append(reduced[key])
        facts = self._facts(problem, requirements, touched) if requirements.summed_classes else problem.facts
        return problem._replace(domains=tuple(domains), facts=facts)

    def _fits(self, slot: int, demand: Demand) -> bool:
        return all(self._inventory_for_consumer(slot, name).fits(amount) for name, amount in demand.amounts.items())

    def _facts(
        self, problem: TreeProblem, requirements: Requirements, touched: set[int]
    ) -> Mapping[int, ProviderFacts]:
        """Return the facts of the providers in a problem, with the amounts available on the touched providers."""
        facts = {slot: problem.facts[slot] for domain in problem.domains for slot in domain}
        for slot in touched:
            available = {
                name: self._inventory_for_consumer(slot, name).available for name in requirements.summed_classes
            }
            facts[slot] = facts[slot]._replace(available=available)
        return facts
