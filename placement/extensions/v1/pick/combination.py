"""Backtracking search for candidates that fit together: the copies of one consumer, or several consumers in one tree.

Two refinements reduce the search.  A state without a continuation is recorded as a no-good and not entered again; a
state consists of the amounts taken from contended providers, which are few.  And a choice that took nothing from a
contended provider is not replaced, because later choices do not depend on it (backjumping).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterator
from typing import NamedTuple

from placement.extensions.v1.overlay import UsageOverlay
from placement.search.budget import Budget
from placement.search.solver.problem import Candidate

#: Operations per choice; bytes per state; bytes per amount in a state.
_CHOICE, _STATE, _AMOUNT = 5, 200, 150


class TreeCandidate(NamedTuple):
    """A candidate in one tree."""

    root: int
    candidate: Candidate
    #: The position of the tree, if later choices may use only later trees.
    position: int = 0


#: A function that returns the candidates for the next place, given the choices so far.
Alternatives = Callable[[list[TreeCandidate]], Iterator[TreeCandidate]]


def find_combination(
    count: int, alternatives: Alternatives, contended: Callable[[int], bool], overlay: UsageOverlay, budget: Budget
) -> list[TreeCandidate] | None:
    """Return the first sequence of choices that fit together; their amounts stay in the overlay.

    Args:
        count: Number of choices.
        alternatives: The function that is called for each place, and again after an earlier choice was replaced.
        contended: Whether several choices may use the provider in a slot.

    Returns:
        None if no sequence fits; the overlay is then unchanged.

    Raises:
        Exhausted: The budget is exhausted; the overlay is unchanged.
    """
    search = _Search(contended, overlay, budget)
    try:
        complete = search.run(count, alternatives)
    except BaseException:
        search.undo_all()
        raise
    return search.choices if complete else None


class _Search:
    """A backtracking search in progress."""

    def __init__(self, contended: Callable[[int], bool], overlay: UsageOverlay, budget: Budget) -> None:
        self._contended = contended
        self._overlay = overlay
        self._budget = budget
        self.choices: list[TreeCandidate] = []
        #: Amounts taken from contended providers, by slot and class.
        self._amounts: Counter[tuple[int, str]] = Counter()
        #: The first position reached in each state: later positions leave fewer trees, so they also fail.
        self._no_goods: dict[Hashable, int] = {}

    def run(self, count: int, alternatives: Alternatives) -> bool:
        """Search for a sequence and store it in ``choices``; return whether one exists."""
        levels = [alternatives(self.choices)]
        while levels:
            choice = next(levels[-1], None)
            if choice is None:
                levels.pop()
                self._add_no_good()
                if levels and not self._undo():
                    levels[-1] = iter(())
                continue
            self._add_choice(choice)
            if len(self.choices) == count:
                return True
            levels.append(iter(()) if self._is_no_good() else alternatives(self.choices))
        return False

    def _state(self) -> tuple[Hashable, int]:
        position = self.choices[-1].position if self.choices else 0
        return (len(self.choices), frozenset(self._amounts.items())), position

    def _is_no_good(self) -> bool:
        state, position = self._state()
        first_position = self._no_goods.get(state)
        return first_position is not None and first_position <= position

    def _add_no_good(self) -> None:
        state, position = self._state()
        if state in self._no_goods:
            self._no_goods[state] = min(self._no_goods[state], position)
        elif self._budget.try_hold(_STATE + _AMOUNT * len(self._amounts)):
            self._no_goods[state] = position

    def _add_choice(self, choice: TreeCandidate) -> None:
        self._budget.spend(_CHOICE + len(self._amounts))
        self._overlay.take(choice.candidate)
        self.choices.append(choice)
        self._count(choice, 1)

    def _undo(self) -> bool:
        """Undo the last choice; return whether replacing it could help."""
        choice = self.choices.pop()
        self._overlay.take(choice.candidate, -1)
        return self._count(choice, -1)

    def _count(self, choice: TreeCandidate, times: int) -> bool:
        """Record the amounts a choice takes from contended providers; return whether it takes any."""
        contends = False
        for slot, amounts in choice.candidate.amounts.items():
            if self._contended(slot):
                contends = True
                for name, amount in amounts.items():
                    self._amounts[slot, name] += times * amount
                    if not self._amounts[slot, name]:
                        del self._amounts[slot, name]
        return contends

    def undo_all(self) -> None:
        while self.choices:
            self._undo()
