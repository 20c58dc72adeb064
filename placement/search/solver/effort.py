"""How long a search looks for what may not be there.

Whether unequal groups can be packed into the providers of a tree, or found below each other, cannot always be told but
by trying, which takes twice as long with each group more.  A search that finds something goes on; one that does not
turns to the next tree after a while, and ends at last.  It says so: what it has found is right but may not be all.
In any case it ends when the budget of the request does.
"""

from __future__ import annotations

from placement.search.budget import Budget

#: What one search may do in vain, in options looked at; about a second.
WORK = 200_000
#: What is left is not for one tree alone.
_SHARE = 8
#: What needs no more is not worth counting.
_LITTLE = 500


class Patience:
    """That of one search.  It counts work and not time: the same request finds the same on a busy machine."""

    __slots__ = ("_left", "budget")

    def __init__(self, work: int = WORK, budget: Budget | None = None) -> None:
        self._left = work
        self.budget = Budget() if budget is None else budget

    @property
    def lost(self) -> bool:
        """Whether something was given up, and candidates may have been missed."""
        return self.budget.shortage is not None

    def lose_heart(self) -> None:
        """Give something up."""
        self.budget.fall_short("operations")

    def share(self, least: int) -> int:
        """What one tree may do until it finds something."""
        return max(self._left // _SHARE, least, _LITTLE)

    def exhausted(self) -> bool:
        """Whether no further tree is to be begun with."""
        # Once the hard ones have used up everything, there is as much again for those that make no trouble.
        if self._left > -WORK:
            return False
        self.lose_heart()
        return True

    def lose(self, work: int) -> None:
        """So much was done, and nothing found."""
        if work > _LITTLE:
            self._left -= work


class Turn:
    """What one tree is given of it, from one solution to the next."""

    __slots__ = ("_counted", "_least", "_patience", "_share", "budget", "work")

    def __init__(self, patience: Patience, least: int) -> None:
        """:param least: what it takes to find something without a mistake, which is not in vain."""
        self._patience = patience
        self.budget = patience.budget
        self._least = least
        self._share = patience.share(least)
        #: What was done since something was found; whoever does something adds to it.
        self.work = 0
        #: What of it the budget knows of.
        self._counted = 0

    def over(self) -> bool:
        """Whether the tree is to be left as it is; raises Exhausted if all of them are."""
        self._count()
        if self.work < self._share:
            return False
        self._patience.lose_heart()
        return True

    def found(self) -> None:
        """A solution."""
        self._count()
        self._patience.lose(self.work - self._least)
        self.work = self._counted = 0
        self._share = self._patience.share(self._least)

    def end(self) -> None:
        """There is no other."""
        self._count()
        self._patience.lose(self.work)

    def _count(self) -> None:
        self.budget.spend(self.work - self._counted)
        self._counted = self.work
