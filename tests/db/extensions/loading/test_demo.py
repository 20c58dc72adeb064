"""The cloud of ``placement-serve --demo``: its final state, and the history of one day."""

from __future__ import annotations

import datetime
import itertools

import pytest
import sqlalchemy as sa

from placement import deploy, extension
from placement.db import feed
from placement.db.schema.tables import OURS, metadata
from placement.extensions.loading import demo
from placement.index.live import LiveIndex
from tests import caller, servers, web
from tests.made import opened

pytestmark = pytest.mark.parametrize("backend", [servers.SQLite.kind], indirect=True, scope="session")
#: Classes that are in use all day.
CLASSES = {"CUSTOM_LARGE", "DISK_GB", "MEMORY_MB", "PGPU", "SRIOV_NET_VF", "VCPU"}


@pytest.fixture(scope="module")
def service(module_database_url):
    """Return a function that sends requests to the service of the demonstration."""
    return demonstration(module_database_url)


def demonstration(url):
    """Fill an empty database; return a function that sends requests to its service."""
    connection = {"placement_database__connection": url, "placement_database__sync_on_startup": True}
    application = deploy.loadapp(web.configuration(baremetal__enabled=True, **connection))
    with opened(url) as database:
        extension.start(database, web.configuration(), LiveIndex(database))
        demo.fill(database, application)
    return caller.inside(application)


def get(call, path):
    reply = call("GET", path, 39)
    assert reply.status == 200, reply.body
    return reply.body


def parse_date(text):
    return datetime.datetime.fromisoformat(text.removesuffix("Z"))


def end_of_day(call):
    """Return the date of the last sample of the day; the service may have taken later ones."""
    return parse_date(get(call, "/v1/usage?from=2d&limit=1000&class=VCPU")["classes"]["VCPU"][144]["at"])


def shares(call):
    """Return the usage of each project at each sample of the day, by the time before the day's end."""
    end = end_of_day(call)
    shares = get(call, "/v1/usage?from=2d&by=project&limit=1000")["shares"]
    return {
        (resource_class, share["name"], end - parse_date(sample["at"])): sample["used"]
        for resource_class, of_projects in shares.items()
        for share in of_projects
        for sample in share["samples"]
        if parse_date(sample["at"]) <= end
    }


def all_events(call):
    """Return all events, the oldest first."""
    events, condition = [], ""
    while True:
        page = get(call, f"/v1/events?limit=1000{condition}")
        events += page["events"]
        if not page["events"] or len(events) > 10_000:
            return events
        condition = f"&after={page['position']}"


def used_at(call, at):
    """Return the usage of VCPU at a point in time, computed from the events since."""
    providers = get(call, f"/v1/overview?at={at}")["providers"]
    return sum(provider["inventories"].get("VCPU", {}).get("used", 0) for provider in providers)


def test_the_final_cloud_matches_the_documentation(service):
    assert get(service, "/v1/overview?over_committed=1")["providers"][0]["name"] == "compute-03"
    consumers = get(service, "/v1/consumers?limit=1000")["consumers"]
    assert len(consumers) > 200
    assert {consumer["type"] for consumer in consumers} >= {"INSTANCE", "TRAINING"}
    out = get(service, "/v1/overview?root=compute-16")["providers"]
    assert "COMPUTE_STATUS_DISABLED" in out[0]["traits"]
    assert sum(provider["consumers"] for provider in out) == 0


def test_the_day_has_a_sample_every_ten_minutes(service):
    history = get(service, "/v1/usage?from=2d&by=project&limit=1000")
    assert history["classes"].keys() == CLASSES
    for samples in history["classes"].values():
        times = [parse_date(sample["at"]) for sample in samples[:-1]]
        assert len(times) == 145
        assert {later - earlier for earlier, later in itertools.pairwise(times)} == {datetime.timedelta(minutes=10)}
        assert times[-1] <= parse_date(samples[-1]["at"])
    assert {share["name"] for share in history["shares"]["VCPU"]} == {
        *("webshop", "research", "analytics", "platform", "games")
    }


def test_the_load_falls_at_night_and_rises_in_the_morning(service):
    used = [sample["used"] for sample in get(service, "/v1/usage?from=2d&limit=1000&class=VCPU")["classes"]["VCPU"]]
    evening, night, end = used[0], min(used), used[-1]
    assert night < 0.7 * evening
    assert evening < 0.8 * end
    assert 60 < used.index(night) < 100


def test_a_sample_equals_the_usage_computed_from_the_events(service):
    samples = get(service, "/v1/usage?from=2d&limit=1000&class=VCPU")["classes"]["VCPU"]
    for sample in samples[:145:24]:
        assert used_at(service, sample["at"]) == sample["used"]


def test_events_are_of_the_day_and_in_order(service):
    end = end_of_day(service)
    events = all_events(service)
    times = [parse_date(event["at"]) for event in events]
    assert times == sorted(times)
    assert end - datetime.timedelta(hours=26) < times[0] < end - datetime.timedelta(hours=24)
    assert times[-1] <= end
    # The requests are spread over the day.
    assert len(set(times)) > 400
    last_changes = {event["uuid"]: event["at"] for event in events if event["kind"] == "consumer"}
    consumers = get(service, "/v1/consumers?limit=1000")["consumers"]
    since = {consumer["uuid"]: parse_date(consumer["since"]) for consumer in consumers}
    assert all(at <= parse_date(last_changes[uuid]) for uuid, at in since.items())
    assert min(since.values()) < end - datetime.timedelta(hours=24)


def test_no_date_is_later_than_the_day(service, module_database_url):
    end = end_of_day(service).replace(tzinfo=None)
    dates = [
        column
        for table in metadata.sorted_tables
        if table not in OURS
        for column in table.columns
        if isinstance(column.type, sa.DateTime)
    ]
    with opened(module_database_url) as database:
        newest = {
            str(date): database.read(lambda db, date=date: db.execute(sa.select(sa.func.max(date))).scalar_one())
            for date in dates
        }
    assert {date: at for date, at in newest.items() if at is not None and at > end} == {}
    assert newest["usage_samples.at"] == newest["usage_shares.at"] == end


def test_events_of_today_come_after_the_events_of_the_day(database_url):
    call = demonstration(database_url)
    end = end_of_day(call)
    assert parse_date(all_events(call)[-1]["at"]) <= end
    assert call("POST", "/resource_providers", 39, {"name": "later"}).status == 200
    assert end < parse_date(all_events(call)[-1]["at"])


def test_the_demonstration_is_the_same_each_time(service, database_url):
    assert shares(demonstration(database_url)) == shares(service) != {}


def test_the_demonstration_is_the_same_if_writes_take_samples(service, database_url, monkeypatch):
    """Writes take samples if filling takes longer than the interval."""
    monkeypatch.setattr(feed, "MAINTENANCE_INTERVAL", -1.0)
    assert shares(demonstration(database_url)) == shares(service)
