"""Faults of POST /v1/claims: amounts, consumers, all or nothing, and places."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from jepsen.planted.faults import PAUSE, fault
from placement.extensions.v1 import claim_creation
from placement.extensions.v1.claims import writing
from placement.extensions.v1.claims.engine import Claiming
from placement.extensions.v1.claims.request import ClaimCall, ClaimRequest
from placement.extensions.v1.claims.result import ClaimResult, Place, RequestOutcome, refused_result
from placement.extensions.v1.claims.writing import ChosenPlace
from placement.extensions.v1.failures import NothingPlaced
from placement.extensions.v1.pick.strategy import Preference, Strategy
from placement.objects.claims.claim import Claim
from placement.objects.claims.claim_set import ClaimSet
from placement.objects.claims.holding import Holding

Resources = Mapping[str, Mapping[str, int]]


def _change_places(change: Any) -> None:
    """Replace each chosen place with ``change(place)``."""
    original = ChosenPlace.from_pick.__func__
    ChosenPlace.from_pick = classmethod(lambda cls, *arguments: change(original(cls, *arguments)))


@fault
def more_claimed_than_requested() -> None:
    """A claim takes one unit of each class more than requested."""
    _change_places(lambda place: place._replace(resources=_with_more(place.resources)))


def _with_more(resources: Resources) -> Resources:
    return {uuid: {name: amount + 1 for name, amount in amounts.items()} for uuid, amounts in resources.items()}


@fault
def copies_on_one_provider() -> None:
    """All copies of a place are claimed on the provider of the first one."""

    def on_first(place: ChosenPlace) -> ChosenPlace:
        first, *_ = place.resources
        amounts = {name: amount * len(place.resources) for name, amount in place.resources[first].items()}
        return place._replace(resources={first: amounts})

    _change_places(on_first)


@fault
def results_reordered() -> None:
    """The results for several consumers are not in the order of the requests."""
    run = Claiming.run
    Claiming.run = lambda self: run(self)[::-1]


@fault
def mappings_of_earlier_place() -> None:
    """A claim is shown with its original mappings, although another client has changed the holding."""
    of_row = Holding._of_row.__func__

    def with_mappings(cls: Any, row: Any, *, with_record: bool) -> Holding:
        holding: Holding = of_row(cls, row, with_record=with_record)
        if with_record and row.content:
            holding.mappings = row.mappings
        return holding

    Holding._of_row = classmethod(with_mappings)


@fault
def more_written_than_reported() -> None:
    """A claim is written with one unit of each class more than reported."""

    class More(ClaimSet):
        def __init__(self, db: Any, claims: Sequence[Claim]) -> None:
            super().__init__(
                db, [dataclasses.replace(claim, resources=_with_more(claim.resources)) for claim in claims]
            )

    writing.ClaimSet = More


@fault
def held_for_any_request() -> None:
    """A consumer that holds something is reported as held, whatever the request."""
    finish_if_decided = Claiming._finish_if_decided

    def finish_as_held(self: Claiming, request: ClaimRequest, holding: Any) -> None:
        if holding is not None:
            holding.content = request.content
        finish_if_decided(self, request, holding)

    Claiming._finish_if_decided = finish_as_held


@fault
def place_of_another_consumer() -> None:
    """A repeated request returns the place of the first consumer with an equal request."""
    of_holding, places = Place.of_holding.__func__, dict[str | None, Place]()

    def of_first_holding(cls: Any, holding: Any) -> Place:
        return places.setdefault(holding.content, of_holding(cls, holding))

    Place.of_holding = classmethod(of_first_holding)


def _change_calls(**changes: Any) -> None:
    """Change fields of all requests."""
    call = claim_creation._call

    def changed_call(*arguments: Any) -> ClaimCall:
        return dataclasses.replace(call(*arguments), **changes)

    claim_creation._call = changed_call


@fault
def all_or_nothing_ignored() -> None:
    """All-or-nothing requests claim for the consumers that fit."""
    _change_calls(all_or_nothing=False)


@fault
def partial_claim_reported_as_refused() -> None:
    """All-or-nothing requests claim for the consumers that fit, and report all as refused."""
    run = Claiming.run

    def run_one_by_one(self: Claiming) -> list[ClaimResult]:
        if not self._call.all_or_nothing:
            return run(self)
        self._call, self._together = dataclasses.replace(self._call, all_or_nothing=False), False
        results = run(self)
        if any(result.outcome is RequestOutcome.REFUSED for result in results):
            return [refused_result(result.consumer, NothingPlaced()) for result in results]
        return results

    Claiming.run = run_one_by_one


@fault
def apart_from_ignored() -> None:
    """Consumers are placed in trees that they must avoid, packed as closely as possible."""
    _change_calls(apart_from=frozenset(), strategy=Strategy(Preference.PACK))


@fault
def together_with_ignored() -> None:
    """Consumers are placed outside the trees that they must share."""
    _change_calls(together_with=frozenset())


@fault
def own_release_ignored() -> None:
    """A consumer released between the search and the read of its holding is refused for lack of capacity."""

    def finish_unplaced(
        self: Claiming, concerned: Collection[str], missing: Collection[str], cut_short: Collection[str], searched: Any
    ) -> None:
        time.sleep(25 * PAUSE)
        if not self._finish_held(concerned):
            self._refuse_unplaced(missing, cut_short, searched)

    Claiming._finish_unplaced = finish_unplaced
