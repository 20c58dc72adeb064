"""How long a search looks for what may not be there.

Whether unequal groups can be packed into the providers of a tree, or found below each other, cannot always be told but
by trying, which takes twice as long with each group more.  A search that finds something goes on; one that does not
turns to the next tree after a while, and ends at last.  It says so: what it has found is right but may not be all.
"""

from __future__ import annotations

#: What one search may do in vain, in options looked at; about a second.
WORK = 200_000
#: What it may do at all, mistakes aside; many seconds, which takes hundreds of groups, and of providers in each tree.
_MOST = 5_000_000
#: What is left is not for one tree alone.
_SHARE = 8
#: What needs no more is not worth counting.
_LITTLE = 500


class Patience:
    """That of one search.  It counts work and not time: the same request finds the same on a busy machine."""

    __slots__ = ("_begun", "_left", "lost")

    def __init__(self, work: int = WORK) -> None:
        self._left = work
        self._begun = 0
        #: Whether something was given up, and candidates may have been missed.
        self.lost = False

    def begin(self, least: int) -> None:
        """A tree that takes so much, if all goes well."""
        self._begun += least

    def share(self, least: int) -> int:
        """What one tree may do until it finds something."""
        return max(self._left // _SHARE, least, _LITTLE)

    def exhausted(self) -> bool:
        """Whether no further tree is to be begun with."""
        # Once the hard ones have used up everything, there is as much again for those that make no trouble.
        if self._left > -WORK and self._begun < _MOST:
            return False
        self.lost = True
        return True

    def lose(self, work: int) -> None:
        """So much was done, and nothing found."""
        if work > _LITTLE:
            self._left -= work


class Turn:
    """What one tree is given of it, from one solution to the next."""

    __slots__ = ("_least", "_patience", "_share", "work")

    def __init__(self, patience: Patience, least: int) -> None:
        """:param least: what it takes to find something without a mistake, which is not in vain."""
        self._patience = patience
        patience.begin(least)
        self._least = least
        self._share = patience.share(least)
        #: What was done since something was found; whoever does something adds to it.
        self.work = 0

    def over(self) -> bool:
        """Whether the tree is to be left as it is."""
        if self.work < self._share:
            return False
        self._patience.lost = True
        return True

    def found(self) -> None:
        """A solution."""
        self._patience.lose(self.work - self._least)
        self.work, self._share = 0, self._patience.share(self._least)

    def end(self) -> None:
        """There is no other."""
        self._patience.lose(self.work)
