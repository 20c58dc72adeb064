"""All requests of a call in one tree, because they have to be together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np

from placement.extensions.v1.pick.combination import Alternatives, TreeCandidate, combination
from placement.extensions.v1.pick.overlay import UsageOverlay
from placement.extensions.v1.pick.places import Places
from placement.index.slots import EMPTY, SlotSet, intersection
from placement.search.budget import Budget


def pick_joined(places: Sequence[Places], overlay: UsageOverlay, budget: Budget) -> list[TreeCandidate] | None:
    """Return a candidate for each request, all of one tree, whose amounts stay taken; None if no tree has room.

    Args:
        places: Those of each request.

    Raises:
        Exhausted: The budget is used up; nothing is taken.
    """
    for each in places:
        each.look_everywhere()
    queue = places[0].queue(_with_room(places, intersection(each.roots for each in places)))
    while (root := queue.pop()) is not None:
        choices = combination(len(places), _alternatives(root, places), lambda _: True, overlay, budget)
        if choices is not None:
            return choices
    return None


def _with_room(places: Sequence[Places], roots: SlotSet) -> SlotSet:
    """Return those of the roots whose trees have room for the sum of what is asked for, as far as that is known."""
    snapshot = places[0].snapshot
    total: Counter[str] = Counter()
    for each in places:
        if each.may_borrow or each.gives_up:
            return roots
        total.update(each.total)
    for name, amount in total.items():
        column = snapshot.column(name)
        if column is None:
            return EMPTY
        held = column.inventories()
        free = np.maximum(held.capacity - held.used, 0)
        roots &= SlotSet.dense(np.bincount(snapshot.forest.roots(held.slots), free, snapshot.size) >= amount)
    return roots


def _alternatives(root: int, places: Sequence[Places]) -> Alternatives:
    """Return the candidates in one tree for each consumer in turn."""

    def alternatives(choices: list[TreeCandidate]) -> Iterator[TreeCandidate]:
        next_places = places[len(choices)]
        next_places.begin_consumer()
        return (TreeCandidate(root, one) for one in next_places.candidates(root))

    return alternatives
