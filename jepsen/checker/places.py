"""Check of places: the promises of POST /v1/claims about all requests of a batch, and about trees (docs: v1-claims).

The conditions of a request hold at the time of the claim, which is unknown.  So a place is a violation only if it
contradicts every holding (``holdings``) that a consumer named by ``apart_from`` or ``together_with`` may have had
during the request.  Anything uncertain - a place that the service chose in a lost response, the tree of a provider that
was moved - contradicts nothing.  The check ``consumers`` covers the holding of each consumer, even while it moves, and
the response to an equal request; the check ``refusals`` covers capacity.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from jepsen.checker.all_or_nothing import all_or_nothing
from jepsen.checker.holdings import NOTHING, HeldAmounts, holdings
from jepsen.checker.registers import Register
from jepsen.checker.roots import roots
from jepsen.claim_queries import Group, groups
from jepsen.history import History, Operation
from jepsen.violation import Violation

#: Outcomes of requests that placed their consumers.
_PLACED = ("claimed", "moved")


def places(history: History) -> list[Violation]:
    """Return violations by responses to POST /v1/claims that contradict themselves, each other or the request."""
    trees = roots(history)
    # An expired consumer may or may not count as a holder until a sweep.
    holders = holdings(history, expires_at_once=False)
    calls = [_Call(operation, trees, holders) for operation in history.operations if _is_answered(operation)]
    violations = [
        Violation(invariant, f"{sentence}, in request {call.operation.number}", (call.operation.number,))
        for call in calls
        for invariant, sentence in call.contradictions()
    ]
    violations += _mutual([call for call in calls if call.operation.body.get("apart_from") and call.placed_trees])
    reads = (
        operation
        for operation in history.operations
        if operation.method == "GET" and operation.path.startswith("/v1/claims/")
    )
    violations += [violation for operation in reads if operation.succeeded for violation in _mapping_errors(operation)]
    return [*violations, *all_or_nothing(history)]


def _is_answered(operation: Operation) -> bool:
    return (
        (operation.method, operation.path) == ("POST", "/v1/claims")
        and operation.ended is not None
        and operation.status in (200, 409)
    )


#: The name of an invariant, and the error.
_Findings = Iterator[tuple[str, str]]
#: Providers that serve each group, by suffix.
Mappings = Mapping[str, Collection[str]]


@dataclass(frozen=True)
class _Call:
    """A POST /v1/claims request with a response."""

    operation: Operation
    trees: Mapping[str, str]
    holders: Mapping[str, Register[HeldAmounts]]

    @cached_property
    def results(self) -> Mapping[str, Mapping[str, Any]]:
        """Results by consumer."""
        return {result["consumer"]: result for result in self.operation.reply.get("results", ())}

    @cached_property
    def placed_trees(self) -> Mapping[str, set[str] | None]:
        """Trees in which this request placed each consumer, by consumer; None if uncertain."""
        return {
            consumer: self._trees_of(result["allocations"])
            for consumer, result in self.results.items()
            if result["outcome"] in _PLACED
        }

    def _trees_of(self, providers: Collection[str]) -> set[str] | None:
        return {self.trees[uuid] for uuid in providers} if self.trees.keys() >= {*providers} else None

    def contradictions(self) -> _Findings:
        """Yield the violations of this request."""
        if "results" in self.operation.reply:
            yield from self._form()
            yield from self._all_or_nothing()
            for request in self.operation.body["requests"]:
                result = self.results.get(request["consumer"])
                if result is not None and result["outcome"] != "refused":
                    differences = self._differences(request, result)
                    yield from (
                        ("places as requested", f"{request['consumer']}: {sentence}") for sentence in differences
                    )
            yield from self._apart()
            yield from self._together()

    # --- within the response ---

    def _form(self) -> _Findings:
        """Yield an error unless each request has a result, in order, and the counts match the results."""
        results = self.operation.reply["results"]
        requested = [request["consumer"] for request in self.operation.body["requests"]]
        if requested != [result["consumer"] for result in results]:
            yield "a result for each request", f"{requested}: the results are for other consumers, or in another order"
        good = sum(result["outcome"] != "refused" for result in results)
        if self.operation.reply["claimed"] != good or self.operation.status != (200 if good else 409):
            yield (
                "a result for each request",
                f"{requested}: status {self.operation.status} for {good} results that are not refused",
            )

    def _all_or_nothing(self) -> _Findings:
        outcomes = {result["outcome"] for result in self.results.values()}
        if self.operation.body.get("all_or_nothing") and "refused" in outcomes and outcomes & {*_PLACED, "held"}:
            yield "all or nothing", f"{', '.join(self.results)}: some are refused, and some are not"

    def _differences(self, request: Mapping[str, Any], result: Mapping[str, Any]) -> Iterator[str]:
        """Yield the differences between a place and its query: in amounts, number of copies, or trees of copies."""
        query_groups, copies, allocations = groups(request["query"]), result.get("mappings"), result["allocations"]
        if copies is None and result["outcome"] != "held":
            yield "no mappings"
        if query_groups is None or copies is None:
            return
        count, copy_amounts = request.get("count", 1), _sum(group.resources for group in query_groups.values())
        if len(copies) != count:
            yield f"{len(copies)} mappings, not {count}"
        if any(copy.keys() != query_groups.keys() for copy in copies):
            yield f"the mappings have other groups than {request['query']}"
        if any(len(providers) != 1 for copy in copies for suffix, providers in copy.items() if suffix):
            yield "a group with a suffix has several providers, or none"
        if {uuid for copy in copies for providers in copy.values() for uuid in providers} != allocations.keys():
            yield f"the mappings name other providers than {', '.join(sorted(allocations))}"
        if _sum(allocation["resources"] for allocation in allocations.values()) != {
            name: amount * count for name, amount in copy_amounts.items()
        }:
            yield f"{allocations} is not {count} times {request['query']}"
        yield from self._tree_differences(count, query_groups, copies, allocations)

    def _tree_differences(
        self,
        count: int,
        query_groups: Mapping[str, Group],
        copies: Sequence[Mappings],
        allocations: Mapping[str, Mapping[str, Any]],
    ) -> Iterator[str]:
        if (trees := self._trees_of(allocations)) is None:
            return
        copy_amounts = _sum(group.resources for group in query_groups.values())
        amounts = [
            _sum(allocation["resources"] for uuid, allocation in allocations.items() if self.trees[uuid] == tree)
            for tree in trees
        ]
        if len(amounts) != count or any(tree_amounts != copy_amounts for tree_amounts in amounts):
            yield f"{allocations} is not one copy of the query in each of {count} trees"
        for suffix, group in query_groups.items():
            named_trees = {self.trees.get(uuid) for copy in copies for uuid in copy.get(suffix, ())}
            if group.in_tree in self.trees and named_trees != {self.trees[group.in_tree]}:
                yield f"{allocations} is not in the tree of {group.in_tree}"

    # --- against other consumers ---

    def _apart(self) -> _Findings:
        """Yield an error for each consumer placed in a tree in which a listed consumer held resources at that time."""
        for consumer, trees in self.placed_trees.items():
            for other in self.operation.body.get("apart_from", ()) if trees else ():
                if other in self.placed_trees and other != consumer:
                    is_wrong = self._held_together(consumer, other) and trees & (self.placed_trees[other] or set())
                else:
                    # A consumer that is itself listed leaves its previous trees.
                    is_wrong = all(trees & self._trees_for_certain(value) for value in self._possible_holdings(other))
                if is_wrong:
                    yield "places apart", f"{consumer} is in a tree of {other}: {', '.join(sorted(trees))}"

    def _held_together(self, *consumers: str) -> bool:
        """Whether at some point in time each of these consumers had exactly its result."""
        return bool(self.operation.body.get("all_or_nothing")) or not any(
            self.is_disturbed(consumer) for consumer in consumers
        )

    def is_disturbed(self, consumer: str, calls: Sequence[Operation] = ()) -> bool:
        """Whether other operations may have written the consumer during these, or its lease may have expired.

        Args:
            calls: Empty: this request.
        """
        calls = calls or [self.operation]
        numbers = {operation.number for operation in calls}
        began, ended = min(operation.began for operation in calls), max(operation.ended or 0 for operation in calls)
        return any(
            write.began <= ended and (write.ended is None or write.ended >= began)
            for write in self.holders[consumer].writes
            if write.operation not in numbers or write.value.is_nothing
        )

    def _together(self) -> _Findings:
        """Yield an error for each consumer placed outside the trees of the listed ones, or if the trees differ."""
        listed = self.operation.body.get("together_with", ())
        certain_trees = {consumer: trees for consumer, trees in self.placed_trees.items() if trees is not None}
        for consumer, trees in certain_trees.items():
            for other in listed:
                if not any(
                    value.is_nothing or self._may_be_in(value, trees) for value in self._possible_holdings(other)
                ):
                    yield "places together", f"{consumer} is in {', '.join(sorted(trees))}, but {other} is elsewhere"
        if self.placed_trees.keys() & {*listed} and len(set[str]().union(*certain_trees.values())) > 1:
            yield "places together", f"{', '.join(certain_trees)} are in several trees"
        present = (value for other in listed for value in self._possible_holdings(other) if not value.is_nothing)
        if certain_trees and listed and not self.results.keys() & {*listed} and not any(present):
            yield "places together", f"{', '.join(certain_trees)} got places, although {', '.join(listed)} held nothing"

    def _possible_holdings(self, consumer: str) -> Sequence[HeldAmounts]:
        """Return the possible holdings of a consumer at the time of the claim."""
        if consumer not in self.holders:
            return [NOTHING]
        assert self.operation.ended is not None
        return [write.value for write in self.holders[consumer].possible(self.operation.began, self.operation.ended)]

    def _trees_for_certain(self, value: HeldAmounts) -> set[str]:
        return {self.trees[provider] for provider, _ in value.amounts if provider in self.trees}

    def _may_be_in(self, value: HeldAmounts, trees: set[str]) -> bool:
        """Whether the holding may extend to all of these trees."""
        certain = all(provider in self.trees for provider, _ in value.amounts)
        return bool(value.anywhere) or not certain or trees <= self._trees_for_certain(value)


def _mutual(calls: Sequence[_Call]) -> Iterator[Violation]:
    """Yield a violation for each pair of requests that name each other's consumers but place them in one tree."""
    by_consumer: dict[str, list[_Call]] = defaultdict(list)
    for call in calls:
        for consumer in call.placed_trees:
            by_consumer[consumer].append(call)
    for first in calls:
        for other in first.operation.body["apart_from"]:
            for second in by_consumer[other]:
                if first.operation.number < second.operation.number:
                    yield from _not_apart(first, second, other)


def _not_apart(first: _Call, second: _Call, other: str) -> Iterator[Violation]:
    """Yield a violation for each consumer of the first request that is wrongly in one tree with ``other``."""
    operations = (first.operation, second.operation)
    if other in first.placed_trees:
        return
    for consumer in first.placed_trees.keys() & {*second.operation.body["apart_from"]} - second.placed_trees.keys():
        shared_trees = (first.placed_trees[consumer] or set()) & (second.placed_trees[other] or set())
        if shared_trees and not any(first.is_disturbed(name, operations) for name in (consumer, other)):
            sentence = (
                f"{consumer} and {other} share {', '.join(sorted(shared_trees))}, but each request names the other"
            )
            yield Violation("places apart", sentence, [operation.number for operation in operations])


def _mapping_errors(operation: Operation) -> Iterator[Violation]:
    """Yield a violation unless the shown mappings of a claim cover its holding; unknown mappings are None."""
    copies, providers = operation.reply["mappings"], operation.reply["allocations"].keys()
    if copies is not None and not providers <= {
        uuid for copy in copies for providers in copy.values() for uuid in providers
    }:
        sentence = f"{operation.path}: the mappings do not cover the providers held, {', '.join(providers)}"
        yield Violation("mappings match the holdings", sentence, (operation.number,))


def _sum(amounts: Iterable[Mapping[str, int]]) -> Mapping[str, int]:
    return sum(map(Counter, amounts), Counter())
