"""The extension and the loss of leases, with a clock that the test advances (docs: client)."""

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
from tests.unit.extensions.client.test_operations import JOB, OWNER, claim_replies, perform, reply, result, slow_reply

#: Seconds.
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
def hour_lease(clock, losses):
    """Return a claimed lease of one hour."""
    new_lease = lease.lease(Operations(60), JOB, "resources=VCPU:1", **OWNER, expires_in=HOUR, on_lost=losses.append)
    perform(new_lease.begin(), [outcome_reply("claimed")], clock)
    return new_lease


EXTENDED = reply(200, result(JOB, "held"))
GONE = reply(
    404, {"errors": [{"status": 404, "code": "placement.v1.nothing_held", "detail": "The lease has expired."}]}
)
FORBIDDEN = reply(403, {"errors": [{"status": 403, "detail": "no"}]})


def outcome_reply(outcome):
    return claim_replies(**{JOB: outcome})


def test_a_lease_is_extended_six_times_within_its_duration(hour_lease, clock, losses):
    _, steps = perform(hour_lease.renew(), [EXTENDED, slow_reply(clock, 30, EXTENDED), GONE], clock)
    assert [step.seconds for step in steps if isinstance(step, Pause)] == [600, 600, 600]
    assert isinstance(losses[0].__cause__, NothingHeld)
    assert (hour_lease.lost, hour_lease.remaining) == (True, 0)
    with pytest.raises(LeaseLost, match="has expired"):
        hour_lease.check()


def test_the_expiry_counts_from_before_the_extension_was_sent(hour_lease, clock):
    assert hour_lease.remaining == HOUR
    renewal = hour_lease.renew()
    clock.sleep(next(renewal).seconds)
    renewal.send(None)
    sent_at = clock.now
    clock.now += 9
    renewal.send(dataclasses.replace(EXTENDED, sent=sent_at))
    assert hour_lease.remaining == HOUR - 9


@pytest.mark.parametrize("failure", [NoReply("away"), FORBIDDEN, RuntimeError("closed")], ids=["away", "403", "other"])
def test_a_failed_extension_is_repeated_until_the_expiry(hour_lease, clock, losses, failure):
    _, steps = perform(hour_lease.renew(), itertools.repeat(failure), clock)
    pauses = [step.seconds for step in steps if isinstance(step, Pause)]
    assert pauses[:3] == [600, 5, 5]
    assert clock.now == 1000 + HOUR
    assert [type(loss) for loss in losses] == [LeaseLost]
    assert isinstance(losses[0].__cause__, ErrorReply if failure is FORBIDDEN else type(failure))


def test_no_extension_waits_beyond_the_expiry(hour_lease, clock):
    calls = []

    def silent(call):
        calls.append((clock.now - 1000, call.timeout))
        clock.now += call.timeout
        return FORBIDDEN

    # The last attempt begins seven seconds before the expiry.
    perform(hour_lease.renew(), itertools.chain([slow_reply(clock, 3, FORBIDDEN)], itertools.repeat(silent)), clock)
    assert {timeout for at, timeout in calls if at < HOUR - 10} == {10}
    assert all(at + timeout <= HOUR for at, timeout in calls)
    assert hour_lease.lost


def test_an_extension_after_failures_keeps_the_lease(hour_lease, clock, losses):
    answers = [NoReply("away"), FORBIDDEN, EXTENDED, GONE]
    _, steps = perform(hour_lease.renew(), answers, clock)
    assert [step.seconds for step in steps if isinstance(step, Pause)] == [600, 5, 5, 600]
    assert len(losses) == 1


def test_a_claim_of_an_earlier_attempt_is_extended_immediately(clock):
    """Its expiry may be near, because it counts from the first request."""
    new_lease = lease.lease(Operations(60), JOB, "resources=VCPU:1", **OWNER, expires_in=HOUR)
    assert new_lease.lost
    _, (claim, extension) = perform(new_lease.begin(), [outcome_reply("held"), EXTENDED], clock)
    assert (claim.path, extension.path) == ("/v1/claims", f"/v1/claims/{JOB}/extend")
    assert new_lease.remaining == HOUR


def test_a_claim_that_took_long_is_extended_immediately(clock):
    new_lease = lease.lease(Operations(60), JOB, "resources=VCPU:1", **OWNER, expires_in=60)
    perform(new_lease.begin(), [slow_reply(clock, 45, outcome_reply("claimed"))], clock)
    assert new_lease.remaining == 15
    assert next(new_lease.renew()).seconds == 0


def test_a_block_begins_with_an_unexpired_lease(clock):
    """The claim was repeated for longer than the lease, which may have expired."""
    new_lease = lease.lease(Operations(60), JOB, "resources=VCPU:1", **OWNER, expires_in=2)
    late_503 = slow_reply(clock, 1.5, reply(503, {}))
    extensions = [NoReply("away"), slow_reply(clock, 3, EXTENDED), slow_reply(clock, 1, EXTENDED)]
    _, steps = perform(new_lease.begin(), [late_503, late_503, outcome_reply("claimed"), *extensions], clock)
    assert new_lease.remaining == 1
    assert [step.path for step in steps if isinstance(step, Call)][2:] == [
        "/v1/claims",
        *[f"/v1/claims/{JOB}/extend"] * 3,
    ]


def test_no_block_begins_with_a_lost_lease(clock):
    answers = [slow_reply(clock, 3, outcome_reply("claimed")), GONE]
    new_lease = lease.lease(Operations(60), JOB, "resources=VCPU:1", **OWNER, expires_in=2)
    with pytest.raises(NothingHeld):
        perform(new_lease.begin(), answers, clock)
    new_lease = lease.lease(Operations(60), JOB, "resources=VCPU:1", **OWNER, expires_in=2)
    answers = itertools.chain([outcome_reply("held")], itertools.repeat(slow_reply(clock, 9, EXTENDED)))
    with pytest.raises(LeaseLost):
        perform(new_lease.begin(), answers, clock)
    assert clock.now <= 1003 + 60 + 9


def test_a_lost_lease_is_not_released(hour_lease, clock):
    perform(hour_lease.renew(), [GONE], clock)
    hour_lease.close()
    assert perform(hour_lease.end(), [], clock) == (None, [])
    assert hour_lease.lost


def test_the_expiry_is_noticed_while_an_extension_waits(hour_lease, clock, losses):
    renewal, watch = hour_lease.renew(), hour_lease.watch()
    assert next(watch).seconds == HOUR
    clock.sleep(next(renewal).seconds)
    renewal.send(None)
    clock.now += HOUR - 700
    assert watch.send(None).seconds == 100
    clock.now += 100
    with pytest.raises(StopIteration):
        watch.send(None)
    assert [type(loss) for loss in losses] == [LeaseLost]
    with pytest.raises(StopIteration):
        renewal.send(dataclasses.replace(EXTENDED, sent=clock.now - 1))
    assert hour_lease.lost
    assert len(losses) == 1


def test_the_end_of_a_block_reports_an_unnoticed_loss(hour_lease, clock, losses):
    """The block blocked the event loop for too long."""
    clock.now += HOUR
    hour_lease.close()
    assert [type(loss) for loss in losses] == [LeaseLost]
    assert perform(hour_lease.watch(), [], clock) == perform(hour_lease.renew(), [], clock) == (None, [])
    assert len(losses) == 1


def test_an_exception_in_on_lost_is_logged(clock, caplog):
    def fail(_):
        raise ZeroDivisionError

    new_lease = lease.lease(Operations(60), JOB, "resources=VCPU:1", **OWNER, expires_in=HOUR, on_lost=fail)
    perform(new_lease.begin(), [outcome_reply("claimed")], clock)
    perform(new_lease.renew(), [GONE], clock)
    assert f"on_lost failed for the lease of {JOB}" in caplog.text
    assert "ZeroDivisionError" in caplog.text


def test_the_end_of_a_block_waits_until_on_lost_returns(clock):
    """The process may exit after the block, but not before ``on_lost`` has stopped another process."""
    entered, ended, states = threading.Event(), threading.Event(), []

    def stop(_):
        new_lease.close()  # every method of a lease may be called here
        with pytest.raises(LeaseLost):
            new_lease.check()
        entered.set()
        states.append((new_lease.lost, new_lease.remaining, ended.wait(0.5)))

    new_lease = lease.lease(Operations(60), JOB, "resources=VCPU:1", **OWNER, expires_in=HOUR, on_lost=stop)
    perform(new_lease.begin(), [outcome_reply("claimed")], clock)
    threading.Thread(target=perform, args=(new_lease.renew(), [GONE], clock), daemon=True).start()
    assert entered.wait(PATIENCE)
    new_lease.close()
    ended.set()
    assert states == [(True, 0, False)]


def test_on_lost_must_not_be_a_coroutine_function():
    async def tell(_):
        """Do nothing; it would never be awaited."""

    with pytest.raises(TypeError, match="on_lost"):
        lease.lease(Operations(60), JOB, "resources=VCPU:1", **OWNER, expires_in=HOUR, on_lost=tell)


def test_a_release_that_is_not_complete_is_repeated(hour_lease, clock, caplog):
    hour_lease.close()
    incomplete = reply(200, {"released": [], "missing": [], "complete": False})
    complete = reply(200, {"released": [JOB], "missing": [], "complete": True})
    _, steps = perform(hour_lease.end(), [incomplete, complete], clock)
    assert [(step.path, step.timeout) for step in steps if isinstance(step, Call)] == [
        (f"/v1/claims?consumer={JOB}", lease.RELEASE_PATIENCE / 3)
    ] * 2
    assert caplog.text == ""


def test_the_end_of_a_block_is_not_a_loss(hour_lease, clock, losses):
    """An extension that is in progress when the consumer is released gets a 404."""
    renewal = hour_lease.renew()
    clock.sleep(next(renewal).seconds)
    renewal.send(None)
    hour_lease.close()
    _, [release] = perform(hour_lease.end(), [reply(200, {"released": [JOB], "missing": [], "complete": True})], clock)
    assert (release.method, release.path) == ("DELETE", f"/v1/claims?consumer={JOB}")
    with pytest.raises(StopIteration):
        renewal.send(GONE)
    clock.now += 2 * HOUR
    assert perform(hour_lease.watch(), [], clock) == (None, [])
    hour_lease.check()
    assert losses == []
