"""Calls of POST /v1/claims by threads of one process, which wait for each other (tests/db/crowd.py)."""

from __future__ import annotations

import contextlib

from placement.db.writes import retry
from placement.extensions.v1.claims import shared
from tests.db import in_process
from tests.db.crowd import Crowd
from tests.db.extensions.v1.test_claims import Cloud, request
from tests.db.faults import Plan, planted
from tests.load.soundness import flaws

#: What the first call asks for, on a host of its own: it is changed by it, and the others are not to notice.
FIRST = "DISK_GB"


class ClaimCrowd(Cloud, Crowd):
    """Calls of POST /v1/claims that wait for each other as long as it takes."""

    def __init__(self, database):
        Cloud.__init__(self, database)
        service = in_process.service(database)
        self.call = in_process.caller_of(service)
        self.shared = service.shared(shared.Shared)
        Crowd.__init__(self, database, self.shared.queue)

    def read(self):
        """Bring the index up to date; optimistic claims rely on it from here on."""
        assert self("GET", "/v1/overview").status == 200

    def claim_each(self, *calls, plan=None):
        """Return the answers to calls that all wait while others are carried out.

        Args:
            calls: Bodies of POST /v1/claims, in the order in which they come to wait.
            plan: Faults from there on.
        """
        self.shared.backoff.note(won=True)  # earlier refused claims do not count
        bodies = [call(request(f"resources={FIRST}:1")), *calls]
        with planted(self.database, plan or Plan()):
            first, *answers = self.together(*(lambda body=body: self("POST", "/v1/claims", body) for body in bodies))
        assert first.status == 200
        return answers


@contextlib.contextmanager
def waiting_calls(database, monkeypatch):
    """Provide a crowd that claims from the snapshot that the test read, with a host for the first call."""
    monkeypatch.setattr(shared, "SNAPSHOT_AGE", 3600)
    monkeypatch.setattr(retry, "MAX_PAUSE", 0)
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
