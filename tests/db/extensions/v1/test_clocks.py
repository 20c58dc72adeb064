"""Ages in queries count from the database's clock, because the clocks of hosts may be wrong."""

from __future__ import annotations

import datetime

import pytest

from tests import clock
from tests.db.in_process import placement, with_a_consumer

HOST, CONSUMER = "6c1b0f5e-0b8e-4f6e-8a57-51a3f0a4c0c1", "6c1b0f5e-0b8e-4f6e-8a57-51a3f0a4c0c2"


@pytest.fixture
def service(database, monkeypatch):
    """Return a service with a new consumer; since its creation, the clock of the host has been 40 days ahead."""
    service = with_a_consumer(placement(database), HOST, CONSUMER, "p", "u")
    clock.set_host(monkeypatch, 40)
    return service


def test_a_new_consumer_is_not_released_as_old(service):
    assert service("DELETE", "/v1/claims?project=p&older_than=30d", 39).body["released"] == []
    listed = service("GET", "/v1/consumers?newer_than=1d", 39).body["consumers"]
    assert [consumer["uuid"] for consumer in listed] == [CONSUMER]


@pytest.mark.every_database
@pytest.mark.parametrize("days", [-40, 40])
def test_the_age_of_a_consumer_is_right_even_if_its_creator_had_a_wrong_clock(database, monkeypatch, days):
    clock.set_host(monkeypatch, days)
    service = with_a_consumer(placement(database), HOST, CONSUMER, "p", "u")
    assert service("DELETE", "/v1/claims?project=p&older_than=30d", 39).body["released"] == []
    [consumer] = service("GET", "/v1/consumers?newer_than=1d", 39).body["consumers"]
    since = datetime.datetime.fromisoformat(consumer["since"])
    assert abs(since - datetime.datetime.now(datetime.UTC)) < datetime.timedelta(days=1)


def test_events_and_usage_of_the_last_day_are_shown(service):
    events = service("GET", f"/v1/events?consumer={CONSUMER}&since=1d", 39).body["events"]
    assert [event["uuid"] for event in events] == [CONSUMER]
    [present] = service("GET", "/v1/usage?class=VCPU", 39).body["classes"]["VCPU"]
    now = datetime.datetime.now(datetime.UTC)
    assert abs(datetime.datetime.fromisoformat(present["at"]) - now) < datetime.timedelta(days=1)


def test_an_age_of_the_past_state_counts_from_the_clock_of_the_database(service):
    assert service("GET", "/v1/overview?at=30d", 39).status == 410
