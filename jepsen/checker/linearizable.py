"""Check of linearizability: each operation on an object takes effect at one point in time between its start and end.

A search over configurations: the state of the object, and the set of pending operations that have taken effect.  Events
are processed in order, and an operation takes effect no earlier than the return of some operation requires
("just-in-time linearization", the graph search of Lowe).  Configurations are memoized, as in Lowe's variant of the
search of Wing and Gong.  Only pending operations are remembered, so the effort grows with the length of the history,
not with its square, and the event that leaves no configuration ends the shortest prefix that is not linearizable.

Each object of a history is checked by itself.  This is exact if each operation is on one object (P-compositionality,
Horn and Kroening).  An operation on several objects is allowed to take effect on each at a different time, so each
violation found is real, but some may not be found.

* J. M. Wing, C. Gong: Testing and verifying concurrent objects.  Journal of Parallel and Distributed Computing, 1993.
* G. Lowe: Testing for linearizability.  Concurrency and Computation: Practice and Experience, 2017.
* A. Horn, D. Kroening: Faster linearizability checking via P-compositionality.  FORTE 2015.
"""

from __future__ import annotations

import bisect
import functools
import itertools
import math
import operator
from collections.abc import Collection, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Protocol

#: Steps of the model after which a search ends undecided: at least ``BOUND``, about 10 s of processor time, and
#: ``BOUND_PER_OPERATION`` per operation.
BOUND, BOUND_PER_OPERATION = 5_000_000, 1_000


@dataclass(frozen=True, slots=True)
class TimedCall:
    """An operation on one object.

    Attributes:
        number: Number of the operation in the history.
        began: In nanoseconds of the run.
        ended: None: the operation is open, and takes effect at any time after it began, or never.
        call: Input and output of the operation, for the model.
        changes: Whether it may change the state.  Operations that only read are searched faster.
        optional: Whether it may have had no effect although it ended.
        joins: Whether it may take effect together with others that join, as one operation.
    """

    number: int
    began: int
    ended: int | None
    call: Hashable
    changes: bool = True
    optional: bool = False
    joins: bool = False


class Model(Protocol):
    """A sequential object.  The effect of an operation depends on ``call`` alone."""

    def step(self, state: Any, operation: TimedCall, /, *joined: TimedCall) -> Iterable[Hashable]:
        """Return the possible states of the object after the operation; empty if its response is impossible.

        Args:
            joined: Operations with other calls that take effect together with it.
        """


class Outcome(Enum):
    """The outcome of a search."""

    LINEARIZABLE = "linearizable"
    VIOLATED = "violated"
    #: The search reached its bound.
    UNDECIDED = "undecided"


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result of a search.

    Attributes:
        states: Possible states of the object after the last operation that could be explained.
        impossible: Operation whose return no configuration explains, or at whose return the search gave up.
        pending: Other operations in progress at that time, without the open ones.
        prefix: Number of operations that had begun by then: the length of the shortest prefix that is not linearizable,
            in the order of beginnings.
    """

    outcome: Outcome
    states: Collection[Hashable]
    impossible: TimedCall | None = None
    pending: Sequence[TimedCall] = ()
    prefix: int = 0


#: A state, and the bits of the pending operations that have taken effect.
_Configuration = tuple[Hashable, int]


def check(
    operations: Iterable[TimedCall], model: Model, initial: Iterable[Hashable], bound: int | None = None
) -> Verdict:
    """Search for an order of the operations that explains all responses.

    Args:
        operations: In any order.  Open reads are ignored.
        initial: Possible states of the object at the beginning.
        bound: Maximum number of steps of the model; None: ``BOUND``, and more for a long history.
    """
    relevant = [operation for operation in operations if operation.changes or operation.ended is not None]
    bound = max(BOUND, BOUND_PER_OPERATION * len(relevant)) if bound is None else bound
    search = _Search(model, initial, bound)
    began = 0
    for operation, is_begin in _events(relevant):
        if is_begin:
            began += 1
            search.begin(operation)
        elif not search.end(operation):
            outcome = Outcome.UNDECIDED if search.steps > bound else Outcome.VIOLATED
            return Verdict(outcome, search.states, operation, search.other_pending(operation), began)
    return Verdict(Outcome.LINEARIZABLE, search.states)


def _events(operations: Iterable[TimedCall]) -> Iterator[tuple[TimedCall, bool]]:
    """Yield the beginnings (True) and ends of operations in order; at the same time, beginnings first."""
    events = []
    for count, operation in enumerate(operations):
        events.append((operation.began, 0, count, operation))
        if operation.ended is not None:
            events.append((operation.ended, 1, count, operation))
    for _, is_end, _, operation in sorted(events, key=lambda event: event[:3]):
        yield operation, not is_end


class _Search:
    """The configurations that explain all returns so far."""

    def __init__(self, model: Model, initial: Iterable[Hashable], bound: int) -> None:
        self.steps = 0
        self._model = model
        self._bound = bound
        self._configurations: set[_Configuration] = {(state, 0) for state in initial}
        #: Pending operations by their bits.
        self._pending: dict[int, TimedCall] = {}
        self._bits: dict[int, int] = {}
        self._free: list[int] = []
        self._counter = itertools.count()
        #: Bits of pending operations, in the order of their ends, by kind.
        self._alike: dict[Hashable, list[int]] = {}
        #: Bits of open operations, and of all operations that need not take effect.
        self._open = self._optional = 0

    @property
    def states(self) -> Collection[Hashable]:
        return {state for state, _ in self._configurations}

    def other_pending(self, operation: TimedCall) -> Sequence[TimedCall]:
        """Return the other pending operations, without the open ones."""
        return [other for other in self._pending.values() if other is not operation and other.ended is not None]

    def begin(self, operation: TimedCall) -> None:
        """Add an operation that begins."""
        bit = self._free.pop() if self._free else 1 << next(self._counter)
        self._pending[bit] = operation
        self._bits[id(operation)] = bit
        bisect.insort(self._alike.setdefault(_kind(operation), []), bit, key=lambda other: _end(self._pending[other]))
        if operation.ended is None:
            self._open |= bit
        if operation.ended is None or operation.optional:
            self._optional |= bit

    def end(self, operation: TimedCall) -> bool:
        """Process the return of an operation; return False if no configuration explains it, or at the bound."""
        bit = self._bits[id(operation)]
        explained = set(self._configurations) if operation.optional else set()
        explained |= self._require(bit)
        if not explained:
            return False
        self._configurations = self._minimal(self._without(bit, explained))
        # Open operations that have taken effect in every configuration are forgotten, too.
        common = functools.reduce(operator.and_, (effective for _, effective in self._configurations), self._open)
        while common:
            self._configurations = self._without(common & -common, self._configurations)
            common &= common - 1
        return True

    def _without(self, bit: int, configurations: Iterable[_Configuration]) -> set[_Configuration]:
        """Forget a pending operation, and return the configurations without it."""
        operation = self._pending[bit]
        alike = self._alike[_kind(operation)]
        alike.remove(bit)
        if not alike:
            del self._alike[_kind(operation)]
        del self._bits[id(operation)], self._pending[bit]
        self._free.append(bit)
        self._open &= ~bit
        self._optional &= ~bit
        return {(state, effective & ~bit) for state, effective in configurations}

    def _require(self, bit: int) -> set[_Configuration]:
        """Return the configurations in which the operation with this bit has just taken effect."""
        reached: set[_Configuration] = set()
        visited = set(self._configurations)
        unexplored = list(visited)
        while unexplored and self.steps <= self._bound:
            state, effective = unexplored.pop()
            if effective & bit:
                reached.add((state, effective))
                continue
            for successor in self._successors(state, effective):
                if successor not in visited:
                    visited.add(successor)
                    unexplored.append(successor)
        return reached

    def _successors(self, state: Hashable, effective: int) -> Iterable[_Configuration]:
        """Return the configurations after one more operation, or after several that join.

        Of equal operations, the first to end takes effect first; this excludes no order, because equal operations can
        be exchanged.  An operation that only reads, and reads just this state, takes effect at once.
        """
        successors, joining = [], []
        for alike in self._alike.values():
            bits = [bit for bit in alike if not effective & bit]
            if not bits:
                continue
            operation = self._pending[bits[0]]
            states = self._step(state, operation)
            if bits[0] & self._optional:
                # An optional operation without an effect need not have happened.
                states = [successor for successor in states if successor != state]
            elif not operation.changes and states == [state]:
                return [(state, effective | bits[0])]
            if operation.joins and states:
                joining.append(bits)
            else:
                successors += [(successor, effective | bits[0]) for successor in states]
        return [*successors, *self._joined_successors(state, effective, joining)]

    def _joined_successors(
        self, state: Hashable, effective: int, joining: Sequence[Sequence[int]], chosen: Sequence[Sequence[int]] = ()
    ) -> Iterator[_Configuration]:
        """Yield the configurations after operations that join: of equal operations, any number of the first ones.

        Optional operations are not joined to others: that would add no configuration.

        Args:
            joining: Bits of equal operations, for each kind that may be added to the chosen ones.
            chosen: Bits of equal operations, for each kind that takes part.
        """
        for number, bits in enumerate(joining, start=1):
            together = [*chosen, bits]
            if chosen and any(bits[0] & self._optional for bits in together):
                continue
            states = self._step(state, *(self._pending[bits[0]] for bits in together))
            if states:
                for prefixes in itertools.product(*map(self._prefixes, together)):
                    yield from (
                        (successor, functools.reduce(operator.or_, prefixes, effective)) for successor in states
                    )
                yield from self._joined_successors(state, effective, joining[number:], together)

    def _prefixes(self, bits: Sequence[int]) -> Iterator[int]:
        """Yield the first of these operations, the first two, and so on, as far as they are not optional."""
        certain = itertools.takewhile(lambda bit: not bit & self._optional, bits[1:])
        return itertools.accumulate([bits[0], *certain], operator.or_)

    def _step(self, state: Hashable, *operations: TimedCall) -> list[Hashable]:
        self.steps += 1
        return list(self._model.step(state, *operations))

    def _minimal(self, configurations: Iterable[_Configuration]) -> set[_Configuration]:
        """Drop configurations that differ from another only by additional optional operations."""
        groups: dict[_Configuration, list[int]] = {}
        for state, effective in sorted(configurations, key=lambda configuration: configuration[1].bit_count()):
            minimal = groups.setdefault((state, effective & ~self._optional), [])
            if not any(fewer & ~effective == 0 for fewer in minimal):
                minimal.append(effective)
        return {(state, effective) for (state, _), minimal in groups.items() for effective in minimal}


def _kind(operation: TimedCall) -> Hashable:
    return operation.call, operation.optional


def _end(operation: TimedCall) -> float:
    return math.inf if operation.ended is None else operation.ended
