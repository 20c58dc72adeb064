"""The combinations of one problem: a depth-first search that turns back as early as it can.

>>> from placement.candidates.problem import Pick, Plan, Problem, Supplier
>>> plan = Plan((Pick("1", {"PGPU": 1}), Pick("2", {"PGPU": 1})), isolate=True)
>>> host = {1: Supplier((1,)), 2: Supplier((2, 1)), 3: Supplier((3, 1))}
>>> for candidate in combine(Problem(plan, ((2, 3), (2, 3)), host)):
...     print(candidate.mappings)
{'1': (2,), '2': (3,)}
{'1': (3,), '2': (2,)}
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator

from placement.candidates.problem import Candidate, Plan, Problem, Supplier
from placement.candidates.request import UNSUFFIXED
from placement.candidates.rules import Choice, Rule, rules_of


def combine(problem: Problem) -> Iterator[Candidate]:
    """Every candidate of the tree, once each, one by one."""
    options = problem.options
    first = options[0]
    if len(first) == 1 and all(places == first for places in options):
        return _alone(problem, first[0])
    return _Search(problem).candidates(0)


def _alone(problem: Problem, provider: int) -> Iterator[Candidate]:
    """The one candidate there may be when one provider has to serve everything."""
    plan, suppliers = problem.plan, problem.suppliers
    if plan.isolate and sum(bool(pick.suffix) for pick in plan.picks) > 1:
        return iter(())
    if plan.required and any(any_of.isdisjoint(suppliers[provider].traits) for any_of in plan.required):
        return iter(())
    if problem.repeated and suppliers[provider].shares:
        return iter(())
    for name in plan.contended:
        if plan.whole[name] > min(suppliers[provider].room[name]):
            return iter(())
    place = (provider,)
    return iter((Candidate({provider: plan.whole} if plan.whole else {}, {pick.suffix: place for pick in plan.picks}),))


class _Search:
    def __init__(self, problem: Problem) -> None:
        self._plan: Plan = problem.plan
        self._suppliers = problem.suppliers
        # Whoever has the fewest options chooses first.
        choices = [
            Choice(pick, options, place)
            for place, (pick, options) in enumerate(zip(problem.plan.picks, problem.options, strict=True))
        ]
        self._choices = sorted(choices, key=lambda choice: len(choice.options))
        self._rules: list[Rule] = list(
            rules_of(problem.plan, self._choices, problem.suppliers, repeated=problem.repeated)
        )
        self._hopeless = any(rule.hopeless() for rule in self._rules)
        #: By place in the plan.
        self._chosen: list[int] = [-1] * len(choices)
        #: What is known to lead nowhere: the number of a choice and what all rules know by then.
        self._dead: set[Hashable] = set()
        self._kinds: dict[int, Hashable] = {}

    def candidates(self, number: int) -> Iterator[Candidate]:
        """Everything that can be made of the choices before ``number``."""
        if self._hopeless:
            return
        if number == len(self._choices):
            yield self._candidate()
            return
        state: Hashable = self._state(number) if self._dead else None
        if state is not None and state in self._dead:
            return
        fruitful = False
        barren: set[Hashable] = set()
        choice = self._choices[number]
        for provider in choice.options:
            if barren and self._kind(provider) in barren:
                continue
            if not all(rule.admits(number, provider) for rule in self._rules):
                continue
            bears = False
            self._choose(number, provider)
            for candidate in self.candidates(number + 1):
                bears = True
                yield candidate
            self._undo(number, provider)
            fruitful |= bears
            if not bears and (kind := self._kind(provider)) is not None:
                barren.add(kind)
        if not fruitful:
            self._dead.add(self._state(number))

    def _choose(self, number: int, provider: int) -> None:
        self._chosen[self._choices[number].place] = provider
        for rule in self._rules:
            rule.choose(number, provider)

    def _undo(self, number: int, provider: int) -> None:
        self._chosen[self._choices[number].place] = -1
        for rule in self._rules:
            rule.undo(number, provider)

    def _state(self, number: int) -> Hashable:
        return number, tuple(rule.state() for rule in self._rules)

    def _kind(self, provider: int) -> Hashable:
        """Providers of one kind can stand for each other while none of them is chosen; None: it is one of a kind."""
        if provider in self._chosen:
            return None
        if provider not in self._kinds:
            self._kinds[provider] = self._kind_of(provider, self._suppliers[provider])
        return self._kinds[provider]

    def _kind_of(self, provider: int, supplier: Supplier) -> Hashable:
        everybody = {other for choice in self._choices for other in choice.options}
        if any(provider in self._suppliers[other].ancestry[1:] for other in everybody):
            return None
        wanted = frozenset().union(*self._plan.required)
        return (
            supplier.ancestry[1:],
            supplier.shares,
            supplier.traits & wanted,
            tuple(supplier.room[name] for name in sorted(supplier.room)),
            tuple(provider in choice.options for choice in self._choices),
        )

    def _candidate(self) -> Candidate:
        amounts: dict[int, dict[str, int]] = {}
        mappings: dict[str, tuple[int, ...]] = {}
        for pick, provider in zip(self._plan.picks, self._chosen, strict=True):
            if pick.suffix != UNSUFFIXED:
                mappings[pick.suffix] = (provider,)
            elif provider not in mappings.get(UNSUFFIXED, ()):
                mappings[UNSUFFIXED] = (*mappings.get(UNSUFFIXED, ()), provider)
            for name, amount in pick.amounts.items():
                given = amounts.setdefault(provider, {})
                given[name] = given.get(name, 0) + amount
        return Candidate(amounts, mappings)
