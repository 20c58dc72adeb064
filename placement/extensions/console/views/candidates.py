"""Candidates for display: the providers that each candidate uses, in their trees."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from placement.extensions.console.views.tree import DrawnTree, draw_used
from placement.index.snapshot import SHARES, Snapshot
from placement.search.solver.problem import Candidate


@dataclass(frozen=True, slots=True)
class Card:
    """A candidate for display.

    Attributes:
        trees: Its own tree, then the trees of sharing providers.
        claim: The body of a claim without the consumer: ``allocations`` and ``mappings``, as JSON.
    """

    number: int
    trees: tuple[DrawnTree, ...]
    claim: str


def cards(snapshot: Snapshot, candidates: Iterable[Candidate]) -> Iterator[Card]:
    """Yield a card for each candidate, in order."""
    for number, candidate in enumerate(candidates, 1):
        trees = used_trees(snapshot, candidate.amounts, candidate.mappings)
        yield Card(number, trees, _claim(snapshot, candidate))


def used_trees(
    snapshot: Snapshot, amounts: Mapping[int, Mapping[str, int]], mappings: Mapping[str, Iterable[int]]
) -> tuple[DrawnTree, ...]:
    """Return the trees from which a candidate takes resources; trees of sharing providers come last.

    Args:
        amounts: Amounts taken, by slot and class.
        mappings: Slots that serve each group of the query, by suffix.
    """
    groups: dict[int, tuple[str, ...]] = {}
    for suffix, slots in mappings.items():
        for slot in slots:
            groups[slot] = (*groups.get(slot, ()), suffix)
    used = {*amounts, *groups}
    own_roots = {snapshot.provider(slot).root for slot in used if SHARES not in snapshot.provider(slot).traits}
    roots = {snapshot.provider(slot).root for slot in used}
    sorted_roots = sorted(roots, key=lambda root: (root not in own_roots, snapshot.provider(root).name or "", root))
    return tuple(draw_used(snapshot, root, amounts, groups) for root in sorted_roots)


def _claim(snapshot: Snapshot, candidate: Candidate) -> str:
    def uuid(slot: int) -> str:
        return snapshot.provider(slot).uuid

    allocations = {uuid(slot): {"resources": {**amounts}} for slot, amounts in candidate.amounts.items()}
    mappings = {suffix: [*map(uuid, slots)] for suffix, slots in candidate.mappings.items()}
    return json.dumps({"allocations": allocations, "mappings": mappings}, separators=(",", ":"))
