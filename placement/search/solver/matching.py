"""Can everybody be seated?  Whether picks that compete for providers can all be served, before any is tried."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from placement.search.solver.effort import Turn

Seats = Callable[[int], int]


#: Looking at so many places is as much work as looking at an option with all that follows from it.
_PLACES = 20
#: Looking at so many is one operation.
_LISTED = 5


def roomy(options: Sequence[Sequence[int]], seats: Seats, turn: Turn) -> bool:
    """Whether whoever chooses next finds a seat, however those before chose.  Cheap, and False now and then in vain."""
    known: dict[Sequence[int], int] = {}
    for earlier, places in enumerate(options):
        total = known.get(places)
        if total is None:
            turn.budget.spend(len(places) // _PLACES)
            total = known[places] = sum(map(seats, places))
        if total <= earlier:
            return False
    return True


def seated(options: Sequence[Sequence[int]], seats: Seats, turn: Turn) -> bool:
    """Whether there is a seat for everybody: a matching of picks and the seats of their options."""
    return _Table(options, seats, turn).seats_all()


class _Table:
    """Guests sit down one after another, where there is room or where others make room by changing places."""

    def __init__(self, options: Sequence[Sequence[int]], seats: Seats, turn: Turn) -> None:
        self._turn = turn
        self._options = options
        #: Guests with the very same options are like each other.
        self._kind = [id(places) for places in options]
        distinct = {id(places): places for places in options}
        turn.work += sum(map(len, distinct.values())) // _PLACES
        self._seats = {place: seats(place) for place in set().union(*distinct.values())}
        self._taken: dict[int, list[int]] = {place: [] for place in self._seats}
        #: By kind: the first of their options that may have a seat.  Places never become empty again.
        self._first = dict.fromkeys(distinct, 0)

    def seats_all(self) -> bool:
        if sum(self._seats.values()) < len(self._options):
            return False
        return all(self._seat(guest, set()) for guest in range(len(self._options)))

    def _free(self, guest: int) -> int | None:
        """A place with a seat."""
        kind, places = self._kind[guest], self._options[guest]
        for number in range(self._first[kind], len(places)):
            if len(self._taken[places[number]]) < self._seats[places[number]]:
                self._first[kind] = number
                return places[number]
        self._first[kind] = len(places)
        return None

    def _seat(self, guest: int, asked: set[int]) -> bool:
        """Whether the guest found a seat.

        :param asked: the kinds of guests that were asked to move already, in vain or for this one's sake.
        """
        place = self._free(guest)
        if place is not None:
            self._taken[place].append(guest)
            return True
        asked.add(self._kind[guest])
        self._turn.budget.spend(len(self._options[guest]) // _LISTED)
        for place in self._options[guest]:
            for chair, other in enumerate(self._taken[place]):
                if self._kind[other] not in asked and self._seat(other, asked):
                    self._taken[place][chair] = guest
                    return True
        return False
