"""The ways to place a request in a tree, as alternatives that are limited by room and isolation only.

Rules between providers are written out: for ``same_subtree`` there is an alternative for each provider that may be the
top, for ``required`` one for each demand that may have the traits.

An alternative leaves open how often each demand uses each provider.  These numbers are enough: if they add up, and no
provider is used more often than there are placements, they can be divided among placements so that no placement uses a
provider twice (König's theorem on edge colourings of bipartite graphs).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from typing import NamedTuple

from placement.extensions.v1.count.inputs import MOST
from placement.search.query.query import UNSUFFIXED
from placement.search.solver.canonical_form import CanonicalForm
from placement.search.solver.problem import Demand, Requirements

#: With more alternatives a tree is counted by placing candidates.
_ALTERNATIVES = 100


class Item(NamedTuple):
    """Equal demands of one placement.  Any of the providers may supply each of them.

    Attributes:
        amounts: By resource class.
        at_once: The numbers of the providers, each with the most demands that one placement may take there.
        isolated: Whether one placement uses each provider for at most one of all isolated demands.
        times: How many of these demands a placement has.
    """

    amounts: tuple[tuple[str, int], ...]
    at_once: tuple[tuple[int, int], ...]
    isolated: bool
    times: int = 1

    def rooms(self) -> set[Hashable]:
        """Return the providers and classes that the demands take."""
        return {(provider, name) for provider, _ in self.at_once for name, _ in self.amounts}

    def uses(self) -> set[Hashable]:
        """Return the providers that no other isolated demand of a placement may use."""
        return {provider for provider, _ in self.at_once} if self.isolated else set()


#: A placement has all of these items.
Alternative = tuple[Item, ...]
#: Alternatives that take from the same providers; a placement has one of them.
Block = tuple[Alternative, ...]
#: Blocks that do not depend on each other; a placement is in one of them.
Part = tuple[Block, ...]
#: By demand, the providers that may supply it.
_Domains = tuple[tuple[int, ...], ...]
#: By class, the largest amount that one consumer may take of each provider.
_Available = Mapping[str, Sequence[int]]


def connected_components(keys: Sequence[Collection[Hashable]]) -> list[list[int]]:
    """Return the positions by component: no two components have a key in common."""
    found: list[tuple[set[Hashable], list[int]]] = []
    for position, own in enumerate(keys):
        joined, positions = set(own), [position]
        for other in [other for other in found if not other[0].isdisjoint(own)]:
            found.remove(other)
            joined, positions = joined | other[0], other[1] + positions
        found.append((joined, positions))
    return [positions for _, positions in found]


def independent_parts(requirements: Requirements, form: CanonicalForm) -> list[Part] | None:
    """Return the parts of a request in a tree: they do not depend on each other, and a placement has all of them.

    Returns:
        None if there are too many alternatives, or other rules.
    """
    if not requirements.nested:
        return None
    parts = []
    available = dict(zip(requirements.summed_classes, form.available, strict=True))
    ties = [_ties(requirements, *each) for each in zip(requirements.demands, form.domains, strict=True)]
    for demands in connected_components(ties):
        domains = _undominated(_Rules(requirements, form, demands).domains())
        if domains is None:
            return None
        alternatives = list(dict.fromkeys(_alternative(requirements, available, demands, one) for one in domains))
        if any(_is_limited(alternative, available) for alternative in alternatives):
            return None
        rooms = [set().union(*(item.rooms() for item in one)) for one in alternatives]
        parts.append(tuple(tuple(alternatives[number] for number in block) for block in connected_components(rooms)))
    return parts


def _is_limited(alternative: Alternative, available: _Available) -> bool:
    """Whether the largest amount of one consumer may keep unequal demands from sharing a provider."""
    for name, most in available.items():
        takers: dict[int, list[int]] = {}
        for item in alternative:
            amount = dict(item.amounts).get(name, 0) * item.times
            for provider, _ in item.at_once if amount else ():
                takers.setdefault(provider, []).append(amount)
        if any(len(amounts) > 1 and sum(amounts) > most[provider] for provider, amounts in takers.items()):
            return True
    return False


def _ties(requirements: Requirements, demand: Demand, domain: tuple[int, ...]) -> set[Hashable]:
    """Return what ties a demand to others."""
    ties: set[Hashable] = {(provider, name) for provider in domain for name in demand.amounts}
    ties |= {suffixes for suffixes in requirements.same_subtrees if demand.suffix in suffixes}
    if demand.suffix == UNSUFFIXED:
        return ties | ({requirements.required} if requirements.required else set())
    return ties | (set(domain) if requirements.isolate else set())


class _Rules:
    """The rules between the providers of some demands in one tree."""

    def __init__(self, requirements: Requirements, form: CanonicalForm, demands: Sequence[int]) -> None:
        self._requirements = requirements
        self._form = form
        self._suffixes = [requirements.demands[number].suffix for number in demands]
        self._first = tuple(form.domains[number] for number in demands)

    def domains(self) -> Iterator[_Domains]:
        """Yield domains whose providers meet the rules in any combination."""
        rules = [suffixes for suffixes in self._requirements.same_subtrees if suffixes & {*self._suffixes}]
        yield from self._below(self._first, rules)

    def _below(self, domains: _Domains, rules: Sequence[Collection[str]]) -> Iterator[_Domains]:
        """Yield the domains for each demand that may have the top of each subtree, and for each such top."""
        if not rules:
            yield from self._having(domains, self._requirements.required if UNSUFFIXED in self._suffixes else ())
            return
        inside = [number for number, suffix in enumerate(self._suffixes) if suffix in rules[0]]
        for top in dict.fromkeys(provider for number in inside for provider in domains[number]):
            below = {provider for provider in range(len(self._form.parents)) if top in self._ancestry(provider)}
            for number in inside:
                kept = {**dict.fromkeys(inside, below), number: {top} & {*domains[number]}}
                yield from self._below(_kept(domains, kept), rules[1:])

    def _having(self, domains: _Domains, required: Sequence[Collection[str]]) -> Iterator[_Domains]:
        """Yield the domains for each demand of the unsuffixed group that may have each of the required traits."""
        if not required:
            yield domains
            return
        having = {number for number, traits in enumerate(self._form.traits) if not traits.isdisjoint(required[0])}
        for number, suffix in enumerate(self._suffixes):
            if suffix == UNSUFFIXED:
                yield from self._having(_kept(domains, {number: having}), required[1:])

    def _ancestry(self, provider: int) -> Iterator[int]:
        while provider >= 0:
            yield provider
            provider = self._form.parents[provider]


def _kept(domains: _Domains, kept: dict[int, set[int]]) -> _Domains:
    """Return domains with only some of the providers in those of some demands."""
    return tuple(
        tuple(one for one in domain if number not in kept or one in kept[number])
        for number, domain in enumerate(domains)
    )


def _undominated(found: Iterator[_Domains]) -> list[_Domains] | None:
    """Return the domains that are not contained in others; None if there are too many."""
    kept: dict[_Domains, list[set[int]]] = {}
    for one in found:
        if all(one):
            kept.setdefault(one, [set(domain) for domain in one])
        if len(kept) > _ALTERNATIVES:
            return None
    return [
        one
        for one, sets in kept.items()
        if not any(other is not sets and all(map(set.issubset, sets, other)) for other in kept.values())
    ]


def _alternative(
    requirements: Requirements, available: _Available, demands: Sequence[int], domains: _Domains
) -> Alternative:
    """Return the alternative of demands that any providers of the domains may supply."""
    times: Counter[Item] = Counter()
    for number, domain in zip(demands, domains, strict=True):
        suffix, amounts = requirements.demands[number]
        limits = [(available[name], amount) for name, amount in amounts.items() if name in available]
        at_once = [(one, min((most[one] // amount for most, amount in limits), default=MOST)) for one in domain]
        isolated = requirements.isolate and suffix != UNSUFFIXED
        times[Item(tuple(sorted(amounts.items())), tuple(at_once), isolated)] += 1
    return tuple(item._replace(times=number) for item, number in times.items())
