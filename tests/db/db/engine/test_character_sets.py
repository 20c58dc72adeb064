"""Databases whose character set lacks characters that clients send: MySQL refuses comparisons that it cannot convert.

Most existing databases of Placement were created with latin1 or utf8mb3.  Each text of a client, alone and as the
second of two, is compared or stored: the response is a refusal with a reason, or the response for an unknown name.
"""

from __future__ import annotations

import urllib.parse

import pytest

from placement.db.upkeep import standard
from tests import made
from tests.db.in_process import placement
from tests.made import opened

pytestmark = pytest.mark.every_database

UUID = "11111111-1111-4111-8111-111111111111"
OTHER = "22222222-2222-4222-8222-222222222222"
#: A character missing in each character set, and one that the other set contains.
LACKS = {"latin1": "\N{SNOWMAN}", "utf8mb3": "\N{GRINNING FACE}"}


@pytest.fixture(params=LACKS)
def charset(request):
    return request.param


@pytest.fixture
def service(backend, database_url, charset):
    with opened(database_url) as database:
        with database.engine.connect() as connection:
            connection.exec_driver_sql(f"ALTER DATABASE CHARACTER SET {charset}")
        made.sync(database.engine)
        standard.insert(database)
        call = placement(database)
        assert call("POST", "/resource_providers", 39, {"uuid": UUID, "name": "A"}).status == 200
        yield call


def claim(project="p", user="u"):
    return {
        "allocations": {UUID: {"resources": {"VCPU": 1}}},
        "project_id": project,
        "user_id": user,
        "consumer_generation": None,
        "consumer_type": "INSTANCE",
    }


QUERIES = [
    "/resource_providers?name={}",
    "/resource_providers?uuid={}",
    "/resource_providers?required={}",
    "/resource_providers?resources={}:1",
    "/resource_providers?member_of={}",
    "/resource_providers?in_tree={}",
    "/resource_providers/{}",
    "/resource_providers/{}/inventories",
    "/resource_providers/{}/inventories/{}",
    f"/resource_providers/{UUID}/inventories/{{}}",
    "/resource_providers/{}/aggregates",
    "/resource_providers/{}/traits",
    "/resource_providers/{}/usages",
    "/resource_providers/{}/allocations",
    "/resource_classes/{}",
    "/traits?name=in:{}",
    "/traits?name=in:A,{}",
    "/traits?name=in:A,{},B,{}",
    "/traits?name=in:A,B,C,{}",
    "/traits?name=startswith:{}",
    "/traits/{}",
    "/usages?project_id={}",
    "/usages?project_id=p&user_id={}",
    "/usages?project_id={}&user_id={}",
    "/usages?project_id=p&consumer_type={}",
    "/allocations/{}",
    "/allocation_candidates?resources={}:1",
    "/allocation_candidates?resources=VCPU:1,{}:1",
    "/allocation_candidates?resources=VCPU:1&required={}",
    "/allocation_candidates?resources=VCPU:1&required=in:HW_CPU_X86_VMX,{}",
    "/allocation_candidates?resources=VCPU:1&member_of=in:{},{}",
    "/allocation_candidates?resources=VCPU:1&in_tree={}",
]


@pytest.mark.parametrize("backend", ["mariadb"], indirect=True)
def test_a_query_with_unsupported_characters_is_not_an_internal_error(service, charset):
    for query in QUERIES:
        for text in (LACKS[charset], f"CUSTOM_{LACKS[charset]}"):
            answer = service("GET", query.replace("{}", urllib.parse.quote(text)), 39)
            assert answer.status < 500, (query, answer)


@pytest.mark.parametrize("backend", ["mariadb"], indirect=True)
def test_a_write_with_unsupported_characters_is_not_an_internal_error(service, charset):
    text = LACKS[charset]
    path = urllib.parse.quote(text)
    provider = f"/resource_providers/{UUID}"
    inventory = {"resource_provider_generation": 0, "inventories": {f"CUSTOM_{text}": {"total": 1}}}
    two_inventories = {
        "resource_provider_generation": 0,
        "inventories": {"VCPU": {"total": 1}, f"CUSTOM_{text}": {"total": 1}},
    }
    writes = [
        ("POST", "/resource_providers", {"uuid": OTHER, "name": text}),
        ("PUT", provider, {"name": text}),
        ("PUT", f"{provider}/inventories", inventory),
        ("PUT", f"{provider}/inventories", two_inventories),
        ("DELETE", f"{provider}/inventories/{path}", None),
        ("PUT", f"{provider}/traits", {"resource_provider_generation": 0, "traits": ["HW_CPU_X86_VMX", text]}),
        ("PUT", f"{provider}/aggregates", {"resource_provider_generation": 0, "aggregates": [text]}),
        ("PUT", f"/resource_classes/CUSTOM_{path}", None),
        ("DELETE", f"/resource_classes/CUSTOM_{path}", None),
        ("PUT", f"/traits/CUSTOM_{path}", None),
        ("DELETE", f"/traits/CUSTOM_{path}", None),
        ("PUT", f"/allocations/{OTHER}", claim(project=text)),
        ("PUT", f"/allocations/{OTHER}", claim(user=text)),
        ("PUT", f"/allocations/{OTHER}", claim(project=text, user=text)),
        ("PUT", f"/allocations/{OTHER}", claim() | {"consumer_type": text}),
        ("PUT", f"/allocations/{path}", claim()),
        ("POST", "/allocations", {OTHER: claim(project=text), UUID: claim(user=text)}),
        ("POST", "/reshaper", {"inventories": {UUID: two_inventories}, "allocations": {OTHER: claim(project=text)}}),
        ("DELETE", f"/allocations/{path}", None),
    ]
    for method, route, body in writes:
        answer = service(method, route, 39, body)
        assert 400 <= answer.status < 500, (method, route, answer)
    assert service("GET", provider, 39).body["name"] == "A"


@pytest.mark.parametrize("backend", ["mariadb"], indirect=True)
@pytest.mark.parametrize("owner_field", ["project", "user"])
def test_a_dry_run_for_an_owner_with_unsupported_characters_predicts_the_claim(service, charset, owner_field):
    stock = {"resource_provider_generation": 0, "inventories": {"VCPU": {"total": 8}}}
    assert service("PUT", f"/resource_providers/{UUID}/inventories", 39, stock).status == 200
    body = claim(**{owner_field: LACKS[charset]})
    tried = service("PUT", f"/allocations/{OTHER}?dry_run=true", 39, body)
    reply = service("PUT", f"/allocations/{OTHER}", 39, body)
    assert (tried.status, tried.error["detail"]) == (reply.status, reply.error["detail"])
