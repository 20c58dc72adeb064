"""Can everybody be seated?  Whether picks that compete for providers can all be served, before any is tried."""

from __future__ import annotations

from collections.abc import Callable, Sequence

Seats = Callable[[int], int]


def roomy(options: Sequence[Sequence[int]], seats: Seats) -> bool:
    """Whether whoever chooses next finds a seat, however those before chose.  Cheap, and False now and then in vain."""
    known: dict[Sequence[int], int] = {}
    for earlier, places in enumerate(options):
        total = known.get(places)
        if total is None:
            total = known[places] = sum(map(seats, places))
        if total <= earlier:
            return False
    return True


def seated(options: Sequence[Sequence[int]], seats: Seats) -> bool:
    """Whether there is a seat for everybody: a matching of picks and the seats of their options."""
    taken: dict[int, list[int]] = {}

    def seat(guest: int, asked: set[int]) -> bool:
        for place in options[guest]:
            if place in asked:
                continue
            asked.add(place)
            guests = taken.setdefault(place, [])
            if len(guests) < seats(place):
                guests.append(guest)
                return True
            for chair, other in enumerate(guests):
                if seat(other, asked):
                    guests[chair] = guest
                    return True
        return False

    return all(seat(guest, set()) for guest in range(len(options)))
