"""The v1 API and the console with inconsistent rows (tests/db/db/test_inconsistent_rows.py)."""

from __future__ import annotations

import json
import re

import pytest

from tests import caller, web
from tests.db.db.test_inconsistent_rows import (
    AGGREGATE,
    CONSISTENT,
    INCONSISTENT,
    SEARCHES,
    insert_inconsistencies,
    validated_service,
)
from tests.db.extensions.v1.single_requests import pages
from tests.db.in_process import placement

V1 = (
    *("overview", "overview?limit=1", "overview?over_committed=1", "overview?sort=free:VCPU", "overview?class=VCPU"),
    *("overview?sort=-capacity:VCPU&limit=1", "overview?sort=used:VCPU", f"overview?aggregate={AGGREGATE}"),
    *("consumers", "consumers?class=VCPU", "consumers?type=unknown", "consumers?older_than=1s", "consumers?project=p"),
    *(f"{about}?{search}" for about in ("capacity", "explain") for search in SEARCHES),
    *("explain?resources=VCPU:9999", "explain?resources=VCPU:9,DISK_GB:1&resources_A=VCPU:1&group_policy=isolate"),
)
V1_OF_PROVIDER = (
    *("overview?root={}", "providers/{}", "consumers?provider={}", "consumers?provider={}&class=VCPU"),
    *("capacity?resources=VCPU:1&in_tree={}", "explain?resources=VCPU:9999&in_tree={}"),
)
PAGES = ("/", "/hosts", "/providers", "/consumers", "/query?resources=VCPU:1", "/query?resources=VCPU:9999")


@pytest.fixture
def ids(database, backend):
    return insert_inconsistencies(database, backend.kind)


@pytest.fixture
def validating_app(database, ids):
    return validated_service(database, console__enabled=True)


def test_no_v1_request_fails(validating_app):
    paths = [
        *V1,
        *(
            path.format(provider_uuid)
            for provider_uuid in (CONSISTENT, *INCONSISTENT.values())
            for path in V1_OF_PROVIDER
        ),
    ]
    for path in paths:
        reply = web.ask(validating_app, "GET", f"/v1/{path}", caller.ADMIN)
        assert reply.status_int == 200, (path, reply.text)
        json.loads(reply.text, parse_constant=pytest.fail)


def test_no_console_page_fails(validating_app):
    for path in (*PAGES, *(f"/providers/{provider_uuid}" for provider_uuid in (CONSISTENT, *INCONSISTENT.values()))):
        reply = web.ask(validating_app, "GET", f"/console{path}", caller.ADMIN)
        assert reply.status_int == 200, (path, reply.text)
        assert not re.search(r"\b(nan|inf|infinity)\b", reply.text.lower().replace("endless", "")), path


def test_the_overview_shows_the_inventories_of_the_placement_api(validating_app):
    call = caller.inside(validating_app)
    inventories = {
        provider["uuid"]: provider["inventories"] for provider in call("GET", "/v1/overview").body["providers"]
    }
    for provider_uuid in (CONSISTENT, *INCONSISTENT.values()):
        single = call("GET", f"/resource_providers/{provider_uuid}/inventories").body["inventories"]
        assert inventories[provider_uuid].keys() == single.keys()
        for name, inventory in single.items():
            # A step size of 0 is read as 1, because it cannot be a divisor.
            expected = inventory | {"step_size": inventory["step_size"] or 1}
            assert {key: inventories[provider_uuid][name][key] for key in expected} == expected, provider_uuid


@pytest.mark.parametrize("sort", [f"{sign}{amount}" for sign in ("", "-") for amount in ("free", "used", "capacity")])
def test_sorted_pages_contain_every_tree(database, ids, sort):
    """This includes trees with negative usage."""
    call = placement(database)
    all_providers = call("GET", f"/v1/overview?sort={sort}:VCPU").body["providers"]
    assert len(all_providers) > len(INCONSISTENT) - 2
    assert pages(call, f"/v1/overview?sort={sort}:VCPU&limit=1", "providers") == all_providers
