"""Calls that guess a place: those of several threads guess together, by one search and one transaction."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from placement import errors, signals
from placement.db.database import Database
from placement.db.writes.queue import Queue
from placement.extensions.v1.claims.engine import Claiming
from placement.extensions.v1.claims.request import ClaimCall
from placement.extensions.v1.claims.result import ClaimResult, RequestOutcome
from placement.index.snapshot import Snapshot

LOG = logging.getLogger(__name__)

#: The most calls that guess together.
_MOST = 100
#: The most calls in a row without a guess.
_MOST_SKIPPED = 15

#: Prepares a call to be carried out by the thread that calls it.
Prepare = Callable[[ClaimCall], Claiming]


@dataclass(frozen=True, slots=True)
class _Guess:
    call: ClaimCall
    prepare: Prepare
    #: Returns a snapshot of a moment ago.
    recent: Callable[[], Snapshot]


class GuessingCalls:
    """Carries out calls that may guess their place; shared by all threads of a process.

    Where the place of a call is lost or there is none, its own thread goes on with it.
    """

    def __init__(self, database: Database) -> None:
        self._guesses = Guesses()
        self._queue: Queue[_Guess, ClaimResult | None] = Queue(_MOST, database.wait_for)

    def carry_out(
        self,
        call: ClaimCall,
        prepare: Prepare,
        recent: Callable[[], Snapshot],
        prepare_alone: Callable[[], Claiming],
    ) -> list[ClaimResult]:
        """Return the results of a call for which ``may_guess`` is true; raises like ``Claiming.run``.

        Args:
            recent: Returns a snapshot of a moment ago.
            prepare_alone: Prepares the call as it is read now, for where the guess is lost.
        """
        result = self._guess(_Guess(call, prepare, recent)) if self._guesses.is_due() else None
        if result is None:
            [result] = prepare_alone().run()
            if result.outcome is RequestOutcome.CLAIMED:
                signals.written_jointly(1)
        return [result]

    @signals.timed("joint")
    def _guess(self, guess: _Guess) -> ClaimResult | None:
        [request] = guess.call.requests
        alike = guess.call.strategy, guess.call.expires_in, guess.call.sets_end
        with self._queue.turn(guess, distinct=[request.consumer], kind=alike) as turn:
            if turn.items:
                turn.end(self._guess_together(turn.items))
        return turn.result

    def _guess_together(self, guesses: Sequence[_Guess]) -> Sequence[ClaimResult | None]:
        """Return the results of the calls of a batch that have got their places, and None for the others.

        Raises:
            OutcomeUnknown: The connection was lost during COMMIT.
        """
        leader, calls = guesses[0], [guess.call for guess in guesses]
        together = replace(leader.call, requests=[request for call in calls for request in call.requests])
        try:
            placed, found = leader.prepare(together).guess(leader.recent())
        except errors.OutcomeUnknown:
            raise
        except Exception as error:
            # The cause may concern one of them only, and nothing was written.
            LOG.debug("%d calls are carried out separately: %s", len(calls), error)
            if len(calls) > 1:
                signals.retried("joint")
            return [None] * len(calls)
        if found:
            self._guesses.note(2 * len(placed) >= found)
        if placed:
            signals.written_jointly(len(placed))
        if len(placed) < found and len(calls) > 1:
            signals.retried("joint")
        return [placed.get(call.requests[0].consumer) for call in calls]


class Guesses:
    """Skips guesses where the last ones were lost: after each one in a row about twice as many calls.

    Shared by all threads of a process; a count that is lost between two of them does no harm.
    """

    def __init__(self) -> None:
        self._skipped_next = self._left = 0

    def is_due(self) -> bool:
        """Return whether to guess this time."""
        if self._left > 0:
            self._left -= 1
            return False
        return True

    def note(self, won: bool) -> None:
        """Take into account whether the guessed place was there."""
        self._skipped_next = 0 if won else min(2 * self._skipped_next + 1, _MOST_SKIPPED)
        self._left = self._skipped_next
