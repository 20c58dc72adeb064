"""What a caller may see of a project is compared exactly; some collations have one row for two spellings of it."""

from __future__ import annotations

import pytest

from placement.index.live import LiveIndex
from tests.db.in_process import placement

HOST, CONSUMER = "6c1b0f5e-0b8e-4f6e-8a57-51a3f0a4c0d1", "6c1b0f5e-0b8e-4f6e-8a57-51a3f0a4c0d2"
OTHERS = ["PROJA", "projA%20"]


@pytest.fixture
def service(database):
    """A service with a consumer of the project projA and the user ann."""
    service = placement(database, LiveIndex(database))
    assert service("POST", "/resource_providers", 39, {"name": "host", "uuid": HOST}).status == 200
    body = {"resource_provider_generation": 0, "inventories": {"VCPU": {"total": 4}}}
    assert service("PUT", f"/resource_providers/{HOST}/inventories", 39, body).status == 200
    owner = {"project_id": "projA", "user_id": "ann", "consumer_generation": None, "consumer_type": "INSTANCE"}
    body = {"allocations": {HOST: {"resources": {"VCPU": 1}}}, **owner}
    assert service("PUT", f"/allocations/{CONSUMER}", 39, body).status == 204
    return service


@pytest.mark.every_database
def test_the_usages_of_another_spelling_are_of_another_project(service):
    for project, user, held in (("projA", "ann", 1), *((each, "ann", 0) for each in OTHERS), ("projA", "ANN", 0)):
        query = f"project_id={project}&user_id={user}"
        usages = service("GET", f"/usages?{query}", 37).body["usages"]
        by_type = service("GET", f"/usages?{query}", 39).body["usages"]
        of_all = service("GET", f"/usages?{query}&consumer_type=all", 39).body["usages"]
        assert usages == ({"VCPU": 1} if held else {})
        assert by_type == ({"INSTANCE": {"consumer_count": 1, "VCPU": 1}} if held else {})
        assert of_all == ({"all": {"consumer_count": 1, "VCPU": 1}} if held else {})


@pytest.mark.every_database
def test_the_consumers_and_events_of_another_spelling_are_of_another_project(service):
    for project, found in (("projA", [CONSUMER]), *((each, []) for each in OTHERS)):
        consumers = service("GET", f"/v1/consumers?project={project}").body["consumers"]
        assert [one["uuid"] for one in consumers] == found
        events = service("GET", f"/v1/events?project={project}").body["events"]
        assert [one["uuid"] for one in events] == found
    for project in OTHERS:
        assert service("DELETE", f"/v1/claims?project={project}").body["released"] == []
    assert service("DELETE", "/v1/claims?project=projA").body["released"] == [CONSUMER]
