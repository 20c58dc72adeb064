"""Candidates as they are drawn: the providers that each uses, in their trees."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

from placement.console.views.tree import DrawnTree, draw_used
from placement.index.snapshot import SHARES, Snapshot
from placement.search.find import Found
from placement.search.solver.problem import Candidate


@dataclass(frozen=True, slots=True)
class Card:
    """One candidate.

    Args:
        trees: Its own tree first, then those of the sharing providers that it uses.
        claim: What a claim of it says, without the consumer: ``allocations`` and ``mappings``, as JSON.
    """

    number: int
    trees: tuple[DrawnTree, ...]
    claim: str


def cards(found: Found) -> Iterator[Card]:
    """Yield a card for each candidate, in order."""
    snapshot = found.snapshot
    for number, candidate in enumerate(found.candidates, 1):
        amounts, mappings = candidate
        groups: dict[int, tuple[str, ...]] = {}
        for suffix, slots in mappings.items():
            for slot in slots:
                groups[slot] = (*groups.get(slot, ()), suffix)
        used = {*amounts, *groups}
        own = {snapshot.provider(slot).root for slot in used if SHARES not in snapshot.provider(slot).traits}
        roots = {snapshot.provider(slot).root for slot in used}
        order = sorted(roots, key=lambda root: (root not in own, snapshot.provider(root).name or "", root))
        trees = tuple(draw_used(snapshot, root, amounts, groups) for root in order)
        yield Card(number, trees, _claim(snapshot, candidate))


def _claim(snapshot: Snapshot, candidate: Candidate) -> str:
    def uuid(slot: int) -> str:
        return snapshot.provider(slot).uuid

    allocations = {uuid(slot): {"resources": {**amounts}} for slot, amounts in candidate.amounts.items()}
    mappings = {suffix: [*map(uuid, slots)] for suffix, slots in candidate.mappings.items()}
    return json.dumps({"allocations": allocations, "mappings": mappings}, separators=(",", ":"))
