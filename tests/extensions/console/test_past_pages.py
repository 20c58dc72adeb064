"""Pages about the past: the overview and a provider at an earlier point in time."""

from __future__ import annotations

import html
import re

import pytest

from placement.db.schema.tables import utcnow
from tests import servers, web
from tests.extensions.console.conftest import console
from tests.extensions.console.fleet import ADMIN, provider, send

pytestmark = pytest.mark.parametrize("backend", [servers.SQLite.kind], indirect=True, scope="session")

CLAIM = "e7350c18-3d7f-4f0c-8a62-51f0c0d8a0aa"


@pytest.fixture(scope="module")
def past_date(app, uuids):
    """The date before three changes: a claim of 16 VCPU in cn1, a trait added to cn1, and a new host."""
    newest = send(app, "GET", "/v1/events?limit=1000")["events"][-1]["at"]
    while f"{utcnow().isoformat(timespec='milliseconds')}000Z" <= newest:
        pass
    owner = {"project_id": "red", "user_id": "ann", "consumer_type": "INSTANCE", "consumer_generation": None}
    allocations = {uuids["cn1-numa1"]: {"resources": {"VCPU": 16}}}
    send(app, "PUT", f"/allocations/{CLAIM}", {"allocations": allocations, **owner})
    path = f"/resource_providers/{uuids['cn1']}"
    generation = send(app, "GET", path)["generation"]
    traits = {"resource_provider_generation": generation, "traits": ["COMPUTE_STATUS_DISABLED"]}
    send(app, "PUT", f"{path}/traits", traits)
    provider(app, "later", VCPU=4)
    return newest


def page(app, path, status=200):
    reply = web.ask(app, "GET", f"/console{path}")
    assert reply.status_int == status, reply.text
    return reply.text


def usage_of(text, resource_class):
    """Return the usage in the row of a class."""
    row = next(row for row in re.findall("<tr.*?</tr>", text, re.DOTALL) if f">{resource_class}</a>" in row)
    return re.search("<b>(.*?)</b> of (.*?)<", row).groups()


def test_the_past_overview_shows_the_usage_of_that_time(app, past_date):
    assert usage_of(page(app, f"/?at={past_date}"), "VCPU") == ("64", "140")
    assert usage_of(page(app, "/"), "VCPU") == ("80", "144")


def test_the_past_overview_states_its_time_and_links_to_the_present(app, past_date):
    text = page(app, f"/?at={past_date}&class=VCPU")
    [banner] = re.findall('<p class="past".*?</p>', text)
    assert "State at" in banner
    assert past_date.partition(".")[0].replace("T", " ") in banner
    assert '<a href="/console/?class=VCPU">Show the current state</a>' in banner
    assert 'class="past"' not in page(app, "/")


def test_parts_about_the_present_are_omitted(app, past_date):
    present, past = page(app, "/"), page(app, f"/?at={past_date}")
    for part in ("data-findings", "Latest changes"):
        assert part in present
        assert part not in past


def test_links_lead_to_the_same_point_in_time(app, past_date):
    text = html.unescape(page(app, f"/?at={past_date}&class=VCPU"))
    addresses = re.findall(r'(?:href|data-heat)="(/console/(?:\?|providers/|hosts|usage\?)[^"]*)"', text)
    leading = [address for address in addresses if address != "/console/?class=VCPU"]
    assert len(leading) > 8
    assert {bool(re.search(f"[?&](at|to)={past_date}", address)) for address in leading} == {True}
    assert f'data-then="?at={past_date}"' in text


def test_the_past_heat_map_shows_the_hosts_of_that_time(app, past_date):
    def hosts(query):
        document = web.ask(app, "GET", f"/console/hosts?class=VCPU{query}", ADMIN).json
        return dict(zip(document["names"], zip(document["used"], document["disabled"], strict=True), strict=True))

    assert hosts(f"&at={past_date}")["cn1"] == (48, False)
    assert hosts("")["cn1"] == (64, True)
    assert "later" in hosts("")
    assert "later" not in hosts(f"&at={past_date}")


def test_a_past_provider_page_shows_the_state_of_that_time(app, uuids, past_date):
    text = page(app, f"/providers/cn1?at={past_date}")
    assert 'class="past"' in text
    assert f'href="/console/providers/{uuids["cn1"]}">Show the current state' in text
    assert f'href="/console/providers/{uuids["cn1-numa1"]}?at={past_date}"' in text
    assert "COMPUTE_STATUS_DISABLED" not in text
    assert "Consumers: 0 here. The tree has " in text
    assert "COMPUTE_STATUS_DISABLED" in page(app, "/providers/cn1")


def test_a_provider_that_did_not_exist_then_is_not_found(app, past_date):
    page(app, "/providers/later")
    assert "later" in page(app, f"/providers/later?at={past_date}", 404)


def test_an_age_of_zero_and_a_future_date_show_the_present(app, past_date):
    for path in ("/?at=2999-01-01", "/?at=0s", "/providers/cn1?at=2999-01-01"):
        assert 'class="past"' not in page(app, path)


@pytest.mark.parametrize("path", ["/", "/hosts", "/providers/cn1"])
@pytest.mark.parametrize(
    ("at", "status", "sentence"),
    [
        ("2001-01-01", 410, "The history does not reach back to that time; its oldest event:"),
        ("30d", 410, "The history does not reach back to that time; its oldest event:"),
        ("yesterday", 400, "a date in UTC, for example"),
        ("2026-02-30", 400, "a date in UTC, for example"),
        ("", 400, "a date in UTC, for example"),
    ],
)
def test_a_time_that_cannot_be_shown_is_refused_with_the_reason(app, past_date, path, at, status, sentence):
    assert sentence in page(app, f"{path}?at={at}", status)


def test_a_past_provider_page_requires_the_rule_of_the_overview(module_database_url, past_date, tmp_path):
    policy = tmp_path / "policy.yaml"
    policy.write_text('"placement:v1:overview:show": "!"\n')
    app = console(module_database_url, oslo_policy__policy_file=str(policy))
    page(app, "/providers/cn1")
    page(app, f"/providers/cn1?at={past_date}", 403)
