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
from jepsen.checker.machines import node_inventories
from jepsen.checker.registers import Write
from jepsen.checker.step_functions import Steps, changes, combined_times
from jepsen.checker.unanswered_claims import with_ends
from jepsen.effect_types import ConsumerWrite
from jepsen.history import History, Operation
from jepsen.violation import Violation

_CAPACITY_REFUSAL = re.compile(
    r"allocation for '(\S+)' on resource provider '(\S+)'\. The requested amount would (exceed|violate)"
)
_INVENTORY_REFUSAL = re.compile(r"Inventory for '([^']+)' on resource provider '([^']+)' invalid\.")


def refusals(history: History) -> list[Violation]:
    """Return violations by refusals despite free capacity, and by claims beyond the capacity."""
    history = with_ends(history)
    bounds = _Bounds(history)
    return [
        violation
        for operation in history.operations
        for violation in (*_unexplained_refusals(operation, bounds), *_impossible_claims(operation, bounds))
    ]


class _Bounds:
    """Bounds of capacity and holdings at each time."""

    def __init__(self, history: History) -> None:
        self.inventories = {**inventories(history), **node_inventories(history)}
        self.holders = holdings(history, expires_at_once=True)
        self._capacities: dict[Pair, tuple[Steps, Steps]] = {}
        self._totals: dict[Pair, tuple[Steps, Steps]] = {}
        self._by_consumer: dict[tuple[str, Pair], tuple[Steps, Steps]] = {}
        self._consumers_on: dict[Pair, set[str]] = defaultdict(set)
        self._consumers_anywhere: dict[str, set[str]] = defaultdict(set)
        for consumer, register in self.holders.items():
            for write in register.writes:
                for pair in write.value.amounts:
                    self._consumers_on[pair].add(consumer)
                for name in write.value.anywhere:
                    self._consumers_anywhere[name].add(consumer)

    def capacity(self, pair: Pair) -> tuple[Steps, Steps]:
        """Return the smallest and the largest capacity."""
        if pair not in self._capacities:
            register = self.inventories[pair]
            self._capacities[pair] = Steps(changes(register, _min_capacity)), Steps(changes(register, _max_capacity))
        return self._capacities[pair]

    def totals(self, pair: Pair) -> tuple[Steps, Steps]:
        """Return the smallest and the largest total that all consumers hold."""
        if pair not in self._totals:
            lower, upper = [], []
            for consumer in (
                self._consumers_on[pair] | self._consumers_anywhere[pair[1]] | self._consumers_anywhere[EVERY_CLASS]
            ):
                own_lower, own_upper = self._changes(consumer, pair)
                lower += own_lower
                upper += own_upper
            self._totals[pair] = Steps(lower), Steps(upper)
        return self._totals[pair]

    def holdings_of(self, consumer: str, pair: Pair) -> tuple[Steps, Steps]:
        """Return the smallest and the largest amount that one consumer holds."""
        if (consumer, pair) not in self._by_consumer:
            lower, upper = self._changes(consumer, pair)
            self._by_consumer[consumer, pair] = Steps(lower), Steps(upper)
        return self._by_consumer[consumer, pair]

    def _changes(self, consumer: str, pair: Pair) -> tuple[Any, Any]:
        register = self.holders[consumer]

        def lower(writes: Sequence[Write[HeldAmounts]]) -> float:
            return min(write.value.amounts.get(pair, 0) for write in writes)

        def upper(writes: Sequence[Write[HeldAmounts]]) -> float:
            return max(write.value.max_amount(pair) for write in writes)

        return changes(register, lower), changes(register, upper)

    def total_of_others(self, pair: Pair, claimants: Collection[str], side: int, time: float) -> float:
        """Return the smallest (0) or the largest (1) total that the other consumers hold at a time."""
        own_amount = sum(
            self.holdings_of(consumer, pair)[side].at(time) for consumer in claimants if consumer in self.holders
        )
        return self.totals(pair)[side].at(time) - own_amount

    def times(self, pairs: Collection[Pair], claimants: Collection[str], operation: Operation) -> Sequence[float]:
        """Return the times within an operation at which a bound on these pairs changes, and its beginning."""
        assert operation.ended is not None
        functions = [function for pair in pairs for function in (*self.capacity(pair), *self.totals(pair))]
        functions += [
            function
            for pair in pairs
            for consumer in claimants
            if consumer in self.holders
            for function in self.holdings_of(consumer, pair)
        ]
        return combined_times(functions, operation.began, operation.ended)


def _min_capacity(writes: Sequence[Write[Inventory | None]]) -> float:
    return min(0.0 if write.value is None else write.value.min_capacity for write in writes)


def _max_capacity(writes: Sequence[Write[Inventory | None]]) -> float:
    return max(0.0 if write.value is None else write.value.max_capacity for write in writes)


# --- refusals --------------------------------------------------------------------------------------------------------


def _unexplained_refusals(operation: Operation, bounds: _Bounds) -> Iterator[Violation]:
    if operation.status == 409 and (match := _CAPACITY_REFUSAL.search(operation.detail)):
        name, provider, verb = match.groups()
        explained = _exceeds if verb == "exceed" else _violates
        if (provider, name) in bounds.inventories and not explained(operation, (provider, name), bounds):
            sentence = (
                f"{name} of {provider}: {operation.detail.strip().splitlines()[-1]}, but the amount fits throughout"
            )
            yield Violation("refusals for capacity are explained", sentence, (operation.number,))
    elif operation.status == 409 and (match := _INVENTORY_REFUSAL.search(operation.detail)):
        names, providers = (text.split(", ") for text in match.groups())
        if not any(_is_absent(operation, (provider, name), bounds) for provider in providers for name in names):
            sentence = f"{match[1]} of {match[2]} exists throughout"
            yield Violation("refusals for capacity are explained", sentence, (operation.number,))
    elif operation.method == "POST" and operation.path == "/v1/claims" and operation.status in (200, 409):
        yield from _unexplained_results(operation, bounds)


def _exceeds(operation: Operation, pair: Pair, bounds: _Bounds) -> bool:
    claims = requested_amounts(operation)
    amount = sum(claim.get(pair, 0) for claim in claims.values())
    # A new consumer that claims nothing has no row to lock, so another request may create it meanwhile.
    claimants = [consumer for consumer, claim in claims.items() if claim or not _is_new(operation, consumer)]
    for time in bounds.times([pair], claimants, operation):
        new = _reshaped_inventory(operation, pair)
        available = bounds.capacity(pair)[0].at(time) if new is None else new.min_capacity
        if bounds.total_of_others(pair, claimants, 1, time) + amount > available:
            return True
    return False


def _is_new(operation: Operation, consumer: str) -> bool:
    """Whether a claim states that a consumer does not exist, as is possible since 1.28."""
    return _bodies(operation)[consumer].get("consumer_generation", "not stated") is None


def _violates(operation: Operation, pair: Pair, bounds: _Bounds) -> bool:
    assert operation.ended is not None
    new = _reshaped_inventory(operation, pair)
    possible = (
        [write.value for write in bounds.inventories[pair].possible(operation.began, operation.ended)]
        if new is None
        else [new]
    )
    amounts = [claim[pair] for claim in requested_amounts(operation).values() if pair in claim]
    return any(inventory is None or not all(map(inventory.allows, amounts)) for inventory in possible)


def _is_absent(operation: Operation, pair: Pair, bounds: _Bounds) -> bool:
    assert operation.ended is not None
    if _reshaped_inventory(operation, pair) is not None:
        return False
    register = bounds.inventories.get(pair)
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
        allocations = body["allocations"]
        # An array until 1.11.
        entries = (
            allocations.items()
            if isinstance(allocations, dict)
            else [(allocation["resource_provider"]["uuid"], allocation) for allocation in allocations]
        )
        claims[consumer] = {
            (uuid, name): amount for uuid, allocation in entries for name, amount in allocation["resources"].items()
        }
    return claims


def _reshaped_inventory(operation: Operation, pair: Pair) -> Inventory | None:
    """Return the inventory in a reshape's own body, which decides on its claims."""
    provider, name = pair
    body = operation.body["inventories"].get(provider) if operation.path == "/reshaper" else None
    return Inventory.of(body["inventories"][name]) if body and name in body["inventories"] else None


# --- places chosen by the service ------------------------------------------------------------------------------------


def _unexplained_results(operation: Operation, bounds: _Bounds) -> Iterator[Violation]:
    """Yield a violation for each refused query without conditions that fits on some provider throughout."""
    if operation.body.get("apart_from") or operation.body.get("together_with"):
        return
    tentative = _tentative(operation)
    for request, result in zip(operation.body["requests"], operation.reply.get("results", ()), strict=False):
        amounts = amounts_of_query(request["query"])
        lacks_capacity = result["outcome"] == "refused" and result["error"]["code"] == "placement.v1.no_room"
        if lacks_capacity and amounts and request.get("count", 1) == 1:
            place = _fitting_provider(operation, request, amounts, tentative, bounds)
            if place is not None:
                sentence = f"{request['query']} for {request['consumer']} fits on {place} throughout"
                yield Violation("refusals for capacity are explained", sentence, (operation.number,))


def _fitting_provider(
    operation: Operation,
    request: Mapping[str, Any],
    amounts: Mapping[str, float],
    tentative: Mapping[str, float],
    bounds: _Bounds,
) -> str | None:
    """Return a provider on which a request fits, if it fits somewhere at each time; else None."""
    tree = re.search(r"in_tree=([^&]+)", str(request["query"]))
    providers = {provider for provider, _ in bounds.inventories} if tree is None else {tree[1]}
    if not isinstance(request["query"], str) and "in_tree" in request["query"]["groups"][""]:
        providers = {request["query"]["groups"][""]["in_tree"]}
    candidates = [
        provider for provider in sorted(providers) if all((provider, name) in bounds.inventories for name in amounts)
    ]
    claimants, place = [request["consumer"]], None
    for time in bounds.times([(provider, name) for provider in candidates for name in amounts], claimants, operation):
        place = next(
            (candidate for candidate in candidates if _fits(candidate, amounts, tentative, claimants, bounds, time)),
            None,
        )
        if place is None:
            return None
    return place


def _fits(
    provider: str,
    amounts: Mapping[str, float],
    tentative: Mapping[str, float],
    claimants: Collection[str],
    bounds: _Bounds,
    time: float,
) -> bool:
    for name, amount in amounts.items():
        pair = (provider, name)
        possible = [write.value for write in bounds.inventories[pair].possible(time, time)]
        held_by_others = bounds.total_of_others(pair, claimants, 1, time) + amount_of(name, tentative)
        if not all(
            inventory is not None
            and inventory.allows(int(amount))
            and held_by_others + amount <= inventory.min_capacity
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


def _impossible_claims(operation: Operation, bounds: _Bounds) -> Iterator[Violation]:
    if not operation.succeeded or operation.ended is None:
        return
    writes = [effect for effect in effects(operation) if isinstance(effect, ConsumerWrite) and effect.certain]
    together = operation.path != "/v1/claims"
    groups = [writes] if together else [[effect] for effect in writes]
    for group in groups:
        claimants = [effect.consumer for effect in group]
        sums: dict[Pair, int] = defaultdict(int)
        for effect in group:
            for provider, by_class in (effect.holding.resources or ()) if effect.holding else ():
                for name, amount in by_class:
                    sums[provider, name] += amount
        for pair, amount in sums.items():
            if pair in bounds.inventories and _never_fits(operation, pair, amount, claimants, bounds):
                sentence = (
                    f"{amount} {pair[1]} of {pair[0]} for {', '.join(claimants)} is more than the capacity at any time"
                )
                yield Violation("capacity is never exceeded", sentence, (operation.number,))


def _never_fits(operation: Operation, pair: Pair, amount: int, claimants: Collection[str], bounds: _Bounds) -> bool:
    # On an over-committed provider a consumer may keep or reduce its amount (docs: api-capacity).
    if sum(_amount_before(operation, pair, consumer, bounds) for consumer in claimants) >= amount:
        return False
    new = _reshaped_inventory(operation, pair)
    return all(
        bounds.total_of_others(pair, claimants, 0, time) + amount
        > (bounds.capacity(pair)[1].at(time) if new is None else new.max_capacity)
        for time in bounds.times([pair], claimants, operation)
    )


def _amount_before(operation: Operation, pair: Pair, consumer: str, bounds: _Bounds) -> float:
    """Return the largest amount that a consumer may hold before an operation that writes it."""
    assert operation.ended is not None
    possible = bounds.holders[consumer].possible(operation.began, operation.ended)
    return max((write.value.max_amount(pair) for write in possible if write.operation != operation.number), default=0)
