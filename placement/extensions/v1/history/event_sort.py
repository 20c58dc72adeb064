"""An order in which committed transactions may have been done, of what each has done to generations (docs/adr/0042).

A transaction takes objects from one generation to another: a *step*.  The transactions of one writer have numbers, and
come in their order.  The steps of one object form a chain, in which each begins where the one before it has ended; an
object that was deleted and created again begins anew.  Beyond that the time decides, by clocks that may differ or go
backwards.

Mostly the order of time is such an order.  If not, it is searched for.
"""

from __future__ import annotations

import collections
import datetime
import itertools
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

#: The generation of an object; None if there is no such object.
State = int | None

#: Placements of the search for each transaction, and beside those, until it gives up.
_EFFORT, _LEAST_EFFORT = 8, 20_000
#: Objects of unknown states up to which the search remembers where it was.
_FEW = 100


@dataclass(frozen=True, slots=True)
class GenerationStep:
    """What a transaction does to the generation of an object."""

    key: Hashable
    before: State
    after: State


@dataclass(frozen=True, slots=True)
class Numbered:
    """A transaction by its writer and number, with one step at most for each object.

    ``place`` is its place among all transactions, where the database has one writer at a time; else it is 0 in each.
    """

    writer: int
    seq: int
    at: datetime.datetime
    steps: tuple[GenerationStep, ...]
    place: int = 0


#: Returns the states of objects after all transactions; without those that are not known.
Present = Callable[[Collection[Hashable]], Mapping[Hashable, State]]


def _unknown(_keys: Collection[Hashable]) -> Mapping[Hashable, State]:
    return {}


def in_order(transactions: Iterable[Numbered], present: Present = _unknown) -> list[Numbered]:
    """Return transactions, all that one state of the database has beyond another state, in an order of their steps.

    Steps may be missing, as there are writers that record none: then a chain has breaks, as few as possible.

    Args:
        transactions: In any order.
        present: Called with the objects whose steps are a circle, such as a creation and a deletion, so that they do
            not tell where it began: where it ends.
    """
    by_time = _by_time(transactions)
    chains: dict[Hashable, list[GenerationStep]] = collections.defaultdict(list)
    writers: dict[Hashable, set[int]] = collections.defaultdict(set)
    for transaction in by_time:
        for step in transaction.steps:
            chains[step.key].append(step)
            writers[step.key].add(transaction.writer)
    circles = [key for key, steps in chains.items() if len(steps) > 1 and _is_circle(steps)]
    entries = {key: chains[key][0].before for key in circles if len(writers[key]) == 1}
    open_circles = [key for key in circles if key not in entries]
    if open_circles:
        entries |= {
            key: state
            for key, state in present(open_circles).items()
            if any(step.before == state for step in chains[key])
        }
    if all(_is_chain(steps) and entries.get(key, steps[0].before) == steps[0].before for key, steps in chains.items()):
        return by_time
    return _Search(by_time, chains, entries).found() or _Search(by_time, chains, entries, forced=True).found()


def _is_circle(steps: Sequence[GenerationStep]) -> bool:
    """Return whether steps can end where they began."""
    if not _is_mortal(steps):
        return False
    return collections.Counter(step.before for step in steps) == collections.Counter(step.after for step in steps)


def _by_time(transactions: Iterable[Numbered]) -> list[Numbered]:
    """Return transactions by place and time, those of a writer in the order of their numbers."""
    latest: dict[int, datetime.datetime] = {}
    timed = []
    for transaction in sorted(transactions, key=lambda one: (one.writer, one.seq)):
        at = latest[transaction.writer] = max(transaction.at, latest.get(transaction.writer, transaction.at))
        timed.append((transaction.place, at, transaction.writer, transaction.seq, transaction))
    timed.sort(key=lambda one: one[:4])
    return [transaction for *_, transaction in timed]


def _is_chain(steps: Sequence[GenerationStep]) -> bool:
    """Return whether steps of an object are in an order with as few breaks as possible."""
    breaks = [(one.after, other.before) for one, other in itertools.pairwise(steps) if one.after != other.before]
    if not breaks:
        return True
    if not _is_mortal(steps) and any(after > before for after, before in breaks):  # type: ignore[operator]
        return False
    return len(breaks) <= _fewest_breaks(steps)


def _is_mortal(steps: Iterable[GenerationStep]) -> bool:
    """Return whether the object was created or deleted, so that its generations may begin anew."""
    return any(step.before is None or step.after is None for step in steps)


def _fewest_breaks(steps: Sequence[GenerationStep]) -> int:
    """Return how many breaks the best order has: the trails that cover a directed graph, less one (Euler)."""
    connected = _Connected()
    excess: collections.Counter[State] = collections.Counter()
    for step in steps:
        connected.join(step.before, step.after)
        excess[step.before] += 1
        excess[step.after] -= 1
    trails: collections.Counter[State] = collections.Counter({connected.head(state): 0 for state in excess})
    for state, number in excess.items():
        trails[connected.head(state)] += max(0, number)
    return sum(max(1, number) for number in trails.values()) - 1


class _Connected:
    """Which states steps connect."""

    def __init__(self) -> None:
        self._heads: dict[State, State] = {}

    def head(self, state: State) -> State:
        """Return the state that stands for all that are connected with this one."""
        heads = self._heads
        while (above := heads.setdefault(state, state)) != state:
            heads[state] = heads[above]
            state = above
        return state

    def join(self, one: State, other: State) -> None:
        self._heads[self.head(one)] = self.head(other)


@dataclass(slots=True)
class _Object:
    """What is left of an object's steps, and where the next one may begin."""

    remaining: collections.Counter[tuple[State, State]]
    #: How many of them begin at each state, and how many end there.
    begins: collections.Counter[State]
    ends: collections.Counter[State]
    mortal: bool
    breaks: int
    states: frozenset[State] = frozenset()

    def starts(self) -> frozenset[State]:
        """Return where what is left may begin: where more steps begin than end, or anywhere in a circle."""
        excess = [state for state, number in self.begins.items() if number > self.ends[state]]
        if excess and not self.mortal:
            return frozenset([min(excess)])  # type: ignore[type-var]
        return frozenset(excess or [state for state, number in self.begins.items() if number])

    def advance(self, step: GenerationStep, *, forced: bool) -> bool:
        """Take a step; return whether what is left can follow."""
        contested = self.contested
        self._count(step, -1)
        self.states = frozenset([step.after])
        if self.begins[step.after] or not self.remaining:
            return forced or not contested or self.breaks > 0 or self._is_connected(step.after)
        self.breaks -= 1
        self.states = self.starts()
        return forced or self.breaks >= 0

    @property
    def contested(self) -> bool:
        """Whether several of the steps may be the next one."""
        return sum(self.begins[state] for state in self.states) > 1

    def _is_connected(self, state: State) -> bool:
        """Return whether no step is left behind by going on from a state (Fleury)."""
        connected = _Connected()
        for before, after in self.remaining:
            connected.join(before, after)
        head = connected.head(state)
        return all(connected.head(before) == head for before, _ in self.remaining)

    def _count(self, step: GenerationStep, number: int) -> None:
        self.begins[step.before] += number
        self.ends[step.after] += number
        same = self.remaining[step.before, step.after] + number
        if same:
            self.remaining[step.before, step.after] = same
        else:
            del self.remaining[step.before, step.after]

    def undo(self, step: GenerationStep, states: frozenset[State], breaks: int) -> None:
        """Take a step back, to what was there before it."""
        self._count(step, 1)
        self.states, self.breaks = states, breaks


@dataclass(slots=True)
class _Placement:
    """A transaction at its place, and what was there before."""

    writer: int
    transaction: Numbered
    #: Whether another transaction could be the next of one of the same objects.
    contested: bool
    #: Transactions by writer whose turn it is not, before this one: no order goes on with one of them.
    asleep: frozenset[int]
    saved: list[tuple[frozenset[State], int]] = field(default_factory=list)


class _Search:
    """A search with backtracking.

    Only a transaction that is contested is a choice: others that can be the next one may be it, since none of those
    that come later touches the same objects before it.  One that was tried in vain sleeps until one that touches its
    objects was placed (sleep sets: P. Godefroid, Partial-Order Methods).
    """

    def __init__(
        self,
        by_time: Sequence[Numbered],
        chains: Mapping[Hashable, list[GenerationStep]],
        entries: Mapping[Hashable, State],
        *,
        forced: bool = False,
    ) -> None:
        """Take transactions by time.

        Args:
            chains: The steps of each object.
            entries: Where circles begin, as far as that is known.
            forced: Whether the earliest is placed where none fits, instead of going back.
        """
        self._forced = forced
        self._number = len(by_time)
        self._queues: dict[int, list[tuple[int, Numbered]]] = collections.defaultdict(list)
        for rank, transaction in enumerate(by_time):
            self._queues[transaction.writer].append((rank, transaction))
        self._next = dict.fromkeys(self._queues, 0)
        self._objects = {
            key: _Object(
                collections.Counter((step.before, step.after) for step in steps),
                collections.Counter(step.before for step in steps),
                collections.Counter(step.after for step in steps),
                _is_mortal(steps),
                _fewest_breaks(steps),
            )
            for key, steps in chains.items()
        }
        for key, each in self._objects.items():
            each.states = frozenset([entries[key]]) if key in entries else each.starts()
        self._placed: list[_Placement] = []
        #: The objects whose states do not follow from what was placed: it may be a circle, or have breaks.
        self._loose = [each for each in self._objects.values() if len(each.states) > 1 or each.breaks]
        #: What choices have led to; what was in vain once is so again.
        self._seen: set[Hashable] = set()

    def found(self) -> list[Numbered]:
        """Return an order of all transactions; an empty list if none was found."""
        effort = _EFFORT * self._number + _LEAST_EFFORT
        asleep: frozenset[int] = frozenset()
        while len(self._placed) < self._number:
            effort -= 1
            writer = self._choose(asleep)
            if writer is not None and (self._forced or effort > 0):
                fits, asleep = self._place(writer, asleep)
                if fits:
                    continue
            elif effort <= 0:
                return []
            back = self._back()
            if back is None:
                return []
            asleep = back
        return [placement.transaction for placement in self._placed]

    def _choose(self, asleep: frozenset[int]) -> int | None:
        """Return the writer of the earliest transaction that can be the next one; None if there is none."""
        waiting = []
        for writer, number in self._next.items():
            if number < len(self._queues[writer]) and writer not in asleep:
                rank, transaction = self._queues[writer][number]
                waiting.append((not self._fits(transaction), rank, writer))
        if not waiting:
            return None
        unfit, _, writer = min(waiting)
        return None if unfit and not self._forced else writer

    def _fits(self, transaction: Numbered) -> bool:
        return all(step.before in self._objects[step.key].states for step in transaction.steps)

    def _place(self, writer: int, asleep: frozenset[int]) -> tuple[bool, frozenset[int]]:
        """Place the next transaction of a writer; return whether others can follow, and which sleep from now on."""
        _, transaction = self._queues[writer][self._next[writer]]
        objects = [self._objects[step.key] for step in transaction.steps]
        contested = any(each.contested for each in objects)
        placement = _Placement(writer, transaction, contested, asleep)
        fits = True
        for each, step in zip(objects, transaction.steps, strict=True):
            placement.saved.append((each.states, each.breaks))
            fits = each.advance(step, forced=self._forced) and fits
        self._next[writer] += 1
        self._placed.append(placement)
        keys = {step.key for step in transaction.steps}
        asleep = frozenset(other for other in asleep if keys.isdisjoint(self._keys(other)))
        if contested and not self._forced and len(self._loose) <= _FEW:
            reached = (tuple(self._next.values()), asleep, *((each.states, each.breaks) for each in self._loose))
            fits = fits and reached not in self._seen
            self._seen.add(reached)
        return fits, asleep

    def _keys(self, writer: int) -> set[Hashable]:
        """Return the objects of the next transaction of a writer."""
        return {step.key for step in self._queues[writer][self._next[writer]][1].steps}

    def _back(self) -> frozenset[int] | None:
        """Take back the last choice; return which writers sleep there; None if there was no choice."""
        while self._placed:
            placement = self._placed.pop()
            self._next[placement.writer] -= 1
            for step, (states, breaks) in zip(placement.transaction.steps, placement.saved, strict=True):
                self._objects[step.key].undo(step, states, breaks)
            if placement.contested:
                return placement.asleep | {placement.writer}
        return None
