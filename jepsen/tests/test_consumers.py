"""Check ``consumers``: each rule is violated by a handwritten history, and similar correct histories violate none."""

from __future__ import annotations

import random
import uuid
from dataclasses import replace

import pytest

from jepsen.checker.consumers import by_consumer, consumers
from jepsen.effect_types import NO_TYPE
from jepsen.history import Event, Operation
from jepsen.tests.handwritten_histories import call, error, history, loss, violations
from jepsen.tests.test_calls import OWNER, RecordingClient, claim_body, request

C, D = "c0000000-0000-4000-8000-000000000001", "c0000000-0000-4000-8000-000000000002"
P, Q = "b0000000-0000-4000-8000-000000000001", "b0000000-0000-4000-8000-000000000002"
PATH, CLAIM = f"/allocations/{C}", f"/v1/claims/{C}"
SECOND = 1_000_000_000


def put(began, ended, amount, generation=None, *, minor=None, status=204, reply=None, **owner):
    body = claim_body(P, amount, generation, **owner)
    return call(began, ended, "PUT", PATH, body, minor=minor, status=status, reply=reply)


def put_unguarded(began, ended, amount):
    body = {"allocations": {P: {"resources": {"VCPU": amount}}}, "project_id": "red", "user_id": "ann"}
    return call(began, ended, "PUT", PATH, body, minor=27, status=204)


def get(began, ended, amount, generation=1, **owner):
    reply = {"allocations": {}}
    if amount:
        allocations = {P: {"resources": {"VCPU": amount}, "generation": 1}}
        reply = {"allocations": allocations, "consumer_generation": generation, **OWNER, **owner}
    return call(began, ended, "GET", PATH, reply=reply)


def conflict(began, ended, actual, requested):
    detail = f"consumer generation conflict - expected {actual} but got {requested}"
    reply = error(detail, "placement.concurrent_update")
    requested = None if requested == "None" else int(requested)
    return put(began, ended, 9, requested, status=409, reply=reply)


def delete(began, ended, status=204):
    return call(began, ended, "DELETE", PATH, status=status, reply=None if status == 204 else error("none"))


def is_wrong(*operations, **more):
    invariants = violations(consumers, *operations, **more)
    assert invariants <= {"consumers: linearizable"}
    return bool(invariants)


FIRST = put(0, 10, 1)

WRONG = {
    "a stale read": [FIRST, put(20, 30, 2, 1), get(40, 50, 1)],
    "a read of nothing": [FIRST, get(40, 50, 0)],
    "a read of an unwritten value": [FIRST, get(40, 50, 3)],
    "another owner": [FIRST, get(40, 50, 1, project_id="blue")],
    "another type": [FIRST, get(40, 50, 1, consumer_type="MIGRATION")],
    "another generation": [FIRST, get(40, 50, 1, 2)],
    "a lost update": [FIRST, put(20, 30, 2, 1), put(25, 35, 3, 1)],
    "two creations": [FIRST, put(5, 15, 2)],
    "a write with the wrong generation": [FIRST, put(20, 30, 2, 5)],
    "a read that goes back": [FIRST, put(20, 90, 2, 1), get(30, 40, 2, 2), get(50, 60, 1)],
    "a conflict with the actual generation": [FIRST, conflict(20, 30, 1, "1")],
    "a conflict of an absent consumer": [conflict(20, 30, "null", "None")],
    "a conflict with a wrong actual generation": [FIRST, conflict(20, 30, 3, "None")],
    "a conflict that states absence of a present consumer": [FIRST, conflict(20, 30, "null", "7")],
    "nothing to delete": [FIRST, delete(20, 30, 404)],
    "deleted twice": [FIRST, delete(20, 30), delete(40, 50)],
    "present after its deletion": [FIRST, delete(20, 30), get(40, 50, 1)],
    "an older write without effect": [FIRST, put_unguarded(20, 30, 2), get(40, 50, 1)],
    "an older write that raises nothing": [FIRST, put_unguarded(20, 30, 2), get(40, 50, 2, 1)],
    "an open write twice": [FIRST, put(20, None, 2, 1), get(40, 50, 2, 2), put_unguarded(60, 70, 1), get(80, 90, 2, 4)],
    "an open write that is undone": [FIRST, put(20, None, 2, 1), get(40, 50, 2, 2), get(60, 70, 1)],
}
RIGHT = {
    "a read during a write": [FIRST, put(20, 90, 2, 1), get(30, 40, 1), get(50, 60, 2, 2)],
    "an open write that takes effect late": [FIRST, put(20, None, 2, 1), get(40, 50, 1), get(60, 70, 2, 2)],
    "an open write that takes no effect": [FIRST, put(20, None, 2, 1), get(40, 50, 1), put(60, 70, 3, 1)],
    "an open deletion": [FIRST, delete(20, None), get(40, 50, 1), get(60, 70, 0)],
    "a conflict during a write": [FIRST, put(20, 90, 2, 1), conflict(30, 40, 2, "1")],
    "a conflict that states absence": [FIRST, delete(20, 90), conflict(30, 40, "null", "1")],
    "older writes in either order": [
        put_unguarded(0, 90, 1),
        put_unguarded(10, 80, 2),
        get(100, 110, 1, 2, consumer_type=NO_TYPE),
    ],
    "a new creation": [FIRST, delete(20, 30), delete(40, 50, 404), put(60, 70, 2), get(80, 90, 2)],
    "emptied": [FIRST, put(20, 30, 0, 1), get(40, 50, 0), put(60, 70, 1)],
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_histories_are_violations(name):
    assert is_wrong(*WRONG[name])


@pytest.mark.parametrize("name", RIGHT)
def test_correct_histories_violate_nothing(name):
    assert not is_wrong(*RIGHT[name])


def test_an_older_write_keeps_the_type_but_creates_consumers_without_a_type():
    assert not is_wrong(FIRST, put_unguarded(20, 30, 2), get(40, 50, 2, 2))
    assert is_wrong(FIRST, put_unguarded(20, 30, 2), get(40, 50, 2, 2, consumer_type=NO_TYPE))
    assert not is_wrong(put_unguarded(20, 30, 2), get(40, 50, 2, consumer_type=NO_TYPE))
    assert is_wrong(put_unguarded(20, 30, 2), get(40, 50, 2))


def test_a_violation_names_the_consumer_and_the_operations():
    [violation] = consumers(history(*WRONG["a stale read"]))
    assert violation.operations == [0, 1, 2]
    assert C in violation.sentence


def test_each_consumer_is_judged_by_itself():
    claims_of_both = {C: claim_body(P), D: claim_body(P, 2)}
    write = call(0, 10, "POST", "/allocations", claims_of_both, status=204)
    assert not is_wrong(write, get(20, 30, 1))
    assert is_wrong(write, get(20, 30, 2))


# --- v1 API ----------------------------------------------------------------------------------------------------------


def result(amount, outcome="claimed", generation=1, expiry=None):
    allocations = {P: {"name": "p", "resources": {"VCPU": amount}, "generation": 1}} if amount else {}
    return {
        "consumer": C,
        "outcome": outcome,
        "allocations": allocations,
        "consumer_generation": generation,
        "expires_at": expiry,
    }


def claim(began, ended, outcome=None, length=None, **fields):
    body = {"requests": [request(C, 1, **fields)], **({} if length is None else {"expires_in": length})}
    reply = {"results": [outcome]}
    return call(began, ended, "POST", "/v1/claims", body, status=200, reply=reply)


def show(began, ended, amount, generation=1, expiry=None):
    if not amount:
        return call(began, ended, "GET", CLAIM, status=404, reply=error("nothing", "placement.v1.nothing_held"))
    return call(began, ended, "GET", CLAIM, reply={**result(amount, "", generation, expiry), **OWNER})


def refusal(code, detail=""):
    return {"consumer": C, "outcome": "refused", "error": {"code": code, "detail": detail}}


def test_places_chosen_by_the_service():
    claimed = claim(0, 10, result(1))
    assert not is_wrong(claimed, show(20, 30, 1), get(40, 50, 1))
    assert is_wrong(claimed, get(40, 50, 2))
    assert is_wrong(claim(0, 10, result(1, generation=2)))
    repeated = claim(20, 30, result(1, "held"))
    assert not is_wrong(claimed, repeated)
    assert is_wrong(claimed, delete(12, 14), repeated)
    move = claim(20, 30, result(2, "moved", 2), keep=False, consumer_generation=1)
    assert not is_wrong(claimed, move, show(40, 50, 2, 2))
    assert is_wrong(claimed, move, show(40, 50, 1))
    assert is_wrong(claimed, put(12, 14, 1, 1), move)
    refused_claim = claim(20, 30, refusal("placement.v1.held_otherwise"), query="resources=VCPU:2")
    assert not is_wrong(claimed, refused_claim)
    assert is_wrong(claimed, delete(12, 14), refused_claim)


HELD_OTHERWISE, NO_ROOM = refusal("placement.v1.held_otherwise"), refusal("placement.v1.no_room")
MOVE = {"keep": False, "consumer_generation": 1}


@pytest.mark.parametrize(
    ("is_equal", "fields"),
    [
        (True, {}),
        (True, {"query": {"groups": {"": {"resources": {"VCPU": 1}}}}}),
        (True, {"query": "resources=VCPU%3A1", "count": 1, "keep": True}),
        (False, {"query": "resources=VCPU:2"}),
        (False, {"query": f"resources=VCPU:1&in_tree={P}"}),
        (False, {"query": "resources_A=VCPU:1"}),
        (False, {"count": 2}),
        (False, {"user_id": "bob"}),
        (False, {"consumer_type": "MIGRATION"}),
        (False, {"keep": False, "consumer_generation": None}),
    ],
)
def test_only_an_equal_request_is_answered_with_the_holding(is_equal, fields):
    claimed = claim(0, 10, result(1))
    assert is_wrong(claimed, claim(20, 30, result(1, "held"), **fields)) == (not is_equal)
    assert is_wrong(claimed, claim(20, 30, HELD_OTHERWISE, **fields)) == is_equal
    open_claim = claim(0, None)
    assert is_wrong(open_claim, claim(20, 30, result(1, "held"), **fields)) == (not is_equal)


def test_an_unknown_query_may_equal_any_other():
    claimed = claim(0, 10, result(1), query="resources=VCPU:1&required=CUSTOM_X")
    for repeated in (result(1, "held"), HELD_OTHERWISE):
        assert not is_wrong(claimed, claim(20, 30, repeated))
        assert not is_wrong(claimed, claim(20, 30, repeated, query="resources=VCPU:1&required=CUSTOM_X"))


def test_a_consumer_keeps_its_request_until_it_is_deleted():
    claimed, repeated = claim(0, 10, result(1)), claim(60, 70, result(3, "held", 2))
    # Another client changes the holding, but not the placing request.
    assert not is_wrong(claimed, put(20, 30, 3, 1), repeated)
    assert is_wrong(claimed, put(20, 30, 3, 1), claim(60, 70, HELD_OTHERWISE))
    # A client of Placement creates it again.
    ended = [claimed, delete(12, 14), put(20, 30, 3)]
    assert not is_wrong(*ended, claim(60, 70, HELD_OTHERWISE))
    assert is_wrong(*ended, claim(60, 70, result(3, "held")))


def test_a_repeated_move_is_answered_with_the_holding():
    claimed, move = claim(0, 10, result(1)), claim(20, 30, result(1, "moved", 2), **MOVE)
    late = refusal("placement.concurrent_update", "consumer generation conflict - expected 2 but got 1")
    assert not is_wrong(claimed, move, claim(40, 50, result(1, "held", 2), **MOVE))
    assert is_wrong(claimed, move, claim(40, 50, late, **MOVE))
    assert not is_wrong(claimed, move, claim(40, 50, late, query="resources=VCPU:2", **MOVE))
    # The first request is no longer the placing one.
    assert not is_wrong(claimed, move, claim(40, 50, HELD_OTHERWISE))
    assert is_wrong(claimed, move, claim(40, 50, result(1, "held", 2)))


def test_a_moved_consumer_has_one_place_at_a_time():
    claimed, move = claim(0, 10, result(1)), claim(20, 90, result(2, "moved", 2), **MOVE)
    assert not is_wrong(claimed, move, get(30, 40, 1), get(50, 60, 2, 2))
    assert is_wrong(claimed, move, get(30, 40, 0))
    assert is_wrong(claimed, move, get(30, 40, 3, 2))
    assert is_wrong(claimed, move, get(30, 40, 2, 2), get(50, 60, 1))


def test_a_refusal_for_capacity_confirms_the_expected_generation():
    claimed = claim(0, 10, result(1))
    assert not is_wrong(claimed, delete(20, 30), claim(40, 50, NO_ROOM))
    assert is_wrong(claimed, claim(40, 50, NO_ROOM))
    assert is_wrong(claimed, claim(40, 50, NO_ROOM, query="resources=VCPU:2"))
    assert not is_wrong(claimed, claim(40, 50, NO_ROOM, query="resources=VCPU:2", **MOVE))
    assert is_wrong(claimed, put(20, 30, 2, 1), claim(40, 50, NO_ROOM, **MOVE))
    assert is_wrong(claimed, delete(20, 30), claim(40, 50, NO_ROOM, **MOVE))
    assert not is_wrong(claimed, delete(20, 60), claim(40, 50, NO_ROOM))


def test_an_open_claim_takes_any_place_once():
    open_claim = claim(0, None)
    assert not is_wrong(open_claim, show(20, 30, 0), show(40, 50, 2), get(60, 70, 2))
    assert is_wrong(open_claim, show(40, 50, 2), get(60, 70, 3))
    assert is_wrong(open_claim, show(40, 50, 2), show(60, 70, 0))


def test_bulk_releases():
    release = call(20, 30, "DELETE", f"/v1/claims?consumer={C}", reply={"released": [C], "missing": []})
    assert not is_wrong(FIRST, release, get(40, 50, 0))
    assert is_wrong(FIRST, release, get(40, 50, 1))
    missing = call(20, 30, "DELETE", f"/v1/claims?consumer={C}", reply={"released": [], "missing": [C]})
    assert is_wrong(FIRST, missing)
    open_release = call(20, None, "DELETE", "/v1/claims?project=red")
    assert not is_wrong(FIRST, open_release, get(40, 50, 1), get(60, 70, 0))
    assert not is_wrong(FIRST, open_release, get(40, 50, 1))


# --- leases ----------------------------------------------------------------------------------------------------------

ENDS, LATER = "2026-01-01T00:01:00", "2026-01-01T00:02:00"
LEASED = claim(0, 10, result(1, expiry=ENDS), length=60)
OVER = 59 * SECOND


def test_a_lease_expires_on_time_and_once():
    assert is_wrong(LEASED, get(20, 30, 0))
    assert is_wrong(LEASED, show(20, 30, 0))
    assert not is_wrong(LEASED, show(OVER, OVER + 1, 0))
    assert not is_wrong(LEASED, show(OVER, OVER + 1, 1, expiry=ENDS), show(OVER + 2, OVER + 3, 0))
    assert is_wrong(LEASED, show(OVER, OVER + 1, 0), show(OVER + 2, OVER + 3, 1, expiry=ENDS))


def test_a_move_without_an_expiry_keeps_the_old_one():
    def move(expiry, length=None):
        return claim(20, 30, result(2, "moved", 2, expiry), length, keep=False, consumer_generation=1)

    assert not is_wrong(LEASED, move(ENDS), show(40, 50, 2, 2, ENDS))
    assert is_wrong(LEASED, move(None))
    assert is_wrong(LEASED, move(LATER))
    assert is_wrong(claim(0, 10, result(1)), move(ENDS))
    assert not is_wrong(LEASED, move(LATER, length=120), show(40, 50, 2, 2, LATER))


def test_a_lease_may_expire_early_if_a_clock_is_moved():
    operations = [LEASED, show(100, 110, 0)]
    assert not is_wrong(*operations, events=[Event("database-clock", 50, 60)])
    assert is_wrong(*operations, events=[Event("database-clock", 120, 130)])
    assert is_wrong(
        show(0, 1, 0),
        *[replace(operation, began=operation.began + 20, ended=operation.ended + 20) for operation in operations],
        events=[Event("database-clock", 2, 10)],
    )
    assert is_wrong(*operations, events=[Event("kill-database", 50, 60)])


def test_a_lease_is_expired_only_while_the_clock_says_so():
    absence, presence = show(OVER + 10, OVER + 11, 0), show(OVER + 30, OVER + 31, 1, expiry=ENDS)
    assert is_wrong(LEASED, absence, presence)
    # The clock goes back at the beginning or at the end of the event.
    for jump in (Event("database-clock", OVER + 20, OVER + 40), Event("database-clock", OVER + 5, OVER + 20)):
        assert not is_wrong(LEASED, absence, presence, events=[jump])
    assert is_wrong(LEASED, absence, presence, events=[Event("database-clock", OVER + 40, OVER + 50)])
    assert is_wrong(LEASED, absence, presence, events=[Event("kill-database", OVER + 5, OVER + 20)])
    # Each service has its own clock.
    reads = [show(OVER + 40, OVER + 41, 0), show(OVER + 50, OVER + 51, 1, expiry=ENDS)]
    assert not is_wrong(LEASED, absence, presence, *reads, events=[Event("service-clock", OVER, OVER + 60)])
    # A consumer without a lease never expires.
    assert is_wrong(FIRST, show(20, 30, 0), events=[Event("service-clock", 15, 60)])


def test_a_lease_whose_extension_is_being_committed_may_be_shown_as_expired():
    reply = {**result(1, expiry=LATER), **OWNER}
    extended = call(OVER - 5, OVER + 5, "POST", f"{CLAIM}/extend", {"expires_in": 120}, reply=reply)
    later_read = show(OVER + 20, OVER + 21, 1, expiry=LATER)
    assert not is_wrong(LEASED, extended, show(OVER + 2, OVER + 3, 0), later_read)
    assert not is_wrong(LEASED, extended, show(OVER + 4, OVER + 9, 0), later_read)
    assert is_wrong(LEASED, extended, show(OVER + 6, OVER + 9, 0), later_read)
    # Before the old expiry the lease is active.
    early = call(20, 30, "POST", f"{CLAIM}/extend", {"expires_in": 120}, reply=reply)
    assert is_wrong(LEASED, early, show(22, 24, 0), show(40, 50, 1, expiry=LATER))


def test_a_lease_whose_move_is_being_committed_may_be_shown_as_expired():
    def move(began, ended):
        reply = result(2, "moved", 2, LATER)
        return claim(began, ended, reply, length=120, keep=False, consumer_generation=1)

    later_read = show(OVER + 20, OVER + 21, 2, 2, LATER)
    assert not is_wrong(LEASED, move(OVER - 5, OVER + 5), show(OVER + 4, OVER + 9, 0), later_read)
    assert is_wrong(LEASED, move(OVER - 5, OVER + 5), show(OVER + 6, OVER + 9, 0), later_read)
    # Before the old expiry the lease is active, and a move that keeps the expiry does not postpone it.
    assert is_wrong(LEASED, move(20, 30), show(22, 24, 0), show(40, 50, 2, 2, LATER))
    keeping_move = claim(OVER - 5, OVER + 5, result(2, "moved", 2, ENDS), keep=False, consumer_generation=1)
    assert is_wrong(LEASED, keeping_move, show(OVER + 2, OVER + 3, 0), show(OVER + 20, OVER + 21, 2, 2, ENDS))


def test_acknowledged_writes_survive_a_loss_if_the_event_keeps_them():
    writes, during = [FIRST, put(20, 30, 2, 1)], put(110, 115, 3, 2)
    for amount, generation, wrong in [(0, 1, True), (1, 1, True), (2, 2, False), (3, 3, False)]:
        read = get(200, 210, amount, generation)
        assert not is_wrong(*writes, during, read, events=[loss(100, 120)])
        assert is_wrong(*writes, during, read, events=[loss(100, 120, keeps_earlier=True)]) == wrong
    # Without a response it may not have taken effect.
    assert not is_wrong(FIRST, put(20, None, 2, 1), get(200, 210, 1), events=[loss(100, 120, keeps_earlier=True)])
    # An earlier loss may have left less.
    assert not is_wrong(*writes, get(200, 210, 1), events=[loss(40, 50), loss(100, 120, keeps_earlier=True)])
    assert not is_wrong(*writes, delete(40, 50), get(200, 210, 0), events=[loss(100, 120, keeps_earlier=True)])


def test_an_active_lease_may_be_back_after_a_loss():
    began, healed = 20 * SECOND, 30 * SECOND
    later = show(healed + 10, healed + 20, 1, expiry=ENDS)
    released = delete(began + 1, began + 2)
    extended = call(
        began + 1, began + 2, "POST", f"{CLAIM}/extend", {"expires_in": 120}, reply={**result(1, expiry=LATER), **OWNER}
    )
    for operation in (released, extended):
        assert not is_wrong(LEASED, operation, later, events=[loss(began, healed)])
        assert not is_wrong(LEASED, operation, later, show(OVER, OVER + 1, 0), events=[loss(began, healed)])
        assert is_wrong(LEASED, operation, later)


def test_an_expired_consumer_is_shown_until_it_is_released():
    absence = show(OVER, OVER + 1, 0)
    assert not is_wrong(LEASED, absence, get(OVER + 2, OVER + 3, 1), get(OVER + 4, OVER + 5, 0))
    assert is_wrong(LEASED, absence, get(OVER + 2, OVER + 3, 0), get(OVER + 4, OVER + 5, 1))


def test_an_expired_consumer_is_new_to_writes():
    absence = show(OVER, OVER + 1, 0)
    assert not is_wrong(LEASED, absence, put(OVER + 2, OVER + 3, 2), get(OVER + 4, OVER + 5, 2))
    assert is_wrong(LEASED, absence, put(OVER + 2, OVER + 3, 2, 1))
    assert is_wrong(LEASED, put(20, 30, 2))


def test_an_extended_lease_does_not_expire_at_its_original_time():
    reply = {**result(1, expiry=LATER), **OWNER}
    extended = call(20, 30, "POST", f"{CLAIM}/extend", {"expires_in": 120}, reply=reply)
    assert is_wrong(LEASED, extended, show(OVER, OVER + 1, 0))
    assert not is_wrong(LEASED, extended, show(2 * OVER + SECOND, 2 * OVER + 2 * SECOND, 0))
    assert not is_wrong(LEASED, extended, show(OVER, OVER + 1, 1, expiry=LATER))
    assert is_wrong(LEASED, extended, show(OVER, OVER + 1, 1, expiry=ENDS))
    open_extension = call(20, None, "POST", f"{CLAIM}/extend", {"expires_in": 120})
    assert not is_wrong(LEASED, open_extension, show(OVER, OVER + 1, 0))
    assert not is_wrong(LEASED, open_extension, show(OVER, OVER + 1, 1, expiry=LATER))
    late = call(OVER + 2, OVER + 3, "POST", f"{CLAIM}/extend", {"expires_in": 120}, reply=reply)
    assert is_wrong(LEASED, show(OVER, OVER + 1, 0), late)


# --- the real service ------------------------------------------------------------------------------------------------


def send_random_request(client, rng, hosts, names):
    """Send a random request about consumers."""
    consumer, host = rng.choice(names), rng.choice(hosts)
    generation = rng.choice([None, 1, 2, 3])
    kind = rng.randrange(7)
    if kind == 0:
        return client("PUT", f"/allocations/{consumer}", claim_body(host, rng.randrange(4), generation))
    if kind == 1:
        body = {"allocations": {host: {"resources": {"VCPU": 2}}}, "project_id": "red", "user_id": "ann"}
        return client("PUT", f"/allocations/{consumer}", body, minor=27)
    if kind == 2:
        return client("DELETE", f"/allocations/{consumer}")
    if kind == 3:
        bodies = {name: claim_body(host, rng.randrange(3), rng.choice([None, 1])) for name in rng.sample(names, 2)}
        return client("POST", "/allocations", bodies)
    if kind == 4:
        fields = rng.choice([{}, {"keep": False, "consumer_generation": generation}])
        return client("POST", "/v1/claims", {"requests": [request(consumer, rng.randint(1, 3), **fields)]})
    if kind == 5:
        return client("GET", rng.choice([f"/allocations/{consumer}", f"/v1/claims/{consumer}"]))
    return client("GET", f"/resource_providers/{host}")


def test_operations_of_the_real_service_violate_nothing(database):
    client, rng = RecordingClient(database), random.Random(7)
    hosts, names = [client.host(6) for _ in range(2)], [str(uuid.uuid4()) for _ in range(3)]
    for _ in range(250):
        send_random_request(client, rng, hosts, names)
    statuses = {operation.status for operation in client.operations}
    assert statuses >= {200, 204, 404, 409}
    assert consumers(history(*client.operations)) == []
    calls = by_consumer(client.operations)
    assert all(len(calls[name]) > 40 for name in names)


def test_a_history_without_one_of_its_writes_is_wrong(database):
    """Without one of its successful writes, no order explains the later reads."""
    client = RecordingClient(database)
    host, consumer = client.host(6), str(uuid.uuid4())
    for generation in (None, 1, 2):
        assert client("PUT", f"/allocations/{consumer}", claim_body(host, 1, generation)).succeeded
        client("GET", f"/allocations/{consumer}")
    writes = [
        operation
        for operation in client.operations
        if operation.path.startswith("/allocations") and operation.method == "PUT"
    ]
    for write in writes:
        others: list[Operation] = [operation for operation in client.operations if operation is not write]
        assert is_wrong(*others)
