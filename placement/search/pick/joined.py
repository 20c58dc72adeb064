"""All requests of a call in one tree, because they have to be together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from placement.search.budget import Budget
from placement.search.pick.combination import Alternatives, TreeCandidate, combination
from placement.search.pick.overlay import UsageOverlay
from placement.search.pick.places import Places


def pick_joined(places: Sequence[Places], overlay: UsageOverlay, budget: Budget) -> list[TreeCandidate] | None:
    """Return a candidate for each request, all of one tree, whose amounts stay taken; None if no tree has room.

    Args:
        places: Those of each request.

    Raises:
        Exhausted: The budget is used up; nothing is taken.
    """
    roots = places[0].roots
    for other in places[1:]:
        roots &= other.roots
    queue = places[0].queue(roots)
    while (root := queue.pop()) is not None:
        choices = combination(len(places), _alternatives(root, places), lambda _: True, overlay, budget)
        if choices is not None:
            return choices
    return None


def _alternatives(root: int, places: Sequence[Places]) -> Alternatives:
    """Return the candidates in one tree for each consumer in turn."""

    def alternatives(choices: list[TreeCandidate]) -> Iterator[TreeCandidate]:
        next_places = places[len(choices)]
        next_places.begin_consumer()
        return (TreeCandidate(root, one) for one in next_places.candidates(root))

    return alternatives
