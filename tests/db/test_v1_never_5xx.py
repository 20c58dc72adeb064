"""No request to the API below /v1 is answered with 5xx or with SQL, and none that is not a dry run changes anything."""

from __future__ import annotations

import hypothesis
import pytest

from tests import servers
from tests.db.test_never_5xx import Target, holds
from tests.length import LONG
from tests.nonsense import v1
from tests.nonsense.things import TRAPS


@pytest.fixture
def target(synced_database):
    found = Target(synced_database)
    yield found
    found.close()


def test_no_request_breaks_the_service(backend, target):
    part = 4 if backend.kind == servers.SQLite.kind else 1

    @hypothesis.settings(max_examples=hypothesis.settings().max_examples * part)
    @hypothesis.given(v1.sent())
    def anything(request):
        status, changed = holds(target, request)
        hypothesis.event(f"{request.method} {request.path[:12]!r} {status}")
        assert not changed

    anything()


def test_no_text_breaks_the_place_where_it_is_sent(backend, target):
    """Each place gets a part of the texts, and each text goes to many places; long runs have all."""
    step = 4 if backend.kind == servers.SQLite.kind else 12
    for number, place in enumerate(v1.places()):
        for trap in TRAPS if LONG else TRAPS[number % step :: step]:
            holds(target, place.filled(trap), looking=False)
