"""Calls of POST /v1/claims by threads of one process, which wait for each other (tests/db/crowd.py)."""

from __future__ import annotations

import contextlib

from placement.db.writes import retry
from placement.extensions.v1.handlers import claim
from placement.index.live import LiveIndex
from tests.clock import PATIENCE
from tests.db.crowd import Crowd, statuses
from tests.db.extensions.v1.test_claims import Cloud, request
from tests.db.faults import Plan, planted
from tests.db.in_process import placement
from tests.load.soundness import flaws

#: What the first calls ask for, on a host of its own: it is changed by them, and the others are not to notice.
FIRST = "DISK_GB"


class ClaimCrowd(Cloud, Crowd):
    """Calls of POST /v1/claims that wait for each other as long as it takes."""

    def __init__(self, database):
        Cloud.__init__(self, database)
        self.index = LiveIndex(database)
        self.call = placement(database, self.index)
        shared = claim._SHARED[self.index] = claim._Shared(database)
        combiner, self._guesses = shared.guessing._combiner, shared.guessing._guesses
        # So that it is the threads that say which calls are carried out together, and not the time.
        combiner._longest_wait, combiner._gathering = PATIENCE, 0
        Crowd.__init__(self, database, combiner)

    def read(self):
        """Bring the index up to date; guesses rely on it from here on."""
        assert self("GET", "/v1/overview").status == 200

    def claim_each(self, *calls, first=({},), plan=None):
        """Return the answers to calls that all wait while others are carried out.

        Args:
            calls: Bodies of POST /v1/claims, in the order in which they come to wait.
            first: The options of the calls that they wait for.
            plan: Faults from there on.
        """
        self._guesses.note(won=True)  # guesses that were lost before do not count
        bodies = [{"requests": [request(f"resources={FIRST}:1")], **options} for options in first]
        works = [lambda body=body: self("POST", "/v1/claims", body) for body in (*bodies, *calls)]
        with planted(self.database, plan or Plan()):
            answers = self.together(*works, first=len(first))
        assert statuses(answers[: len(first)]) == [200] * len(first)
        return answers[len(first) :]


@contextlib.contextmanager
def waiting_calls(database, monkeypatch):
    """Provide a crowd that guesses from the index as it was when the test read it, with a host for the first calls."""
    monkeypatch.setattr(claim, "GUESS_AGE", 3600)
    monkeypatch.setattr(retry, "LONGEST_PAUSE", 0)
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
