"""Ages in queries are counted back from the time of the database's clock: the clocks of hosts may be wrong."""

from __future__ import annotations

import datetime

import pytest

from tests import clock
from tests.db.in_process import placement, with_a_consumer

HOST, CONSUMER = "6c1b0f5e-0b8e-4f6e-8a57-51a3f0a4c0c1", "6c1b0f5e-0b8e-4f6e-8a57-51a3f0a4c0c2"


@pytest.fixture
def service(database, monkeypatch):
    """A service with a consumer that was created a moment ago, on a host whose clock is 40 days ahead since then."""
    service = with_a_consumer(placement(database), HOST, CONSUMER, "p", "u")
    clock.set_host(monkeypatch, 40)
    return service


def test_a_young_consumer_is_not_released_for_its_age(service):
    assert service("DELETE", "/v1/claims?project=p&older_than=30d", 39).body["released"] == []
    listed = service("GET", "/v1/consumers?newer_than=1d", 39).body["consumers"]
    assert [one["uuid"] for one in listed] == [CONSUMER]


@pytest.mark.every_database
@pytest.mark.parametrize("days", [-40, 40])
def test_a_consumer_is_as_old_as_it_is_where_the_clock_of_its_creator_is_wrong(database, monkeypatch, days):
    clock.set_host(monkeypatch, days)
    service = with_a_consumer(placement(database), HOST, CONSUMER, "p", "u")
    assert service("DELETE", "/v1/claims?project=p&older_than=30d", 39).body["released"] == []
    [one] = service("GET", "/v1/consumers?newer_than=1d", 39).body["consumers"]
    since = datetime.datetime.fromisoformat(one["since"])
    assert abs(since - datetime.datetime.now(datetime.UTC)) < datetime.timedelta(days=1)


def test_events_and_usage_of_the_last_day_are_there(service):
    found = service("GET", f"/v1/events?consumer={CONSUMER}&since=1d", 39).body["events"]
    assert [one["uuid"] for one in found] == [CONSUMER]
    [present] = service("GET", "/v1/usage?class=VCPU", 39).body["classes"]["VCPU"]
    now = datetime.datetime.now(datetime.UTC)
    assert abs(datetime.datetime.fromisoformat(present["at"]) - now) < datetime.timedelta(days=1)


def test_the_past_of_an_age_is_not_that_of_another_day(service):
    assert service("GET", "/v1/overview?at=30d", 39).status == 410
