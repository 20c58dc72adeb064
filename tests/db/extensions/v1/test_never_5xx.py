"""No response of the v1 API is 5xx or contains SQL, and requests that read or are refused change nothing."""

from __future__ import annotations

import hypothesis
import pytest

from tests import servers
from tests.db.test_never_5xx import Target, send_and_check
from tests.nonsense.extensions import v1
from tests.nonsense.odd_values import traps_for
from tests.nonsense.text_positions import Place
from tests.strategies import scale


@pytest.fixture
def target(synced_database):
    target = Target(synced_database)
    yield target
    target.close()


@pytest.mark.every_database
def test_no_request_breaks_the_service(backend, target):
    @hypothesis.settings(max_examples=scale(200 if backend.kind == servers.SQLite.kind else 100))
    @hypothesis.given(v1.sent())
    def anything(request):
        status, changed = send_and_check(target, request)
        hypothesis.event(f"{request.method} {request.path[:12]!r} {status}")
        if changed:
            target.close()

    anything()


def test_no_text_breaks_the_service_in_any_place(backend, target):
    """Each place gets some of the texts, and each text goes to many places; long runs send all of them."""
    step = 6 if backend.kind == servers.SQLite.kind else 12
    for number, place in enumerate(v1.places()):
        for trap in traps_for(number, step):
            send_and_check(target, place.fill(trap), compare_tables=place.method != "GET")


def test_no_number_is_too_large_for_a_parameter(target):
    """Database columns, the driver, the index and Python's parser of integers each have their own limits."""
    names = ("limit", "after", "until")
    numbered = [place for place in v1.places() if place.query.removesuffix("=TRAP").endswith(names)]
    assert len(numbered) > 8
    for place in (*numbered, Place("GET", "/v1/overview", "sort=free:VCPU&after=TRAP:TRAP")):
        for digits in (3, 9, 10, 18, 19, 20, 30, 31, 5000):
            send_and_check(target, place.fill("9" * digits), compare_tables=False)
