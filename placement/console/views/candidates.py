"""Candidates as they are drawn: the providers that each uses, in their trees."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from placement.console.views.tree import DrawnTree, draw_used
from placement.search.find import Found


@dataclass(frozen=True, slots=True)
class Card:
    """One candidate.

    Args:
        trees: Its own tree first, then those of the sharing providers that it uses.
    """

    number: int
    trees: tuple[DrawnTree, ...]


def cards(found: Found) -> Iterator[Card]:
    """Yield a card for each candidate, in order."""
    snapshot = found.snapshot
    for number, (amounts, mappings) in enumerate(found.candidates, 1):
        groups: dict[int, tuple[str, ...]] = {}
        for suffix, slots in mappings.items():
            for slot in slots:
                groups[slot] = (*groups.get(slot, ()), suffix)
        roots = {snapshot.provider(slot).root: len(groups.get(slot, ())) for slot in {*amounts, *groups}}
        order = sorted(roots, key=lambda root: (snapshot.provider(root).name or "", root))
        yield Card(number, tuple(draw_used(snapshot, root, amounts, groups) for root in order))
