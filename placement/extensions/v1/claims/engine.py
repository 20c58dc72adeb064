"""Execution of calls: rounds of search and write, until every request has a result.

A round chooses a place for each open request in a current snapshot of the index, and claims these places in
transactions of bounded size.  The database decides whether a claim fits, by the one fit rule, so a place that another
client has taken since is refused.  Such a request goes into the next round, on a newer snapshot.

A request is refused for lack of capacity after a round that found no place for it, claimed every place found for other
requests, and moved no consumer: the search then covered everything that was free.
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
from placement.extensions.v1.claims.conditions import Conditions, NoTreeError
from placement.extensions.v1.claims.request import ClaimCall, ClaimRequest
from placement.extensions.v1.claims.result import ClaimResult, Place, RequestOutcome, refused_result
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

#: Maximum number of consumers in one transaction.
BATCH = 500
#: Maximum number of queries that one call explains; an explanation takes much longer than finding a place.
MAX_EXPLAINED = 10
#: The reason for refusing a request whose query has candidates.
_BESIDE_OTHERS = (
    "the query has candidates, but not enough for its copies, beside the other entries, or under the conditions of "
    "this request."
)
_UNEXPLAINED = "GET /v1/explain shows the reason."
_NO_PEER = "no consumer in together_with holds resources or is part of this request."
#: Rounds before the first pause.  Most requests whose place was refused get another one in the next two rounds.
_ROUNDS_WITHOUT_PAUSE = 3


class Claiming:
    """A call in progress."""

    def __init__(
        self, call: ClaimCall, shared: Shared, database: Database | DryRun[object], snapshot: Snapshot
    ) -> None:
        """Prepare a call.

        Args:
            database: The target of the writes.
            snapshot: The snapshot of the first search: the current one, or a recent one for ``run_optimistically``.
        """
        self._call = call
        self._shared = shared
        self._database = database
        self._settings = Settings.from_conf(shared.conf)
        #: The operations left, shared by all rounds.
        self._allowance = Allowance(self._settings.operations, len(call.requests))
        #: The snapshot of the first search; None after it.
        self._snapshot: Snapshot | None = snapshot
        #: Whether to claim all places in one transaction.
        self._together = call.all_or_nothing or call.dry_run or bool(call.together_with)
        self._conditions = Conditions(call)
        self._open = {request.consumer: request for request in call.requests}
        self._results: dict[str, ClaimResult] = {}
        #: Holdings of consumers to be moved and of consumers of dry-run requests, as of this round.
        self._own: Mapping[str, Holding] = {}
        #: The usage of a dry run; None for a call that writes.
        self._uncommitted = UncommittedUsage() if call.dry_run else None
        #: Consumers for which an earlier round found no place, and which held nothing after its search.
        self._without_holding: set[str] = set()

    def run(self) -> list[ClaimResult]:
        """Run rounds until every request is finished, and return the results in the order of the requests.

        Raises:
            OutcomeUnknown: The connection was lost during a COMMIT.  Repeating the call shows the outcome.
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
        if self._call.may_be_optimistic and results[0].outcome is RequestOutcome.CLAIMED:
            signals.written_jointly(1)
        return results

    def run_optimistically(self) -> tuple[Mapping[str, ClaimResult], int]:
        """Claim places on single providers in one attempt, if the providers have not changed since the snapshot.

        Returns:
            The results of the placed consumers, and the number of places found.  The other consumers may still get
            places in rounds.

        Raises:
            Failure: Nothing was claimed.
            OutcomeUnknown: As for ``run``.
        """
        # A search that exceeds each request's own operations is too expensive to be repeated in rounds.
        chosen, _ = self._choose(self._next_snapshot(), Allowance(0, len(self._open)))
        optimistic = [place for place in chosen if place.depends_on_one_provider]
        if optimistic:
            outcomes = self._claim(optimistic, unchanged=True, skip_locked=True)
            for place, outcome in zip(optimistic, outcomes, strict=True):
                if isinstance(outcome, ClaimResult):
                    self._finish_placed(place, outcome)
        _publish(self._results.values())
        return self._results, len(chosen)

    # --- a round ---

    def _run_round(self, number: int) -> None:
        self._read_holdings()
        if not self._open:
            return
        snapshot = self._next_snapshot()
        try:
            chosen, cut_short = self._choose(snapshot, self._allowance)
        except NoTreeError:
            if not self._finish_held(self._open):
                self._refuse(self._open, NoRoom(reason=_NO_PEER))
            return
        missing = self._open.keys() - {place.request.consumer for place in chosen}
        if missing and self._call.all_or_nothing:
            self._finish_unplaced(self._open, missing, cut_short, snapshot)
        # With several consumers, the first round skips locked providers and meanwhile places other consumers.
        elif self._claim_all(
            [place for place in chosen if not place.request.dry_run],
            skip_locked=number == 1 and len(chosen) > 1 and not self._together,
        ):
            for place in chosen:
                if place.request.dry_run:
                    self._finish(
                        ClaimResult(place.request.consumer, RequestOutcome.FOUND, place.without_write_results())
                    )
            if missing:
                self._finish_unplaced(missing, missing, cut_short, snapshot)

    def _finish_unplaced(
        self, concerned: Collection[str], missing: Collection[str], cut_short: Collection[str], searched: Snapshot
    ) -> None:
        """Refuse requests without a place, unless another round may find one.

        If the holdings of some concerned consumers decide their requests, only these are finished.  Resources held
        at the time of the snapshot are not free in it: once they are released, another round may use them.  While
        expired leases remain to be released, each round finds more free capacity.  No further round runs if the index
        has not changed since the search.
        """
        if self._finish_held(concerned):
            return
        current = self._shared.index.current()
        if self._shared.index.has_leases_left:
            return
        # A search that was cut short is not repeated, because all rounds share one allowance.
        if current is searched or self._without_holding.issuperset(set(missing).difference(cut_short)):
            self._refuse_unplaced(missing, cut_short, current)
        self._without_holding.update(missing)

    def _next_snapshot(self) -> Snapshot:
        """Return a snapshot that is no older than the call and the holdings it has read.

        In a dry run, it includes the usage added and released so far.
        """
        initial, self._snapshot = self._snapshot, None
        current = self._shared.index.current() if initial is None or self._own or self._conditions.named else initial
        return current if self._uncommitted is None else self._uncommitted.applied_to(current)

    def _read_holdings(self) -> None:
        """Read the holdings of moved, dry-run and named consumers, and finish the requests that they decide."""
        consumers = [request.consumer for request in self._open.values() if not request.keep or request.dry_run]
        self._own = self._holdings(consumers) if consumers else {}
        for consumer in consumers:
            if consumer in self._open:
                self._finish_if_decided(self._open[consumer], self._own.get(consumer))
        if self._conditions.named:
            self._database.read(self._conditions.read)

    @signals.timed("pick")
    def _choose(self, snapshot: Snapshot, allowance: Allowance) -> tuple[list[ChosenPlace], set[str]]:
        """Return the places found, and the consumers whose search was cut short.

        Raises:
            NoTreeError: No tree meets the conditions of the call.
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
                    exclusive=request.consumer in listed,
                    dry_run=request.dry_run,
                )
                for request in requests
            ]
        )
        chosen = [
            ChosenPlace.from_pick(request, pick, snapshot)
            for request, pick in zip(requests, picks, strict=True)
            if pick is not None
        ]
        return chosen, {requests[position].consumer for position in picker.cut_short}

    def _claim_all(self, chosen: Sequence[ChosenPlace], *, skip_locked: bool) -> bool:
        """Claim the places; return whether all were claimed and no consumer released resources."""
        size = len(chosen) if self._together else BATCH
        complete = True
        for start in range(0, len(chosen), size or 1):
            batch = [place for place in chosen[start : start + size] if place.request.consumer in self._open]
            outcomes = self._claim(batch, skip_locked=skip_locked) if batch else []
            for place, outcome in zip(batch, outcomes, strict=True):
                if isinstance(outcome, ClaimResult):
                    self._finish_placed(place, outcome)
                    # A moved consumer releases resources, which may fit a request without a place.
                    complete = complete and outcome.outcome is not RequestOutcome.MOVED
                    continue
                complete = False
                if not isinstance(outcome, (errors.ConsumerGenerationConflict, errors.AllocationsChanged)):
                    self._conditions.note_failed(place)
            if errors.ConsumerGenerationConflict in map(type, outcomes):
                # In a repeated call, other consumers also hold their places, even if their search found none.  Finish
                # all at once: otherwise each round would finish only the consumers for which it finds places.
                self._finish_held(self._open)
        return complete

    def _claim(self, batch: Sequence[ChosenPlace], *, unchanged: bool = False, skip_locked: bool) -> list[Written]:
        relied_on = dict(self._conditions.relied_on)  # a copy: a dry run repeats the write later, after ``note_taken``
        return write(
            *(self._database, self._call, batch, relied_on),
            together=self._together,
            unchanged=unchanged,
            skip_locked=skip_locked,
            attempts=self._shared.conf.placement.allocation_conflict_retry_count,
        )

    def _finish_placed(self, place: ChosenPlace, result: ClaimResult) -> None:
        self._finish(result)
        self._conditions.note_taken(place)
        if self._uncommitted is not None:
            self._uncommitted.note(place, self._own.get(place.request.consumer))

    # --- holdings ---

    def _finish_held(self, consumers: Collection[str]) -> bool:
        """Finish the requests that the consumers' holdings decide; return whether any was finished."""
        holdings = self._holdings(consumers)
        before = len(self._open)
        for consumer in list(consumers):
            if consumer in self._open:
                self._finish_if_decided(self._open[consumer], holdings.get(consumer))
        return len(self._open) < before

    def _finish_if_decided(self, request: ClaimRequest, holding: Holding | None) -> None:
        """Finish the request if its consumer's holding decides it."""
        generation = None if holding is None else holding.generation
        if holding is not None and holding.content == request.content:
            self._finish(ClaimResult(request.consumer, RequestOutcome.HELD, Place.of_holding(holding)))
        elif request.generation == generation:
            return
        elif request.generation is None:
            self._refuse([request.consumer], HeldOtherwise(consumer=request.consumer))
        else:
            expected = "null" if generation is None else generation
            conflict = errors.ConsumerGenerationConflict(expected=expected, given=request.generation)
            self._refuse([request.consumer], conflict)

    def _holdings(self, consumers: Collection[str]) -> Mapping[str, Holding]:
        return self._database.read(lambda db: held_claims(db, consumers))

    # --- results ---

    def _finish(self, result: ClaimResult) -> None:
        self._results[result.consumer] = result
        del self._open[result.consumer]

    def _refuse(self, consumers: Iterable[str], failure: errors.Failure) -> None:
        for consumer in list(consumers):
            self._finish(refused_result(consumer, failure))
        if self._call.all_or_nothing:
            # Include consumers that hold a place from an earlier call, so that the order of requests does not matter.
            holders = [result.consumer for result in self._results.values() if result.outcome is RequestOutcome.HELD]
            self._results.update(
                (consumer, refused_result(consumer, NothingPlaced())) for consumer in [*self._open, *holders]
            )
            self._open.clear()

    def _refuse_unplaced(self, consumers: Collection[str], cut_short: Collection[str], snapshot: Snapshot) -> None:
        """Refuse the requests for lack of capacity, and explain the first one of each query.

        Args:
            cut_short: Consumers whose search ran out of budget, so a place may exist.
            snapshot: The current snapshot.
        """
        reasons: dict[str, str] = {}
        if undecided := len(set(cut_short).intersection(consumers)):
            LOG.warning("The search for places was cut short: %d requests were refused, but may fit.", undecided)
        for request in [request for request in self._open.values() if request.consumer in consumers]:
            if request.consumer in cut_short:
                self._finish(refused_result(request.consumer, Undecided()))
                continue
            reason = None
            if request.query.canonical not in reasons and len(reasons) < MAX_EXPLAINED:
                reason = self._shared.reasons.find(request, snapshot, self._settings, self._allowance)
                if reason is not None:
                    reasons[request.query.canonical] = _BESIDE_OTHERS if reason.found else reason.clause
            text = reasons.get(request.query.canonical, _UNEXPLAINED)
            self._finish(refused_result(request.consumer, NoRoom(reason=text), reason))
        if self._call.all_or_nothing:
            self._refuse(list(self._open), NothingPlaced())


def _publish(results: Iterable[ClaimResult]) -> None:
    outcomes = Counter(type(result.failure).__name__ if result.failure else result.outcome for result in results)
    for outcome, number in outcomes.items():
        signals.claims_answered(outcome, number)
