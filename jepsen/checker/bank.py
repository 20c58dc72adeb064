"""Check of a bank of accounts with a constant sum: each read is a committed state, and the states are totally ordered.

Each client moves VCPU between two of its accounts, and each of its writes also raises its holding of its own resource
class, its *ticks*, by one.  So a read shows a sum, which never changes, and a vector of ticks, which says exactly which
writes it includes: a vector clock.

Rules for each read: its sum is the constant; it includes every tick acknowledged before it began, and no tick of a
write that began after it ended; any two vectors are comparable; and of two successive reads, whichever workers served
them, the second shows at least the ticks of the first.

An event that loses the last commits divides the history into epochs.  A prefix of the earlier commits survives it: a
vector that fits between the vectors read in that epoch, and that includes every write acknowledged before one of its
own writes began.  Writes that overlap such an event belong to both sides.  Of the reads that overlap it, some continue
the epoch before, and the others begin the epoch after it: one point in time separates them.
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

#: Resource class with a constant sum over all accounts.
MONEY = "VCPU"
#: One component for each client.
Ticks = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Transfer:
    """A write that took effect, or may have; it raised the tick of ``client`` to ``tick``."""

    number: int
    client: int
    tick: int
    began: int
    ended: float  #: Infinity if the outcome is unknown.


@dataclass(frozen=True, slots=True)
class Statement:
    """The balances and ticks that a read shows."""

    number: int
    began: int
    ended: int
    money: int
    ticks: Ticks


@dataclass(frozen=True, slots=True)
class Epoch:
    """A period without losses."""

    began: float
    ended: float
    statements: Sequence[Statement]
    #: Transfers that may take effect in this epoch.
    transfers: Sequence[Transfer]
    #: Whether the loss at its end keeps the writes acknowledged in this epoch.
    is_kept: bool = False


def bank(history: History) -> list[Violation]:
    """Return violations by reads that show no committed state, or that no order of the commits explains."""
    description = history.run.get("bank")
    if description is None:
        return []
    transfers, statements = _transfers(history), _statements(history, description["ticks"])
    violations = [
        Violation(
            "bank: constant sum",
            f"the sum of {MONEY} is {statement.money}, not {description['total']}",
            (statement.number,),
        )
        for statement in statements
        if statement.money != description["total"]
    ]
    clients = range(len(description["ticks"]))
    initial: Ticks = (0,) * len(clients)
    epochs = list(_epochs(history.events, transfers, statements))
    for epoch, following in zip(epochs, [*epochs[1:], None], strict=True):
        violations += [*_includes_acknowledged(epoch, initial), *_order_violations(epoch.statements)]
        if following is not None:
            around = [
                statement
                for statement in statements
                if statement.ended >= epoch.ended and statement.began < following.began
            ]
            violations += [
                *_out_of_thin_air(around, transfers, clients),
                *_separable(around, epoch, following, clients),
            ]
            lower, upper = _start(following, clients)
            if not _is_prefix(epoch, initial, tuple(map(max, lower, _surviving_ticks(epoch, clients))), upper):
                sentence = f"after the loss, ticks begin at {upper}, which is no prefix of the commits before it"
                violations.append(Violation("bank: a prefix survives", sentence, _shown_by(following)))
            initial = lower
    return violations


# --- rules -----------------------------------------------------------------------------------------------------------


def _includes_acknowledged(epoch: Epoch, initial_ticks: Ticks) -> Iterator[Violation]:
    """Yield violations by reads that lack a write acknowledged before them, or show one that began after them."""
    for client, initial in enumerate(initial_ticks):
        transfers = [transfer for transfer in epoch.transfers if transfer.client == client]
        acknowledged = _Highest(
            (transfer.ended, transfer.tick, transfer.number) for transfer in transfers if _is_within(transfer, epoch)
        )
        begun = _Highest((transfer.began, transfer.tick, transfer.number) for transfer in transfers)
        for statement in epoch.statements:
            tick = statement.ticks[client]
            acknowledged_tick, number = acknowledged.before(statement.began)
            if tick < acknowledged_tick:
                sentence = f"tick {tick} of client {client} is shown, but {acknowledged_tick} was acknowledged before"
                yield Violation("bank: reads include acknowledged writes", sentence, (number, statement.number))
            latest, _ = begun.before(statement.ended)
            if tick > max(latest, initial):
                sentence = f"tick {tick} of client {client} is shown, but {max(latest, initial)} is the last one begun"
                yield Violation("bank: no out-of-thin-air reads", sentence, (statement.number,))


def _out_of_thin_air(
    statements: Sequence[Statement], transfers: Sequence[Transfer], clients: range
) -> Iterator[Violation]:
    """Yield violations by reads around a loss that show a write begun after they ended, in any epoch."""
    begun = [
        _Highest(
            (transfer.began, transfer.tick, transfer.number) for transfer in transfers if transfer.client == client
        )
        for client in clients
    ]
    for statement in statements:
        for client, tick in enumerate(statement.ticks):
            latest, _ = begun[client].before(statement.ended)
            if tick > max(latest, 0):
                sentence = f"tick {tick} of client {client} is shown, but {max(latest, 0)} is the last one begun"
                yield Violation("bank: no out-of-thin-air reads", sentence, (statement.number,))


def _separable(around: Sequence[Statement], epoch: Epoch, following: Epoch, clients: range) -> Iterator[Violation]:
    """Yield a violation unless the reads around a loss divide into an order before it and an order after it."""
    # A read that overlaps two losses may be between them.
    within = [statement for statement in around if statement.began >= epoch.began and statement.ended < following.ended]
    separation, sides = _Separation(within), {True: _Chain(epoch.statements), False: _Chain(following.statements)}
    acknowledged_transfers = [transfer for transfer in epoch.transfers if _is_within(transfer, epoch)]
    acknowledged = [
        _Highest(
            (transfer.ended, transfer.tick, transfer.number)
            for transfer in acknowledged_transfers
            if transfer.client == client
        )
        for client in clients
    ]
    for index, statement in enumerate(within):
        possible = [is_before for is_before, chain in sides.items() if chain.may_have(statement)]
        if any(
            tick < highest.before(statement.began)[0]
            for tick, highest in zip(statement.ticks, acknowledged, strict=True)
        ):
            possible = [is_before for is_before in possible if not is_before]
        if not possible or (len(possible) == 1 and not separation.put(index, is_before=possible[0])):
            sentence = f"{statement.ticks}, read around a loss, is a state neither before nor after it"
            yield Violation("bank: one commit order", sentence, (statement.number,))
            return
    if not separation.is_possible():
        sentence = "the reads around a loss do not divide into an order before it and an order after it"
        yield Violation("bank: one commit order", sentence, [statement.number for statement in within[:5]])


class _Chain:
    """The reads of one commit order."""

    def __init__(self, statements: Sequence[Statement]) -> None:
        self._ordered = sorted((sum(statement.ticks), statement.number, statement) for statement in statements)

    def may_have(self, statement: Statement) -> bool:
        """Whether the read is compatible with the chain; comparing the nearest ones by order and time suffices."""
        index = bisect.bisect_left(self._ordered, (sum(statement.ticks),))
        nearest = [other for _, _, other in self._ordered[max(index - 1, 0) : index + 1]]
        nearest += [other for _, _, other in reversed(self._ordered) if other.ended < statement.began][:1]
        nearest += [other for _, _, other in self._ordered if other.began > statement.ended][:1]
        return not any(_exclude_each_other(statement, other) for other in nearest)


def _exclude_each_other(statement: Statement, other: Statement) -> bool:
    """Whether the two reads cannot belong to one commit order."""
    if statement.ended < other.began:
        return not _at_most(statement.ticks, other.ticks)
    if other.ended < statement.began:
        return not _at_most(other.ticks, statement.ticks)
    return not _at_most(statement.ticks, other.ticks) and not _at_most(other.ticks, statement.ticks)


class _Separation:
    """The division of reads into those before a loss and those after it.

    Two reads that exclude each other are on different sides.  If a read is before the loss, so are all reads that ended
    before it began; if it is after the loss, so are all reads that began after it ended.  This is a 2-SAT formula, so
    trying one side and then the other never needs backtracking.
    """

    def __init__(self, statements: Sequence[Statement]) -> None:
        self._statements = statements
        self._excluded: list[list[int]] = [[] for _ in statements]
        for (index, statement), (other_index, other) in combinations(enumerate(statements), 2):
            if _exclude_each_other(statement, other):
                self._excluded[index].append(other_index)
                self._excluded[other_index].append(index)
        self._is_before: dict[int, bool] = {}

    def put(self, index: int, *, is_before: bool) -> bool:
        """Assign a read, and all reads that this implies, to sides; return False, changing nothing, if impossible."""
        chosen, unexplored = dict(self._is_before), [(index, is_before)]
        while unexplored:
            index, is_before = unexplored.pop()
            if index in chosen:
                if chosen[index] != is_before:
                    return False
                continue
            chosen[index] = is_before
            unexplored += [(other, not is_before) for other in self._excluded[index]]
            unexplored += [(other, is_before) for other in self._implications(index, is_before=is_before)]
        self._is_before = chosen
        return True

    def is_possible(self) -> bool:
        """Whether every read can be assigned to a side."""
        return all(
            index in self._is_before or self.put(index, is_before=True) or self.put(index, is_before=False)
            for index in range(len(self._statements))
        )

    def _implications(self, index: int, *, is_before: bool) -> Iterator[int]:
        assigned = self._statements[index]
        for other_index, other in enumerate(self._statements):
            if (other.ended < assigned.began) if is_before else (other.began > assigned.ended):
                yield other_index


class _Highest:
    """The highest tick up to a time, and the number of its operation."""

    def __init__(self, ticks: Iterable[tuple[float, int, int]]) -> None:
        ordered = sorted(ticks)
        self._times = [time for time, _, _ in ordered]
        self._highest = list(accumulate(((tick, number) for _, tick, number in ordered), max))

    def before(self, time: float) -> tuple[int, int]:
        index = bisect.bisect_left(self._times, time)
        return self._highest[index - 1] if index else (0, -1)


def _order_violations(statements: Sequence[Statement]) -> Iterator[Violation]:
    """Yield violations by reads whose vectors are not comparable, or that go back in time."""
    chain = sorted(statements, key=lambda statement: sum(statement.ticks))
    for statement, following in pairwise(chain):
        if not _at_most(statement.ticks, following.ticks):
            sentence = f"the ticks {statement.ticks} and {following.ticks} are not comparable"
            yield Violation("bank: one commit order", sentence, sorted((statement.number, following.number)))
    newest: Statement | None = None
    by_end = iter(sorted(statements, key=lambda statement: statement.ended))
    earlier = next(by_end, None)
    for statement in sorted(statements, key=lambda statement: statement.began):
        while earlier is not None and earlier.ended < statement.began:
            if newest is None or sum(earlier.ticks) > sum(newest.ticks):
                newest = earlier
            earlier = next(by_end, None)
        if newest is not None and not _at_most(newest.ticks, statement.ticks):
            sentence = f"the ticks {statement.ticks} are shown after {newest.ticks}"
            yield Violation("bank: monotonic reads", sentence, (newest.number, statement.number))


def _start(epoch: Epoch, clients: range) -> tuple[Ticks, Sequence[float]]:
    """Return the smallest and the greatest vector with which an epoch may have begun.

    A client's ticks began one below its first acknowledged write in the epoch, or at the lowest tick that a read shows,
    whichever is lower; lower still if open writes from before the epoch may have raised them since.
    """
    lower, upper = [], []
    for client in clients:
        transfers = [transfer for transfer in epoch.transfers if transfer.client == client]
        firsts = [transfer.tick - 1 for transfer in transfers if _is_within(transfer, epoch)]
        late = {transfer.tick for transfer in transfers if not _is_within(transfer, epoch)}
        highest = min([*firsts, *(statement.ticks[client] for statement in epoch.statements)], default=None)
        lowest = highest or 0
        while lowest in late:
            lowest -= 1
        lower.append(lowest)
        upper.append(math.inf if highest is None else highest)
    return tuple(lower), upper


def _surviving_ticks(epoch: Epoch, clients: range) -> Ticks:
    """Return the ticks that survive the loss at the end of an epoch."""
    certain = [
        transfer
        for transfer in epoch.transfers
        if epoch.is_kept and _is_within(transfer, epoch) and transfer.ended < epoch.ended
    ]
    return tuple(
        max((transfer.tick for transfer in certain if transfer.client == client), default=0) for client in clients
    )


def _is_prefix(epoch: Epoch, initial: Ticks, lower: Ticks, upper: Sequence[float]) -> bool:
    """Whether a prefix of the commits of an epoch lies between two vectors.

    A prefix lies between two successive reads of the chain, and with each write it includes all writes acknowledged
    before that write began.  The smallest vector with both properties is found by adding missing writes.
    """
    chain = [initial, *sorted((statement.ticks for statement in epoch.statements), key=sum)]
    infinite = (math.inf,) * len(initial)
    for low, high in zip(chain, [*chain[1:], infinite], strict=True):
        prefix = _closure(epoch, tuple(map(max, lower, low)))
        if _at_most(prefix, tuple(map(min, upper, high))):
            return True
    return False


def _closure(epoch: Epoch, ticks: Ticks) -> Ticks:
    while True:
        acknowledged = [
            transfer for transfer in epoch.transfers if _is_within(transfer, epoch) and transfer.ended < epoch.ended
        ]
        latest = max(
            (transfer.began for transfer in acknowledged if transfer.tick <= ticks[transfer.client]), default=-math.inf
        )
        required = list(ticks)
        for transfer in acknowledged:
            if transfer.ended < latest:
                required[transfer.client] = max(required[transfer.client], transfer.tick)
        if tuple(required) == ticks:
            return ticks
        ticks = tuple(required)


def _at_most(lower: Sequence[float], upper: Sequence[float]) -> bool:
    return all(a <= b for a, b in zip(lower, upper, strict=True))


def _is_within(transfer: Transfer, epoch: Epoch) -> bool:
    return transfer.began >= epoch.began and transfer.ended < math.inf


def _shown_by(epoch: Epoch) -> Sequence[int]:
    return [statement.number for statement in epoch.statements[:1]]


# --- history ---------------------------------------------------------------------------------------------------------


def _epochs(events: Sequence[Event], transfers: Sequence[Transfer], statements: Sequence[Statement]) -> Iterator[Epoch]:
    losses = sorted((event for event in events if event.loses_tail), key=lambda event: event.began)
    cuts = [(event.began, math.inf if event.healed is None else event.healed, event.keeps_earlier) for event in losses]
    first, last = (-math.inf, -math.inf, False), (math.inf, math.inf, False)
    for (loss_began, began, _), (ended, loss_ended, is_kept) in zip([first, *cuts], [*cuts, last], strict=True):
        yield Epoch(
            *(
                began,
                ended,
                [statement for statement in statements if began <= statement.began and statement.ended < ended],
            ),
            # Writes acknowledged before the loss that began the epoch take no effect in it.
            [transfer for transfer in transfers if transfer.began < loss_ended and transfer.ended >= loss_began],
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
    """Return the total usage by class that a read shows."""
    sums: dict[str, int] = defaultdict(int)
    for amounts in _amounts(operation):
        for name, amount in amounts.items():
            sums[name] += amount
    return sums


def _amounts(operation: Operation) -> Iterator[Mapping[str, int]]:
    match urlsplit(operation.path).path:
        case "/usages":
            usages: Mapping[str, Any] = operation.reply["usages"]
            # Grouped by consumer type since 1.38.
            yield from usages.values() if any(isinstance(value, Mapping) for value in usages.values()) else [usages]
        case "/allocation_candidates":
            for summary in operation.reply["provider_summaries"].values():
                yield {name: record["used"] for name, record in summary["resources"].items()}
        case "/v1/overview":
            for provider in operation.reply["providers"]:
                yield {name: record["used"] for name, record in provider["inventories"].items()}
