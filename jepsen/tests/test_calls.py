"""The effects of operations agree with the subsequent state of the service."""

from __future__ import annotations

import itertools
import threading
import uuid
from dataclasses import replace

import pytest

from jepsen.calls import effects
from jepsen.claim_queries import content
from jepsen.client import Client, Recorder
from jepsen.effect_types import (
    ABSENT,
    ANY,
    EVERY,
    NEVER,
    NO_TYPE,
    PRESENT,
    UNKNOWN,
    ConsumerEmptying,
    ConsumerRead,
    ConsumerRefusal,
    ConsumerWrite,
    Holding,
    LeaseExtension,
    NodeOperation,
    ProviderClaim,
    ProviderDeletion,
    ProviderRead,
    ProviderRefusal,
    ProviderWrite,
    amounts,
)
from jepsen.history import Operation
from tests import children
from tests.db import lease
from tests.db.in_process import placement

OWNER = {"project_id": "red", "user_id": "ann", "consumer_type": "INSTANCE"}


class RecordingClient:
    """A client of the service in this process, one request at a time, that records the history."""

    def __init__(self, database):
        self._call = placement(database)
        self._clock = itertools.count()
        self.operations = []

    def __call__(self, method, path, body=None, minor=None, note=None):
        began = next(self._clock)
        answer = self._call(method, path, minor, body)
        self.operations.append(
            Operation(
                *(len(self.operations), 0, began, next(self._clock), 0, method, path, minor),
                *(body, answer.status, answer.body, note or {}),
            )
        )
        return self.operations[-1]

    def host(self, total=8, **more):
        """Create a root provider with inventory, at generation 1, and return its uuid."""
        provider = str(uuid.uuid4())
        assert self("POST", "/resource_providers", {"name": provider, "uuid": provider, **more}).succeeded
        body = {"resource_provider_generation": 0, "inventories": {"VCPU": {"total": total}}}
        assert self("PUT", f"/resource_providers/{provider}/inventories", body).succeeded
        return provider


@pytest.fixture
def call(database):
    return RecordingClient(database)


def new():
    return str(uuid.uuid4())


def without_response(operation):
    """Return the operation as if its response were lost."""
    call = (operation.service, operation.method, operation.path, operation.minor, operation.body)
    return Operation(operation.number, operation.process, operation.began, None, *call)


def claim_body(host, amount=1, generation=None, **owner):
    return {
        "allocations": {host: {"resources": {"VCPU": amount}}} if amount else {},
        "consumer_generation": generation,
        **OWNER,
        **owner,
    }


def request(consumer, amount=1, **fields):
    return {"consumer": consumer, "query": f"resources=VCPU:{amount}", **OWNER, **fields}


def holding(host, amount=1, generation=None, expiry=None, type_="INSTANCE"):
    return Holding(amounts({host: {"VCPU": amount}}), "red", "ann", type_, generation, expiry)


# --- allocations -----------------------------------------------------------------------------------------------------


def test_a_claim_and_the_read_after_it(call):
    host, consumer = call.host(), new()
    write = call("PUT", f"/allocations/{consumer}", claim_body(host, 2))
    claim = [ConsumerWrite(consumer, ABSENT, holding(host, 2)), ProviderClaim(host, consumer)]
    assert effects(write) == effects(without_response(write)) == claim
    read = call("GET", f"/allocations/{consumer}")
    assert effects(read) == [ConsumerRead(consumer, holding(host, 2, 1)), ProviderRead(host, 2)]
    assert effects(without_response(read)) == []


def test_a_consumer_is_named_with_and_without_dashes(call):
    host, consumer = call.host(), new()
    write = call("PUT", f"/allocations/{consumer.replace('-', '').upper()}", claim_body(host))
    assert effects(write)[0] == ConsumerWrite(consumer, ABSENT, holding(host))
    assert effects(call("GET", f"/allocations/{consumer}"))[0] == ConsumerRead(consumer, holding(host, 1, 1))


@pytest.mark.parametrize(
    ("minor", "expected", "project", "type_"),
    [(0, ANY, str(uuid.UUID(int=0)), None), (11, ANY, "red", None), (27, ANY, "red", None), (37, ABSENT, "red", None)],
)
def test_older_versions_have_the_effects_of_their_bodies(call, minor, expected, project, type_):
    host, consumer = call.host(), new()
    body = {"allocations": [{"resource_provider": {"uuid": host}, "resources": {"VCPU": 3}}]}
    if minor >= 12:
        body = {"allocations": {host: {"resources": {"VCPU": 3}}}}
    if minor >= 8:
        body |= {"project_id": "red", "user_id": "ann"}
    if minor >= 28:
        body["consumer_generation"] = None
    [write, usage] = effects(call("PUT", f"/allocations/{consumer}", body, minor))
    assert (write.expected, write.holding.project, write.holding.type, usage) == (
        *(expected, project, type_),
        ProviderClaim(host, consumer),
    )
    [read, _] = effects(call("GET", f"/allocations/{consumer}"))
    assert read.holding.resources == write.holding.resources
    assert (read.holding.project, read.holding.type) == (project, NO_TYPE)
    [read, _] = effects(call("GET", f"/allocations/{consumer}", minor=11))
    assert read == ConsumerRead(consumer, Holding(write.holding.resources))


def test_emptying_a_consumer_leaves_its_providers(call):
    host, consumer = call.host(), new()
    call("PUT", f"/allocations/{consumer}", claim_body(host))
    emptied = effects(call("PUT", f"/allocations/{consumer}", claim_body(host, 0, 1)))
    assert emptied == [ConsumerWrite(consumer, 1, None), ConsumerEmptying(consumer)]
    assert effects(call("GET", f"/allocations/{consumer}")) == [ConsumerRead(consumer, None)]
    assert effects(call("GET", f"/resource_providers/{host}")) == [ProviderRead(host, 3)]


def test_a_consumer_is_deleted_once(call):
    host, consumer = call.host(), new()
    call("PUT", f"/allocations/{consumer}", claim_body(host))
    assert effects(call("DELETE", f"/allocations/{consumer}")) == [ConsumerWrite(consumer, PRESENT, None)]
    assert effects(call("DELETE", f"/allocations/{consumer}")) == [ConsumerRefusal(consumer, "missing")]
    assert effects(call("GET", f"/resource_providers/{host}")) == [ProviderRead(host, 2)]


def test_claims_of_several_consumers_raise_a_provider_once(call):
    host, consumer, other = call.host(), new(), new()
    claim_effects = effects(call("POST", "/allocations", {consumer: claim_body(host), other: claim_body(host, 2)}))
    assert claim_effects[:2] == [
        ConsumerWrite(consumer, ABSENT, holding(host)),
        ConsumerWrite(other, ABSENT, holding(host, 2)),
    ]
    assert claim_effects[2:] == [ProviderClaim(host, other)]
    assert effects(call("GET", f"/allocations/{other}")) == [
        ConsumerRead(other, holding(host, 2, 1)),
        ProviderRead(host, 2),
    ]


def test_refused_claims_state_their_reason(call):
    host, consumer, other = call.host(), new(), new()
    call("PUT", f"/allocations/{consumer}", claim_body(host))
    path = f"/allocations/{consumer}"
    refusals = [
        (claim_body(host, 2, None), ConsumerRefusal(consumer, "generation", None, 1)),
        (claim_body(host, 2, 7), ConsumerRefusal(consumer, "generation", 7, 1)),
        (claim_body(host, 9, 1), ConsumerRefusal(consumer, "capacity")),
        ({}, ConsumerRefusal(consumer, "other")),
    ]
    for body, refusal in refusals:
        assert effects(call("PUT", path, body)) == [refusal]
    nowhere = new()
    unknown = effects(call("PUT", path, claim_body(nowhere, 1, 1)))
    assert unknown == [ProviderRefusal(nowhere, "missing"), ConsumerRefusal(consumer, "other")]
    [first, second] = effects(
        call("POST", "/allocations", {consumer: claim_body(host, 1, 3), other: claim_body(host, 1)})
    )
    assert (first, second) == (ConsumerRefusal(consumer, "generation", 3, 1), ConsumerRefusal(other, "other"))
    absent = effects(call("PUT", f"/allocations/{other}", claim_body(host, 1, 5)))
    assert absent == [ConsumerRefusal(other, "generation", 5, None)]
    # The response does not say which of the two has another generation.
    effects_of_both = effects(call("POST", "/allocations", {consumer: claim_body(host), other: claim_body(host)}))
    assert [effect.reason for effect in effects_of_both] == ["other", "other"]


# --- providers -------------------------------------------------------------------------------------------------------


def test_each_write_of_a_provider_raises_its_generation_as_stated(call):
    provider = new()
    path = f"/resource_providers/{provider}"
    created = call("POST", "/resource_providers", {"name": provider, "uuid": provider})
    assert effects(created) == [ProviderWrite(provider, ABSENT, 0)]
    assert effects(without_response(created)) == [ProviderWrite(provider, ABSENT, None)]
    record, one_class = {"total": 4}, "inventories/MEMORY_MB"
    traits = {"traits": ["HW_CPU_X86_AVX"]}
    writes = [
        ("PUT", "inventories", {"inventories": {"VCPU": record}}, None),
        ("POST", "inventories", {"resource_class": "MEMORY_MB", **record}, None),
        ("PUT", one_class, record, None),
        ("DELETE", one_class, None, None),
        ("DELETE", "inventories", None, None),
        ("PUT", "aggregates", {"aggregates": [new()]}, None),
        ("PUT", "aggregates", [new()], 18),
        ("PUT", "traits", traits, None),
        ("PUT", "traits", traits, None),
        ("DELETE", "traits", None, None),
        ("DELETE", "traits", None, None),
        ("PUT", "", {"name": f"{provider} renamed"}, None),
    ]
    generation = 0
    for method, contents, body, minor in writes:
        if method == "PUT" and isinstance(body, dict) and contents:
            body = {"resource_provider_generation": generation, **body}
        [effect] = effects(call(method, f"{path}/{contents}".rstrip("/"), body, minor))
        [read] = effects(call("GET", f"{path}/inventories"))
        if isinstance(effect, ProviderWrite):
            guarded = method == "PUT" and minor is None
            assert effect.expected == (generation if guarded else PRESENT)
            assert effect.generation in (None, read.generation)
            assert read.generation - generation in effect.raises
        else:
            assert effect == ProviderRead(provider, read.generation)
        generation = read.generation
    assert generation == 8
    for contents in ("", "/usages", "/aggregates", "/allocations", "/traits"):
        assert effects(call("GET", path + contents)) == [ProviderRead(provider, 8)]
    assert effects(call("GET", f"/resource_providers?uuid={provider}")) == [ProviderRead(provider, 8)]
    assert effects(call("DELETE", path)) == [ProviderDeletion(provider)]
    assert effects(call("DELETE", path)) == [ProviderRefusal(provider, "missing")]
    assert effects(call("GET", path)) == [ProviderRead(provider, None)]
    assert effects(call("GET", f"{path}/usages")) == [ProviderRead(provider, None)]


def test_refused_provider_writes_state_their_reason(call):
    host, consumer = call.host(), new()
    path = f"/resource_providers/{host}"
    guarded = {"inventories": {"inventories": {}}, "traits": {"traits": []}, "aggregates": {"aggregates": []}}
    for contents, body in guarded.items():
        refused = effects(call("PUT", f"{path}/{contents}", {"resource_provider_generation": 5, **body}))
        assert refused == [ProviderRefusal(host, "generation", 5)]
    refused_class = effects(call("PUT", f"{path}/inventories/VCPU", {"resource_provider_generation": 5, "total": 1}))
    assert refused_class == [ProviderRefusal(host, "generation", 5)]
    call("PUT", f"/allocations/{consumer}", claim_body(host))
    assert effects(call("DELETE", f"{path}/inventories")) == [ProviderRefusal(host, "other")]
    assert effects(call("DELETE", f"{path}/inventories/VCPU")) == [ProviderRefusal(host, "other")]
    assert effects(call("DELETE", f"{path}/inventories/VGPU")) == [ProviderRefusal(host, "other")]
    present = call("POST", f"{path}/inventories", {"resource_class": "VCPU", "total": 1})
    assert effects(present) == [ProviderRefusal(host, "other")]
    assert effects(call("DELETE", path)) == [ProviderRefusal(host, "other")]
    orphan = {"name": new(), "parent_provider_uuid": new()}
    unknown = ProviderRefusal(orphan["parent_provider_uuid"], "missing")
    assert effects(call("POST", "/resource_providers", orphan)) == [unknown]
    assert effects(call("PUT", path, orphan)) == [ProviderRefusal(host, "other"), unknown]


@pytest.mark.parametrize("emptied", [False, True])
@pytest.mark.parametrize("is_used", [False, True])
@pytest.mark.parametrize("total", [0, 8])
def test_a_reshape_raises_each_provider_by_its_steps(call, emptied, is_used, total):
    host, other, consumer, second = call.host(), call.host(), new(), new()
    call("PUT", f"/allocations/{consumer}", claim_body(host))
    generation = 2
    if not emptied:
        call("DELETE", f"/allocations/{consumer}")
    inventories = {"VCPU": {"total": total}} if total else {}
    claims = {consumer: claim_body(other, 0, 1)} if emptied else {}
    if is_used:
        claims[second] = claim_body(host if total else other, 1)
    body = {"inventories": {host: {"resource_provider_generation": 2, "inventories": inventories}}}
    reshaped = call("POST", "/reshaper", {**body, "allocations": claims})
    assert reshaped.succeeded, reshaped.reply
    writes = {effect.provider: effect for effect in effects(reshaped) if isinstance(effect, ProviderWrite)}
    assert list(writes) == [host]
    assert writes[host].expected == generation
    [read] = effects(call("GET", f"/resource_providers/{host}"))
    assert read.generation - generation in writes[host].raises
    consumers = {effect.consumer for effect in effects(reshaped) if isinstance(effect, ConsumerWrite)}
    assert consumers == set(claims)
    assert (ProviderClaim(other, second) in effects(reshaped)) == (is_used and not total)


def test_a_refused_reshape_states_its_reason(call):
    host, other, consumer = call.host(), call.host(), new()
    inventories = {
        host: {"resource_provider_generation": 9, "inventories": {}},
        other: {"resource_provider_generation": 1, "inventories": {}},
    }
    body = {"inventories": inventories, "allocations": {consumer: claim_body(host)}}
    assert effects(call("POST", "/reshaper", body)) == [
        ConsumerRefusal(consumer, "other"),
        ProviderRefusal(host, "generation", 9, 1),
        ProviderRefusal(other, "other"),
    ]
    inventories[host]["resource_provider_generation"] = 1
    body["allocations"][consumer]["consumer_generation"] = 4
    refused = effects(call("POST", "/reshaper", body))
    assert refused[0] == ConsumerRefusal(consumer, "generation", 4, None)
    assert refused[1:] == [ProviderRefusal(host, "other"), ProviderRefusal(other, "other")]


# --- v1 API ----------------------------------------------------------------------------------------------------------


def test_places_chosen_by_the_service(call):
    host, consumer, other = call.host(4), new(), new()
    body = {"requests": [request(consumer, 2), request(other, 2)]}
    claimed = call("POST", "/v1/claims", body)
    holding_shown = holding(host, 2, 1, NEVER)
    # Equal for both, because the consumer is not part of the content.
    request_content = content(body["requests"][0])
    placed = replace(holding_shown, request=request_content)
    [first, usage, second, other_usage] = effects(claimed)
    assert (first, second) == (ConsumerWrite(consumer, ABSENT, placed), ConsumerWrite(other, ABSENT, placed))
    # Written together.
    assert (usage, other_usage) == (ProviderClaim(host, consumer, 2), ProviderClaim(host, other, 2))
    assert effects(call("GET", f"/v1/claims/{consumer}")) == [
        ConsumerRead(consumer, holding_shown, respects_expiry=True),
        ProviderRead(host, 2),
    ]
    repeated = effects(call("POST", "/v1/claims", body))
    # Without the owner, which another client may have changed since.
    placed_without_owner = Holding(holding_shown.resources, generation=1, expiry=NEVER, request=request_content)
    assert repeated[:2] == [ConsumerRead(consumer, placed_without_owner, respects_expiry=True), ProviderRead(host, 2)]
    assert effects(without_response(claimed)) == [
        ConsumerWrite(consumer, ABSENT, Holding(None, "red", "ann", "INSTANCE", expiry=NEVER, request=request_content)),
        ProviderClaim(EVERY, consumer, certain=False),
        ConsumerWrite(other, ABSENT, Holding(None, "red", "ann", "INSTANCE", expiry=NEVER, request=request_content)),
        ProviderClaim(EVERY, other, certain=False),
    ]


def test_moves_and_refusals_of_claims(call):
    host, consumer = call.host(4), new()
    call("POST", "/v1/claims", {"requests": [request(consumer, 2)]})

    def claim(*requests, **options):
        return effects(call("POST", "/v1/claims", {"requests": [*requests], **options}))

    move = request(consumer, 3, keep=False, consumer_generation=1)
    there = replace(holding(host, 3, 2), request=content(move))
    assert claim(move) == [
        ConsumerWrite(consumer, 1, there),
        ConsumerRead(consumer, replace(there, expiry=NEVER), respects_expiry=True),
        ProviderClaim(host, consumer, 3),
    ]
    move = request(consumer, 3, keep=False, consumer_generation=2)
    there = replace(holding(host, 3, 3, NEVER), request=content(move))
    assert claim(move, expires_in=None) == [ConsumerWrite(consumer, 2, there), ProviderClaim(host, consumer, 4)]
    assert effects(call("GET", f"/allocations/{consumer}"))[0] == ConsumerRead(consumer, holding(host, 3, 3))
    attempt = request(consumer, 1)
    assert claim(attempt) == [ConsumerRefusal(consumer, "held", request=content(attempt))]
    late = request(consumer, 1, keep=False, consumer_generation=1)
    assert claim(late) == [ConsumerRefusal(consumer, "generation", 1, 3, content(late))]
    other = new()
    attempt = request(other, 2)
    assert claim(attempt) == [ConsumerRefusal(other, "capacity", request=content(attempt))]
    none = claim(request(other, 1), request(consumer, 9), all_or_nothing=True)
    assert {effect.reason for effect in none} == {"other", "held"}
    missing = request(other, 1, keep=False, consumer_generation=3)
    assert claim(missing) == [ConsumerRefusal(other, "generation", 3, None, content(missing))]
    assert claim({**request(other, 1), "dry_run": True}) == []
    assert effects(call("POST", "/v1/claims?dry_run=true", {"requests": [request(other, 1)]})) == []
    assert effects(call("POST", "/v1/claims", {"requests": []})) == []
    assert effects(call("GET", f"/v1/claims/{other}")) == [ConsumerRead(other, None, respects_expiry=True)]


def test_leases_and_extensions(call, database):
    host, consumer = call.host(), new()
    body = call("POST", "/v1/claims", {"requests": [request(consumer)], "expires_in": 60})
    [claimed, _] = effects(body)
    assert claimed.earliest_expiry == body.began + 59_000_000_000
    [unknown, _] = effects(without_response(body))
    assert (unknown.holding.expiry, unknown.earliest_expiry) == (UNKNOWN, claimed.earliest_expiry)
    [read, _] = effects(call("GET", f"/v1/claims/{consumer}"))
    assert replace(read.holding, request=claimed.holding.request) == claimed.holding
    extended = call("POST", f"/v1/claims/{consumer}/extend", {"expires_in": 600})
    [extension, provider_read] = effects(extended)
    [read, _] = effects(call("GET", f"/v1/claims/{consumer}"))
    assert extension == LeaseExtension(consumer, read.holding, extended.began + 599_000_000_000)
    assert read.holding.generation == 1
    assert read.holding.expiry > claimed.holding.expiry
    assert provider_read == ProviderRead(host, 2)
    assert effects(without_response(extended))[0].holding == Holding(expiry=UNKNOWN)
    lease.expire(database, consumer)
    assert effects(call("GET", f"/v1/claims/{consumer}")) == [ConsumerRead(consumer, None, respects_expiry=True)]
    late = call("POST", f"/v1/claims/{consumer}/extend", {"expires_in": None})
    assert effects(late) == [ConsumerRead(consumer, None, respects_expiry=True)]
    assert effects(without_response(late)) == [LeaseExtension(consumer, Holding(expiry=NEVER))]
    # Not released yet, which only the v1 API hides.
    assert effects(call("GET", f"/allocations/{consumer}"))[0] == ConsumerRead(consumer, holding(host, 1, 1))


def test_bulk_releases(call):
    host, consumer, other = call.host(), new(), new()
    call("PUT", f"/allocations/{consumer}", claim_body(host))
    released = call("DELETE", f"/v1/claims?consumer={consumer}&consumer={other}")
    assert effects(released) == [
        ConsumerWrite(consumer, PRESENT, None),
        ConsumerRead(other, None, respects_expiry=True),
    ]
    assert effects(without_response(released)) == [
        ConsumerWrite(consumer, PRESENT, None),
        ConsumerWrite(other, PRESENT, None),
    ]
    call("PUT", f"/allocations/{consumer}", claim_body(host))
    by_project = call("DELETE", "/v1/claims?project=red")
    assert effects(by_project) == [ConsumerWrite(consumer, PRESENT, None)]
    assert effects(without_response(by_project)) == [ConsumerWrite(EVERY, PRESENT, None)]


# --- bare metal ------------------------------------------------------------------------------------------------------


def test_a_node_allocation_is_a_consumer(call):
    node, allocation, error = new(), new(), new()
    body = {"uuid": node, "name": "n1", "driver": "ipmi", "resource_class": "bm.gold"}
    assert effects(call("POST", "/baremetal/v1/nodes", body)) == [NodeOperation(node)]
    for kind, target in [("power", "power off"), ("provision", "manage"), ("provision", "provide")]:
        assert effects(call("PUT", f"/baremetal/v1/nodes/n1/states/{kind}", {"target": target})) == []
    requested = call("POST", "/baremetal/v1/allocations", {"uuid": allocation, "resource_class": "bm.gold"})
    node_request = [ConsumerWrite(allocation, ABSENT, Holding(None, type="BAREMETAL"), certain=False)]
    assert effects(requested) == effects(without_response(requested)) == node_request
    [read, node_touch] = effects(call("GET", f"/baremetal/v1/allocations/{allocation}"))
    assert node_touch == NodeOperation(node)
    [held_by, _] = effects(call("GET", f"/allocations/{allocation}"))
    assert held_by.holding.resources == read.holding.resources == amounts({node: {"CUSTOM_BM_GOLD": 1}})
    assert held_by.holding.type == "BAREMETAL"
    call("POST", "/baremetal/v1/allocations", {"uuid": error, "resource_class": "bm.gold"})
    assert effects(call("GET", f"/baremetal/v1/allocations/{error}")) == []
    twice = call("POST", "/baremetal/v1/allocations", {"uuid": error, "resource_class": "bm.gold"})
    assert effects(twice) == [ConsumerRefusal(error, "other")]
    ended = effects(call("DELETE", f"/baremetal/v1/allocations/{allocation}"))
    assert ended == [ConsumerWrite(allocation, PRESENT, None, certain=False)]
    assert effects(call("GET", f"/allocations/{allocation}")) == [ConsumerRead(allocation, None)]


def test_a_request_whose_connection_is_refused_has_no_effect():
    recorder = Recorder()
    client = Client(recorder, 0, [f"http://127.0.0.1:{children.free_port()}"], threading.Event())
    consumer, provider = new(), new()
    calls = [
        client.call("PUT", f"/allocations/{consumer}", claim_body(provider)),
        client.call("GET", f"/allocations/{consumer}"),
        client.call("POST", "/allocations", {consumer: claim_body(provider)}),
        client.call("POST", "/v1/claims", {"requests": [request(consumer)]}),
        client.call("POST", f"/v1/claims/{consumer}/extend", {"expires_in": 5}),
        client.call("DELETE", f"/v1/claims?consumer={consumer}"),
        client.call("DELETE", f"/resource_providers/{provider}/inventories"),
        client.call(
            "POST", "/reshaper", {"inventories": {provider: {}}, "allocations": {consumer: claim_body(provider)}}
        ),
        client.call("POST", "/baremetal/v1/allocations", {"uuid": consumer, "resource_class": "gold"}),
    ]
    assert not any(operation.is_open or operation.succeeded for operation in calls)
    shown_effects = [effect for operation in calls for effect in effects(operation)]
    assert {type(effect) for effect in shown_effects} == {ConsumerRefusal, ProviderRefusal}
    assert {effect.reason for effect in shown_effects} == {"other"}
