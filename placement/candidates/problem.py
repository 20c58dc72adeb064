"""What combining has to solve: one tree, the picks to make in it, and who can serve each of them.

Plain records: a problem can be written by hand.  Providers are numbers that mean something to whoever asks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from placement.candidates.request import UNSUFFIXED, AnyOf, CandidateRequest


class Pick(NamedTuple):
    """One decision: the provider of a suffixed group, or of one class of the unsuffixed group."""

    suffix: str
    #: Nothing, for a group without resources.
    amounts: Mapping[str, int]


@dataclass(frozen=True)
class Plan:
    """The decisions to make, and what must hold for them together; the same in every tree."""

    picks: tuple[Pick, ...]
    isolate: bool = False
    same_subtrees: tuple[frozenset[str], ...] = ()
    #: Traits that the providers of the unsuffixed group have between them.
    required: AnyOf = ()
    nested: bool = True

    @classmethod
    def of(cls, request: CandidateRequest) -> Plan:
        """The plan for a request."""
        picks: list[Pick] = []
        required: AnyOf = ()
        for group in request.groups:
            if group.suffix != UNSUFFIXED:
                picks.append(Pick(group.suffix, group.resources))
                continue
            required = group.required
            picks.extend(Pick(UNSUFFIXED, {name: amount}) for name, amount in group.resources.items())
        subtrees = tuple(suffixes for suffixes in request.same_subtrees if len(suffixes) > 1)
        return cls(tuple(picks), request.isolate, subtrees, required, request.nested)

    @cached_property
    def whole(self) -> Mapping[str, int]:
        """What one provider gives that serves every pick."""
        total: Counter[str] = Counter()
        for pick in self.picks:
            total.update(pick.amounts)
        return dict(total)

    @cached_property
    def contended(self) -> frozenset[str]:
        """Classes of which a provider may have to serve the sum of several picks."""
        if self.isolate:
            # Suffixed groups meet no other suffixed group, but perhaps the unsuffixed one.
            common = {name for pick in self.picks if not pick.suffix for name in pick.amounts}
            return frozenset(name for pick in self.picks if pick.suffix for name in pick.amounts if name in common)
        times = Counter(name for pick in self.picks for name in pick.amounts)
        return frozenset(name for name, count in times.items() if count > 1)


class Supplier(NamedTuple):
    """A provider, as far as combinations depend on it."""

    #: Itself, its parent, and so on to the root.
    ancestry: tuple[int, ...]
    traits: frozenset[str] = frozenset()
    #: Whether it also serves trees that are not its own.
    shares: bool = False
    #: How much is free, and how much one consumer may have, of the classes that are contended.
    room: Mapping[str, tuple[int, int]] = {}

    @property
    def root(self) -> int:
        return self.ancestry[-1]


class Problem(NamedTuple):
    """One tree: who can serve each pick of the plan, by itself."""

    plan: Plan
    #: For each pick.
    options: tuple[tuple[int, ...], ...]
    suppliers: Mapping[int, Supplier]
    #: Whether providers that share could serve every pick, so that other trees may come to the same candidate.
    repeats: bool = False
    #: Whether another tree has all candidates of sharing providers alone that this one has.
    repeated: bool = False


class Candidate(NamedTuple):
    """Who gives what, and which groups it serves."""

    #: By provider and class.  Not to be written to: candidates share what is equal.
    amounts: Mapping[int, Mapping[str, int]]
    #: By suffix; one provider each, but for the unsuffixed group.
    mappings: Mapping[str, tuple[int, ...]]
