"""Calls of POST /v1/claims of several threads of one process, some of which wait while others are carried out."""

from __future__ import annotations

import contextlib
import threading
import time
from collections import Counter

import sqlalchemy as sa

from placement import signals
from placement.db import retry
from placement.db.database import Database
from placement.http.environ import SEARCH
from placement.index.live import LiveIndex
from placement.v1.handlers import claim
from tests.caller import Answer
from tests.clock import PATIENCE
from tests.db.faults import Plan, planted
from tests.db.in_process import placement
from tests.db.test_v1_claims import Cloud, request
from tests.load.soundness import flaws

#: What the first calls ask for, on a host of its own: it is changed by them, and the others are not to notice.
FIRST = "DISK_GB"


class ClaimCrowd(Cloud):
    """A service whose calls wait for each other as long as it takes.

    Attributes:
        joined: How many claims each transaction placed that could place several.
        searches: The number of searches.
        guessed: The number of calls that guessed their place.
        outcomes: How requests ended, and how many did so.
        logged: What calls added to their lines of the log, by the number of the call.
        retried: Why transactions were run again.
    """

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self.index = LiveIndex(database)
        self.call = placement(database, self.index)
        shared = claim._SHARED[self.index] = claim._Shared(database)
        guessing = shared.guessing
        # So that it is the threads that say which calls are carried out together, and not the time.
        guessing._combiner._longest_wait, guessing._combiner._gathering = PATIENCE, 0
        self.guesses, self._queue = guessing._guesses, guessing._combiner._queue
        self.forget()

    def forget(self) -> None:
        """Begin to count anew."""
        self.joined: list[int] = []
        self.searches = self.guessed = 0
        self.outcomes: Counter[str] = Counter()
        self.logged: dict[str, object] = {}
        self.retried: list[str] = []

    def read(self) -> None:
        """Bring the index up to date; guesses rely on it from here on."""
        assert self("GET", "/v1/overview").status == 200

    def together(self, *calls: dict, first: tuple[dict, ...] = ({},), plan: Plan | None = None) -> list[Answer]:
        """Return the answers to calls that all wait while others are carried out.

        Args:
            calls: Bodies of POST /v1/claims, in the order in which they come to wait.
            first: The options of the calls that they wait for.
            plan: Faults from there on.
        """
        self.guesses.note(won=True)  # guesses that were lost before do not count
        bodies = [{"requests": [request(f"resources={FIRST}:1")], **options} for options in first]
        answers: list[Answer | BaseException | None] = [None] * (len(bodies) + len(calls))
        waiting = threading.Event()

        def hold(*_statement: object) -> None:
            if threading.current_thread() in threads[: len(bodies)]:
                assert waiting.wait(PATIENCE)

        def run(number: int) -> None:
            try:
                answers[number] = self("POST", "/v1/claims", [*bodies, *calls][number])
            except BaseException as error:
                answers[number] = error

        threads = [
            threading.Thread(target=run, args=(number,), name=f"{number}", daemon=True)
            for number in range(len(answers))
        ]
        with self.watched(), planted(self.database, plan or Plan()):
            sa.event.listen(self.database.engine, "before_cursor_execute", hold)
            try:
                for number, thread in enumerate(threads):
                    thread.start()
                    self._until(lambda: len(self._queue._running) + len(self._queue._waiting) > number)  # noqa: B023
                assert len(self._queue._running) == len(bodies)
            finally:
                waiting.set()
                for thread in threads:
                    thread.join(PATIENCE)
                sa.event.remove(self.database.engine, "before_cursor_execute", hold)
        assert [answer.status for answer in answers[: len(bodies)]] == [200] * len(bodies)
        return answers[len(bodies) :]

    @staticmethod
    def _until(condition) -> None:
        until = time.monotonic() + PATIENCE
        while not condition():
            assert time.monotonic() < until
            time.sleep(0.0005)

    @contextlib.contextmanager
    def watched(self):
        """Count what is done in the block."""
        connected = {
            signals.written_jointly: self.joined.append,
            signals.timing: self._note_timing,
            signals.places_claimed: self._note_outcome,
            signals.answered: self._note_answer,
            signals.retried: self.retried.append,
        }
        for signal, listener in connected.items():
            signal.connect(listener)
        try:
            yield
        finally:
            for signal, listener in connected.items():
                signal.disconnect(listener)

    def _note_timing(self, name, _seconds):
        self.searches += name == "pick"
        self.guessed += name == "joint"

    def _note_outcome(self, outcome, number):
        self.outcomes[outcome] += number

    def _note_answer(self, environ, _status, _seconds):
        self.logged[threading.current_thread().name] = environ.get(SEARCH)


@contextlib.contextmanager
def waiting_calls(database, monkeypatch):
    """Provide a crowd that guesses from the index as it was when the test read it, with a host for the first calls."""
    monkeypatch.setattr(claim, "_GUESS_AGE", 3600)
    monkeypatch.setattr(retry, "_LONGEST_PAUSE", 0)
    crowd = ClaimCrowd(database)
    crowd.host("first", **{FIRST: 100})
    # The names of the owner have ids, and the process has a writer of the feed, from here on.
    assert crowd.claim(request(f"resources={FIRST}:1")).status == 200
    yield crowd
    assert flaws(database) == {}


def call(asked=None, **options):
    """Return the body of a call for one consumer."""
    return {"requests": [asked or request()], **options}


def results_of(answers):
    return [result for answer in answers for result in answer.body["results"]]


def outcomes_of(answers):
    return [result["outcome"] for result in results_of(answers)]
