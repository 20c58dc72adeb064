"""From a call to its results: places are chosen in the index and claimed, and those lost to others are chosen again.

A round chooses a place for every remaining request, on a current snapshot of the index, and claims these places in
transactions of bounded size.  A claim decides from the database, by the one fit rule, so it refuses a place that others
have taken since.  Such a request goes into the next round, on a newer snapshot.  A request is refused for want of room
in a round that found nothing for it, that claimed every place it found for others, and in which no consumer was moved:
then the search covered the current index without these places.
"""

from __future__ import annotations

import itertools
import logging
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence

from placement import errors, signals
from placement.db.database import Database
from placement.db.dry_run import DryRun
from placement.db.writes import retry
from placement.extensions.v1.claims.claim_record import held_claims
from placement.extensions.v1.claims.conditions import Conditions, NowhereError
from placement.extensions.v1.claims.request import ClaimCall, ClaimRequest
from placement.extensions.v1.claims.result import ClaimResult, Place, RequestOutcome, refused
from placement.extensions.v1.claims.shared import Shared
from placement.extensions.v1.claims.uncommitted import UncommittedUsage
from placement.extensions.v1.claims.writing import ChosenPlace, Written, write
from placement.extensions.v1.failures import HeldOtherwise, NoRoom, NothingPlaced, Undecided
from placement.extensions.v1.pick.allowance import Allowance
from placement.extensions.v1.pick.picker import PickRequest
from placement.index.snapshot import Snapshot
from placement.objects.claims.holding import Holding
from placement.search.find import Settings

LOG = logging.getLogger(__name__)

#: Consumers in one transaction.
BATCH = 500
#: The most queries that one call explains: an explanation takes much longer than a place.
EXPLAINED = 10
#: Why a request is refused although its query has candidates.
_BESIDE_OTHERS = (
    "there is room for the query, but not for as many copies, beside the other requests, or under the conditions of "
    "this call."
)
_UNEXPLAINED = "GET /v1/explain says why."
_NOBODY_TO_JOIN = "none of the consumers in together_with holds anything, and none is in the call."
#: Most requests that lose a place get another within the next two rounds; pauses spread out the rest.
_ROUNDS_WITHOUT_PAUSE = 3


class Claiming:
    """One call while it is carried out."""

    def __init__(
        self, call: ClaimCall, shared: Shared, database: Database | DryRun[object], snapshot: Snapshot
    ) -> None:
        """Prepare a call.

        Args:
            database: Takes the writes.
            snapshot: What the index gave for this call: the current snapshot, or for ``guess`` a recent one.
        """
        self._call = call
        self._shared = shared
        self._database = database
        self._settings = Settings.of(shared.conf)
        #: For all rounds together.
        self._allowance = Allowance(self._settings.operations, len(call.requests))
        #: None once it has been used.
        self._snapshot: Snapshot | None = snapshot
        #: Whether one transaction takes all places or none.
        self._together = call.all_or_nothing or call.dry_run or bool(call.together_with)
        self._conditions = Conditions(call)
        self._open = {request.consumer: request for request in call.requests}
        self._results: dict[str, ClaimResult] = {}
        #: What the consumers to be moved hold.
        self._own: Mapping[str, Holding] = {}
        #: For a dry run; None for any other call.
        self._uncommitted = UncommittedUsage() if call.dry_run else None
        #: Consumers that a search found no place for, and that held nothing when they were read after it.
        self._without_holding: set[str] = set()

    def run(self) -> list[ClaimResult]:
        """Carry out the call, and return the results in the order of its requests.

        Raises:
            OutcomeUnknown: The connection was lost during a COMMIT; repeating the call tells what is held.
            Unavailable: The database does not answer.
        """
        deadline = retry.new_deadline()
        for number in itertools.count(1):
            if not self._open:
                break
            self._run_round(number)
            if retry.has_passed(deadline):
                self._refuse(self._open, errors.AllocationsChanged())
            elif self._open and number >= _ROUNDS_WITHOUT_PAUSE:
                retry.pause(number)
        results = [self._results[request.consumer] for request in self._call.requests]
        if not self._call.dry_run:
            _publish(results)
        if self._call.may_guess and results[0].outcome is RequestOutcome.CLAIMED:
            signals.written_jointly(1)
        return results

    def guess(self) -> tuple[Mapping[str, ClaimResult], int]:
        """Try once to claim places that were there a moment ago, on single providers that have not changed since.

        Bringing the index up to date takes half as many statements as a claim.

        Returns:
            The results of the consumers that got their places, and the number of places that were found.  There may
            still be places for the other consumers.

        Raises:
            Failure: Nothing was claimed; or OutcomeUnknown, as for ``run``.
        """
        # A search that needs more than each request's own operations should not be done twice.
        chosen, _ = self._choose(self._next_snapshot(), Allowance(0, len(self._open)))
        guessed = [place for place in chosen if place.depends_on_one_provider]
        if guessed:
            written = self._written(guessed, unchanged=True, skip_locked=True)
            for place, outcome in zip(guessed, written, strict=True):
                if isinstance(outcome, ClaimResult):
                    self._end_taken(place, outcome)
        _publish(self._results.values())
        return self._results, len(chosen)

    # --- a round ---

    def _run_round(self, number: int) -> None:
        self._read_present()
        if not self._open:
            return
        snapshot = self._next_snapshot()
        try:
            chosen, cut_short = self._choose(snapshot, self._allowance)
        except NowhereError:
            if not self._end_held(self._open):
                self._refuse(self._open, NoRoom(reason=_NOBODY_TO_JOIN))
            return
        missing = self._open.keys() - {place.request.consumer for place in chosen}
        if missing and self._call.all_or_nothing:
            self._end_missing(self._open, missing, cut_short, snapshot)
        # In a call for several, the first round places some while the others would wait for locks.
        elif self._write(
            [place for place in chosen if not place.request.dry_run],
            skip_locked=number == 1 and len(chosen) > 1 and not self._together,
        ):
            for place in chosen:
                if place.request.dry_run:
                    self._end(ClaimResult(place.request.consumer, RequestOutcome.FOUND, place.found()))
            if missing:
                self._end_missing(missing, missing, cut_short, snapshot)

    def _end_missing(
        self, concerned: Collection[str], missing: Collection[str], cut_short: Collection[str], searched: Snapshot
    ) -> None:
        """Answer requests that have no place; or, if any consumers concerned already hold something, only theirs.

        What a consumer held when the snapshot was taken is not free there.  If it no longer holds anything, the next
        round searches without that usage; if the database has not changed, there is no further round.  While expired
        leases are given back, each round has more room.
        """
        if self._end_held(concerned):
            return
        current = self._shared.index.current()
        if self._shared.index.has_leases_left:
            return
        # Where the search was cut short, it is not repeated: all rounds share one allowance.
        if current is searched or self._without_holding.issuperset(set(missing).difference(cut_short)):
            self._refuse_for_room(missing, cut_short, current)
        self._without_holding.update(missing)

    def _next_snapshot(self) -> Snapshot:
        """Return a snapshot that was current after the call began, and after reading what consumers hold.

        In a dry run, it shows what was taken and given back so far.
        """
        given, self._snapshot = self._snapshot, None
        current = self._shared.index.current() if given is None or self._own or self._conditions.named else given
        return current if self._uncommitted is None else self._uncommitted.beside(current)

    def _read_present(self) -> None:
        """Read what moved, dry-run and named consumers hold, and end the requests that this decides."""
        consumers = [one.consumer for one in self._open.values() if not one.keep or one.dry_run]
        self._own = self._held(consumers) if consumers else {}
        for consumer in consumers:
            if consumer in self._open:
                self._end_if_decided(self._open[consumer], self._own.get(consumer))
        if self._conditions.named:
            self._database.read(self._conditions.read)

    @signals.timed("pick")
    def _choose(self, snapshot: Snapshot, allowance: Allowance) -> tuple[list[ChosenPlace], set[str]]:
        """Return a place for each request that has one, and the consumers for which the search was cut short.

        Raises:
            NowhereError: No tree meets the conditions of the call.
        """
        picker = self._conditions.picker(snapshot, self._settings, allowance, self._open.keys())
        requests = list(self._open.values())
        listed = self._call.apart_from
        picks = picker.pick(
            [
                PickRequest(
                    request.query,
                    request.count,
                    self._own[request.consumer].resources if request.consumer in self._own else {},
                    listed=request.consumer in listed,
                    dry=request.dry_run,
                )
                for request in requests
            ]
        )
        chosen = [
            ChosenPlace.of(request, pick, snapshot)
            for request, pick in zip(requests, picks, strict=True)
            if pick is not None
        ]
        return chosen, {requests[position].consumer for position in picker.cut_short}

    def _write(self, chosen: Sequence[ChosenPlace], *, skip_locked: bool) -> bool:
        """Claim the places, and return whether all of them were taken, and no consumer gave anything back."""
        size = len(chosen) if self._together else BATCH
        complete = True
        for start in range(0, len(chosen), size or 1):
            batch = [place for place in chosen[start : start + size] if place.request.consumer in self._open]
            written = self._written(batch, skip_locked=skip_locked) if batch else []
            for place, outcome in zip(batch, written, strict=True):
                if isinstance(outcome, ClaimResult):
                    self._end_taken(place, outcome)
                    # What a moved consumer gave back is room for those without a place.
                    complete = complete and outcome.outcome is not RequestOutcome.MOVED
                    continue
                complete = False
                if not isinstance(outcome, (errors.ConsumerGenerationConflict, errors.AllocationsChanged)):
                    self._conditions.note_failed(place)
            if errors.ConsumerGenerationConflict in map(type, written):
                # In a repeated call, others hold something as well, even those for which no place was found: without
                # this, each round would end only as many of them as there is room to place again.
                self._end_held(self._open)
        return complete

    def _written(self, batch: Sequence[ChosenPlace], *, unchanged: bool = False, skip_locked: bool) -> list[Written]:
        relied_on = dict(self._conditions.relied_on)  # a dry run runs this again, when they have their places
        return write(
            *(self._database, self._call, batch, relied_on),
            together=self._together,
            unchanged=unchanged,
            skip_locked=skip_locked,
            attempts=self._shared.conf.placement.allocation_conflict_retry_count,
        )

    def _end_taken(self, place: ChosenPlace, result: ClaimResult) -> None:
        self._end(result)
        self._conditions.note_taken(place)
        if self._uncommitted is not None:
            self._uncommitted.note(place, self._own.get(place.request.consumer))

    # --- what is held already ---

    def _end_held(self, consumers: Collection[str]) -> bool:
        """End the requests that are decided because their consumers hold something; return whether there are any."""
        found = self._held(consumers)
        before = len(self._open)
        for consumer in list(consumers):
            if consumer in self._open:
                self._end_if_decided(self._open[consumer], found.get(consumer))
        return len(self._open) < before

    def _end_if_decided(self, request: ClaimRequest, held: Holding | None) -> None:
        """End the request if what its consumer holds decides it."""
        generation = None if held is None else held.generation
        if held is not None and held.content == request.content:
            self._end(ClaimResult(request.consumer, RequestOutcome.HELD, Place.of_held(held)))
        elif request.generation == generation:
            return
        elif request.generation is None:
            self._refuse([request.consumer], HeldOtherwise(consumer=request.consumer))
        else:
            shown = "null" if generation is None else generation
            conflict = errors.ConsumerGenerationConflict(expected=shown, given=request.generation)
            self._refuse([request.consumer], conflict)

    def _held(self, consumers: Collection[str]) -> Mapping[str, Holding]:
        return self._database.read(lambda db: held_claims(db, consumers))

    # --- results ---

    def _end(self, result: ClaimResult) -> None:
        self._results[result.consumer] = result
        del self._open[result.consumer]

    def _refuse(self, consumers: Iterable[str], failure: errors.Failure) -> None:
        for consumer in list(consumers):
            self._end(refused(consumer, failure))
        if self._call.all_or_nothing:
            # Even those that hold what they ask for from an earlier call, so that the outcome does not depend on order.
            held = [result.consumer for result in self._results.values() if result.outcome is RequestOutcome.HELD]
            self._results.update((consumer, refused(consumer, NothingPlaced())) for consumer in [*self._open, *held])
            self._open.clear()

    def _refuse_for_room(self, consumers: Collection[str], cut_short: Collection[str], snapshot: Snapshot) -> None:
        """Refuse the requests, with an explanation for the first one of each query.

        Args:
            cut_short: Consumers for which the search ran out of budget, so there may be room for them.
            snapshot: The current one.
        """
        said: dict[str, str] = {}
        if undecided := len(set(cut_short).intersection(consumers)):
            LOG.warning("The search for places was cut short: %d requests have none, and there may be some.", undecided)
        for request in [one for one in self._open.values() if one.consumer in consumers]:
            if request.consumer in cut_short:
                self._end(refused(request.consumer, Undecided()))
                continue
            reason = None
            if request.query.canonical not in said and len(said) < EXPLAINED:
                reason = self._shared.reasons.find(request, snapshot, self._settings, self._allowance)
                if reason is not None:
                    said[request.query.canonical] = _BESIDE_OTHERS if reason.found else reason.clause
            why = said.get(request.query.canonical, _UNEXPLAINED)
            self._end(refused(request.consumer, NoRoom(reason=why), reason))
        if self._call.all_or_nothing:
            self._refuse(list(self._open), NothingPlaced())


def _publish(results: Iterable[ClaimResult]) -> None:
    outcomes = Counter(type(one.failure).__name__ if one.failure else one.outcome for one in results)
    for outcome, ended in outcomes.items():
        signals.claims_answered(outcome, ended)
