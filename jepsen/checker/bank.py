"""A bank of accounts whose sum is constant: every read is one committed state, and the states have one order.

Each client swaps VCPU between two of its accounts, and each of its writes also raises by one what it holds of a class
of its own, its *ticks*.  So a read shows a sum, which never changes, and a vector of ticks, which says exactly which
writes it has seen: a vector clock.  The bank begins at a sum and with ticks that no write of a client has yet raised.

Rules of each read: its sum is the constant; it has every tick acknowledged before it began, and none of a write that
began after it ended; of two vectors one is not less than the other in every component; and of two reads that follow
each other, whichever workers answered them, the second shows at least what the first did.

An event that loses the last commits cuts the history into epochs.  What is left after it is a prefix of the commits
before it: a vector that fits between the vectors read in that epoch, and that has every write acknowledged before one
of its own began.  Writes that overlap such an event belong to both sides.  Of the reads that overlap it, some continue
the epoch before, and the others are the beginning of the epoch after it: one moment parts them.
"""

from __future__ import annotations

import bisect
import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, combinations, pairwise
from typing import Any
from urllib.parse import urlsplit

from jepsen.history import Event, History, Operation
from jepsen.violation import Violation

#: The class whose sum over all accounts is constant.
MONEY = "VCPU"
#: One component for each client.
Ticks = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Transfer:
    """A write that took effect, or may have: ``client`` then has the tick ``tick``."""

    number: int
    client: int
    tick: int
    began: int
    ended: float  #: infinity if it is unknown when, or whether


@dataclass(frozen=True, slots=True)
class Statement:
    """What a read shows."""

    number: int
    began: int
    ended: int
    money: int
    ticks: Ticks


@dataclass(frozen=True, slots=True)
class Epoch:
    """A time in which nothing is lost."""

    began: float
    ended: float
    statements: Sequence[Statement]
    #: Those that may take effect in it.
    transfers: Sequence[Transfer]
    #: Whether the loss at its end leaves what was acknowledged in it.
    is_kept: bool = False


def bank(history: History) -> list[Violation]:
    """Return reads that are no committed state, or that no order of the commits explains."""
    described = history.run.get("bank")
    if described is None:
        return []
    transfers, statements = _transfers(history), _statements(history, described["ticks"])
    violations = [
        Violation(
            "bank: constant sum", f"{statement.money} of {MONEY}, {described['total']} expected", (statement.number,)
        )
        for statement in statements
        if statement.money != described["total"]
    ]
    clients = range(len(described["ticks"]))
    before: Ticks = (0,) * len(clients)
    epochs = list(_epochs(history.events, transfers, statements))
    for epoch, following in zip(epochs, [*epochs[1:], None], strict=True):
        violations += [*_included(epoch, before), *_ordered(epoch.statements)]
        if following is not None:
            beside = [
                statement
                for statement in statements
                if statement.ended >= epoch.ended and statement.began < following.began
            ]
            violations += [*_from_nowhere(beside, transfers, clients), *_parted(beside, epoch, following, clients)]
            least, most = _start(following, clients)
            if not _is_prefix(epoch, before, tuple(map(max, least, _kept(epoch, clients))), most):
                sentence = f"after the loss ticks begin at {most}, no prefix of the commits before it"
                violations.append(Violation("bank: a prefix survives", sentence, _shown_by(following)))
            before = least
    return violations


# --- the rules ------------------------------------------------------------------------------------------------------


def _included(epoch: Epoch, before: Ticks) -> Iterator[Violation]:
    """Each read has what was acknowledged before it began, and nothing that began after it ended."""
    for client, least_before in enumerate(before):
        own = [transfer for transfer in epoch.transfers if transfer.client == client]
        known = _Highest(
            (transfer.ended, transfer.tick, transfer.number) for transfer in own if _is_within(transfer, epoch)
        )
        begun = _Highest((transfer.began, transfer.tick, transfer.number) for transfer in own)
        for statement in epoch.statements:
            shown = statement.ticks[client]
            least, number = known.before(statement.began)
            if shown < least:
                sentence = f"client {client} has tick {shown}, {least} was acknowledged before"
                yield Violation("bank: acknowledged writes included", sentence, (number, statement.number))
            most, _ = begun.before(statement.ended)
            if shown > max(most, least_before):
                sentence = f"client {client} has tick {shown}, {max(most, least_before)} is the last that was begun"
                yield Violation("bank: nothing from nowhere", sentence, (statement.number,))


def _from_nowhere(
    statements: Sequence[Statement], transfers: Sequence[Transfer], clients: range
) -> Iterator[Violation]:
    """A read beside a loss has nothing that began after it ended, in any epoch."""
    begun = [
        _Highest(
            (transfer.began, transfer.tick, transfer.number) for transfer in transfers if transfer.client == client
        )
        for client in clients
    ]
    for statement in statements:
        for client, shown in enumerate(statement.ticks):
            most, _ = begun[client].before(statement.ended)
            if shown > max(most, 0):
                sentence = f"client {client} has tick {shown}, {max(most, 0)} is the last that was begun"
                yield Violation("bank: nothing from nowhere", sentence, (statement.number,))


def _parted(beside: Sequence[Statement], epoch: Epoch, following: Epoch, clients: range) -> Iterator[Violation]:
    """Of the reads beside a loss each is before it or after it: two orders of commits, one after the other."""
    # A read that overlaps two losses may be between them.
    within = [statement for statement in beside if statement.began >= epoch.began and statement.ended < following.ended]
    parting, sides = _Parting(within), {True: _Chain(epoch.statements), False: _Chain(following.statements)}
    kept = [transfer for transfer in epoch.transfers if _is_within(transfer, epoch)]
    acknowledged = [
        _Highest((by.ended, by.tick, by.number) for by in kept if by.client == client) for client in clients
    ]
    for place, statement in enumerate(within):
        possible = [is_before for is_before, chain in sides.items() if chain.may_have(statement)]
        if any(
            shown < known.before(statement.began)[0] for shown, known in zip(statement.ticks, acknowledged, strict=True)
        ):
            possible = [is_before for is_before in possible if not is_before]
        if not possible or (len(possible) == 1 and not parting.put(place, is_before=possible[0])):
            sentence = f"{statement.ticks} beside a loss is no state before it and none after it"
            yield Violation("bank: one order of commits", sentence, (statement.number,))
            return
    if not parting.is_possible():
        sentence = "the reads beside a loss are states of no two orders, one before it and one after it"
        yield Violation("bank: one order of commits", sentence, [statement.number for statement in within[:5]])


class _Chain:
    """The reads of one order of commits."""

    def __init__(self, statements: Sequence[Statement]) -> None:
        self._ordered = sorted((sum(statement.ticks), statement.number, statement) for statement in statements)

    def may_have(self, statement: Statement) -> bool:
        """Whether none of the reads excludes this one; if the next ones do not, by the order or by time, none does."""
        place = bisect.bisect_left(self._ordered, (sum(statement.ticks),))
        nearest = [other for _, _, other in self._ordered[max(place - 1, 0) : place + 1]]
        nearest += [other for _, _, other in reversed(self._ordered) if other.ended < statement.began][:1]
        nearest += [other for _, _, other in self._ordered if other.began > statement.ended][:1]
        return not any(_exclude_each_other(statement, other) for other in nearest)


def _exclude_each_other(statement: Statement, other: Statement) -> bool:
    """Whether two reads are not both of one order of commits."""
    if statement.ended < other.began:
        return not _at_most(statement.ticks, other.ticks)
    if other.ended < statement.began:
        return not _at_most(other.ticks, statement.ticks)
    return not _at_most(statement.ticks, other.ticks) and not _at_most(other.ticks, statement.ticks)


class _Parting:
    """Which of some reads were before a loss: of two that exclude each other the first, and all that ended before it.

    This is a formula whose clauses have two literals each, so that to choose one side, and to take the other where that
    is impossible, never needs to be undone.
    """

    def __init__(self, statements: Sequence[Statement]) -> None:
        self._statements = statements
        self._excluded: list[list[int]] = [[] for _ in statements]
        for (place, statement), (other_place, other) in combinations(enumerate(statements), 2):
            if _exclude_each_other(statement, other):
                self._excluded[place].append(other_place)
                self._excluded[other_place].append(place)
        self._is_before: dict[int, bool] = {}

    def put(self, place: int, *, is_before: bool) -> bool:
        """Put a read on one side, and others that follow from it; False, and nothing is done, if that is impossible."""
        chosen, unexplored = dict(self._is_before), [(place, is_before)]
        while unexplored:
            place, is_before = unexplored.pop()
            if place in chosen:
                if chosen[place] != is_before:
                    return False
                continue
            chosen[place] = is_before
            unexplored += [(other, not is_before) for other in self._excluded[place]]
            unexplored += [(other, is_before) for other in self._implied(place, is_before=is_before)]
        self._is_before = chosen
        return True

    def is_possible(self) -> bool:
        """Whether there is a side for each."""
        return all(
            place in self._is_before or self.put(place, is_before=True) or self.put(place, is_before=False)
            for place in range(len(self._statements))
        )

    def _implied(self, place: int, *, is_before: bool) -> Iterator[int]:
        statement = self._statements[place]
        for other_place, other in enumerate(self._statements):
            if (other.ended < statement.began) if is_before else (other.began > statement.ended):
                yield other_place


class _Highest:
    """The highest tick up to a time, and the number of its operation."""

    def __init__(self, ticks: Iterable[tuple[float, int, int]]) -> None:
        ordered = sorted(ticks)
        self._times = [time for time, _, _ in ordered]
        self._highest = list(accumulate(((tick, number) for _, tick, number in ordered), max))

    def before(self, time: float) -> tuple[int, int]:
        place = bisect.bisect_left(self._times, time)
        return self._highest[place - 1] if place else (0, -1)


def _ordered(statements: Sequence[Statement]) -> Iterator[Violation]:
    """The vectors form a chain, and follow the time."""
    chain = sorted(statements, key=lambda statement: sum(statement.ticks))
    for statement, following in pairwise(chain):
        if not _at_most(statement.ticks, following.ticks):
            sentence = f"{statement.ticks} and {following.ticks} are states of no common order"
            yield Violation("bank: one order of commits", sentence, sorted((statement.number, following.number)))
    newest: Statement | None = None
    ended = iter(sorted(statements, key=lambda statement: statement.ended))
    earlier = next(ended, None)
    for statement in sorted(statements, key=lambda statement: statement.began):
        while earlier is not None and earlier.ended < statement.began:
            if newest is None or sum(earlier.ticks) > sum(newest.ticks):
                newest = earlier
            earlier = next(ended, None)
        if newest is not None and not _at_most(newest.ticks, statement.ticks):
            sentence = f"{statement.ticks} after {newest.ticks}"
            yield Violation("bank: reads never go back", sentence, (newest.number, statement.number))


def _start(epoch: Epoch, clients: range) -> tuple[Ticks, Sequence[float]]:
    """Return the least and the greatest vector with which an epoch may have begun.

    The ticks of a client began one below its first acknowledged write in the epoch, or at the lowest that a read of it
    shows; lower where open writes from before may have raised them since.
    """
    least, most = [], []
    for client in clients:
        own = [transfer for transfer in epoch.transfers if transfer.client == client]
        firsts = [transfer.tick - 1 for transfer in own if _is_within(transfer, epoch)]
        late = {transfer.tick for transfer in own if not _is_within(transfer, epoch)}
        highest = min([*firsts, *(statement.ticks[client] for statement in epoch.statements)], default=None)
        lowest = highest or 0
        while lowest in late:
            lowest -= 1
        least.append(lowest)
        most.append(math.inf if highest is None else highest)
    return tuple(least), most


def _kept(epoch: Epoch, clients: range) -> Ticks:
    """Return the ticks that the loss at the end of an epoch does not take back."""
    sure = [
        transfer
        for transfer in epoch.transfers
        if epoch.is_kept and _is_within(transfer, epoch) and transfer.ended < epoch.ended
    ]
    return tuple(
        max((transfer.tick for transfer in sure if transfer.client == client), default=0) for client in clients
    )


def _is_prefix(epoch: Epoch, before: Ticks, least: Ticks, most: Sequence[float]) -> bool:
    """Whether a prefix of the commits of an epoch lies between two vectors.

    A prefix lies between two successive reads of the chain, and with a write it has all that were acknowledged before
    that began; the smallest vector with both properties is found by adding what is missing.
    """
    chain = [before, *sorted((statement.ticks for statement in epoch.statements), key=sum)]
    infinite = (math.inf,) * len(before)
    for low, high in zip(chain, [*chain[1:], infinite], strict=True):
        prefix = _closed(epoch, tuple(map(max, least, low)))
        if _at_most(prefix, tuple(map(min, most, high))):
            return True
    return False


def _closed(epoch: Epoch, ticks: Ticks) -> Ticks:
    while True:
        known = [
            transfer for transfer in epoch.transfers if _is_within(transfer, epoch) and transfer.ended < epoch.ended
        ]
        latest = max(
            (transfer.began for transfer in known if transfer.tick <= ticks[transfer.client]), default=-math.inf
        )
        needed = list(ticks)
        for transfer in known:
            if transfer.ended < latest:
                needed[transfer.client] = max(needed[transfer.client], transfer.tick)
        if tuple(needed) == ticks:
            return ticks
        ticks = tuple(needed)


def _at_most(lower: Sequence[float], upper: Sequence[float]) -> bool:
    return all(a <= b for a, b in zip(lower, upper, strict=True))


def _is_within(transfer: Transfer, epoch: Epoch) -> bool:
    return transfer.began >= epoch.began and transfer.ended < math.inf


def _shown_by(epoch: Epoch) -> Sequence[int]:
    return [statement.number for statement in epoch.statements[:1]]


# --- what the history says --------------------------------------------------------------------------------------------


def _epochs(events: Sequence[Event], transfers: Sequence[Transfer], statements: Sequence[Statement]) -> Iterator[Epoch]:
    losses = sorted((event for event in events if event.loses_tail), key=lambda event: event.began)
    cuts = [(event.began, math.inf if event.healed is None else event.healed, event.keeps_earlier) for event in losses]
    first, last = (-math.inf, -math.inf, False), (math.inf, math.inf, False)
    for (lost, began, _), (ended, over, is_kept) in zip([first, *cuts], [*cuts, last], strict=True):
        yield Epoch(
            *(
                began,
                ended,
                [statement for statement in statements if began <= statement.began and statement.ended < ended],
            ),
            # What was acknowledged before the loss that began the epoch takes no effect in it.
            [transfer for transfer in transfers if transfer.began < over and transfer.ended >= lost],
            is_kept,
        )


def _transfers(history: History) -> list[Transfer]:
    return [
        Transfer(
            operation.number,
            note["client"],
            note["tick"],
            operation.began,
            math.inf if operation.ended is None else operation.ended,
        )
        for operation in history.operations
        if isinstance(note := operation.note.get("bank"), Mapping) and (operation.succeeded or operation.is_open)
    ]


def _statements(history: History, classes: Sequence[str]) -> list[Statement]:
    statements = []
    for operation in history.operations:
        if operation.note.get("bank") == "read" and operation.status == 200 and operation.ended is not None:
            sums = _sums(operation)
            ticks = tuple(sums[name] for name in classes)
            statements.append(Statement(operation.number, operation.began, operation.ended, sums[MONEY], ticks))
    return statements


def _sums(operation: Operation) -> Mapping[str, int]:
    """Return the amounts of each class that a read shows as used."""
    sums: dict[str, int] = defaultdict(int)
    for amounts in _amounts(operation):
        for name, amount in amounts.items():
            sums[name] += amount
    return sums


def _amounts(operation: Operation) -> Iterator[Mapping[str, int]]:
    match urlsplit(operation.path).path:
        case "/usages":
            usages: Mapping[str, Any] = operation.reply["usages"]
            # Since 1.38 by consumer type.
            yield from usages.values() if any(isinstance(value, Mapping) for value in usages.values()) else [usages]
        case "/allocation_candidates":
            for summary in operation.reply["provider_summaries"].values():
                yield {name: record["used"] for name, record in summary["resources"].items()}
        case "/v1/overview":
            for provider in operation.reply["providers"]:
                yield {name: record["used"] for name, record in provider["inventories"].items()}
