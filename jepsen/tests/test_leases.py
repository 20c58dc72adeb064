"""Check ``leases``: leases that expire on time by the database's clock, and leases that do not; runs begin at noon."""

from __future__ import annotations

import datetime

import pytest

from jepsen.checker.leases import leases
from jepsen.checker.refusals import refusals
from jepsen.history import Event
from jepsen.tests.handwritten_histories import call, error, loss, violations

PLACE, ONE, TWO = (f"e{number}000000-0000-4000-8000-000000000001" for number in range(3))
SECOND = 10**9
EARLY, LATE, AFTER_EXPIRY = (
    "no lease expires early",
    "leases expire on time",
    "no extension after expiry",
)


def timestamp(seconds):
    noon = datetime.datetime(2026, 11, 22, 12, tzinfo=datetime.UTC)
    return (noon + datetime.timedelta(seconds=seconds)).isoformat(timespec="microseconds").replace("+00:00", "Z")


def short_call(began, *arguments, **more):
    """Return an operation that takes a hundredth of a second."""
    return call(int(began * SECOND), int((began + 0.01) * SECOND), *arguments, **more)


def holding(consumer, ends):
    return {
        "consumer": consumer,
        "allocations": {PLACE: {"name": "h", "resources": {"VCPU": 2}, "generation": 2}},
        "project_id": "p",
        "user_id": "u",
        "consumer_type": "T",
        "consumer_generation": 1,
        "expires_at": None if ends is None else timestamp(ends),
    }


RELEASED = short_call(2, "DELETE", f"/allocations/{ONE}", status=204)
EMPTY, NOTHING = ("GET", f"/allocations/{ONE}"), {"allocations": {}}


def claim(began, length, consumer=ONE, *, outcome="claimed"):
    ends = None if length is None else began + 0.005 + length
    request = {
        "consumer": consumer,
        "project_id": "p",
        "user_id": "u",
        "consumer_type": "T",
        "query": "resources=VCPU:2",
    }
    body = {"requests": [request], "expires_in": length}
    refusal = {"consumer": consumer, "outcome": outcome, "error": {"code": "placement.v1.no_room", "detail": "..."}}
    result = {**holding(consumer, ends), "outcome": outcome} if outcome == "claimed" else refusal
    return short_call(began, "POST", "/v1/claims", body, reply={"results": [result], "claimed": 1})


def extend(began, length):
    body = {"expires_in": length}
    return short_call(began, "POST", f"/v1/claims/{ONE}/extend", body, reply=holding(ONE, began + 0.005 + length))


def late_extension(began, ended, at, length):
    """Return an extension that takes effect at a time between its beginning and its end."""
    reply = holding(ONE, at + length)
    path, body = f"/v1/claims/{ONE}/extend", {"expires_in": length}
    return call(int(began * SECOND), int(ended * SECOND), "POST", path, body, reply=reply)


def refused_extension(began):
    path, reply = f"/v1/claims/{ONE}/extend", error("...", "placement.v1.nothing_held")
    return short_call(began, "POST", path, {"expires_in": 5}, status=404, reply=reply)


def shows_claim(began, ends):
    return short_call(began, "GET", f"/v1/claims/{ONE}", reply=holding(ONE, ends))


def shows_no_claim(began):
    return short_call(began, "GET", f"/v1/claims/{ONE}", status=404, reply=error("...", "placement.v1.nothing_held"))


def shows_no_allocations(began):
    return short_call(began, *EMPTY, reply=NOTHING)


def shows_allocations(began):
    return short_call(began, "GET", f"/allocations/{ONE}", reply={"allocations": holding(ONE, None)["allocations"]})


@pytest.mark.parametrize(
    "operations",
    [
        [claim(1, 3), shows_claim(2, 4.005), shows_allocations(2.5), shows_no_claim(4.1), shows_no_allocations(4.2)],
        # Placement's routes may show the claim until a sweep.
        [claim(1, 3), shows_allocations(5), shows_no_claim(6), shows_no_allocations(7)],
        [claim(1, 3), extend(2, 5), shows_claim(6, 7.005), shows_no_claim(7.1)],
        [claim(1, 3), shows_no_claim(5), claim(6, None), shows_claim(7, None), shows_allocations(8)],
        # Released before, and claimed again during the read.
        [
            claim(1, 3),
            RELEASED,
            claim(3.5, None),
            call(int(3.501 * SECOND), int(3.502 * SECOND), *EMPTY, reply=NOTHING),
        ],
        [claim(1, 3), RELEASED, shows_no_claim(3)],
        [
            claim(1, 3),
            call(2 * SECOND, None, "POST", f"/v1/claims/{ONE}/extend", {"expires_in": 9}),
            shows_claim(8, 11),
            shows_no_claim(9),
        ],
        # A timely extension is committed late; meanwhile the lease had expired.
        [claim(1, 3), late_extension(3.9, 4.3, 4, 5), shows_no_claim(4.1), shows_claim(6, 9)],
    ],
)
def test_leases_that_expire_on_time_violate_nothing(operations):
    assert not violations(leases, *operations)


@pytest.mark.parametrize(
    ("invariant", "operations"),
    [
        (EARLY, [claim(1, 3), shows_no_claim(2)]),
        (EARLY, [claim(1, 3), shows_no_allocations(2)]),
        (EARLY, [claim(1, 3), shows_no_claim(3.9)]),
        (EARLY, [claim(1, 3), extend(2, 5), shows_no_claim(4.5)]),
        (EARLY, [claim(1, 3), late_extension(2, 4.3, 2.1, 5), shows_no_claim(2.2)]),
        (EARLY, [claim(1, 3), late_extension(3.9, 4.3, 4, 5), shows_no_claim(4.4)]),
        # Another extension waits for the first one, as does a sweep, until which Placement's routes show the claim.
        (EARLY, [claim(1, 3), late_extension(3.9, 4.3, 4, 5), refused_extension(4.1)]),
        (EARLY, [claim(1, 3), late_extension(3.9, 4.3, 4, 5), shows_no_allocations(4.1)]),
        (EARLY, [claim(1, 3), shows_no_claim(5), claim(6, None), shows_no_allocations(7)]),
        (LATE, [claim(1, 3), shows_claim(4.5, 4.005)]),
        (AFTER_EXPIRY, [claim(1, 3), extend(4.5, 9)]),
    ],
)
def test_leases_that_expire_at_another_time_are_violations(invariant, operations):
    assert violations(leases, *operations) == {invariant}


def test_leases_may_expire_again_after_a_loss():
    assert not violations(leases, claim(1, 3), extend(2, 5), shows_no_claim(4.5), events=[loss(3 * SECOND, 3 * SECOND)])
    body = {**holding(ONE, None), "consumer_generation": 1}
    write = short_call(3.5, "PUT", f"/allocations/{ONE}", body, status=204)
    assert not violations(
        leases, claim(1, 5), extend(2, 9), write, shows_no_claim(6.5), events=[loss(3 * SECOND, 3 * SECOND)]
    )
    assert violations(leases, claim(1, 5), extend(2, 9), write, shows_no_claim(6.5)) == {EARLY}


def test_a_moved_clock_may_expire_a_lease_at_any_time():
    jump = [Event("the database's clock is set", 2 * SECOND, 3 * SECOND)]
    assert not violations(leases, claim(1, 3), shows_claim(4.5, 4.005), events=jump)
    assert not violations(leases, claim(1, 30), shows_no_claim(2.5), events=jump)
    assert not violations(leases, claim(2.5, 30), shows_no_claim(2.6), events=jump)
    assert violations(leases, claim(1, 30), shows_no_claim(1.5), events=jump) == {EARLY}
    assert violations(leases, claim(4, 30), shows_no_claim(5), events=jump) == {EARLY}


def test_expired_resources_are_free_at_once():
    body = {"resource_provider_generation": 0, "inventories": {"VCPU": {"total": 3}}}
    stock = short_call(
        0, "PUT", f"/resource_providers/{PLACE}/inventories", body, reply={"resource_provider_generation": 1}
    )
    explained = "refusals for capacity are explained"
    assert not violations(refusals, stock, claim(1, 3), claim(3.5, None, TWO, outcome="refused"))
    assert violations(refusals, stock, claim(1, 3), claim(4.5, None, TWO, outcome="refused")) == {explained}
    assert not violations(refusals, stock, claim(1, 3), extend(2, 5), claim(4.5, None, TWO, outcome="refused"))
    # Another consumer does not get the resources earlier.
    assert not violations(refusals, stock, claim(1, 3), claim(4.5, None, TWO))
    assert violations(refusals, stock, claim(1, 3), claim(1.5, None, TWO)) == {"capacity is never exceeded"}


def test_a_lost_lease_does_not_end_the_restored_claim():
    """A claim without an expiry was released, and the release and the lease after it are lost."""
    operations = [claim(1, None), short_call(2, "DELETE", f"/allocations/{ONE}", status=204), claim(2.5, 2)]
    assert not violations(leases, *operations, extend(6, 3), events=[loss(3 * SECOND, 3 * SECOND)])
    assert violations(leases, *operations, extend(6, 3)) == {AFTER_EXPIRY}
