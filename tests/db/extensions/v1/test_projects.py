"""Projects are compared exactly, although some collations store one row for two spellings."""

from __future__ import annotations

import pytest

from placement.index.live import LiveIndex
from tests.db.in_process import placement, with_a_consumer

HOST, CONSUMER = "6c1b0f5e-0b8e-4f6e-8a57-51a3f0a4c0d1", "6c1b0f5e-0b8e-4f6e-8a57-51a3f0a4c0d2"
OTHER_SPELLINGS = ["PROJA", "projA%20"]


@pytest.fixture
def service(database):
    """Return a service with a consumer of the project projA and the user ann."""
    return with_a_consumer(placement(database, LiveIndex(database)), HOST, CONSUMER, "projA", "ann")


@pytest.mark.every_database
def test_usages_of_another_spelling_belong_to_another_project(service):
    for project, user, has_usage in (
        ("projA", "ann", 1),
        *((other, "ann", 0) for other in OTHER_SPELLINGS),
        ("projA", "ANN", 0),
    ):
        query = f"project_id={project}&user_id={user}"
        usages = service("GET", f"/usages?{query}", 37).body["usages"]
        by_type = service("GET", f"/usages?{query}", 39).body["usages"]
        of_all = service("GET", f"/usages?{query}&consumer_type=all", 39).body["usages"]
        assert usages == ({"VCPU": 1} if has_usage else {})
        assert by_type == ({"INSTANCE": {"consumer_count": 1, "VCPU": 1}} if has_usage else {})
        assert of_all == ({"all": {"consumer_count": 1, "VCPU": 1}} if has_usage else {})


@pytest.mark.every_database
def test_consumers_and_events_of_another_spelling_belong_to_another_project(service):
    for project, expected in (("projA", [CONSUMER]), *((other, []) for other in OTHER_SPELLINGS)):
        consumers = service("GET", f"/v1/consumers?project={project}").body["consumers"]
        assert [consumer["uuid"] for consumer in consumers] == expected
        events = service("GET", f"/v1/events?project={project}").body["events"]
        assert [event["uuid"] for event in events] == expected
    for project in OTHER_SPELLINGS:
        assert service("DELETE", f"/v1/claims?project={project}").body["released"] == []
    assert service("DELETE", "/v1/claims?project=projA").body["released"] == [CONSUMER]
