"""The cloud of ``placement-serve --demo``: its final state, and the history of one day."""

from __future__ import annotations

import datetime
import itertools

import pytest
import sqlalchemy as sa

from placement import deploy
from placement.db import feed
from placement.db.schema.tables import OURS, metadata
from placement.extensions.loading import demo
from tests import caller, servers, web
from tests.made import opened

pytestmark = pytest.mark.parametrize("backend", [servers.SQLite.kind], indirect=True, scope="session")
#: Classes that are in use all day.
CLASSES = {"CUSTOM_LARGE", "DISK_GB", "MEMORY_MB", "PGPU", "SRIOV_NET_VF", "VCPU"}


@pytest.fixture(scope="module")
def filled(module_database_url):
    """Return a function that sends requests to the service of the demonstration."""
    return demonstration(module_database_url)


def demonstration(url):
    """Fill an empty database; return a function that sends requests to its service."""
    connection = {"placement_database__connection": url, "placement_database__sync_on_startup": True}
    application = deploy.loadapp(web.configuration(baremetal__enabled=True, **connection))
    with opened(url) as database:
        demo.fill(database, application)
    return caller.inside(application)


def get(call, path):
    reply = call("GET", path, 39)
    assert reply.status == 200, reply.body
    return reply.body


def moment(text):
    return datetime.datetime.fromisoformat(text.removesuffix("Z"))


def end_of_day(call):
    """Return the date of the last sample of the day; the service may have taken later ones."""
    return moment(get(call, "/v1/usage?from=2d&limit=1000&class=VCPU")["classes"]["VCPU"][144]["at"])


def shares(call):
    """Return the usage of each project at each sample of the day, by the time before the day's end."""
    end = end_of_day(call)
    shares_ = get(call, "/v1/usage?from=2d&by=project&limit=1000")["shares"]
    return {
        (resource_class, each["name"], end - moment(sample["at"])): sample["used"]
        for resource_class, of in shares_.items()
        for each in of
        for sample in each["samples"]
        if moment(sample["at"]) <= end
    }


def everything(call):
    """Return all events, the oldest first."""
    events, after = [], ""
    while True:
        page = get(call, f"/v1/events?limit=1000{after}")
        events += page["events"]
        if not page["events"] or len(events) > 10_000:
            return events
        after = f"&after={page['position']}"


def used_at(call, at):
    """Return the usage of VCPU at a point in time, computed from the events since."""
    providers = get(call, f"/v1/overview?at={at}")["providers"]
    return sum(each["inventories"].get("VCPU", {}).get("used", 0) for each in providers)


def test_the_final_cloud_is_the_documented_one(filled):
    assert get(filled, "/v1/overview?over_committed=1")["providers"][0]["name"] == "compute-03"
    consumers = get(filled, "/v1/consumers?limit=1000")["consumers"]
    assert len(consumers) > 200
    assert {each["type"] for each in consumers} >= {"INSTANCE", "TRAINING"}
    out = get(filled, "/v1/overview?root=compute-16")["providers"]
    assert "COMPUTE_STATUS_DISABLED" in out[0]["traits"]
    assert sum(each["consumers"] for each in out) == 0


def test_the_day_has_a_sample_every_ten_minutes(filled):
    history = get(filled, "/v1/usage?from=2d&by=project&limit=1000")
    assert history["classes"].keys() == CLASSES
    for samples in history["classes"].values():
        times = [moment(each["at"]) for each in samples[:-1]]
        assert len(times) == 145
        assert {later - earlier for earlier, later in itertools.pairwise(times)} == {datetime.timedelta(minutes=10)}
        assert times[-1] <= moment(samples[-1]["at"])
    assert {each["name"] for each in history["shares"]["VCPU"]} == {
        *("webshop", "research", "analytics", "platform", "games")
    }


def test_the_load_falls_at_night_and_rises_in_the_morning(filled):
    used = [each["used"] for each in get(filled, "/v1/usage?from=2d&limit=1000&class=VCPU")["classes"]["VCPU"]]
    evening, night, end = used[0], min(used), used[-1]
    assert night < 0.7 * evening
    assert evening < 0.8 * end
    assert 60 < used.index(night) < 100


def test_a_sample_equals_the_usage_computed_from_the_events(filled):
    samples = get(filled, "/v1/usage?from=2d&limit=1000&class=VCPU")["classes"]["VCPU"]
    for each in samples[:145:24]:
        assert used_at(filled, each["at"]) == each["used"]


def test_events_are_of_the_day_and_in_order(filled):
    end = end_of_day(filled)
    events = everything(filled)
    times = [moment(each["at"]) for each in events]
    assert times == sorted(times)
    assert end - datetime.timedelta(hours=26) < times[0] < end - datetime.timedelta(hours=24)
    assert times[-1] <= end
    # The requests are spread over the day.
    assert len(set(times)) > 400
    born = {each["uuid"]: each["at"] for each in events if each["kind"] == "consumer"}
    since = {each["uuid"]: moment(each["since"]) for each in get(filled, "/v1/consumers?limit=1000")["consumers"]}
    assert all(at <= moment(born[uuid]) for uuid, at in since.items())
    assert min(since.values()) < end - datetime.timedelta(hours=24)


def test_no_date_is_later_than_the_day(filled, module_database_url):
    end = end_of_day(filled).replace(tzinfo=None)
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


def test_events_of_today_come_after_those_of_the_day(database_url):
    call = demonstration(database_url)
    end = end_of_day(call)
    assert moment(everything(call)[-1]["at"]) <= end
    assert call("POST", "/resource_providers", 39, {"name": "later"}).status == 200
    assert end < moment(everything(call)[-1]["at"])


def test_the_demonstration_is_the_same_each_time(filled, database_url):
    assert shares(demonstration(database_url)) == shares(filled) != {}


def test_the_demonstration_is_the_same_if_writes_take_samples(filled, database_url, monkeypatch):
    """Writes take samples if filling takes longer than the interval."""
    monkeypatch.setattr(feed, "MAINTENANCE_INTERVAL", -1.0)
    assert shares(demonstration(database_url)) == shares(filled)
