"""The pages of the console: their content, their rights, and the escaping of every text of a client."""

from __future__ import annotations

import html
import itertools
import json
import re
import shlex
import uuid
from importlib import metadata, resources
from urllib.parse import parse_qsl, quote

import pytest

from placement import microversion as mv
from placement.extensions.console import pages
from placement.extensions.console.api import CONTENT_SECURITY_POLICY
from placement.extensions.v1.api import V1
from placement.extensions.v1.openapi import examples
from placement.extensions.v1.openapi.document import endpoints_at
from placement.routes import PLACEMENT
from placement.version_history import OLDEST
from tests import servers, web
from tests.clock import Clock
from tests.extensions.console.conftest import console
from tests.extensions.console.fleet import CONSUMER, GONE, GONE_CONSUMER, HOSTILE, provider, send

pytestmark = pytest.mark.parametrize("backend", [servers.SQLite.kind], indirect=True, scope="session")

PAGES = [
    *("", "/", "/providers", "/query", "/query?resources=VCPU:1", "/consumers", "/api", "/?class=DISK_GB"),
    *(f"/consumers/{CONSUMER}", "/usage", "/usage?period=month&class=VCPU", "/events", "/events?kind=trait", "/doctor"),
]
ESCAPED = str(html.escape(HOSTILE)).replace("&quot;", "&#34;").replace("&#x27;", "&#39;")


def page(app, path, status=200, **headers):
    """Return the text of a page."""
    reply = web.ask(app, "GET", f"/console{path}", headers)
    assert reply.status_int == status, reply.text
    assert reply.headers["content-type"] == "text/html; charset=UTF-8"
    return reply.text


# --- every page ---


@pytest.mark.parametrize("path", PAGES)
def test_a_page_is_complete_and_names_no_other_host(app, uuids, path):
    text = page(app, path)
    assert text.startswith("<!doctype html>")
    assert text.rstrip().endswith("</html>")
    assert '<html lang="en"' in text
    assert len(re.findall("<h1>", text)) == 1
    addresses = re.findall(r'(?:href|src|action)="([^"]*)"', text)
    own_prefixes = ("/console", "#main", "/v1/openapi")
    assert {address for address in addresses if not address.startswith(own_prefixes)} == set()


@pytest.mark.parametrize("path", [*PAGES, "/nothing", "/providers/nothing", "/assets/console.css", "/hosts"])
def test_every_response_has_the_security_headers(app, uuids, path):
    reply = web.ask(app, "GET", f"/console{path}")
    assert reply.headers["content-security-policy"] == CONTENT_SECURITY_POLICY
    assert reply.headers["x-content-type-options"] == "nosniff"
    assert reply.headers["referrer-policy"] == "same-origin"
    assert "unsafe" not in CONTENT_SECURITY_POLICY
    if reply.headers["content-type"].startswith("text/html"):
        assert not re.search(r"<style|\sstyle=|\son\w+=|<script(?! type=\"module\" src=)", reply.text)


@pytest.mark.parametrize("path", [*PAGES, "/hosts", "/query/form", "/nothing", "/providers/nothing", "/assets/nothing"])
@pytest.mark.parametrize("caller", [{}, {"x-auth-token": "stranger"}, {"origin": "https://example.org"}])
def test_no_cache_stores_a_page(app, uuids, path, caller):
    assert web.ask(app, "GET", f"/console{path}", caller).headers.getall("cache-control") == ["no-store"]


@pytest.mark.parametrize("path", ["/", "/providers", "/providers?name=script"])
def test_a_name_is_always_text(app, uuids, path):
    text = page(app, path)
    assert HOSTILE not in text
    assert ESCAPED in text


def test_a_hostile_name_is_text_on_its_own_page_and_in_its_own_error(app, uuids):
    assert f"<h1>{ESCAPED}</h1>" in page(app, f"/providers/{uuids[HOSTILE]}")
    missing = page(app, "/providers/" + quote("<b>nobody", safe=""), 404)
    assert "&lt;b&gt;nobody" in missing
    assert "<b>nobody" not in missing


@pytest.mark.parametrize("field", ["name", "class", "trait", "aggregate"])
def test_a_search_term_is_text(app, uuids, field):
    text = page(app, f"/providers?{field}=" + quote('"><script>1</script>'))
    assert "<script>1" not in text
    assert "0 providers" in text


def test_a_query_is_shown_as_text(app, uuids):
    text = page(app, "/query?raw=" + quote('resources="><script>1</script>'), 400)
    assert "<script>1" not in text


#: A text that would end an attribute, a text area or a title, and begin an element.
ELEMENT = "\"'></textarea></title><hostile>"
INPUTS = [
    "/?class={}",
    "/providers/{}",
    *(f"/providers?{name}={{}}" for name in ("name", "class", "trait", "aggregate", "page", "{}")),
    *(
        f"/query?{name}={{}}"
        for name in (
            "raw",
            "resources",
            "required",
            "in_tree",
            "member_of",
            "same_subtree",
            "limit",
            "group_policy",
            "{}",
        )
    ),
    "/query?raw={}%3D1%26resources%3DVCPU%3A1",
    "/query?raw=resources{}%3DVCPU%3A1",
    "/query?raw=resources_{}%3DVCPU%3A1%26group_policy={}",
    "/query?resources=VCPU:1&in_tree={}",
    "/query/form?raw=resources{}%3D{}",
    *(
        f"/consumers?{name}={{}}"
        for name in ("project", "user", "type", "provider", "class", "older_than", "newer_than", "after", "{}")
    ),
    "/consumers/{}",
    "/providers/pool?after={}",
    "/usage?class={}",
    "/usage?period={}",
    *(f"/events?{name}={{}}" for name in ("kind", "provider", "consumer", "project", "after", "position", "{}")),
    *(f"/events/rows?{name}={{}}" for name in ("kind", "provider", "consumer", "after", "position", "{}")),
    "/api?of={}",
    "/api?of=placement&version={}",
    "/api?version={}",
    "/{}",
    "/assets/{}",
]


@pytest.mark.parametrize("path", INPUTS)
def test_input_never_becomes_an_element(app, uuids, path):
    reply = web.ask(app, "GET", "/console" + path.replace("{}", quote(ELEMENT, safe="")))
    assert reply.status_int in (200, 400, 404, 406)
    assert reply.headers["content-type"].startswith("text/html")
    assert "<hostile" not in reply.text


@pytest.mark.parametrize(
    "path",
    [
        *("/", "/?class=VCPU", "/providers", "/providers/{}", "/consumers", "/query?resources=VCPU:9999"),
        *(f"/consumers/{CONSUMER}", "/events", "/events?provider={}", "/events/rows?provider={}", "/doctor"),
    ],
)
def test_a_name_never_becomes_an_element(app, uuids, path):
    text = page(app, path.format(uuids[HOSTILE]))
    assert ESCAPED in text
    scripts = [] if "rows" in path else ['<script type="module" src="/console/assets/console.js">']
    assert re.findall("<script[^>]*>", text) == scripts


def test_no_template_can_disable_the_escaping(backend):
    assert pages._TEMPLATES.autoescape is True
    for template in resources.files("placement.extensions.console").joinpath("templates").iterdir():
        assert not re.search(r"\bsafe\b|autoescape|Markup", template.read_text()), template.name


# --- the overview ---


def test_the_overview_sums_each_class(app, uuids):
    text = page(app, "/")
    assert "8 providers in 4 trees" in text
    rows = re.findall(
        r'class=[A-Z_]+"[^>]*>(\w+)</a></th><td class="gauges">.*?<b>([^<]*)</b> of ([^<]*)</span>', text, re.DOTALL
    )
    numbers = {name: (used, capacity) for name, used, capacity in rows}
    assert numbers["DISK_GB"] == ("500\N{NARROW NO-BREAK SPACE}GiB", "9.77\N{NARROW NO-BREAK SPACE}TiB")
    assert numbers["VCPU"] == ("64", "140")
    assert numbers["VGPU"] == ("0", "8")


def test_hosts_are_shown_by_the_chosen_class(app, uuids):
    text = page(app, "/?class=DISK_GB")
    assert "DISK_GB on 1 host</h2>" in text
    fullest = text.partition('<h2 id="fullest">')[2].partition("</section>")[0]
    assert re.findall(r"<a [^>]*>([^<]*)</a>", fullest) == ["pool"]
    assert "VCPU on 2 hosts</h2>" in page(app, "/")


def test_the_overview_names_providers_that_need_attention(app, uuids):
    line = page(app, "/").partition('<p class="acts"')[2].partition("</p>")[0]
    assert [
        (ident, words(link_text))
        for ident, link_text in re.findall(r'href="/console/providers/([^"]*)">(.*?)</a>', line)
    ] == [
        (uuids[HOSTILE], f"{HOSTILE} is over-committed by 4 VCPU"),
        (uuids[HOSTILE], f"{HOSTILE} is disabled but in use"),
    ]


def test_the_heat_map_shows_each_host_once_with_its_whole_tree(app, uuids):
    document = web.ask(app, "GET", "/console/hosts?class=VCPU").json
    assert document == {
        "resource_class": "VCPU",
        "uuids": [uuids[HOSTILE], uuids["cn1"]],
        "names": [HOSTILE, "cn1"],
        "capacity": [12, 128],
        "used": [16, 48],
        "disabled": [True, False],
        "over": [True, False],
        "groups": [["", 2]],
    }
    grouped = web.ask(app, "GET", "/console/hosts?class=VCPU&group=aggregate").json
    assert grouped["groups"] == [["c5a54d7e-52a1-4d38-9b5b-7c8a8fd6a111", 1], ["none", 1]]
    assert grouped["names"] == ["cn1", HOSTILE]
    assert web.ask(app, "GET", "/console/hosts?class=NOTHING").json["names"] == []


# --- providers ---


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("name=NUMA0", ["cn1-numa0", "cn1-numa0-gpu"]),
        ("trait=CUSTOM_RED", ["cn1-numa0-gpu", "cn1-numa1-gpu"]),
        ("class=DISK_GB", ["pool"]),
        ("aggregate=c5a54d7e-52a1-4d38-9b5b-7c8a8fd6a111", ["cn1", "pool"]),
        ("trait=CUSTOM_RED&name=numa1", ["cn1-numa1-gpu"]),
        ("trait=CUSTOM_NONE", []),
        ("class=CUSTOM_NONE", []),
        ("aggregate=none", []),
    ],
)
def test_providers_are_found_by_filters(app, uuids, query, names):
    shown_names = re.findall(r'<tr><th scope="row"><a [^>]*>([^<]*)</a>', page(app, f"/providers?{query}"))
    assert shown_names == names


def test_a_provider_is_found_by_its_uuid(app, uuids):
    assert ">pool</a>" in page(app, f"/providers?name={uuids['pool'].upper()}")


@pytest.mark.parametrize(
    ("sort", "names"),
    [
        ("name", [HOSTILE, "cn1", "cn1-numa0", "cn1-numa0-gpu", "cn1-numa1", "cn1-numa1-gpu", "empty", "pool"]),
        ("-name", ["pool", "empty", "cn1-numa1-gpu", "cn1-numa1", "cn1-numa0-gpu", "cn1-numa0", "cn1", HOSTILE]),
        ("-tree", ["pool", "empty", "cn1", "cn1-numa0", "cn1-numa0-gpu", "cn1-numa1", "cn1-numa1-gpu", HOSTILE]),
        ("-used", [HOSTILE, "cn1-numa0", "pool", "cn1", "cn1-numa0-gpu", "cn1-numa1", "cn1-numa1-gpu", "empty"]),
        ("-used&class=VCPU", [HOSTILE, "cn1-numa0", "cn1-numa1"]),
        ("used&class=VCPU", ["cn1-numa1", "cn1-numa0", HOSTILE]),
    ],
)
def test_the_list_is_sorted_by_a_column(app, uuids, sort, names):
    text = page(app, f"/providers?sort={sort}")
    shown_names = re.findall(r'<tr><th scope="row"><a [^>]*>([^<]*)</a>', text)
    assert [*map(html.unescape, shown_names)] == names
    [head] = re.findall(r'<th scope="col" aria-sort="(\w+)"><a href="/console/providers([^"]*)">(\w+)</a>', text)
    by = sort.partition("&")[0]
    assert head[0] == ("descending" if by.startswith("-") else "ascending")
    assert head[2] == {"name": "Provider", "tree": "Tree", "used": "Used"}[by.removeprefix("-")]
    reversed_list = page(app, "/providers" + html.unescape(head[1]))
    assert re.search(r'aria-sort="(\w+)"', reversed_list)[1] != head[0]


def test_providers_that_are_named_by_their_uuid_come_last(database_url):
    """An example is the provider of an unnamed machine."""
    app = console(database_url)
    unnamed = "00000000-0000-4000-8000-000000000001"
    send(app, "POST", "/resource_providers", {"name": unnamed, "uuid": unnamed})
    provider(app, "z")
    shown_names = re.findall(r'<tr><th scope="row"><a [^>]*>([^<]*)</a>', page(app, "/providers"))
    assert shown_names == ["z", unnamed]


@pytest.mark.parametrize(("rows", "pages"), [(3, 3), (4, 2), (8, 1)])
def test_the_pages_of_the_list_contain_each_provider_once(app, uuids, monkeypatch, rows, pages):
    """No empty page follows a full last page."""
    monkeypatch.setattr("placement.extensions.console.handlers.provider.ROWS", rows)
    address, names, steps = "/providers?class=&name=", [], 0
    while address:
        text = page(app, address)
        names += re.findall(r'<tr><th scope="row"><a [^>]*>([^<]*)</a>', text)
        assert ('rel="prev"' in text) == (steps > 0)
        link = re.search(r'rel="next" href="/console([^"]*)"', text)
        address, steps = html.unescape(link[1]) if link else "", steps + 1
    assert steps == pages
    assert sorted(map(html.unescape, names)) == sorted(uuids)


def test_the_list_is_split_into_pages(app, uuids):
    assert "0 providers" not in page(app, "/providers?page=1")
    assert 'rel="prev"' not in page(app, "/providers")
    assert page(app, "/providers?page=999999").count("<tr>") == 0


def test_a_page_after_the_last_one_redirects_to_it(app, uuids, monkeypatch):
    monkeypatch.setattr("placement.extensions.console.handlers.provider.ROWS", 3)
    assert 'rel="prev" href="/console/providers?page=3"' in page(app, "/providers?page=999999")


@pytest.mark.parametrize(
    "query", ["sort=colour", "page=0", "page=-1", "page=x", "page=", "colour=red", "name=" + "x" * 300, "name=%00"]
)
def test_an_invalid_search_is_refused(app, query):
    page(app, f"/providers?{query}", 400)


def test_a_tree_is_drawn_with_bars_depth_and_sharing(app, uuids):
    text = page(app, f"/providers/{uuids['cn1-numa0']}")
    rows = re.findall(r'<tr class="depth-(\d)( here)?">\s*<th scope="row">.*?<a [^>]*>([^<]*)</a>', text, re.DOTALL)
    assert [(depth, bool(here), name) for depth, here, name in rows] == [
        ("0", False, "cn1"),
        ("1", True, "cn1-numa0"),
        ("2", False, "cn1-numa0-gpu"),
        ("1", False, "cn1-numa1"),
        ("2", False, "cn1-numa1-gpu"),
    ]
    assert '<rect class="used" width="75.0"' in text
    assert f'<a href="/console/providers/{uuids["pool"]}">pool</a>' in text
    assert "This tree can use the shared inventory of 1 provider:" in text
    pool = page(app, "/providers/pool")
    assert "This tree shares inventory by aggregate with 1 provider:" in pool
    assert f'<a href="/console/providers/{uuids["cn1"]}">cn1</a>' in pool


def test_a_provider_shows_the_allocations_in_its_tree(app, uuids):
    text = page(app, f"/providers/{uuids['cn1-numa0-gpu']}")
    assert "0 here, 1 in the tree" in text
    [row] = [row for row in text.split("<tr")[1:] if "/console/consumers/" in row]
    assert uuids["cn1-numa0"] in row
    assert f'href="/console/consumers/{CONSUMER}" title="48 VCPU for {CONSUMER} of blue">instance 0b1c6a2e</a>' in row
    assert "1 here, 1 in the tree" in page(app, f"/providers/{uuids['cn1-numa0']}")
    assert "0 here, 0 in the tree" in page(app, "/providers/" + uuids["empty"])


# --- consumers ---


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("", True),
        ("project=blue&user=ann&type=INSTANCE&provider=pool&class=DISK_GB&newer_than=1w&older_than=", True),
        ("project=red", False),
        ("user=bob", False),
        ("type=unknown", False),
        ("provider=cn1-numa1", False),
        ("class=VGPU", False),
        ("older_than=1d", False),
        ("newer_than=2999-01-01", False),
    ],
)
def test_consumers_are_found_by_filters(app, uuids, query, expected):
    text = page(app, f"/consumers?{query}")
    assert (f"<code>{CONSUMER}</code>" in text) is expected
    assert ("1 consumer, oldest first" in text) is expected
    assert (": 500\N{NARROW NO-BREAK SPACE}GiB disk" in text) is expected


@pytest.mark.parametrize(
    "query", ["provider=nothing", "class=NOTHING", "older_than=yesterday", "colour=red", "after=x", "type=a%3Cb"]
)
def test_an_invalid_search_for_consumers_is_shown_with_the_reason(app, uuids, query):
    text = page(app, f"/consumers?{query}", 400)
    assert 'role="alert"' in text
    assert CONSUMER not in text


def test_a_reader_sees_no_consumers(app, uuids):
    for path in ("/consumers", "/consumers?project=blue"):
        assert CONSUMER not in page(app, path, 403, **{"x-auth-token": "ann:blue", "x-roles": "reader"})


def test_a_policy_may_let_readers_see_only_the_consumers_of_their_own_project(app_for_readers, uuids):
    app, reader = app_for_readers, {"x-roles": "reader"}
    assert CONSUMER in page(app, "/consumers", **{"x-auth-token": "ann:blue"}, **reader)
    assert 'value="blue"' in page(app, "/consumers", **{"x-auth-token": "ann:blue"}, **reader)
    assert CONSUMER not in page(app, "/consumers", **{"x-auth-token": "ann:red"}, **reader)
    assert CONSUMER not in page(app, "/consumers?project=blue", 403, **{"x-auth-token": "ann:red"}, **reader)


@pytest.mark.parametrize("ident", [CONSUMER, CONSUMER.upper(), CONSUMER.replace("-", "")])
def test_a_consumer_has_a_page_with_its_allocations(app, uuids, ident):
    text = page(app, f"/consumers/{ident}")
    allocations = text.partition('<h2 id="held">')[2].partition("</section>")[0]
    assert re.sub(r"\s+", " ", re.sub("<[^>]*>", "", allocations)).strip().endswith(f"{ESCAPED}: 16 VCPU")
    assert f'<a href="/console/providers/{uuids["pool"]}">pool</a>: 500\N{NARROW NO-BREAK SPACE}GiB disk' in allocations
    assert '<a href="/console/consumers?project=blue">blue</a>' in text
    assert f'<a href="/console/consumers/{CONSUMER}"><code>{CONSUMER}</code></a>' in page(app, "/consumers")


@pytest.mark.parametrize("ident", ["nobody", "0b1c6a2e-3d7f-4f0c-8a62-51f0c0d8afff"])
def test_an_unknown_consumer_has_no_page(app, uuids, ident):
    assert "the history records no events of it" in page(app, f"/consumers/{ident}", 404)


def test_a_provider_has_no_page_as_a_consumer_and_a_consumer_none_as_a_provider(app, uuids):
    page(app, f"/consumers/{uuids['pool']}", 404)
    page(app, f"/providers/{CONSUMER}", 404)


# --- history ---


def words(text):
    """Return the text of HTML, without its elements."""
    return re.sub(r"\s+", " ", html.unescape(re.sub("<[^>]*>", "", text.replace("<br>", " ")))).strip()


def event_sentences(text):
    """Return the sentence of each event of a page, without the caller."""
    sentences = re.findall(r'<p class="what">(.*?)</p>', text, re.DOTALL)
    return [words(head).replace("\N{NARROW NO-BREAK SPACE}", " ").partition(", by admin")[0] for head in sentences]


#: The texts of the events of the deleted provider.
EVENTS_OF_GONE = [
    f"Provider {GONE} deleted",
    f"Provider {GONE} changed: only its generation",
    f"Provider {GONE} changed: new inventory of VGPU total 1, reserved 0",
    f"Provider {GONE} created",
]


def event_texts(text):
    """Return the text of each event of a page: its sentence, its lines, and its caller."""
    timeline = text.partition('<ol class="timeline">')[2].partition("</ol>")[0]
    return [words(event.partition("</p>")[2]) for event in timeline.split('<p class="when">')[1:]]


def test_a_provider_has_its_history_the_newest_first(app, uuids):
    events = event_texts(page(app, "/providers/pool"))
    assert [event.replace("\N{NARROW NO-BREAK SPACE}", " ").partition(", by admin")[0] for event in events] == [
        f"Consumer {GONE_CONSUMER[:8]} released 7 GiB disk on pool",
        f"Consumer {GONE_CONSUMER[:8]} claimed 7 GiB disk on pool",
        f"Consumer {CONSUMER[:8]} claimed 500 GiB disk on pool",
        "Provider pool changed: aggregates added c5a54d7e-52a1-4d38-9b5b-7c8a8fd6a111",
        "Provider pool changed: traits added MISC_SHARES_VIA_AGGREGATE",
        "Provider pool changed: new inventory of DISK_GB total 9.77 TiB, reserved 0",
        "Provider pool created",
    ]
    assert f"Allocated to {CONSUMER}: DISK_GB 500" in events[2]
    assert "PUT /allocations/{consumer_uuid} (placement) of project admin Request id req-" in events[2]
    assert "max unit 2 147 483 647, step size 1" in events[5].replace("\N{NARROW NO-BREAK SPACE}", " ")


def test_a_deleted_provider_keeps_its_last_name_in_events(database_url):
    app = console(database_url)
    first, child = provider(app, "first name"), "c0ffee00-0000-4000-8000-000000000001"
    send(app, "POST", "/resource_providers", {"name": "kid", "uuid": child, "parent_provider_uuid": first})
    send(app, "PUT", f"/resource_providers/{child}", {"name": "kid", "parent_provider_uuid": None})
    send(app, "DELETE", f"/resource_providers/{child}")
    send(app, "PUT", f"/resource_providers/{first}", {"name": "last name"})
    send(app, "DELETE", f"/resource_providers/{first}")
    sentences = event_sentences(page(app, "/events"))
    assert sentences[:2] == ["Provider last name deleted", "Provider last name renamed"]
    assert "Provider kid changed: parent last name removed" in sentences[3]


def test_a_change_is_shown_with_the_old_and_the_new_value(app, uuids):
    newest = event_texts(page(app, f"/providers/{uuids[HOSTILE]}"))[0]
    assert "Inventory of VCPU: total 16 → 12" in newest
    assert "Removed inventory of MEMORY_MB: total 32" in newest
    links = re.findall(r'href="([^"]*)"', page(app, "/providers/pool").partition('id="history"')[2])
    assert {f"/console/consumers/{CONSUMER}", f"/console/providers/{uuids['pool']}"} <= {*links}


def test_a_consumer_has_its_history(app, uuids):
    [event] = event_texts(page(app, f"/consumers/{CONSUMER}"))
    assert event.replace("\N{NARROW NO-BREAK SPACE}", " ").startswith(
        f"Instance {CONSUMER[:8]} claimed 500 GiB disk, 64 VCPU on cn1, pool and 1 more, by admin"
    )
    assert f"Consumer {CONSUMER} claimed Project: blue User: ann Type: INSTANCE Allocated from " in event
    assert f"Allocated from {HOSTILE}: VCPU 16" in event


@pytest.mark.parametrize(
    ("path", "sentences"),
    [
        (f"/providers/{quote(GONE, safe='')}", EVENTS_OF_GONE),
        (f"/providers/{uuid.uuid5(uuid.NAMESPACE_URL, GONE)}", EVENTS_OF_GONE),
        (
            f"/consumers/{GONE_CONSUMER}",
            ["Instance 9d41f7b2 released 7 GiB disk on pool", "Instance 9d41f7b2 claimed 7 GiB disk on pool"],
        ),
    ],
)
def test_a_deleted_object_has_a_page_that_says_so(app, uuids, path, sentences):
    text = page(app, path)
    name = GONE if "providers" in path else GONE_CONSUMER
    assert f"<h1>{html.escape(name)}</h1>" in text
    assert '<strong class="flag bad">gone</strong>' in text
    assert event_sentences(text) == sentences


def test_the_first_page_of_a_deleted_object_may_have_no_events(app, uuids, monkeypatch):
    """The page reads one event, and the consumer's events are older."""
    monkeypatch.setattr("placement.extensions.v1.history.event.WINDOW", 1)
    text = page(app, f"/consumers/{GONE_CONSUMER}")
    assert event_texts(text) == []
    assert 'rel="next"' in text


def test_the_pages_of_a_history_contain_each_event_once(app, uuids, monkeypatch):
    all_events = event_texts(page(app, "/providers/pool"))
    monkeypatch.setattr("placement.extensions.console.timeline.ROWS", 3)
    address, events, steps = "/providers/pool", [], 0
    while address:
        text = page(app, address)
        events += event_texts(text)
        assert ("Newest</a>" in text) == (steps > 0)
        older = re.search(r'rel="next" href="/console([^"#]*)#history"', text)
        address, steps = html.unescape(older[1]) if older else "", steps + 1
    assert events == all_events
    assert steps >= 3


def test_events_are_listed_newest_first_in_pages(app, uuids, monkeypatch):
    monkeypatch.setattr("placement.extensions.console.handlers.event.ROWS", 7)
    events_of_api = web.ask(app, "GET", "/v1/events?limit=1000", {"x-auth-token": "admin"}).json["events"]
    address, requests = "/events", []
    while address:
        text = page(app, address)
        requests += re.findall(r"<code>(req-[^<]*)</code>", text)
        older = re.search(r'rel="next" href="/console([^"]*)"', text)
        address = html.unescape(older[1]) if older else ""
    # A request whose events are on two pages is shown on both.
    distinct = [ident for ident, _ in itertools.groupby(requests)]
    assert distinct == [*dict.fromkeys(event["request"]["request_id"] for event in reversed(events_of_api))]


@pytest.mark.parametrize(
    ("query", "sentences"),
    [
        ("kind=trait", ["Trait CUSTOM_RED created"]),
        ("kind=trait&provider=&project=+", ["Trait CUSTOM_RED created"]),
        (f"consumer={CONSUMER}", ["Instance 0b1c6a2e claimed 500 GiB disk, 64 VCPU on cn1, pool and 1 more"]),
        ("project=blue&kind=consumer&consumer=" + GONE_CONSUMER, [
            "Instance 9d41f7b2 released 7 GiB disk on pool",
            "Instance 9d41f7b2 claimed 7 GiB disk on pool",
        ]),
        ("project=red", []),
        ("provider=empty", ["Provider empty changed: only its generation"] * 2 + ["Provider empty created"]),
        ("kind=node", []),
    ],
)  # fmt: skip
def test_events_are_found_by_filters(app, uuids, query, sentences):
    text = page(app, f"/events?{query}")
    assert event_sentences(text) == sentences
    assert ("No events match these filters." in text) is not bool(sentences)


@pytest.mark.parametrize(
    "query", ["kind=cloud", "provider=nothing", "consumer=x", "colour=red", "after=x", "kind=trait&provider=pool"]
)
def test_an_invalid_search_for_events_is_shown_with_the_reason(app, uuids, query):
    text = page(app, f"/events?{query}", 400)
    assert 'role="alert"' in text
    assert "timeline" not in text


@pytest.mark.parametrize("path", ["/events?after=7000000-0badcafe", "/providers/pool?after=7000000-0badcafe"])
def test_a_page_of_events_that_were_removed_says_so(app, uuids, path):
    assert "The history has no such position" in page(app, path, 410)


def test_new_rows_are_sent_at_once_and_an_empty_response_after_a_while(database_url, monkeypatch):
    """The test has its own database, because its writes stay in the history."""
    app = console(database_url)
    send(app, "PUT", "/traits/CUSTOM_OLD")
    waited = []
    clock = Clock()

    def wait(*_):
        waited.append(1)
        clock.sleep(3600)

    monkeypatch.setattr("placement.extensions.v1.event_reader.time", clock)
    monkeypatch.setattr("placement.extensions.v1.history.watch.EventWatch.wait", wait)
    text = page(app, "/events")
    position = re.search(r'data-position="([^"]*)"', text)[1]
    assert 'data-follow="/console/events/rows?"' in text
    rows = page(app, f"/events/rows?position={position}")
    assert waited
    assert event_texts(rows) == event_texts(text) != []
    assert f'data-position="{position}"' in rows
    waited.clear()
    send(app, "PUT", "/traits/CUSTOM_NEWS")
    rows = page(app, f"/events/rows?position={position}")
    assert not waited
    assert event_texts(rows)[0].startswith("Trait CUSTOM_NEWS created")
    assert f'data-position="{position}"' not in rows


def test_older_events_are_not_followed(app, uuids, monkeypatch):
    monkeypatch.setattr("placement.extensions.console.handlers.event.ROWS", 3)
    first = page(app, "/events?kind=provider")
    assert 'data-follow="/console/events/rows?kind=provider"' in first
    older = html.unescape(re.search(r'rel="next" href="/console([^"]*)"', first)[1])
    assert "data-follow=" not in page(app, older)


# --- usage ---


def test_usage_is_shown_in_numbers_and_as_a_picture(app, uuids):
    text = page(app, "/usage?period=month")
    rows = re.findall(r'<tr><th scope="row"><a href="([^"]*)"[^>]*>(\w+)</a></th>(.*?)</tr>', text)
    numbers = {name: re.findall(r'class="number">([^<]*)', cells) for _, name, cells in rows}
    assert numbers["VCPU"] == ["64", "140", "5", "64"]
    assert numbers["CUSTOM_GONE"] == ["1", "1", "1", "1"]
    assert numbers["VGPU"] == ["0", "8", "0", "0"]
    assert 'aria-label="VCPU over the month: used last 64 of 140, at least 5, at most 64."' in text
    text = page(app, "/usage?period=month&class=VCPU")
    [line] = re.findall(r'class="capacity" points="([^"]*)"', text)
    assert {point.partition(",")[2] for point in line.split()} == {"0.0"}
    [line] = re.findall(r'class="edge" points="([^"]*)"', text)
    heights = [float(point.partition(",")[2]) for point in line.split()]
    assert heights == sorted(heights, reverse=True)
    assert heights[-1] == pytest.approx(200 - 200 * 64 / 140, abs=0.1)
    assert len(heights) <= 151


@pytest.mark.parametrize(("period", "minimum"), [("day", 63), ("week", 51), ("month", 5)])
def test_a_period_is_chosen(app, uuids, period, minimum):
    text = page(app, f"/usage?period={period}&class=VCPU")
    assert f"at least {minimum}, at most 64." in text
    assert f'period={period}&amp;class=VCPU" aria-current="true"' in text


def test_the_samples_of_one_class_are_shown_in_a_table_too(app, uuids):
    text = page(app, "/usage?class=VCPU")
    table = text.partition("<summary>All samples as a table</summary>")[2]
    amounts = [int(amount) for amount in re.findall(r'</time></th><td class="number">(\d+)</td>', table)]
    assert amounts[0] == 64
    assert amounts == sorted(amounts, reverse=True)
    assert 23 <= len(amounts) <= 26
    assert "DISK_GB" not in text
    assert "No usage of NOTHING was recorded" in page(app, "/usage?class=NOTHING")


def test_an_unknown_period_is_refused(app):
    page(app, "/usage?period=century", 400)


# --- the doctor ---


def test_the_doctors_page_shows_the_findings_of_the_api(app, uuids):
    findings = web.ask(app, "GET", "/v1/doctor", {"x-auth-token": "admin"}).json
    text = page(app, "/doctor")
    rows = re.findall(r'<h2 id="finding-\d+"><span class="flag[^"]*">(\w+)</span> ([\w -]+)</h2>\n<p>([^<]*)</p>', text)
    assert [(severity, check, html.unescape(paragraph)) for severity, check, paragraph in rows] == [
        (
            finding["severity"],
            finding["check"].replace("over_", "over-").replace("_", " ").capitalize(),
            finding["what"],
        )
        for finding in findings["findings"]
    ]
    assert "over_commitment" in {finding["check"] for finding in findings["findings"]}
    for finding in findings["findings"]:
        assert finding["fix"] in words(text)
        assert ("What to do: " + finding["fix"] in words(text)) is finding["fix"].endswith(".")
    over_commitment = text.partition("Over-commitment</h2>")[2].partition("</section>")[0]
    assert f'<li><a href="/console/providers/{uuids[HOSTILE]}">{ESCAPED}</a>: VCPU, 16 of 12</li>' in over_commitment
    for check in findings["checks"]:
        assert check["name"] in text
        assert (check["not_made"] or "") in html.unescape(text)


# --- queries ---


def test_candidates_show_the_amounts_from_each_provider(app, uuids):
    text = page(app, "/query?resources1=VCPU:4&resources2=VGPU:1&group_policy=none&same_subtree=1,2")
    assert "2 candidates</h2>" in text
    first, second = (words(card) for card in text.split('<li class="candidate">')[1:])
    assert "cn1-numa0 in cn1 group 1 VCPU 48 → 52 of 64" in first
    assert "cn1-numa0-gpu in cn1 group 2 VGPU 0 → 1 of 4" in first
    assert "cn1-numa1 in cn1 group 1 VCPU 0 → 4 of 64" in second
    assert "The first 1 candidates</h2>" in page(app, "/query?resources=VCPU:1&limit=1")
    assert "allocation candidate list" in text  # the command has no option for same_subtree
    assert "has no option" in text


def first_providers(text):
    """Return the name of the first provider of each candidate, in their order."""
    cards = text.split('<li class="candidate">')[1:]
    return [re.search(r'href="/console/providers/[^"]*">([^<]*)</a>', card)[1] for card in cards]


def test_a_host_that_a_claim_avoids_is_the_last_candidate(database_url):
    """The search finds the host first, because it was created first."""
    app = console(database_url)
    provider(app, "closed", traits=("COMPUTE_STATUS_DISABLED",), VCPU=16)
    provider(app, "open", VCPU=8)
    assert first_providers(page(app, "/query?resources=VCPU:1")) == ["open", "closed"]


def test_the_first_candidates_are_of_different_trees_the_emptiest_first(database_url):
    app = console(database_url)
    numas = [[f"host{host}-numa{numa}" for numa in range(3)] for host in range(3)]
    owner = {"project_id": "blue", "user_id": "ann", "consumer_type": "INSTANCE", "consumer_generation": None}
    for host, names in enumerate(numas):
        parent = provider(app, f"host{host}")
        uuids = [provider(app, name, parent, VCPU=8) for name in names]
        allocations = {numa_uuid: {"resources": {"VCPU": 6 - 2 * host}} for numa_uuid in uuids}
        send(app, "PUT", f"/allocations/{uuid.uuid4()}", {"allocations": allocations, **owner})
    shown_names = first_providers(page(app, "/query?resources=VCPU:1"))
    assert sorted(shown_names) == sorted(itertools.chain(*numas))
    assert [name.partition("-")[0] for name in shown_names[:3]] == ["host2", "host1", "host0"]


def test_the_form_the_text_and_the_commands_are_the_same_query(app, uuids):
    query = "resources=VCPU:1&required=HW_NUMA_ROOT,!CUSTOM_RED&resources1=VGPU:1&limit=5"
    text = page(app, f"/query?{query}&in_tree=&root_required=")
    for name, value in (pair.split("=") for pair in query.split("&")):
        assert f'name="{name}" value="{value}"' in text
    raw = html.unescape(re.search(r"<textarea[^>]*>([^<]*)", text).group(1))
    assert raw.replace("\n", "") == query
    assert page(app, f"/query?raw={quote(raw)}") == text
    assert page(app, f"/query?raw={quote('http://host/allocation_candidates?' + query)}") == text
    commands = html.unescape(text)
    assert f"'http://localhost:80/allocation_candidates?{query}'" in commands
    assert (
        "openstack --os-auth-type none --os-endpoint http://localhost:80"
        " --os-placement-api-version 1.39 allocation candidate list --resource VCPU=1 --required HW_NUMA_ROOT"
        " --forbidden CUSTOM_RED --group 1 --resource VGPU=1 --group-policy none --limit 5" in commands
    )


def without_address(command):
    """Return the words of a command, without the address of the service."""
    words = shlex.split(command)
    access = {
        "openstack": ["--os-auth-type", "none", "--os-endpoint", "http://localhost:80"],
        "placement-ask": ["--url", "http://localhost:80"],
    }[words[0]]
    assert words[1 : 1 + len(access)] == access
    return [words[0], *words[1 + len(access) :]]


@pytest.mark.parametrize(
    "query",
    [
        "resources=VCPU:1&required=HW_NUMA_ROOT,!CUSTOM_RED&limit=5",
        "resources1=VCPU:4&resources2=VGPU:1&group_policy=none&same_subtree=1,2",
        "resources=VCPU:1&in_tree=cn1&root_required=!CUSTOM_RED",
        "resources=VCPU:4000",
        "resources=VCPU:1&count=2",
    ],
)
def test_commands_of_both_clients_explain_and_count_the_query_and_try_a_claim(app, uuids, query):
    text = html.unescape(page(app, f"/query?{query}"))
    commands = [*map(without_address, re.findall(r"<pre[^>]*><code>((?:openstack|placement-ask) [^<]*)</code>", text))]
    queries = {(*words[:-1],): words[-1] for words in commands if "list" not in words}
    search = query.removesuffix("&count=2")
    assert queries == {
        ("openstack", "allocation", "candidate", "explain"): search,
        ("openstack", "allocation", "candidate", "count"): query,
        ("placement-ask", "explain"): search,
        ("placement-ask", "capacity"): query,
        ("openstack", "allocation", "claim", "--dry-run"): search.removesuffix("&limit=5"),
        ("placement-ask", "claim", "--dry-run"): search.removesuffix("&limit=5"),
    }
    points = metadata.entry_points(group="openstack.placement.v1")
    for words in queries:
        if words[0] == "openstack":
            assert points["_".join(word for word in words[1:] if word != "--dry-run")]
    for question in ("explain", "capacity"):
        query_of_command = queries["placement-ask", question]
        assert web.ask(app, "GET", f"/v1/{question}?{query_of_command}", {"x-auth-token": "admin"}).status_int == 200


def test_the_form_keeps_repeated_and_unknown_parameters(app, uuids):
    text = page(app, "/query/form?raw=" + quote("required=A&required=B&resources_X=VCPU:1&colour=red"))
    assert text.count('name="required"') == 2
    assert "Group _X" in text
    assert 'type="hidden" name="colour" value="red"' in text


@pytest.mark.parametrize(
    "query", ["resources=VCPU", "resources=NOPE:1", "required=CUSTOM_NOPE&resources=VCPU:1", "limit=0", "colour=red"]
)
def test_an_invalid_query_is_shown_with_the_reason(app, uuids, query):
    text = page(app, f"/query?{query}", 400)
    assert 'role="alert"' in text
    assert query.partition("&")[0].partition("=")[2] in html.unescape(text)


@pytest.mark.parametrize("query", ["raw=%25ff", "%ff", "raw=a%00b"])
def test_bytes_that_are_not_utf_8_are_refused(app, query):
    page(app, f"/query?{query}", 400)


@pytest.mark.parametrize(
    "query",
    [
        "resources=VCPU:100",
        "resources=VCPU:1&required=CUSTOM_RED",
        "resources1=VGPU:4&resources2=VGPU:4&resources3=VGPU:1&group_policy=isolate",
        "resources1=VCPU:1&resources2=VGPU:1&group_policy=none&same_subtree=1,2&in_tree1=pool",
    ],
)
def test_the_explanation_is_that_of_the_api_and_each_relaxation_helps(app, uuids, query):
    explained = web.ask(app, "GET", f"/v1/explain?{query}", {"x-auth-token": "admin"}).json
    assert explained["found"] == 0
    text = page(app, f"/query?{query}")
    shown_text = html.unescape(text)
    assert explained["summary"] in shown_text
    assert explained["steps"]
    for hint in explained["mistakes"]:
        assert hint["text"] in shown_text
    for hint in explained["relaxations"]:
        assert hint["text"][:1].upper() + hint["text"][1:] in shown_text
    for near in explained["near_misses"]:
        assert f'href="/console/providers/{near["root"]["uuid"]}"' in shown_text
    links = [html.unescape(link) for link in re.findall(r'<a class="button" href="/console([^"#]*)#result"', text)]
    assert len(links) == len(explained["relaxations"])
    for link in links:
        assert '<li class="candidate">' in page(app, link)


def test_an_unknown_name_is_refused_with_similar_names(app, uuids):
    text = page(app, "/query?resources=VCPU:1&required=CUSTOM_RAD", 400)
    assert "CUSTOM_RED" in text.partition('id="refused"')[2]


def test_the_count_is_that_of_the_api(app, uuids):
    query = "resources=VCPU:10"
    counted = web.ask(app, "GET", f"/v1/capacity?{query}", {"x-auth-token": "admin"}).json
    assert counted["count"] == 7
    assert "It fits 7 times</h2>" in page(app, f"/query?{query}")
    assert counted["why"] in html.unescape(page(app, f"/query?{query}"))


def test_a_count_of_disabled_hosts_explains_why_it_is_zero(database_url):
    app = console(database_url)
    provider(app, "closed", traits=("COMPUTE_STATUS_DISABLED",), VCPU=4)
    text = page(app, "/query?resources=VCPU:1")
    assert "It fits 0 times: claims avoid the hosts with free capacity</h2>" in text
    assert '<span class="flag bad">disabled</span>' in text.partition('<li class="candidate">')[2]


def test_the_count_may_be_of_jobs_with_several_copies(app, uuids):
    """Only one tree has room for a copy."""
    query = "resources=VCPU:10&count=2"
    counted = web.ask(app, "GET", f"/v1/capacity?{query}", {"x-auth-token": "admin"}).json
    text = html.unescape(page(app, f"/query?{query}"))
    assert (counted["count"], counted["limiting"]["rule"]) == (0, "count")
    assert "It fits 0 times as a job of 2 copies in different trees</h2>" in text
    assert counted["limiting"]["text"] in text
    assert 'name="count" value="2"' in text
    assert "&count=2" in text.partition("<textarea")[2].partition("</textarea>")[0]
    assert "count" not in re.search(r"<code>(curl [^<]*)</code>", text)[1]
    for refused in ("0", "10001", "x"):
        assert 'role="alert"' in page(app, f"/query?resources=VCPU:1&count={refused}", 400)


def test_a_tree_may_be_named(app, uuids):
    text = html.unescape(page(app, "/query?resources=VCPU:1&in_tree=cn1"))
    assert 'name="in_tree" value="cn1"' in text
    assert f"in_tree={uuids['cn1']}'" in text


# --- the reference ---


@pytest.mark.parametrize(
    ("query", "path"), [("", "/v1/capacity"), ("?of=placement&version=1.0", "/resource_providers")]
)
def test_the_reference_shows_each_operation_of_the_document(app, query, path):
    text = page(app, f"/api{query}")
    link = html.unescape(re.search(r'<a href="([^"]*openapi[^"]*)"', text).group(1))
    document = web.ask(app, "GET", link).json
    expected = sum(len(methods) for methods in document["paths"].values())
    assert text.count('<details class="operation" id="') == expected
    assert len(set(re.findall(r'<details class="operation" id="([^"]+)"', text))) == expected
    assert f"</b> {path}</code>" in text


def operation(app, query, ident):
    """Return the text of one operation of the reference."""
    text = page(app, f"/api?{query}").partition(f'id="{ident}"')[2].partition('<details class="operation"')[0]
    assert text
    return html.unescape(text)


def test_the_reference_shows_the_first_version_of_operations_and_parameters(app):
    text = operation(app, "of=placement", "allocation_candidate.list_candidates")
    assert "<p>Since 1.10. Policy rule <code>placement:allocation_candidates:list</code>" in text
    rows = re.findall(r"<code>(\w+)</code>(?: <span class=\"flag\">required</span>)?</th>.*?</tr>", text)
    since = dict(re.findall(r"<code>(\w+)</code>[^\n]*?<span class=\"flag\">since ([\d.]+)</span>", text))
    assert {"resources", "limit", "same_subtree"} <= {*rows}
    assert "resources" not in since
    assert (since["limit"], since["same_subtree"], since["in_tree"]) == ("1.16", "1.36", "1.31")
    old = operation(app, "of=placement&version=1.12", "allocation_candidate.list_candidates")
    assert "limit" not in old
    assert "Since" not in operation(app, "of=v1", "capacity.show")


def test_the_reference_lists_the_changes_of_each_version(app):
    text = html.unescape(page(app, "/api?of=placement&version=1.20"))
    for change in mv.HISTORY:
        assert f'version={change.version}">{change.version}</a></th><td>{change.sentence}</td>' in text
    assert "<option selected>1.20</option>" in text
    assert "Changes by version" not in page(app, "/api")


@pytest.mark.parametrize(("api", "query"), [(V1, "of=v1"), (PLACEMENT, "of=placement")])
def test_the_reference_shows_whole_examples(app, api, query):
    version = mv.LATEST if api is PLACEMENT else OLDEST
    text = html.unescape(page(app, f"/api?{query}"))
    count = 0
    for path, methods in api.routes.items():
        for method, endpoint in endpoints_at(methods, version):
            for example in examples.examples_of(api, version, method, path, endpoint):
                if not (example.query or example.path or example.body or example.reply):
                    continue  # none of its parts is in the document
                url = api.prefix + path.format(**example.path)
                lines = [
                    line for line in re.findall(r"<code>([A-Z]+ /[^<\s]*)", text) if line.startswith(f"{method} {url}")
                ]
                queries = [sorted(parse_qsl(line.partition("?")[2], keep_blank_values=True)) for line in lines]
                assert sorted(example.query) in queries, example
                for document in (example.body, example.reply):
                    if document is not None:
                        assert json.dumps(document, indent=2, ensure_ascii=False) in text
                count += 1
    assert count > 8


@pytest.mark.parametrize("query", ["of=other", "of=placement&version=9.9", "of=placement&version=x"])
def test_an_unknown_description_is_not_found(app, query):
    text = web.ask(app, "GET", f"/console/api?{query}")
    assert text.status_int in (400, 406)


# --- access ---


NEEDING_A_ROLE = [path for path in PAGES if path != "/api"]


@pytest.mark.parametrize("path", [*NEEDING_A_ROLE, "/hosts", "/providers/pool", "/query/form"])
def test_a_caller_without_a_role_sees_nothing(app, uuids, path):
    text = page(app, path, 403, **{"x-auth-token": "stranger"})
    assert uuids["pool"] not in text


def test_a_page_of_another_origin_is_not_an_administrator(app, uuids):
    assert "cn1" not in page(app, "/providers", 401, origin="https://example.org")


def test_an_unchanged_asset_is_not_sent_again(app):
    first = web.ask(app, "GET", "/console/assets/console.js")
    assert (first.status_int, first.headers["cache-control"]) == (200, "no-cache")
    second = web.ask(app, "GET", "/console/assets/console.js", {"if-none-match": first.headers["etag"]})
    assert (second.status_int, second.body) == (304, b"")


@pytest.mark.parametrize("name", ["nothing.js", "..%2f__init__.py", "console.css.", ""])
def test_only_assets_are_served_as_assets(app, name):
    assert web.ask(app, "GET", f"/console/assets/{name}").status_int == 404


def test_links_begin_where_the_service_is_mounted(app, uuids):
    reply = web.ask(app, "GET", "/console/providers", environ={"SCRIPT_NAME": "/below/this"})
    addresses = re.findall(r'(?:href|src|action)="([^"#]+)"', reply.text)
    assert {address for address in addresses if not address.startswith("/below/this/console")} == set()
