"""Which trees are preferred."""

from __future__ import annotations

import functools
from collections.abc import Callable
from enum import StrEnum
from typing import NamedTuple

from placement.index.slots import SlotSet
from placement.index.snapshot import Snapshot

#: Names of the kinds of domains that are not the beginning of a trait.
ROOT, AGGREGATE = "root", "aggregate"


DomainsOf = Callable[[int], frozenset[str]]


class Preference(StrEnum):
    """Which of the trees that have room is taken first."""

    SPREAD = "spread"
    PACK = "pack"
    RANDOM = "random"

    @property
    def words(self) -> str:
        """What it prefers, for people."""
        return _WORDS[self]


_WORDS = {
    Preference.SPREAD: "the least used trees",
    Preference.PACK: "the most used trees",
    Preference.RANDOM: "each tree with the same probability",
}


class Strategy(NamedTuple):
    """A preference, and perhaps domains that get equally many picks, as far as there is room."""

    preference: Preference = Preference.SPREAD
    #: ``ROOT``, each tree is a domain; ``AGGREGATE``, those of its root; else the beginning of names of traits of the
    #: root.  None: no domains.
    spread_over: str | None = None

    @property
    def may_sample(self) -> bool:
        """Whether any large sample of the trees is as good as all of them."""
        return self.preference != Preference.PACK and self.spread_over in (None, ROOT)

    def domains(self, snapshot: Snapshot) -> DomainsOf:
        """Return a function from the root of a tree to the domains that the tree is in: aggregates or traits."""
        prefix = self.spread_over
        assert prefix is not None
        if prefix == AGGREGATE:
            return lambda root: snapshot.provider(root).aggregates

        @functools.cache
        def with_prefix(traits: frozenset[str]) -> frozenset[str]:
            return frozenset(trait for trait in traits if trait.startswith(prefix))

        return lambda root: with_prefix(snapshot.provider(root).traits)

    def members(self, snapshot: Snapshot) -> list[SlotSet]:
        """Return the providers of each domain that is an aggregate or a trait."""
        prefix = self.spread_over
        if prefix is None or prefix == ROOT:
            return []
        if prefix == AGGREGATE:
            return list(snapshot.aggregates.values())
        return [members for trait, members in snapshot.traits.items() if trait.startswith(prefix)]
