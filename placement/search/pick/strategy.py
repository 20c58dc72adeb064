"""Which trees are preferred."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from enum import StrEnum
from typing import NamedTuple

from placement.index.snapshot import Snapshot

#: Names of the kinds of domains that are not the beginning of a trait.
ROOT, AGGREGATE = "root", "aggregate"


class Preference(StrEnum):
    """Which of the trees that have room is taken first."""

    #: The least used.
    SPREAD = "spread"
    #: The most used.
    PACK = "pack"
    #: Each with the same probability.
    RANDOM = "random"


class Strategy(NamedTuple):
    """A preference, and perhaps domains that get equally many picks, as far as there is room."""

    preference: Preference = Preference.SPREAD
    #: ``ROOT``, each tree is a domain; ``AGGREGATE``, those of its root; else the beginning of names of traits of the
    #: root.  None: no domains.
    spread_over: str | None = None

    def domains(self, snapshot: Snapshot, root: int) -> Iterable[Hashable]:
        """Return the domains that a tree is in."""
        if self.spread_over is None:
            return ()
        if self.spread_over == ROOT:
            return (root,)
        provider = snapshot.provider(root)
        if self.spread_over == AGGREGATE:
            return provider.aggregates
        return [trait for trait in provider.traits if trait.startswith(self.spread_over)]
