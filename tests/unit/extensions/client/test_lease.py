"""The extension and the loss of leases, by a clock that the test advances (docs: client)."""

from __future__ import annotations

import dataclasses
import itertools
import threading

import pytest
from placement_client import ErrorReply, LeaseLost, NoReply, NothingHeld, lease, operations
from placement_client.operations import Operations
from placement_client.steps import Call, Pause

from tests.children import PATIENCE
from tests.clock import Clock
from tests.unit.extensions.client.test_operations import JOB, OWNER, performed, placing, reply, result, taking

HOUR = 3600


@pytest.fixture
def clock(monkeypatch):
    stopped = Clock(1000.0)
    for module in (lease, operations):
        monkeypatch.setattr(module, "time", stopped)
    return stopped


@pytest.fixture
def losses():
    return []


@pytest.fixture
def held(clock, losses):
    """Return a claimed lease of one hour."""
    made = lease.lease(Operations(60), JOB, "resources=VCPU:1", **OWNER, expires_in=HOUR, on_lost=losses.append)
    performed(made.begin(), [placed("claimed")], clock)
    return made


EXTENDED = reply(200, result(JOB, "held"))
GONE = reply(404, {"errors": [{"status": 404, "code": "placement.v1.nothing_held", "detail": "It is over."}]})
FORBIDDEN = reply(403, {"errors": [{"status": 403, "detail": "no"}]})


def placed(outcome):
    return placing(**{JOB: outcome})


def test_a_lease_is_extended_six_times_within_its_duration(held, clock, losses):
    _, steps = performed(held.renew(), [EXTENDED, taking(clock, 30, EXTENDED), GONE], clock)
    assert [step.seconds for step in steps if isinstance(step, Pause)] == [600, 600, 600]
    assert isinstance(losses[0].__cause__, NothingHeld)
    assert (held.lost, held.remaining) == (True, 0)
    with pytest.raises(LeaseLost, match="It is over"):
        held.check()


def test_the_expiry_counts_from_before_the_extension_was_sent(held, clock):
    assert held.remaining == HOUR
    renewal = held.renew()
    clock.sleep(next(renewal).seconds)
    renewal.send(None)
    sent = clock.now
    clock.now += 9
    renewal.send(dataclasses.replace(EXTENDED, sent=sent))
    assert held.remaining == HOUR - 9


@pytest.mark.parametrize("failure", [NoReply("away"), FORBIDDEN, RuntimeError("closed")], ids=["away", "403", "other"])
def test_a_failed_extension_is_repeated_until_the_expiry(held, clock, losses, failure):
    _, steps = performed(held.renew(), itertools.repeat(failure), clock)
    pauses = [step.seconds for step in steps if isinstance(step, Pause)]
    assert pauses[:3] == [600, 5, 5]
    assert clock.now == 1000 + HOUR
    assert [type(each) for each in losses] == [LeaseLost]
    assert isinstance(losses[0].__cause__, ErrorReply if failure is FORBIDDEN else type(failure))


def test_no_extension_waits_beyond_the_expiry(held, clock):
    calls = []

    def silent(call):
        calls.append((clock.now - 1000, call.timeout))
        clock.now += call.timeout
        return FORBIDDEN

    # The last attempt begins seven seconds before the end.
    performed(held.renew(), itertools.chain([taking(clock, 3, FORBIDDEN)], itertools.repeat(silent)), clock)
    assert {timeout for at, timeout in calls if at < HOUR - 10} == {10}
    assert all(at + timeout <= HOUR for at, timeout in calls)
    assert held.lost


def test_an_extension_after_failures_loses_nothing(held, clock, losses):
    answers = [NoReply("away"), FORBIDDEN, EXTENDED, GONE]
    _, steps = performed(held.renew(), answers, clock)
    assert [step.seconds for step in steps if isinstance(step, Pause)] == [600, 5, 5, 600]
    assert len(losses) == 1


def test_a_claim_of_an_earlier_attempt_is_extended_at_once(clock):
    """Its expiry may be near, because it counts from the first request."""
    made = lease.lease(Operations(60), JOB, "resources=VCPU:1", **OWNER, expires_in=HOUR)
    assert made.lost
    _, (claim, extension) = performed(made.begin(), [placed("held"), EXTENDED], clock)
    assert (claim.path, extension.path) == ("/v1/claims", f"/v1/claims/{JOB}/extend")
    assert made.remaining == HOUR


def test_a_claim_that_took_long_is_extended_soon(clock):
    made = lease.lease(Operations(60), JOB, "resources=VCPU:1", **OWNER, expires_in=60)
    performed(made.begin(), [taking(clock, 45, placed("claimed"))], clock)
    assert made.remaining == 15
    assert next(made.renew()).seconds == 0


def test_a_block_begins_with_an_unexpired_lease(clock):
    """The claim was repeated for longer than the lease, which may have expired."""
    made = lease.lease(Operations(60), JOB, "resources=VCPU:1", **OWNER, expires_in=2)
    late = taking(clock, 1.5, reply(503, {}))
    extensions = [NoReply("away"), taking(clock, 3, EXTENDED), taking(clock, 1, EXTENDED)]
    _, steps = performed(made.begin(), [late, late, placed("claimed"), *extensions], clock)
    assert made.remaining == 1
    assert [step.path for step in steps if isinstance(step, Call)][2:] == [
        "/v1/claims",
        *[f"/v1/claims/{JOB}/extend"] * 3,
    ]


def test_no_block_begins_with_a_lost_lease(clock):
    answers = [taking(clock, 3, placed("claimed")), GONE]
    made = lease.lease(Operations(60), JOB, "resources=VCPU:1", **OWNER, expires_in=2)
    with pytest.raises(NothingHeld):
        performed(made.begin(), answers, clock)
    made = lease.lease(Operations(60), JOB, "resources=VCPU:1", **OWNER, expires_in=2)
    answers = itertools.chain([placed("held")], itertools.repeat(taking(clock, 9, EXTENDED)))
    with pytest.raises(LeaseLost):
        performed(made.begin(), answers, clock)
    assert clock.now <= 1003 + 60 + 9


def test_a_lost_lease_is_not_released(held, clock):
    performed(held.renew(), [GONE], clock)
    held.close()
    assert performed(held.end(), [], clock) == (None, [])
    assert held.lost


def test_the_expiry_is_noticed_while_an_extension_waits(held, clock, losses):
    renewal, watch = held.renew(), held.watch()
    assert next(watch).seconds == HOUR
    clock.sleep(next(renewal).seconds)
    renewal.send(None)
    clock.now += HOUR - 700
    assert watch.send(None).seconds == 100
    clock.now += 100
    with pytest.raises(StopIteration):
        watch.send(None)
    assert [type(each) for each in losses] == [LeaseLost]
    with pytest.raises(StopIteration):
        renewal.send(dataclasses.replace(EXTENDED, sent=clock.now - 1))
    assert held.lost
    assert len(losses) == 1


def test_the_end_of_a_block_reports_an_unnoticed_loss(held, clock, losses):
    """The block blocked the event loop for too long."""
    clock.now += HOUR
    held.close()
    assert [type(each) for each in losses] == [LeaseLost]
    assert performed(held.watch(), [], clock) == performed(held.renew(), [], clock) == (None, [])
    assert len(losses) == 1


def test_an_exception_in_on_lost_is_logged(clock, caplog):
    def fail(_):
        raise ZeroDivisionError

    made = lease.lease(Operations(60), JOB, "resources=VCPU:1", **OWNER, expires_in=HOUR, on_lost=fail)
    performed(made.begin(), [placed("claimed")], clock)
    performed(made.renew(), [GONE], clock)
    assert f"on_lost failed for the lease of {JOB}" in caplog.text
    assert "ZeroDivisionError" in caplog.text


def test_the_end_of_a_block_waits_until_on_lost_returns(clock):
    """The process may exit after the block, but not before ``on_lost`` has stopped another process."""
    entered, ended, seen = threading.Event(), threading.Event(), []

    def stop(_):
        made.close()  # every method of a lease may be called here
        with pytest.raises(LeaseLost):
            made.check()
        entered.set()
        seen.append((made.lost, made.remaining, ended.wait(0.5)))

    made = lease.lease(Operations(60), JOB, "resources=VCPU:1", **OWNER, expires_in=HOUR, on_lost=stop)
    performed(made.begin(), [placed("claimed")], clock)
    threading.Thread(target=performed, args=(made.renew(), [GONE], clock), daemon=True).start()
    assert entered.wait(PATIENCE)
    made.close()
    ended.set()
    assert seen == [(True, 0, False)]


def test_on_lost_must_not_be_a_coroutine_function():
    async def tell(_):
        """Do nothing; it would never be awaited."""

    with pytest.raises(TypeError, match="on_lost"):
        lease.lease(Operations(60), JOB, "resources=VCPU:1", **OWNER, expires_in=HOUR, on_lost=tell)


def test_a_release_that_is_not_complete_is_repeated(held, clock, caplog):
    held.close()
    cut = reply(200, {"released": [], "missing": [], "complete": False})
    released = reply(200, {"released": [JOB], "missing": [], "complete": True})
    _, steps = performed(held.end(), [cut, released], clock)
    assert [(step.path, step.timeout) for step in steps if isinstance(step, Call)] == [
        (f"/v1/claims?consumer={JOB}", lease.RELEASE / 3)
    ] * 2
    assert caplog.text == ""


def test_the_end_of_a_block_is_not_a_loss(held, clock, losses):
    """An extension that is in progress when the consumer is released gets a 404."""
    renewal = held.renew()
    clock.sleep(next(renewal).seconds)
    renewal.send(None)
    held.close()
    _, [release] = performed(held.end(), [reply(200, {"released": [JOB], "missing": [], "complete": True})], clock)
    assert (release.method, release.path) == ("DELETE", f"/v1/claims?consumer={JOB}")
    with pytest.raises(StopIteration):
        renewal.send(GONE)
    clock.now += 2 * HOUR
    assert performed(held.watch(), [], clock) == (None, [])
    held.check()
    assert losses == []
