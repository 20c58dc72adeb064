"""Concurrent calls of POST /v1/claims by threads of one process (tests/db/crowd.py)."""

from __future__ import annotations

import contextlib

from placement.db.writes import retry
from placement.extensions.v1.claims import shared
from tests.db import in_process
from tests.db.crowd import Crowd
from tests.db.extensions.v1.test_claims import Cloud, request
from tests.db.faults import Plan, plant
from tests.load.soundness import flaws

#: The resource class of the first call, on its own host, so that the change of the host does not affect other calls.
FIRST = "DISK_GB"


class ClaimCrowd(Cloud, Crowd):
    """Threads that send calls of POST /v1/claims, all of which wait while the first is carried out."""

    def __init__(self, database):
        Cloud.__init__(self, database)
        service = in_process.service(database)
        self.call = in_process.caller_of(service)
        self.shared = service.shared(shared.Shared)
        Crowd.__init__(self, database, self.shared.queue)

    def read(self):
        """Refresh the index, from which later optimistic claims choose places."""
        assert self("GET", "/v1/overview").status == 200

    def claim_each(self, *calls, plan=None):
        """Return the responses to calls that all wait while a first call is carried out.

        Args:
            calls: Bodies of POST /v1/claims, in the order in which they begin to wait.
            plan: Faults during all calls.
        """
        self.shared.backoff.note(placed=True)  # earlier refused claims do not count
        bodies = [call(request(f"resources={FIRST}:1")), *calls]
        with plant(self.database, plan or Plan()):
            first, *answers = self.together(*(lambda body=body: self("POST", "/v1/claims", body) for body in bodies))
        assert first.status == 200
        return answers


@contextlib.contextmanager
def waiting_calls(database, monkeypatch):
    """Provide a crowd that claims from the snapshot of its last ``read``, with a host for the first call."""
    monkeypatch.setattr(shared, "SNAPSHOT_AGE", 3600)
    monkeypatch.setattr(retry, "MAX_PAUSE", 0)
    crowd = ClaimCrowd(database)
    crowd.host("first", **{FIRST: 100})
    # This stores the names of the owner and registers the feed writer of the process.
    assert crowd.claim(request(f"resources={FIRST}:1")).status == 200
    yield crowd
    assert flaws(database) == {}


def call(entry=None, **options):
    """Return the body of a call for one consumer."""
    return {"requests": [entry or request()], **options}


def results_of(answers):
    return [result for answer in answers for result in answer.body["results"]]


def outcomes_of(answers):
    return [result["outcome"] for result in results_of(answers)]
