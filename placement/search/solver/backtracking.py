"""The solutions of a shape: a depth-first search that turns back as early as it can."""

from __future__ import annotations

from collections.abc import Hashable, Iterator

from placement.search.solver.canonical import Assignment, Shape
from placement.search.solver.constraints import Choice, Rule, rules_of
from placement.search.solver.effort import Patience, Turn
from placement.search.solver.problem import Pick, Plan


def solve(plan: Plan, shape: Shape, patience: Patience | None = None) -> Iterator[Assignment]:
    """Every way to make all picks, once each, one by one; as far as patience lasts."""
    patience = Patience() if patience is None else patience
    if patience.exhausted():
        return iter(())
    return _Search(plan, shape, patience).all_solutions()


def _weight(pick: Pick, plan: Plan) -> float:
    """How much of what is asked for of the classes that others ask for, too."""
    return sum(pick.amounts[name] / plan.whole[name] for name in plan.contended if name in pick.amounts)


#: Looking at so many numbers of a list is as much work as looking at an option.
_LISTED = 20
#: Choosing a provider, and going on from there, takes so many operations.
_CHOICE = 4
#: Bytes of a number, and of what is round those of a state.
_NUMBER, _STATE = 8, 300


class _Search:
    def __init__(self, plan: Plan, shape: Shape, patience: Patience) -> None:
        self._shape = shape
        picks = enumerate(zip(plan.picks, shape.options, strict=True))
        patience.budget.spend(len(plan.picks) * (2 + len(plan.contended) // _LISTED))
        choices = [Choice(pick, options, place) for place, (pick, options) in picks]
        # Whoever has the fewest options chooses first, and of these who asks for most.
        self._choices = sorted(choices, key=lambda choice: (len(choice.options), -_weight(choice.pick, plan)))
        #: Of looking at an option: most plans have few rules, but nobody says how many subtrees there may be.
        self._price = 1 + (len(plan.same_subtrees) + len(plan.contended)) // 4
        # Without a mistake, every option is looked at once or twice, and every pick by those before it.
        least = (1 + self._price) * sum(len(options) for options in shape.options) + len(choices) ** 2
        self._turn = Turn(patience, least)
        self._turn.work += len(plan.same_subtrees) * len(choices)
        self._rules: list[Rule] = list(rules_of(plan, shape, self._choices, self._turn))
        #: By place in the plan.
        self._chosen = [-1] * len(choices)
        #: What leads nowhere: the number of a choice, and what all rules know by then.
        self._dead: set[Hashable] = set()
        self._kinds: dict[int, Hashable] = {}
        #: What a state holds: mostly, how much every provider has left of every class.
        self._held = sum(map(len, shape.room)) + len(shape.family) + len(plan.required) + 2 * len(plan.same_subtrees)
        distinct = {id(choice.options): choice.options for choice in choices}
        self._places = [frozenset(places) for places in distinct.values()]
        self._above = frozenset(shape.above)

    def _hopeless(self) -> bool:
        """Whether some rule sees at once that there is no solution."""
        return not all(choice.options for choice in self._choices) or any(rule.hopeless() for rule in self._rules)

    def all_solutions(self) -> Iterator[Assignment]:
        """Everything that can be found."""
        if not self._hopeless():
            for solution in self._solutions(0):
                self._turn.found()
                self._turn.budget.spend(len(solution) // 2)
                self._turn.budget.hold(_NUMBER * len(solution))
                yield solution
        self._turn.end()

    def _solutions(self, number: int) -> Iterator[Assignment]:
        """Everything that can be made of the choices before ``number``."""
        if number == len(self._choices):
            yield tuple(self._chosen)
            return
        if self._dead and self._state(number) in self._dead:
            return
        fruitful = False
        barren: set[Hashable] = set()
        for provider in self._choices[number].options:
            if self._turn.over():
                return
            self._turn.work += self._price
            if (barren and self._kind(provider) in barren) or not self._admits(number, provider):
                continue
            bears = False
            self._turn.budget.spend(_CHOICE * self._price)
            self._choose(number, provider)
            for solution in self._solutions(number + 1):
                bears = True
                yield solution
            self._undo(number, provider)
            fruitful |= bears
            if not bears and (kind := self._kind(provider)) is not None:
                barren.add(kind)
        if not fruitful and self._turn.budget.fits(_STATE + _NUMBER * self._held):
            self._dead.add(self._state(number))

    def _admits(self, number: int, provider: int) -> bool:
        return all(rule.admits(number, provider) for rule in self._rules)

    def _choose(self, number: int, provider: int) -> None:
        self._chosen[self._choices[number].place] = provider
        for rule in self._rules:
            rule.choose(number, provider)

    def _undo(self, number: int, provider: int) -> None:
        self._chosen[self._choices[number].place] = -1
        for rule in self._rules:
            rule.undo(number, provider)

    def _state(self, number: int) -> Hashable:
        self._turn.work += self._held // _LISTED
        return number, tuple(rule.state() for rule in self._rules)

    def _kind(self, provider: int) -> Hashable:
        """Providers of one kind can stand for each other while none of them is chosen; None: it is one of a kind."""
        if provider in self._chosen:
            return None
        if provider not in self._kinds:
            self._kinds[provider] = self._kind_of(provider)
        return self._kinds[provider]

    def _kind_of(self, provider: int) -> Hashable:
        shape = self._shape
        if provider in self._above:
            return None
        self._turn.work += len(self._places) // _LISTED
        told = (shape.above, shape.family, shape.traits, shape.shares, *shape.room)
        return (
            tuple(facts[provider] if facts else None for facts in told),
            tuple(provider in places for places in self._places),
        )
