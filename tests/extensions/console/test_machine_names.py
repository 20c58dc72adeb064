"""A machine, whose provider has its uuid as the name, has the name of its node on every page (docs: console)."""

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


class Rack(NamedTuple):
    """A machine whose node is rack-1, one whose node has the name of the provider "taken", and a moment after that."""

    machine: str
    namesake: str
    provider: str
    then: str


@pytest.fixture(scope="module")
def rack(app, module_database_url):
    with opened(module_database_url) as database:
        nodes = Nodes(database)
        machine, namesake = nodes.node("rack-1"), nodes.node("taken")
    named = provider(app, "taken", CUSTOM_BM=1)
    newest = send(app, "GET", "/v1/events?limit=1000")["events"][-1]["at"]
    while f"{utcnow().isoformat(timespec='milliseconds')}000Z" <= newest:
        pass
    send(app, "PUT", "/traits/CUSTOM_LATER")
    return Rack(machine, namesake, named, newest)


def page(app, path):
    reply = web.ask(app, "GET", f"/console{path}")
    assert reply.status_int == 200, reply.text
    return reply


def names(text):
    """Return the names of the first links to providers, by uuid: an event has the name of then."""
    found = re.findall(r'href="/console/providers/([-0-9a-f]{36})[^"]*"[^>]*>([^<]*)</a>', text.partition("</h1>")[2])
    return dict(reversed(found))


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
    found = names(page(app, path.format(then=rack.then)).text)
    expected = {rack.machine: "rack-1", rack.namesake: rack.namesake, rack.provider: "taken"}
    assert {uuid: found.get(uuid) for uuid in expected} == expected


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


def test_a_query_in_the_tree_of_a_machine_has_its_uuid(app, rack):
    """A query finds no provider by the name of a node."""
    text = page(app, f"/providers/{rack.machine}").text
    [address] = re.findall(r'href="/console([^"]*)">Query in this tree', text)
    assert address == f"/query?in_tree={rack.machine}"
    assert names(page(app, f"{address}&resources=CUSTOM_BM:1").text)[rack.machine] == "rack-1"
    assert 'href="/console/query?in_tree=taken">Query in this tree' in page(app, "/providers/taken").text
