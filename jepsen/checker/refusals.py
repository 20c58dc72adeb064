"""Check of capacity: claims that fit throughout are not refused, and claims that never fit are not acknowledged.

The operations of a history bound the holdings of consumers (``holdings``) and the capacity (``inventories``) at each
time from both sides.  A refusal is explained if at some time during the request the largest holdings of others plus the
requested amount exceed the smallest capacity.  An acknowledged claim is impossible if at each time during the request
the smallest holdings of others plus the amount exceed the largest capacity.  The service decides both at one point in
time under its locks, so neither rule gives false alarms; open operations weaken both.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from jepsen.calls import effects
from jepsen.checker.holdings import EVERY_CLASS, UNLIMITED, HeldAmounts, amount_of, amounts_of_query, holdings
from jepsen.checker.inventories import Inventory, Pair, inventories
from jepsen.checker.machines import offered
from jepsen.checker.registers import Write
from jepsen.checker.step_functions import Steps, changes, combined
from jepsen.checker.unanswered_claims import with_ends
from jepsen.effect_types import ConsumerWrite
from jepsen.history import History, Operation
from jepsen.violation import Violation

_EXCEEDED = re.compile(
    r"allocation for '(\S+)' on resource provider '(\S+)'\. The requested amount would (exceed|violate)"
)
_ABSENT = re.compile(r"Inventory for '([^']+)' on resource provider '([^']+)' invalid\.")


def refusals(history: History) -> list[Violation]:
    """Return violations by refusals despite free capacity, and by claims beyond the capacity."""
    history = with_ends(history)
    room = _Room(history)
    return [
        violation
        for operation in history.operations
        for violation in (*_refused(operation, room), *_exceeded(operation, room))
    ]


class _Room:
    """Bounds of capacity and holdings at each time."""

    def __init__(self, history: History) -> None:
        self.inventories = {**inventories(history), **offered(history)}
        self.holders = holdings(history, expires_at_once=True)
        self._capacities: dict[Pair, tuple[Steps, Steps]] = {}
        self._held: dict[Pair, tuple[Steps, Steps]] = {}
        self._of: dict[tuple[str, Pair], tuple[Steps, Steps]] = {}
        self._on: dict[Pair, set[str]] = defaultdict(set)
        self._anywhere: dict[str, set[str]] = defaultdict(set)
        for consumer, register in self.holders.items():
            for write in register.every:
                for pair in write.value.amounts:
                    self._on[pair].add(consumer)
                for name in write.value.anywhere:
                    self._anywhere[name].add(consumer)

    def capacity(self, pair: Pair) -> tuple[Steps, Steps]:
        """Return the smallest and the largest capacity."""
        if pair not in self._capacities:
            register = self.inventories[pair]
            self._capacities[pair] = Steps(changes(register, _min_capacity)), Steps(changes(register, _max_capacity))
        return self._capacities[pair]

    def held(self, pair: Pair) -> tuple[Steps, Steps]:
        """Return the smallest and the largest total that all consumers hold."""
        if pair not in self._held:
            lower, upper = [], []
            for consumer in self._on[pair] | self._anywhere[pair[1]] | self._anywhere[EVERY_CLASS]:
                own_lower, own_upper = self._changes(consumer, pair)
                lower += own_lower
                upper += own_upper
            self._held[pair] = Steps(lower), Steps(upper)
        return self._held[pair]

    def held_by(self, consumer: str, pair: Pair) -> tuple[Steps, Steps]:
        """Return the smallest and the largest amount that one consumer holds."""
        if (consumer, pair) not in self._of:
            lower, upper = self._changes(consumer, pair)
            self._of[consumer, pair] = Steps(lower), Steps(upper)
        return self._of[consumer, pair]

    def _changes(self, consumer: str, pair: Pair) -> tuple[Any, Any]:
        register = self.holders[consumer]

        def lower(writes: Sequence[Write[HeldAmounts]]) -> float:
            return min(write.value.amounts.get(pair, 0) for write in writes)

        def upper(writes: Sequence[Write[HeldAmounts]]) -> float:
            return max(write.value.max_amount(pair) for write in writes)

        return changes(register, lower), changes(register, upper)

    def of_others(self, pair: Pair, own: Collection[str], which: int, time: float) -> float:
        """Return the smallest (0) or the largest (1) total that the other consumers hold at a time."""
        mine = sum(self.held_by(consumer, pair)[which].at(time) for consumer in own if consumer in self.holders)
        return self.held(pair)[which].at(time) - mine

    def times(self, pairs: Collection[Pair], own: Collection[str], operation: Operation) -> Sequence[float]:
        """Return the times within an operation at which a bound on these pairs changes, and its beginning."""
        assert operation.ended is not None
        functions = [function for pair in pairs for function in (*self.capacity(pair), *self.held(pair))]
        functions += [
            function
            for pair in pairs
            for consumer in own
            if consumer in self.holders
            for function in self.held_by(consumer, pair)
        ]
        return combined(functions, operation.began, operation.ended)


def _min_capacity(writes: Sequence[Write[Inventory | None]]) -> float:
    return min(0.0 if write.value is None else write.value.min_capacity for write in writes)


def _max_capacity(writes: Sequence[Write[Inventory | None]]) -> float:
    return max(0.0 if write.value is None else write.value.max_capacity for write in writes)


# --- refusals --------------------------------------------------------------------------------------------------------


def _refused(operation: Operation, room: _Room) -> Iterator[Violation]:
    if operation.status == 409 and (match := _EXCEEDED.search(operation.detail)):
        name, provider, verb = match.groups()
        explained = _exceeds if verb == "exceed" else _violates
        if (provider, name) in room.inventories and not explained(operation, (provider, name), room):
            sentence = (
                f"{name} of {provider}: {operation.detail.strip().splitlines()[-1]}, but the amount fits throughout"
            )
            yield Violation("refusals for capacity are explained", sentence, (operation.number,))
    elif operation.status == 409 and (match := _ABSENT.search(operation.detail)):
        names, providers = (text.split(", ") for text in match.groups())
        if not any(_is_absent(operation, (provider, name), room) for provider in providers for name in names):
            sentence = f"{match[1]} of {match[2]} exists throughout"
            yield Violation("refusals for capacity are explained", sentence, (operation.number,))
    elif operation.method == "POST" and operation.path == "/v1/claims" and operation.status in (200, 409):
        yield from _without_place(operation, room)


def _exceeds(operation: Operation, pair: Pair, room: _Room) -> bool:
    claims = requested_amounts(operation)
    amount = sum(claim.get(pair, 0) for claim in claims.values())
    # A new consumer that claims nothing has no row to lock, so another request may create it meanwhile.
    own = [consumer for consumer, claim in claims.items() if claim or not _is_new(operation, consumer)]
    for time in room.times([pair], own, operation):
        new = _reshaped(operation, pair)
        available = room.capacity(pair)[0].at(time) if new is None else new.min_capacity
        if room.of_others(pair, own, 1, time) + amount > available:
            return True
    return False


def _is_new(operation: Operation, consumer: str) -> bool:
    """Whether a claim states that a consumer does not exist, as is possible since 1.28."""
    return _bodies(operation)[consumer].get("consumer_generation", "not stated") is None


def _violates(operation: Operation, pair: Pair, room: _Room) -> bool:
    assert operation.ended is not None
    new = _reshaped(operation, pair)
    possible = (
        [write.value for write in room.inventories[pair].possible(operation.began, operation.ended)]
        if new is None
        else [new]
    )
    amounts = [claim[pair] for claim in requested_amounts(operation).values() if pair in claim]
    return any(inventory is None or not all(map(inventory.allows, amounts)) for inventory in possible)


def _is_absent(operation: Operation, pair: Pair, room: _Room) -> bool:
    assert operation.ended is not None
    if _reshaped(operation, pair) is not None:
        return False
    register = room.inventories.get(pair)
    return register is None or any(write.value is None for write in register.possible(operation.began, operation.ended))


def _bodies(operation: Operation) -> Mapping[str, Any]:
    """Return the body of a claim on Placement's routes, by consumer."""
    if operation.method == "PUT":
        return {operation.path.rpartition("/")[2]: operation.body}
    return operation.body["allocations"] if operation.path == "/reshaper" else operation.body


def requested_amounts(operation: Operation) -> Mapping[str, Mapping[Pair, int]]:
    """Return the amounts requested by a claim on Placement's routes, by consumer."""
    claims: dict[str, dict[Pair, int]] = {}
    for consumer, body in _bodies(operation).items():
        held = body["allocations"]
        # An array until 1.11.
        entries = (
            held.items()
            if isinstance(held, dict)
            else [(allocation["resource_provider"]["uuid"], allocation) for allocation in held]
        )
        claims[consumer] = {
            (uuid, name): n for uuid, allocation in entries for name, n in allocation["resources"].items()
        }
    return claims


def _reshaped(operation: Operation, pair: Pair) -> Inventory | None:
    """Return the inventory in a reshape's own body, which decides on its claims."""
    provider, name = pair
    body = operation.body["inventories"].get(provider) if operation.path == "/reshaper" else None
    return Inventory.of(body["inventories"][name]) if body and name in body["inventories"] else None


# --- places chosen by the service ------------------------------------------------------------------------------------


def _without_place(operation: Operation, room: _Room) -> Iterator[Violation]:
    """Yield a violation for each refused query without conditions that fits on some provider throughout."""
    if operation.body.get("apart_from") or operation.body.get("together_with"):
        return
    tentative = _tentative(operation)
    for request, result in zip(operation.body["requests"], operation.reply.get("results", ()), strict=False):
        amounts = amounts_of_query(request["query"])
        refused = result["outcome"] == "refused" and result["error"]["code"] == "placement.v1.no_room"
        if refused and amounts and request.get("count", 1) == 1:
            place = _place(operation, request, amounts, tentative, room)
            if place is not None:
                sentence = f"{request['query']} for {request['consumer']} fits on {place} throughout"
                yield Violation("refusals for capacity are explained", sentence, (operation.number,))


def _place(
    operation: Operation,
    request: Mapping[str, Any],
    amounts: Mapping[str, float],
    tentative: Mapping[str, float],
    room: _Room,
) -> str | None:
    """Return a provider on which a request fits, if it fits somewhere at each time; else None."""
    tree = re.search(r"in_tree=([^&]+)", str(request["query"]))
    providers = {provider for provider, _ in room.inventories} if tree is None else {tree[1]}
    if not isinstance(request["query"], str) and "in_tree" in request["query"]["groups"][""]:
        providers = {request["query"]["groups"][""]["in_tree"]}
    having = [
        provider for provider in sorted(providers) if all((provider, name) in room.inventories for name in amounts)
    ]
    own, place = [request["consumer"]], None
    for time in room.times([(provider, name) for provider in having for name in amounts], own, operation):
        place = next((p for p in having if _fits(p, amounts, tentative, own, room, time)), None)
        if place is None:
            return None
    return place


def _fits(
    provider: str,
    amounts: Mapping[str, float],
    tentative: Mapping[str, float],
    own: Collection[str],
    room: _Room,
    time: float,
) -> bool:
    for name, amount in amounts.items():
        pair = (provider, name)
        possible = [write.value for write in room.inventories[pair].possible(time, time)]
        others = room.of_others(pair, own, 1, time) + amount_of(name, tentative)
        if not all(
            inventory is not None and inventory.allows(int(amount)) and others + amount <= inventory.min_capacity
            for inventory in possible
        ):
            return False
    return True


def _tentative(operation: Operation) -> Mapping[str, float]:
    """Return the amounts that requests of an all-or-nothing batch may have taken before it was refused as a whole."""
    sums: dict[str, float] = defaultdict(float)
    if operation.body.get("all_or_nothing"):
        for request in operation.body["requests"]:
            amounts = amounts_of_query(request["query"])
            for name, amount in (amounts or {}).items():
                sums[name] += amount * request.get("count", 1)
            if amounts is None:
                return {EVERY_CLASS: UNLIMITED}
    return sums


# --- acknowledged claims ---------------------------------------------------------------------------------------------


def _exceeded(operation: Operation, room: _Room) -> Iterator[Violation]:
    if not operation.succeeded or operation.ended is None:
        return
    written = [effect for effect in effects(operation) if isinstance(effect, ConsumerWrite) and effect.certain]
    together = operation.path != "/v1/claims"
    groups = [written] if together else [[effect] for effect in written]
    for group in groups:
        own = [effect.consumer for effect in group]
        sums: dict[Pair, int] = defaultdict(int)
        for effect in group:
            for provider, by_class in (effect.holding.resources or ()) if effect.holding else ():
                for name, amount in by_class:
                    sums[provider, name] += amount
        for pair, amount in sums.items():
            if pair in room.inventories and _never_fits(operation, pair, amount, own, room):
                sentence = f"{amount} {pair[1]} of {pair[0]} for {', '.join(own)} is more than the capacity at any time"
                yield Violation("capacity is never exceeded", sentence, (operation.number,))


def _never_fits(operation: Operation, pair: Pair, amount: int, own: Collection[str], room: _Room) -> bool:
    # On an over-committed provider a consumer may keep or reduce its amount (docs: api-capacity).
    if sum(_before(operation, pair, consumer, room) for consumer in own) >= amount:
        return False
    new = _reshaped(operation, pair)
    return all(
        room.of_others(pair, own, 0, time) + amount
        > (room.capacity(pair)[1].at(time) if new is None else new.max_capacity)
        for time in room.times([pair], own, operation)
    )


def _before(operation: Operation, pair: Pair, consumer: str, room: _Room) -> float:
    """Return the largest amount that a consumer may hold before an operation that writes it."""
    assert operation.ended is not None
    possible = room.holders[consumer].possible(operation.began, operation.ended)
    return max((write.value.max_amount(pair) for write in possible if write.operation != operation.number), default=0)
