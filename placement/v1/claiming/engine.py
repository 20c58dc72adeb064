"""From a call to its results: places are chosen in the index, and claimed; where somebody was faster, again.

A round chooses a place for every request that is left, on a current snapshot of the index, and claims these places in
transactions of bounded size.  A claim decides from the database, by the one fit rule, so a place that was taken
meanwhile is refused there.  Such a request goes into the next round, on a newer snapshot.  A request is refused for
want of room in a round in which nothing was found for it, and in which every place that was found for others was
taken: then the index without these places is what was searched, and is current.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence

from placement import errors, signals
from placement.db import retry
from placement.db.database import Database
from placement.db.dry_run import DryRun
from placement.index.live import LiveIndex
from placement.index.snapshot import Snapshot
from placement.objects import leases
from placement.objects.claim_record import HeldClaim
from placement.search.explain.explaining import explain
from placement.search.find import Settings
from placement.search.pick.picker import Picker, PickRequest
from placement.v1.claiming.request import ClaimCall, ClaimRequest
from placement.v1.claiming.result import ClaimResult, Place, RequestOutcome, refused
from placement.v1.claiming.writing import ChosenPlace, TakenPlace, write
from placement.v1.failures import HeldOtherwise, NoRoom, NothingPlaced

#: Consumers in one transaction.
BATCH = 500
#: Why a request is refused whose query has candidates.
_BESIDE_OTHERS = (
    "there is room for the query, but not for as many copies, beside the other requests, or under the conditions of "
    "this call."
)
#: Most requests that lose a place get another one in the next round, or the one after it; pauses spread out the others.
_ROUNDS_WITHOUT_PAUSE = 3


class Claiming:
    """One call, while it is carried out."""

    def __init__(
        self,
        call: ClaimCall,
        database: Database | DryRun[object],
        index: LiveIndex,
        settings: Settings,
        *,
        attempts: int,
    ) -> None:
        """Prepare a call.

        Args:
            database: Takes the writes.
            settings: Of the searches.
            attempts: The largest number of attempts at one transaction.
        """
        self._call = call
        self._database = database
        self._index = index
        self._settings = settings
        self._attempts = attempts
        #: Whether all places are taken by one transaction, or none.
        self._together = call.all_or_nothing or call.dry_run
        self._open = {request.consumer: request for request in _by_query(call.requests)}
        self._results: dict[str, ClaimResult] = {}
        #: What the consumers to be moved hold.
        self._own: Mapping[str, HeldClaim] = {}

    def run(self) -> list[ClaimResult]:
        """Carry out the call, and return the results in the order of its requests.

        Raises:
            OutcomeUnknown: The connection was lost during a COMMIT; a call that is repeated says what is held.
            Unavailable: The database does not answer.
        """
        deadline = retry.new_deadline()
        for number in itertools.count(1):
            self._run_round()
            if not self._open:
                break
            if retry.is_over(deadline):
                self._refuse(self._open, errors.AllocationsChanged())
                break
            if number >= _ROUNDS_WITHOUT_PAUSE:
                retry.pause(number)
        results = [self._results[request.consumer] for request in self._call.requests]
        outcomes = Counter(type(one.failure).__name__ if one.failure else one.outcome for one in results)
        for outcome, number in outcomes.items():
            signals.places_claimed(outcome, number)
        return results

    # --- a round ---

    def _run_round(self) -> None:
        self._read_present()
        snapshot = self._index.current()
        chosen = self._choose(snapshot)
        missing = self._open.keys() - {place.request.consumer for place in chosen}
        if missing and self._call.all_or_nothing:
            if not self._end_held(self._open):
                self._refuse_for_room(missing)
            return
        if self._write([place for place in chosen if not place.request.dry_run]):
            for place in chosen:
                if place.request.dry_run:
                    self._end(ClaimResult(place.request.consumer, RequestOutcome.FOUND, place.found()))
            if missing and not self._end_held(missing):
                self._refuse_for_room(missing)

    def _read_present(self) -> None:
        """Read what consumers hold that are moved or only tried, and end what that decides."""
        consumers = [one.consumer for one in self._open.values() if not one.keep or one.dry_run]
        self._own = self._held(consumers) if consumers else {}
        for consumer in consumers:
            self._end_if_decided(self._open[consumer], self._own.get(consumer))

    def _choose(self, snapshot: Snapshot) -> list[ChosenPlace]:
        picker = Picker(snapshot, self._call.strategy, self._settings)
        requests = list(self._open.values())
        picks = picker.pick([self._pick_request(request, snapshot) for request in requests])
        return [
            ChosenPlace.of(request, pick, snapshot)
            for request, pick in zip(requests, picks, strict=True)
            if pick is not None
        ]

    def _pick_request(self, request: ClaimRequest, snapshot: Snapshot) -> PickRequest:
        own = {}
        if request.consumer in self._own:
            for uuid, amounts in self._own[request.consumer].resources.items():
                for name, amount in amounts.items():
                    if uuid in snapshot.by_uuid and name in snapshot.class_ids:
                        own[snapshot.provider(snapshot.by_uuid[uuid]).id, snapshot.class_ids[name]] = amount
        return PickRequest(request.query, request.count, own, dry=request.dry_run)

    def _write(self, chosen: Sequence[ChosenPlace]) -> bool:
        """Claim the places, and return whether each of them was taken."""
        size = len(chosen) if self._together else BATCH
        existing: list[str] = []
        complete = True
        for start in range(0, len(chosen), size or 1):
            batch = chosen[start : start + size]
            written = write(self._database, self._call, batch, together=self._together, attempts=self._attempts)
            for place, outcome in zip(batch, written, strict=True):
                consumer = place.request.consumer
                if isinstance(outcome, TakenPlace):
                    self._end(
                        ClaimResult(
                            consumer, RequestOutcome.MOVED if outcome.moved else RequestOutcome.CLAIMED, outcome.place
                        )
                    )
                    continue
                complete = False
                if isinstance(outcome, errors.ConsumerGenerationConflict):
                    existing.append(consumer)
        if existing and not self._end_held(existing):
            self._give_back_expired()
        return complete

    # --- what is held already ---

    def _end_held(self, consumers: Collection[str]) -> bool:
        """End the requests of those of these consumers that hold something already; return whether there are some."""
        found = self._held(consumers)
        ended = [
            self._end_if_decided(self._open[consumer], found.get(consumer))
            for consumer in list(consumers)
            if consumer in self._open
        ]
        return any(ended)

    def _end_if_decided(self, request: ClaimRequest, held: HeldClaim | None) -> bool:
        """End the request if what its consumer holds decides it; return whether it does."""
        generation = None if held is None else held.consumer_generation
        if held is not None and held.content == request.content:
            self._end(ClaimResult(request.consumer, RequestOutcome.HELD, Place.of_held(held)))
        elif request.generation == generation:
            return False
        elif request.generation is None:
            self._refuse([request.consumer], HeldOtherwise(consumer=request.consumer))
        else:
            shown = "null" if generation is None else generation
            conflict = errors.ConsumerGenerationConflict(expected=shown, given=request.generation)
            self._refuse([request.consumer], conflict)
        return True

    def _held(self, consumers: Collection[str]) -> Mapping[str, HeldClaim]:
        return self._database.read(lambda db: HeldClaim.of_consumers(db, consumers))

    def _give_back_expired(self) -> None:
        """Give back leases whose time is over: their consumers count as absent, but still have rows."""
        if not self._call.dry_run:
            self._database.write(leases.give_back)

    # --- results ---

    def _end(self, result: ClaimResult) -> None:
        self._results[result.consumer] = result
        del self._open[result.consumer]

    def _refuse(self, consumers: Iterable[str], failure: errors.Failure) -> None:
        for consumer in list(consumers):
            self._end(refused(consumer, failure))
        if self._call.all_or_nothing:
            for consumer in list(self._open):
                self._end(refused(consumer, NothingPlaced()))

    def _refuse_for_room(self, consumers: Collection[str]) -> None:
        """Refuse the requests, with an explanation for the first one of each query."""
        snapshot = self._index.current()
        reasons: dict[str, str] = {}
        for request in [one for one in self._open.values() if one.consumer in consumers]:
            explanation = None
            if request.query_text not in reasons:
                explanation = explain(request.query, snapshot, self._settings)
                reasons[request.query_text] = _BESIDE_OTHERS if explanation.found else explanation.summary
            self._end(refused(request.consumer, NoRoom(reason=reasons[request.query_text]), explanation))
        if self._call.all_or_nothing:
            self._refuse(list(self._open), NothingPlaced())


def _by_query(requests: Sequence[ClaimRequest]) -> list[ClaimRequest]:
    """Return the requests with those of equal queries together, in the order of the first of each."""
    groups: dict[str, list[ClaimRequest]] = {}
    for request in requests:
        groups.setdefault(request.query_text, []).append(request)
    return list(itertools.chain.from_iterable(groups.values()))
