"""Limits of requests: a request at a limit is served, and a request beyond it is refused with the reason."""

from __future__ import annotations

import uuid

import pytest

from placement import deploy
from tests import caller, web

HOST = "c0000000-0000-4000-8000-000000000001"
DEVICES = [f"d0000000-0000-4000-8000-{number:012}" for number in range(3)]

pytestmark = pytest.mark.parametrize("backend", ["sqlite"], indirect=True)


@pytest.fixture
def serve(database):
    """Return a function that starts a service with options, and creates a host and three devices below it."""

    def start(**options):
        settings = {f"placement__{name}": value for name, value in options.items()}
        call = caller.inside(deploy.loadapp(web.configuration(**settings), database))
        for provider, parent in ((HOST, None), *((device, HOST) for device in DEVICES)):
            body = {"name": provider, "uuid": provider, "parent_provider_uuid": parent}
            assert call("POST", "/resource_providers", 39, body).status == 200
            records = {name: {"total": 10000} for name in ("VCPU", "MEMORY_MB", "DISK_GB")}
            body = {"resource_provider_generation": 0, "inventories": records}
            assert call("PUT", f"/resource_providers/{provider}/inventories", 39, body).status == 200
        return call

    return start


def search(call, groups, unsuffixed="", options="&limit=1"):
    query = "&".join(f"resources_{number}=VCPU:1" for number in range(groups))
    return call("GET", f"/allocation_candidates?group_policy=none&{query}{unsuffixed}{options}")


def test_a_search_has_a_maximum_number_of_groups(serve):
    call = serve(max_request_groups=4)
    assert search(call, 4).status == 200
    for groups, unsuffixed in (
        (5, ""),
        (4, "&resources=VCPU:1"),
        (1, "&resources=VCPU:1,MEMORY_MB:1,DISK_GB:1,PGPU:1"),
    ):
        answer = search(call, groups, unsuffixed)
        assert answer.status == 400
        assert "has 5 demands" in answer.error["detail"]
        assert "the limit is 4 ([placement]max_request_groups)" in answer.error["detail"]


@pytest.mark.parametrize("options", ["&limit=1", "&limit=1000", "&limit=1&same_subtree=_0,_1"])
def test_a_search_with_the_highest_configurable_number_of_groups_is_served(serve, options):
    call = serve(max_request_groups=500)
    answer = search(call, 500, options=options)
    assert answer.status == 200
    assert answer.body["allocation_requests"]
    assert all(len(request["mappings"]) == 500 for request in answer.body["allocation_requests"])


@pytest.mark.parametrize("groups", [501, 1200])
def test_hundreds_of_groups_are_refused_without_an_internal_error(serve, groups):
    call = serve(max_request_groups=500)
    assert search(call, groups).status == 400
    assert search(call, groups, options="&limit=1&same_subtree=_0,_1").status == 400


def claim(resources, consumer_generation=None):
    return {
        "allocations": {provider: {"resources": amounts} for provider, amounts in resources.items()},
        "project_id": "p",
        "user_id": "u",
        "consumer_generation": consumer_generation,
        "consumer_type": "INSTANCE",
    }


THREE = {HOST: {"VCPU": 1, "MEMORY_MB": 1}, DEVICES[0]: {"VCPU": 1}}
FOUR = {HOST: {"VCPU": 1, "MEMORY_MB": 1}, DEVICES[0]: {"VCPU": 1, "DISK_GB": 1}}


def names_the_limit(answer):
    assert answer.status == 400
    return "4 allocations; the limit is 3 ([placement]max_allocations_per_request)" in answer.error["detail"]


def test_a_claim_has_a_maximum_number_of_allocations(serve):
    call = serve(max_allocations_per_request=3)
    consumer = str(uuid.uuid4())
    assert names_the_limit(call("PUT", f"/allocations/{consumer}", 39, claim(FOUR)))
    assert call("GET", f"/allocations/{consumer}").body["allocations"] == {}
    assert call("PUT", f"/allocations/{consumer}", 39, claim(THREE)).status == 204
    allocation_list = [
        {"resource_provider": {"uuid": provider}, "resources": amounts} for provider, amounts in FOUR.items()
    ]
    assert names_the_limit(call("PUT", f"/allocations/{consumer}", 0, {"allocations": allocation_list}))


def test_several_claims_count_together_and_a_release_counts_as_one(serve):
    call = serve(max_allocations_per_request=3)
    allocations = {HOST: {"VCPU": 1}}
    four = {str(uuid.uuid4()): claim(allocations) for _ in range(4)}
    three = dict(list(four.items())[:3])
    assert names_the_limit(call("POST", "/allocations", 39, four))
    inventories = {HOST: {"resource_provider_generation": 1, "inventories": {}}}
    assert names_the_limit(call("POST", "/reshaper", 39, {"inventories": inventories, "allocations": four}))
    assert call("POST", "/allocations", 39, three).status == 204
    releases = {consumer: claim({}, 1) for consumer in three}
    assert names_the_limit(call("POST", "/allocations", 39, releases | {str(uuid.uuid4()): claim({})}))
    assert call("POST", "/allocations", 39, releases).status == 204


@pytest.mark.parametrize("kind", ["traits", "aggregates", "inventories"])
def test_traits_aggregates_and_inventories_in_one_request_have_a_maximum_number(serve, kind):
    call = serve(**{f"max_{kind}_per_request": 3})
    names = [f"CUSTOM_{number}" for number in range(3)]
    for name in names:
        assert call("PUT", f"/traits/{name}").status == 201
        assert call("PUT", f"/resource_classes/{name}").status == 201
    three = {
        "traits": names,
        "aggregates": DEVICES,
        "inventories": {name: {"total": 1} for name in names},
    }[kind]
    four = {**three, "VCPU": {"total": 1}} if kind == "inventories" else [*three, HOST]

    def put(values):
        guard = {"resource_provider_generation": 1}
        return call("PUT", f"/resource_providers/{HOST}/{kind}", 39, {kind: values, **guard})

    before = call("GET", f"/resource_providers/{HOST}/{kind}").body
    answer = put(four)
    assert answer.status == 400
    assert f"names 4 {kind}; the limit is 3 ([placement]max_{kind}_per_request)" in answer.error["detail"]
    assert call("GET", f"/resource_providers/{HOST}/{kind}").body == before
    assert put(three).status == 200


def test_a_reshape_has_a_maximum_number_of_inventories(serve):
    call = serve(max_inventories_per_request=3)
    two = {"resource_provider_generation": 1, "inventories": {name: {"total": 1} for name in ("VCPU", "DISK_GB")}}
    inventory = {"resource_provider_generation": 1, "inventories": {"VCPU": {"total": 1}}}
    answer = call("POST", "/reshaper", 39, {"inventories": {HOST: two, DEVICES[0]: two}, "allocations": {}})
    assert answer.status == 400
    assert "names 4 inventories" in answer.error["detail"]
    answer = call("POST", "/reshaper", 39, {"inventories": {HOST: two, DEVICES[0]: inventory}, "allocations": {}})
    assert answer.status == 204


def test_a_body_has_a_maximum_number_of_values(database):
    call = caller.inside(deploy.loadapp(web.configuration(api__max_request_body_values=100), database))
    assert call("POST", "/resource_providers", 39, {"name": "n", "uuid": HOST}).status == 200
    for count, status in ((99, 400), (100, 413)):
        body = {"resource_provider_generation": 0, "traits": ["A"] * (count - 1)}
        answer = call("PUT", f"/resource_providers/{HOST}/traits", 39, body)
        assert answer.status == status
    assert "contains more than 100 values ([api]max_request_body_values)" in answer.error["detail"]
