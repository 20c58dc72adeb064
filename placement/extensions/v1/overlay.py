"""The amounts that picks took from the providers of a snapshot, and what they leave of a tree's problem."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping

from placement.index.column import Amounts
from placement.index.edit import with_usage_by_slot
from placement.index.snapshot import Snapshot
from placement.search.solver.problem import Candidate, Demand, ProviderFacts, Requirements, TreeProblem

#: What a consumer gives up, by slot and resource class.
Own = Mapping[tuple[int, str], int]


class UsageOverlay:
    """The usage of the providers that picks took something from.

    What the picks of one consumer take from one provider is one allocation: its sum has to be within ``max_unit``.
    ``begin_consumer`` says where the next consumer begins.

    Attributes:
        changes: How many candidates were taken or given back so far.
    """

    def __init__(self, snapshot: Snapshot) -> None:
        """Begin with the usage in the snapshot."""
        self._base = snapshot
        #: Some of its inventories, by slot and resource class.
        self._inventories: dict[tuple[int, str], Amounts] = {}
        #: By slot and resource class: what was taken since.
        self._taken: dict[int, dict[str, int]] = {}
        #: The same with a newer usage, and the providers of which it is still newer.
        self._present = snapshot
        self._newer: set[int] = set()
        self.changes = 0
        #: What the present consumer gives up, and what it was given.
        self._own: Own = {}
        self._given: dict[tuple[int, str], int] = {}

    def begin_consumer(self, own: Own) -> None:
        """Take what follows for another consumer, who gives up amounts of its own; they are free for it alone."""
        self._own = own
        self._given.clear()

    def take(self, candidate: Candidate, times: int = 1) -> None:
        """Take the amounts of a candidate; -1 times gives them back."""
        self.changes += 1
        given = self._given
        for slot, wanted in candidate.amounts.items():
            self._newer.add(slot)
            taken = self._taken.setdefault(slot, {})
            for name, amount in wanted.items():
                taken[name] = taken.get(name, 0) + times * amount
                given[slot, name] = given.get((slot, name), 0) + times * amount

    def _held(self, slot: int, name: str, own: Own) -> Amounts:
        """Return an inventory with its present usage, less what a consumer gives up."""
        held = self._inventories.get((slot, name))
        if held is None:
            column = self._base.column(name)
            assert column is not None, name  # or no provider would be eligible
            held = self._inventories[slot, name] = column.amounts(slot)
        taken = self._taken.get(slot, {}).get(name, 0)
        return held._replace(used=held.used + taken - own.get((slot, name), 0))

    def _left(self, slot: int, name: str) -> Amounts:
        """Return the same for the present consumer: what it was given is no part of what it may have any more."""
        held = self._held(slot, name, self._own)
        return held._replace(max_unit=held.max_unit - given) if (given := self._given.get((slot, name))) else held

    def snapshot(self, own: Own) -> Snapshot:
        """Return the snapshot with the present usage, without what a consumer gives up."""
        if self._newer:
            held = [(slot, name) for slot in self._newer for name in self._taken[slot]]
            self._present = with_usage_by_slot(self._present, self._used(held, {}))
            self._newer.clear()
        return with_usage_by_slot(self._present, self._used(own, own)) if own else self._present

    def _used(self, held: Iterable[tuple[int, str]], own: Own) -> dict[int, dict[int, int]]:
        """Return the usage of some inventories, less what a consumer gives up, by class id and slot."""
        used: dict[int, dict[int, int]] = defaultdict(dict)
        for slot, name in held:
            used[self._base.class_ids[name]][slot] = int(self._held(slot, name, own).used)
        return used

    def rebase(self) -> None:
        """Begin with the present usage; problems that were made before are not valid any more."""
        self._base = self.snapshot({})
        self._taken, self._inventories = {}, {}

    def times(self, slot: int, amounts: Mapping[str, int]) -> int:
        """Return how often the provider can supply the amounts to the present consumer, or more."""
        return min(self._left(slot, name).available // amount for name, amount in amounts.items())

    def remaining(self, problem: TreeProblem) -> TreeProblem | None:
        """Return the problem of a tree with the present usage; None if some demand fits nowhere.

        Args:
            problem: Made from a snapshot with the same or a smaller usage, without what the consumer gives up.
        """
        touched = {slot for domain in problem.domains for slot in domain if slot in self._taken}
        if not touched:
            return problem
        requirements = problem.requirements
        # Equal demands keep having the same domain object.
        known: dict[Hashable, tuple[int, ...]] = {}
        domains = []
        for demand, domain in zip(requirements.demands, problem.domains, strict=True):
            key = id(domain), frozenset(demand.amounts.items())
            if key not in known:
                known[key] = tuple([slot for slot in domain if slot not in touched or self._fits(slot, demand)])
                if not known[key]:
                    return None
            domains.append(known[key])
        facts = self._facts(problem, requirements, touched) if requirements.summed_classes else problem.facts
        return problem._replace(domains=tuple(domains), facts=facts)

    def _fits(self, slot: int, demand: Demand) -> bool:
        return all(self._left(slot, name).fits(amount) for name, amount in demand.amounts.items())

    def _facts(
        self, problem: TreeProblem, requirements: Requirements, touched: set[int]
    ) -> Mapping[int, ProviderFacts]:
        """Return the facts of the providers of the problem, with what is available of the touched ones."""
        facts = {slot: problem.facts[slot] for domain in problem.domains for slot in domain}
        for slot in touched:
            available = {name: self._left(slot, name).available for name in requirements.summed_classes}
            facts[slot] = facts[slot]._replace(available=available)
        return facts
