"""Strategies: the order in which trees are preferred."""

from __future__ import annotations

import functools
from collections.abc import Callable
from enum import StrEnum
from typing import NamedTuple

from placement.index.slots import SlotSet
from placement.index.snapshot import Snapshot

#: Kinds of domains other than trait prefixes.
ROOT, AGGREGATE = "root", "aggregate"

#: A function from the root of a tree to the domains of the tree.
DomainsOf = Callable[[int], frozenset[str]]


class Preference(StrEnum):
    """The preference among trees with room."""

    SPREAD = "spread"
    PACK = "pack"
    RANDOM = "random"

    @property
    def words(self) -> str:
        """The preferred trees, as a phrase for users."""
        return _WORDS[self]


_WORDS = {
    Preference.SPREAD: "the least used trees",
    Preference.PACK: "the most used trees",
    Preference.RANDOM: "each tree with the same probability",
}


class Strategy(NamedTuple):
    """A preference, and optionally domains that share the picks evenly as far as capacity allows."""

    preference: Preference = Preference.SPREAD
    #: ``ROOT``: each tree is a domain.  ``AGGREGATE``: the aggregates of the root.  Otherwise a prefix: the traits of
    #: the root whose names begin with it.  None for no domains.
    spread_over: str | None = None

    @property
    def may_sample(self) -> bool:
        """Whether a large random sample is as good as all trees."""
        return self.preference != Preference.PACK and self.spread_over in (None, ROOT)

    def domains(self, snapshot: Snapshot) -> DomainsOf:
        """Return the function from the root of a tree to the aggregates or traits that are its domains."""
        prefix = self.spread_over
        assert prefix is not None
        if prefix == AGGREGATE:
            return lambda root: snapshot.provider(root).aggregates

        @functools.cache
        def with_prefix(traits: frozenset[str]) -> frozenset[str]:
            return frozenset(trait for trait in traits if trait.startswith(prefix))

        return lambda root: with_prefix(snapshot.provider(root).traits)

    def members(self, snapshot: Snapshot) -> list[SlotSet]:
        """Return the providers in each domain that is an aggregate or a trait."""
        prefix = self.spread_over
        if prefix is None or prefix == ROOT:
            return []
        if prefix == AGGREGATE:
            return list(snapshot.aggregates.values())
        return [members for trait, members in snapshot.traits.items() if trait.startswith(prefix)]
