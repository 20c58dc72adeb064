"""The ways to place a request in a tree, as alternatives that only free capacity and isolation limit.

Rules between providers are expanded: ``same_subtree`` gives an alternative for each provider that may be the top, and
``required`` one for each demand whose provider may have the traits.

An alternative does not state the number of times that each demand uses each provider.  The totals are enough if they
add up, and if no provider is used more often than the number of placements.  The uses can then be divided among the
placements so that no placement uses a provider twice (König's theorem on edge colourings of bipartite graphs).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from typing import NamedTuple

from placement.extensions.v1.count.inputs import MAX_COPIES
from placement.search.query.query import UNSUFFIXED
from placement.search.solver.canonical_form import CanonicalForm
from placement.search.solver.problem import Demand, Requirements

#: Maximum number of alternatives; a tree with more is counted by placing candidates.
_MAX_ALTERNATIVES = 100


class Item(NamedTuple):
    """Equal demands of one placement; any of the providers may supply each of them.

    Attributes:
        amounts: Amounts by resource class.
        at_once: The numbers of the providers, each with the maximum number of these demands per placement.
        isolated: Whether a placement uses each provider for at most one isolated demand.
        times: Number of these demands in a placement.
    """

    amounts: tuple[tuple[str, int], ...]
    at_once: tuple[tuple[int, int], ...]
    isolated: bool
    times: int = 1

    def capacity_keys(self) -> set[Hashable]:
        """Return the pairs of provider and class that the demands take capacity from."""
        return {(provider, name) for provider, _ in self.at_once for name, _ in self.amounts}

    def isolation_keys(self) -> set[Hashable]:
        """Return the providers that the other isolated demands of a placement must not use."""
        return {provider for provider, _ in self.at_once} if self.isolated else set()


#: The items of a placement, all of them required.
Alternative = tuple[Item, ...]
#: Alternatives that use the same providers; a placement is one of them.
Block = tuple[Alternative, ...]
#: Independent blocks; a placement is in one of them.
Part = tuple[Block, ...]
#: The providers that may supply each demand.
_Domains = tuple[tuple[int, ...], ...]
#: Maximum amount that one consumer may take from each provider, by class.
_Available = Mapping[str, Sequence[int]]


def connected_components(keys: Sequence[Collection[Hashable]]) -> list[list[int]]:
    """Return the positions of the key sets, grouped by connected component: no two components share a key."""
    components: list[tuple[set[Hashable], list[int]]] = []
    for position, own in enumerate(keys):
        joined, positions = set(own), [position]
        for component in [component for component in components if not component[0].isdisjoint(own)]:
            components.remove(component)
            joined, positions = joined | component[0], component[1] + positions
        components.append((joined, positions))
    return [positions for _, positions in components]


def independent_parts(requirements: Requirements, form: CanonicalForm) -> list[Part] | None:
    """Return the independent parts of a request in a tree; a placement includes all of them.

    Returns:
        None for too many alternatives, or for rules that alternatives cannot express.
    """
    if not requirements.nested:
        return None
    parts = []
    available = dict(zip(requirements.summed_classes, form.available, strict=True))
    keys = [_keys(requirements, *pair) for pair in zip(requirements.demands, form.domains, strict=True)]
    for demands in connected_components(keys):
        choices = _drop_dominated(_Rules(requirements, form, demands).domains())
        if choices is None:
            return None
        alternatives = list(
            dict.fromkeys(_alternative(requirements, available, demands, domains) for domains in choices)
        )
        if any(_is_limited(alternative, available) for alternative in alternatives):
            return None
        capacity_keys = [set().union(*(item.capacity_keys() for item in alternative)) for alternative in alternatives]
        parts.append(
            tuple(tuple(alternatives[number] for number in block) for block in connected_components(capacity_keys))
        )
    return parts


def _is_limited(alternative: Alternative, available: _Available) -> bool:
    """Whether max_unit may keep unequal demands of one consumer from using the same provider."""
    for name, largest in available.items():
        takers: dict[int, list[int]] = {}
        for item in alternative:
            amount = dict(item.amounts).get(name, 0) * item.times
            for provider, _ in item.at_once if amount else ():
                takers.setdefault(provider, []).append(amount)
        if any(len(amounts) > 1 and sum(amounts) > largest[provider] for provider, amounts in takers.items()):
            return True
    return False


def _keys(requirements: Requirements, demand: Demand, domain: tuple[int, ...]) -> set[Hashable]:
    """Return the keys that a demand shares with the demands it depends on."""
    keys: set[Hashable] = {(provider, name) for provider in domain for name in demand.amounts}
    keys |= {suffixes for suffixes in requirements.same_subtrees if demand.suffix in suffixes}
    if demand.suffix == UNSUFFIXED:
        return keys | ({requirements.required} if requirements.required else set())
    return keys | (set(domain) if requirements.isolate else set())


class _Rules:
    """The rules between the providers of interdependent demands in one tree."""

    def __init__(self, requirements: Requirements, form: CanonicalForm, demands: Sequence[int]) -> None:
        self._requirements = requirements
        self._form = form
        self._suffixes = [requirements.demands[number].suffix for number in demands]
        self._first = tuple(form.domains[number] for number in demands)

    def domains(self) -> Iterator[_Domains]:
        """Yield domains in which every combination of providers meets the rules."""
        rules = [suffixes for suffixes in self._requirements.same_subtrees if suffixes & {*self._suffixes}]
        yield from self._domains_below(self._first, rules)

    def _domains_below(self, domains: _Domains, rules: Sequence[Collection[str]]) -> Iterator[_Domains]:
        """Yield the domains for each possible top of each subtree, and each demand that the top may supply."""
        if not rules:
            yield from self._domains_with_traits(
                domains, self._requirements.required if UNSUFFIXED in self._suffixes else ()
            )
            return
        members = [number for number, suffix in enumerate(self._suffixes) if suffix in rules[0]]
        for top in dict.fromkeys(provider for number in members for provider in domains[number]):
            below = {provider for provider in range(len(self._form.parents)) if top in self._ancestry(provider)}
            for number in members:
                allowed = {**dict.fromkeys(members, below), number: {top} & {*domains[number]}}
                yield from self._domains_below(_restrict(domains, allowed), rules[1:])

    def _domains_with_traits(self, domains: _Domains, required: Sequence[Collection[str]]) -> Iterator[_Domains]:
        """Yield the domains for each unsuffixed demand whose provider may have each required trait."""
        if not required:
            yield domains
            return
        with_trait = {number for number, traits in enumerate(self._form.traits) if not traits.isdisjoint(required[0])}
        for number, suffix in enumerate(self._suffixes):
            if suffix == UNSUFFIXED:
                yield from self._domains_with_traits(_restrict(domains, {number: with_trait}), required[1:])

    def _ancestry(self, provider: int) -> Iterator[int]:
        while provider >= 0:
            yield provider
            provider = self._form.parents[provider]


def _restrict(domains: _Domains, allowed: dict[int, set[int]]) -> _Domains:
    """Return the domains, restricted to the allowed providers for each demand in ``allowed``."""
    return tuple(
        tuple(provider for provider in domain if number not in allowed or provider in allowed[number])
        for number, domain in enumerate(domains)
    )


def _drop_dominated(alternatives: Iterator[_Domains]) -> list[_Domains] | None:
    """Return the domains that no other domain contains; None if too many remain."""
    distinct: dict[_Domains, list[set[int]]] = {}
    for domains in alternatives:
        if all(domains):
            distinct.setdefault(domains, [set(domain) for domain in domains])
        if len(distinct) > _MAX_ALTERNATIVES:
            return None
    return [
        domains
        for domains, sets in distinct.items()
        if not any(larger is not sets and all(map(set.issubset, sets, larger)) for larger in distinct.values())
    ]


def _alternative(
    requirements: Requirements, available: _Available, demands: Sequence[int], domains: _Domains
) -> Alternative:
    """Return the alternative of demands that any provider in their domains may supply."""
    times: Counter[Item] = Counter()
    for number, domain in zip(demands, domains, strict=True):
        suffix, amounts = requirements.demands[number]
        limits = [(available[name], amount) for name, amount in amounts.items() if name in available]
        at_once = [
            (provider, min((largest[provider] // amount for largest, amount in limits), default=MAX_COPIES))
            for provider in domain
        ]
        isolated = requirements.isolate and suffix != UNSUFFIXED
        times[Item(tuple(sorted(amounts.items())), tuple(at_once), isolated)] += 1
    return tuple(item._replace(times=number) for item, number in times.items())
