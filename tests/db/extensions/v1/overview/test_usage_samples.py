"""Usage samples: one for each class and interval, equal to the sums of the index."""

from __future__ import annotations

import datetime
import itertools
import logging
import random
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import sqlalchemy as sa

from placement import deploy, extension
from placement.db import feed
from placement.db.schema.tables import allocations, inventories, provider_changes, resource_providers
from placement.extensions.v1.history import sampling
from placement.extensions.v1.history.recorder import HistorySettings
from placement.extensions.v1.history.tables import event_order, events, usage_samples
from placement.index.live import LiveIndex
from placement.objects.claims import leases
from placement.objects.inventory import Inventory
from placement.objects.locked_provider import LockedProvider
from tests import web
from tests.clock import PATIENCE
from tests.db import lease
from tests.db.extensions.event_rows import key
from tests.db.in_process import placement
from tests.made import opened

#: Ratios, most of them inexact in single precision; with the totals below, some products are whole and others nearly.
RATIOS = (0.1, 0.3, 0.7, 0.9, 1.0, 1.1, 1.5, 2.3, 16.0)
CLASSES = ("VCPU", "MEMORY_MB", "DISK_GB")


@pytest.fixture(autouse=True)
def index(database):
    """Give the recorder an index, as in a service."""
    database.recorder.index = LiveIndex(database)


def fill(database, seed=1):
    """Create providers with various inventories, and allocate some of them."""
    chance = random.Random(seed)

    def work(db):
        for number in range(1, 31):
            provider = LockedProvider.create(db, uuid=key(number), name=f"host{number}")
            provider.replace_inventories([
                Inventory(name, total, chance.randrange(total + 1), 1, total, 1, chance.choice(RATIOS))
                for name in CLASSES
                for total in (chance.choice((1, 10, 20, 30, 997, 2_000_000_000)),)
            ])  # fmt: skip

    database.write(work)
    ids = itertools.cycle(provider_ids(database))
    rows = [
        {"resource_provider_id": next(ids), "consumer_id": key(number), "resource_class_id": 0, "used": 7}
        for number in range(40)
    ]
    database.write(lambda db: db.execute(sa.insert(allocations), rows))


def provider_ids(database):
    """Return the ids of the providers; a server does not restart them between tests."""
    return database.read(lambda db: db.execute(sa.select(resource_providers.c.id)).scalars().all())


def stored_samples(database):
    """Return the capacity and usage of the samples, by timestamp and class."""
    rows = database.read(lambda db: db.execute(sa.select(usage_samples)).all())
    return {(row.at, row.resource_class): (row.capacity, row.used) for row in rows}


def number_of(database, table):
    return database.read(lambda db: db.execute(sa.select(sa.func.count()).select_from(table)).scalar_one())


#: Ratios, totals and reserved amounts that other implementations may write, by database: infinite, or over-reserved.
INCONSISTENT = {
    "mysql": [(3e38, 10, 10), (0.3, 1, 6)],
    "postgresql": [(float("nan"), 10, 0), (float("inf"), 10, 10), (float("-inf"), 10, 10), (0.3, 1, 6)],
    "sqlite": [(float("inf"), 10, 10), (float("-inf"), 10, 10), (0.3, 1, 6)],
}


def test_a_sample_is_equal_to_the_sums_of_the_index(database):
    fill(database)
    for provider, (ratio, total, reserved) in zip(
        provider_ids(database), INCONSISTENT[database.url.get_backend_name()], strict=False
    ):
        of_provider = sa.update(inventories).where(inventories.c.resource_provider_id == provider)
        values = {"allocation_ratio": ratio, "total": total, "reserved": reserved}
        database.write(lambda db, of_provider=of_provider, values=values: db.execute(of_provider.values(values)))
    database.recorder.maintain()
    samples = stored_samples(database)
    snapshot = LiveIndex(database).current()
    assert {name: amounts for (_, name), amounts in samples.items()} == {
        name: (int(column.totals().capacity), int(column.totals().used))
        for name in CLASSES
        for column in (snapshot.column(name),)
    }
    assert samples
    [at] = {at for at, _ in samples}
    assert (at.minute % 10, at.second, at.microsecond) == (0, 0, 0)


def test_sums_are_clipped_to_zero_and_the_largest_stored_capacity(database):
    fill(database)
    ratio = 3e38 if database.url.get_backend_name() in ("mysql", "mariadb") else float("inf")
    inconsistent = (
        (inventories.c.resource_class_id == 0, {"reserved": 2_000_000_000, "total": 1}),
        (inventories.c.resource_class_id == 1, {"allocation_ratio": ratio, "reserved": 0}),
    )
    for condition, values in inconsistent:
        database.write(
            lambda db, condition=condition, values=values: db.execute(
                sa.update(inventories).where(condition).values(values)
            )
        )
    database.recorder.maintain()
    capacities = {name: capacity for (_, name), (capacity, _) in stored_samples(database).items()}
    assert capacities["VCPU"] == 0
    assert capacities["MEMORY_MB"] == 2**62
    present = placement(database)("GET", "/v1/usage").body["classes"]
    assert {name: samples[-1]["capacity"] for name, samples in present.items()} == capacities


def test_the_present_usage_contains_only_classes_with_an_inventory(database):
    """Classes whose inventories were deleted are left out, and so are inconsistent rows without a class."""
    service, host = placement(database), key(1)
    assert service("POST", "/resource_providers", 39, {"uuid": host, "name": host}).status == 200
    for generation, names in enumerate([CLASSES, CLASSES[:2]]):
        body = {"resource_provider_generation": generation, "inventories": {name: {"total": 4} for name in names}}
        assert service("PUT", f"/resource_providers/{host}/inventories", 39, body).status == 200
        assert service("GET", "/v1/usage").body["classes"].keys() == {*names}
    assert service("GET", "/v1/usage?class=VCPU").body["classes"].keys() == {"VCPU"}
    without_class = sa.update(inventories).where(inventories.c.resource_class_id == 1).values(resource_class_id=99_999)
    database.write(lambda db: db.execute(without_class))
    assert placement(database)("GET", "/v1/usage").body["classes"].keys() == {"VCPU"}


def test_an_interval_has_one_sample_which_is_neither_an_event_nor_in_the_feed(database):
    fill(database)
    database.recorder.order()
    before = [number_of(database, table) for table in (events, event_order, provider_changes)]
    database.recorder.maintain()
    first = stored_samples(database)
    assert first
    database.write(lambda db: db.execute(sa.update(allocations).values(used=9)))
    database.recorder.maintain()
    later = stored_samples(database)
    assert {name: later[name] for name in first} == first
    assert [number_of(database, table) for table in (events, event_order, provider_changes)] == before


def test_the_next_interval_has_its_own_sample(database):
    fill(database)
    database.recorder.maintain()
    ten_minutes = datetime.timedelta(minutes=10)
    for at, _ in stored_samples(database):
        database.write(
            lambda db, at=at: db.execute(
                sa.update(usage_samples).where(usage_samples.c.at == at).values(at=at - ten_minutes)
            )
        )
    database.recorder.maintain()
    assert len(stored_samples(database)) == 2 * len(CLASSES)


@pytest.mark.every_database
def test_several_processes_take_one_sample_of_an_interval(database):
    fill(database)
    with ThreadPoolExecutor(4) as threads:
        for _ in range(5):
            database.write(lambda db: db.execute(sa.delete(usage_samples)))
            [*threads.map(take_elsewhere, [database.url] * 4)]
            assert len(stored_samples(database)) % len(CLASSES) == 0
            assert stored_samples(database)


def take_elsewhere(url):
    with opened(url) as other:
        sampling.take(other, LiveIndex(other))


def test_a_service_takes_samples_and_a_command_does_not(database):
    fill(database)
    with opened(database.url) as other:
        extension.attach(other, web.configuration())
        other.recorder.maintain()
        assert stored_samples(database) == {}
        deploy.loadapp(web.configuration(), other)
        other.recorder.maintain()
    assert {name for _, name in stored_samples(database)} == {*CLASSES}


def test_a_process_that_records_no_history_takes_no_samples(database):
    fill(database)
    with opened(database.url, history=HistorySettings(enabled=False)) as other:
        other.recorder.index = LiveIndex(other)
        other.recorder.maintain()
    assert stored_samples(database) == {}


def test_samples_are_removed_with_the_events(database):
    fill(database)
    database.recorder.maintain()
    now = next(iter(stored_samples(database)))[0]
    for days in (1, 29, 31, 400):
        row = {"at": now - datetime.timedelta(days=days), "resource_class": "VCPU", "capacity": 1, "used": 1}
        database.write(lambda db, row=row: db.execute(sa.insert(usage_samples).values(row)))
    database.recorder.prune()
    assert {(now - at).days for at, _ in stored_samples(database)} - {0} == {1, 29}


def test_a_sample_that_cannot_be_taken_is_logged(database, caplog):
    fill(database)
    database.write(lambda db: db.execute(sa.text("DROP TABLE usage_samples")))
    with caplog.at_level(logging.WARNING):
        database.recorder.maintain()
    assert "Cannot take a usage sample" in caplog.text


def test_the_writes_of_maintenance_start_no_further_maintenance(database, monkeypatch):
    """A feed writer may be due for maintenance at each write."""
    orders = []
    order = database.recorder._ordering.try_run

    def count_attempt():
        orders.append(1)
        assert len(orders) < 5
        return order()

    monkeypatch.setattr(database.recorder._ordering, "try_run", count_attempt)
    monkeypatch.setattr(feed.Writer, "maintenance_due", lambda _: True)
    database.recorder.maintain()
    assert len(orders) == 1
    database.recorder.maintain()
    assert len(orders) == 2


def test_a_refresh_of_the_index_that_releases_leases_takes_no_sample(database, monkeypatch):
    """A sample would need the same index, and every search would wait for it; the next write takes the sample."""
    service, host, consumer = placement(database), key(1), key(1001)
    assert service("POST", "/resource_providers", 39, {"uuid": host, "name": host}).status == 200
    body = {"resource_provider_generation": 0, "inventories": {"VCPU": {"total": 4}}}
    assert service("PUT", f"/resource_providers/{host}/inventories", 39, body).status == 200
    owner = {"project_id": "red", "user_id": "ann", "consumer_generation": None, "consumer_type": "INSTANCE"}
    body = {"allocations": {host: {"resources": {"VCPU": 4}}}, **owner}
    assert service("PUT", f"/allocations/{consumer}", 39, body).status == 204
    database.write(lambda db: leases.extend(db, consumer, 3600))
    lease.expire(database, consumer)
    database.write(lambda db: db.execute(sa.delete(usage_samples)))
    monkeypatch.setattr(feed.Writer, "maintenance_due", lambda _: True)
    refresh = threading.Thread(target=database.recorder.index.current, daemon=True)
    refresh.start()
    refresh.join(PATIENCE)
    assert not refresh.is_alive()
    assert database.recorder.index.recent(PATIENCE).totals()["VCPU"].used == 0
    assert stored_samples(database) == {}
    database.recorder.maintain()
    assert {name: sample for (_, name), sample in stored_samples(database).items()} == {"VCPU": (4, 0)}


@pytest.mark.parametrize("timestamp", ["2026-11-23T18:30:00", "2026-11-23T18:39:59.999999"])
def test_intervals_begin_at_multiples_of_ten_minutes(timestamp):
    assert sampling.beginning(datetime.datetime.fromisoformat(timestamp)).isoformat() == "2026-11-23T18:30:00"
