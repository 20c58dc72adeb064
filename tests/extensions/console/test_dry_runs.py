"""Dry runs from the pages: they show the response of the API, change nothing, and are refused to other origins."""

from __future__ import annotations

import html
import json
import re
from urllib.parse import urlencode

import pytest

from tests import servers, web
from tests.caller import NEW_CONSUMER
from tests.extensions.console.conftest import console
from tests.extensions.console.fleet import HOSTILE, send

pytestmark = pytest.mark.parametrize("backend", [servers.SQLite.kind], indirect=True, scope="session")

QUERY = "/query?resources1=VCPU:4&resources2=VGPU:1&group_policy=none&same_subtree=1,2"
FORM = {"content-type": "application/x-www-form-urlencoded"}
CALLER = {"x-auth-token": "ann:blue", "x-roles": "admin"}
AMOUNTS = {"reserved": "0", "min_unit": "1", "max_unit": "64", "step_size": "1", "allocation_ratio": "1.5"}


def post(app, path, fields, status=200, **headers):
    """Send a form; return the section of the page with the response, or the text of the page if there is none."""
    all_headers = {**FORM, **CALLER, **{name.replace("_", "-"): value for name, value in headers.items()}}
    reply = web.ask(app, "POST", f"/console{path}", all_headers, urlencode(fields).encode())
    assert reply.status_int == status, reply.text
    assert reply.headers["cache-control"] == "no-store"
    section = re.search(r'<section id="dry-run".*?</section>', reply.text, re.DOTALL)
    return html.unescape(section[0]) if section else reply.text


def claims(app, query=QUERY):
    """Return the claims that the cards of a page offer."""
    text = web.ask(app, "GET", f"/console{query}", CALLER).text
    return [html.unescape(claim) for claim in re.findall(r'name="claim" value="([^"]*)"', text)]


def levels(section):
    """Return the usage and the capacity by class, in the order of the page."""
    amounts = re.findall(r"<dt>(\w+)</dt>.*?<b>(\d+)</b> of (\d+)", section, re.DOTALL)
    return [(name, int(used), int(capacity)) for name, used, capacity in amounts]


@pytest.fixture
def check_unchanged(app, uuids):
    """Check that the test changes no generation, usage, inventory or consumer."""

    def state():
        paths = [f"/resource_providers/{uuid}{part}" for uuid in uuids.values() for part in ("/inventories", "/usages")]
        return [send(app, "GET", path) for path in (*paths, "/v1/consumers", "/resource_providers")]

    before = state()
    yield
    assert state() == before


# --- claims ---


@pytest.mark.usefixtures("check_unchanged")
def test_each_candidate_can_be_tried_and_shows_the_room_of_the_api(app, uuids):
    offered = claims(app)
    assert len(offered) == 2
    for claim in offered:
        section = post(app, QUERY, {"claim": claim})
        assert "Dry run: this claim would be accepted" in section
        assert "204 No Content" in section
        body = json.loads(claim)
        assert {name for allocation in body["allocations"].values() for name in allocation["resources"]} == {
            "VCPU",
            "VGPU",
        }
        assert body["mappings"].keys() == {"1", "2"}
        path = "/allocations/0b1c6a2e-3d7f-4f0c-8a62-51f0c0d8a099?dry_run=true"
        room = send(app, "PUT", path, {**body, **NEW_CONSUMER})["room"]
        expected = sorted(
            (name, level["used"], level["capacity"]) for classes in room.values() for name, level in classes.items()
        )
        assert sorted(levels(section)) == expected
        assert ("VGPU", 1, 4) in expected


@pytest.mark.usefixtures("check_unchanged")
def test_a_claim_beyond_the_capacity_is_refused_with_the_reason_and_the_room(app, uuids):
    claim = json.loads(claims(app)[0])
    gpu = next(uuid for uuid, allocation in claim["allocations"].items() if "VGPU" in allocation["resources"])
    claim["allocations"][gpu]["resources"]["VGPU"] = 5
    section = post(app, QUERY, {"claim": json.dumps(claim)})
    assert "Dry run: this claim would be refused" in section
    assert "409 Conflict" in section
    assert "Unable to allocate inventory" in section
    assert ("VGPU", 0, 4) in levels(section)


@pytest.mark.usefixtures("check_unchanged")
def test_the_command_sends_the_same_dry_run(app, uuids):
    claim = claims(app)[0]
    section = post(app, QUERY, {"claim": claim})
    path, document = re.search(r"'http://localhost:80(/allocations/[^']*)'.*?-d '(.*?)'", section, re.DOTALL).groups()
    assert path.endswith("?dry_run=true")
    body = json.loads(document)
    assert body == json.loads(claim) | {
        "project_id": "blue",
        "user_id": "ann",
        "consumer_generation": None,
        "consumer_type": "INSTANCE",
    }
    assert send(app, "PUT", path, body)["dry_run"]["status"] == 204


@pytest.mark.usefixtures("check_unchanged")
@pytest.mark.parametrize(
    "claim", ["", "nonsense", "[]", "null", '"x"', '{"a": "\\u0000"}', "\0", "\ud800".encode("utf-8", "surrogatepass")]
)
def test_a_form_without_a_claim_is_refused(app, uuids, claim):
    text = post(app, QUERY, {"claim": claim}, 400)
    assert "Bad Request" in text


@pytest.mark.usefixtures("check_unchanged")
@pytest.mark.parametrize(
    ("claim", "reason"),
    [
        ("{}", "allocations is missing; an object"),
        ('{"allocations": {}, "colour": "red"}', "colour is unknown; one of allocations, "),
        ('{"allocations": {"x": {}}}', "allocations.x is unknown; "),
    ],
)
def test_an_invalid_claim_is_shown_with_the_reason(app, uuids, claim, reason):
    section = post(app, QUERY, {"claim": claim})
    assert "would be refused" in section
    assert "400 Bad Request" in section
    assert reason in section
    assert levels(section) == []


def test_a_name_is_text_in_the_response_too(app, uuids):
    reply = web.ask(
        app,
        "POST",
        "/console/query?resources=VCPU:4",
        {**FORM, **CALLER},
        urlencode({"claim": json.dumps({"allocations": {uuids[HOSTILE]: {"resources": {"VCPU": 1}}}})}).encode(),
    )
    assert 'id="dry-run"' in reply.text
    assert HOSTILE not in reply.text


@pytest.mark.parametrize("claim", ['{"allocations": {"<hostile>": {}}}', '{"allocations": {}, "<hostile>": 1}'])
def test_a_claim_never_becomes_an_element(app, uuids, claim):
    reply = web.ask(app, "POST", "/console/query", {**FORM, **CALLER}, urlencode({"claim": claim}).encode())
    assert 'id="dry-run"' in reply.text
    assert "&lt;hostile&gt;" in reply.text
    assert "<hostile" not in reply.text


# --- claims placed by the service ---


def choice(app, query, **fields):
    """Send the form of a strategy; return the section with the response."""
    return post(app, f"/query?{query}", {"strategy": "spread", "spread_over": "", "count": "1", **fields})


def takes(section):
    """Return the provider's name, the class, and the usage before and after the claim, for each row."""
    rows = re.findall(r'<tr><td><a href="[^"]*">([^<]*)</a>(.*?)</tr>', section, re.DOTALL)
    gauge = r'<span class="class">(\w+)</span>.*?<span class="amounts">(\d+) → <b>(\d+)</b>'
    return [(name, *re.search(gauge, row, re.DOTALL).groups()) for name, row in rows]


@pytest.mark.usefixtures("check_unchanged")
def test_the_place_that_the_service_would_choose_is_drawn_with_the_remaining_room(app, uuids):
    query = "resources1=VCPU:4&resources2=VGPU:1&group_policy=none&same_subtree=1,2&limit=1"
    section = choice(app, query)
    assert "Dry run: this claim would be accepted" in section
    assert "Resources to be taken" in section
    (numa, *cores), (card, *gpu) = takes(section)
    assert (cores, gpu) in ((["VCPU", "0", "4"], ["VGPU", "0", "1"]), (["VCPU", "48", "52"], ["VGPU", "0", "1"]))
    assert card == f"{numa}-gpu"
    assert sorted(levels(section.partition("Free capacity afterwards")[2])) in (
        [("VCPU", 4, 64), ("VGPU", 1, 4)],
        [("VCPU", 52, 64), ("VGPU", 1, 4)],
    )


@pytest.mark.usefixtures("check_unchanged")
def test_the_form_decides_how_the_service_chooses(app, uuids):
    packed = choice(app, "resources=MEMORY_MB:1024", strategy="pack")
    assert '"strategy": "pack"' in packed
    assert "would be accepted" in packed
    assert 'requests[0].count is "+1"; a whole number' in html.unescape(choice(app, "resources=VCPU:1", count="+1"))
    twice = choice(app, "resources=MEMORY_MB:1024", count="2")
    assert "would be refused" in twice
    assert "409 Conflict" in twice
    assert "not enough for its copies" in twice
    spread = choice(app, "resources=MEMORY_MB:1024", strategy="pack", spread_over=" aggregate ")
    assert '"spread_over": "aggregate"' in spread


@pytest.mark.usefixtures("check_unchanged")
def test_the_form_keeps_its_fields_within_their_limits(app, uuids):
    fields = {"strategy": "random", "spread_over": "root", "count": "99999999999999999999"}
    reply = web.ask(app, "POST", "/console/query?resources=VCPU:1", {**FORM, **CALLER}, urlencode(fields).encode()).text
    assert '<option value="random" selected>' in reply
    assert 'name="spread_over" value="root"' in reply
    assert 'max="60" value="60"' in reply


# --- inventories ---


def inventory(app, uuids, **changes):
    """Try a change of the VCPU inventory of the first NUMA node, with 48 of 32 used; return the response."""
    generation = send(app, "GET", f"/resource_providers/{uuids['cn1-numa0']}")["generation"]
    fields = {"resource_class": "VCPU", "resource_provider_generation": str(generation), **AMOUNTS, **changes}
    return post(app, "/providers/cn1-numa0", fields)


@pytest.mark.usefixtures("check_unchanged")
def test_an_inventory_can_be_tried(app, uuids):
    text = web.ask(app, "GET", "/console/providers/cn1-numa0", CALLER).text
    fields = dict(re.findall(r'<input id="VCPU-\w+" name="(\w+)" value="([^"]*)"', text))
    assert fields["total"] == "32"
    assert fields.keys() == {"total", *AMOUNTS}
    section = inventory(app, uuids, total="40")
    assert "Dry run: this change would be accepted" in section
    assert levels(section) == [("VCPU", 48, 60)]
    assert levels(inventory(app, uuids, total="30")) == [("VCPU", 48, 45)]
    assert "over by 3" in inventory(app, uuids, total="30")


@pytest.mark.usefixtures("check_unchanged")
@pytest.mark.parametrize(
    ("changes", "status", "reason"),
    [
        ({"total": "x"}, "400 Bad Request", 'total is "x"; a whole number from 1 to 2147483647'),
        ({"total": ""}, "400 Bad Request", 'total is ""; a whole number from 1 to 2147483647'),
        ({"total": "nan"}, "400 Bad Request", 'total is "nan"; a whole number from 1 to 2147483647'),
        ({"total": "0"}, "400 Bad Request", "total is 0; a whole number from 1 to 2147483647"),
        ({"total": "8", "resource_provider_generation": "0"}, "409 Conflict", "generation conflict"),
        ({"total": "8", "reserved": "9"}, "400 Bad Request", "Invalid inventory"),
        ({"total": "8", "resource_class": "VGPU"}, "400 Bad Request", "No inventory of class VGPU found"),
    ],
)
def test_an_inventory_that_would_be_refused_is_shown_with_the_reason(app, uuids, changes, status, reason):
    section = inventory(app, uuids, **changes)
    assert "this change would be refused" in section
    assert status in section
    assert reason in html.unescape(section)


# --- rights ---


def test_only_callers_who_may_write_can_try_a_write(module_database_url, uuids, tmp_path):
    path = tmp_path / "policy.yaml"
    seeing = ("allocation_candidates:list", "v1:providers:show")
    path.write_text("".join(f'"placement:{rule}": "role:reader"\n' for rule in seeing))
    app = console(module_database_url, oslo_policy__policy_file=str(path))
    reader = {"x-auth-token": "ann:blue", "x-roles": "reader"}
    for address, button in ((QUERY, "Try this claim"), ("/providers/cn1-numa0", "Try this change")):
        text = web.ask(app, "GET", f"/console{address}", reader)
        assert text.status_int == 200
        assert button not in text.text
    fields = {"claim": '{"allocations": {}}', "resource_class": "VCPU", "total": "3"}
    assert "placement:allocations:update" in post(app, QUERY, fields, 403, x_roles="reader")
    text = post(app, "/providers/cn1-numa0", fields, 403, x_roles="reader")
    assert "placement:resource_providers:inventories:update" in text


@pytest.mark.usefixtures("check_unchanged")
def test_a_form_has_the_limits_of_a_request_body(app, uuids):
    assert "more than 500000 values" in post(app, "/query", [("a", "")] * 500_002, 413)
    assert "more than 500000 values" in post(app, "/query", {"claim": f"[{'1,' * 500_001}1]"}, 413)
    assert "nested too deeply" in post(app, "/query", {"claim": '{"a":' * 500 + "1" + "}" * 500}, 400)


@pytest.mark.parametrize("path", ["/query", "/providers/pool"])
@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "https://example.org"},
        {"origin": "null"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site", "origin": "http://localhost:80"},
    ],
)
def test_a_page_of_another_origin_cannot_try_anything(app, uuids, path, headers):
    with_token = web.ask(app, "POST", f"/console{path}", {**FORM, **CALLER, **headers}, b"claim={}")
    assert with_token.status_int == 403
    assert "A page of another origin sent this request." in with_token.text
    assert "cn1" not in with_token.text
    without_token = web.ask(app, "POST", f"/console{path}", {**FORM, **headers}, b"claim={}")
    assert without_token.status_int == 403


def test_a_page_of_the_console_acts_as_an_administrator_with_noauth2(app, uuids):
    headers = {**FORM, "origin": "http://localhost:80", "host": "localhost:80"}
    reply = web.ask(app, "POST", f"/console{QUERY}", headers, urlencode({"claim": claims(app)[0]}).encode())
    assert reply.status_int == 200
    assert "would be accepted" in reply.text
