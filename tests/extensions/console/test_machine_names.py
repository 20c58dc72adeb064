"""A machine, whose provider is named by its uuid, is shown by the name of its node on every page (docs: console)."""

from __future__ import annotations

import re
from typing import NamedTuple

import pytest

from placement.db.schema.tables import utcnow
from tests import servers, web
from tests.db.extensions.bare_metal import Nodes
from tests.extensions.console.fleet import provider, send
from tests.made import opened

pytestmark = pytest.mark.parametrize("backend", [servers.SQLite.kind], indirect=True, scope="session")


#: Consumers.
ONE, TWO = "0c000000-0000-4000-8000-000000000001", "0c000000-0000-4000-8000-000000000002"
OWNER = {"project_id": "blue", "user_id": "ann", "consumer_type": "INSTANCE"}


class Rack(NamedTuple):
    """Machines with the nodes rack-1 and "taken", the provider "taken", and a date when all of them exist."""

    machine: str
    namesake: str
    provider: str
    then: str


@pytest.fixture(scope="module")
def rack(app, module_database_url):
    with opened(module_database_url) as database:
        nodes = Nodes(database)
        machine, namesake = nodes.node("rack-1"), nodes.node("taken")
    taken = provider(app, "taken", CUSTOM_BM=1)
    newest = send(app, "GET", "/v1/events?limit=1000")["events"][-1]["at"]
    while f"{utcnow().isoformat(timespec='milliseconds')}000Z" <= newest:
        pass
    send(app, "PUT", "/traits/CUSTOM_LATER")
    return Rack(machine, namesake, taken, newest)


def page(app, path):
    reply = web.ask(app, "GET", f"/console{path}")
    assert reply.status_int == 200, reply.text
    return reply


def names(text):
    """Return the text of the first link to each provider, by uuid; links of past events may contain earlier names."""
    links = re.findall(r'href="/console/providers/([-0-9a-f]{36})[^"]*"[^>]*>([^<]*)</a>', text.partition("</h1>")[2])
    return dict(reversed(links))


@pytest.mark.parametrize("moment", ["", "&at={then}"], ids=["now", "then"])
def test_the_map_of_the_hosts_names_the_machine(app, rack, moment):
    hosts = page(app, f"/hosts?class=CUSTOM_BM{moment.format(then=rack.then)}").json
    expected = {rack.machine: "rack-1", rack.namesake: rack.namesake, rack.provider: "taken"}
    assert dict(zip(hosts["uuids"], hosts["names"], strict=True)) == expected


@pytest.mark.parametrize(
    "path",
    [
        "/providers",
        "/query?resources=CUSTOM_BM:1",
        "/query?resources=CUSTOM_BM:2",
        "/?class=CUSTOM_BM",
        "/?class=CUSTOM_BM&at={then}",
    ],
)
def test_links_name_the_machine(app, rack, path):
    names_by_uuid = names(page(app, path.format(then=rack.then)).text)
    expected = {rack.machine: "rack-1", rack.namesake: rack.namesake, rack.provider: "taken"}
    assert {uuid: names_by_uuid.get(uuid) for uuid in expected} == expected


@pytest.mark.parametrize("moment", ["", "?at={then}"], ids=["now", "then"])
def test_the_page_of_a_machine_has_its_name_and_is_found_by_it(app, rack, moment):
    moment = moment.format(then=rack.then)
    for ident, uuid, name in (
        (rack.machine, rack.machine, "rack-1"),
        ("rack-1", rack.machine, "rack-1"),
        (rack.namesake, rack.namesake, rack.namesake),
        ("taken", rack.provider, "taken"),
    ):
        text = page(app, f"/providers/{ident}{moment}").text
        assert f"<h1>{name}</h1>" in text
        assert names(text)[uuid] == name


def test_candidates_and_the_trees_with_the_most_room_name_the_machine(app, rack):
    counted, _, cards = page(app, "/query?resources=CUSTOM_BM:1").text.partition('<ol class="candidates">')
    for part in (counted, cards):
        assert names(f"</h1>{part}")[rack.machine] == "rack-1"


@pytest.mark.parametrize("ident", ["machine", "namesake", "provider"])
def test_a_query_in_the_tree_of_a_machine_names_it(app, rack, ident):
    uuid = getattr(rack, ident)
    name = {"machine": "rack-1", "namesake": rack.namesake, "provider": "taken"}[ident]
    [address] = re.findall(r'href="/console([^"]*)">Query in this tree', page(app, f"/providers/{uuid}").text)
    assert address == f"/query?in_tree={name}"
    names_by_uuid = names(page(app, f"{address}&resources=CUSTOM_BM:1").text)
    assert names_by_uuid[uuid] == name


def test_sentences_and_allocations_name_the_machine(app, rack):
    """A machine whose node has the name of a provider keeps its uuid."""
    requests = [
        {"query": f"resources=CUSTOM_BM:1&in_tree={uuid}", "consumer": consumer, **OWNER}
        for uuid, consumer in ((rack.machine, ONE), (rack.namesake, TWO))
    ]
    assert send(app, "POST", "/v1/claims", {"requests": requests})["claimed"] == 2
    for uuid, consumer, name in ((rack.machine, ONE, "rack-1"), (rack.namesake, TWO, rack.namesake)):
        assert names(page(app, "/consumers").text)[uuid] == name
        allocations = page(app, f"/consumers/{consumer}").text.partition("Allocations")[2]
        assert names(f"</h1>{allocations}")[uuid] == name
        text = page(app, f"/query?resources=CUSTOM_BM:1&in_tree={uuid}").text
        assert f"Without in_tree={name}, there would be 1 candidate" in text
    for consumer in (ONE, TWO):
        send(app, "DELETE", f"/v1/claims?consumer={consumer}")
