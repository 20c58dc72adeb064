"""Standard resource classes and traits are inserted at start, by any number of processes at the same time
(docs: api-class-rules, entry-points).
"""

from __future__ import annotations

import threading

import os_traits
import pytest
import sqlalchemy as sa

from placement.db.schema import schema
from placement.db.schema.tables import feed_instance, resource_classes, traits
from placement.db.upkeep import standard
from placement.index.live import LiveIndex
from tests import made
from tests.db import forks, sql_hooks
from tests.db.in_process import placement
from tests.made import opened

pytestmark = pytest.mark.every_database

CLASSES = [
    "VCPU",
    "MEMORY_MB",
    "DISK_GB",
    "PCI_DEVICE",
    "SRIOV_NET_VF",
    "NUMA_SOCKET",
    "NUMA_CORE",
    "NUMA_THREAD",
    "NUMA_MEMORY_MB",
    "IPV4_ADDRESS",
    "VGPU",
    "VGPU_DISPLAY_HEAD",
    "NET_BW_EGR_KILOBIT_PER_SEC",
    "NET_BW_IGR_KILOBIT_PER_SEC",
    "PCPU",
    "MEM_ENCRYPTION_CONTEXT",
    "FPGA",
    "PGPU",
    "NET_PACKET_RATE_KILOPACKET_PER_SEC",
    "NET_PACKET_RATE_EGR_KILOPACKET_PER_SEC",
    "NET_PACKET_RATE_IGR_KILOPACKET_PER_SEC",
]


@pytest.fixture
def database(database_url):
    """Return a database with its schema, and no rows except the feed's identity."""
    with opened(database_url) as synced:
        made.sync(synced.engine)
        yield synced


def execute(database, *statements):
    with database.engine.begin() as connection:
        for statement in statements:
            result = connection.execute(statement)
        return result.all() if result.returns_rows else None


def classes(database):
    rows = execute(database, sa.select(resource_classes.c.id, resource_classes.c.name).order_by("id"))
    return [tuple(row) for row in rows]


def trait_names(database):
    return sorted(execute(database, sa.select(traits.c.name)), key=str)


def everything(database):
    return [
        execute(database, sa.select(table).order_by(*table.primary_key))
        for table in (resource_classes, traits, feed_instance)
    ]


def test_classes_have_their_fixed_ids(database):
    standard.insert(database)
    assert classes(database)[: len(CLASSES)] == list(enumerate(CLASSES))


def test_the_traits_are_the_traits_of_os_traits(database):
    standard.insert(database)
    assert [name for (name,) in trait_names(database)] == sorted(os_traits.get_traits())


def test_rows_have_the_time_of_their_creation(database):
    standard.insert(database)
    for table in (resource_classes, traits):
        assert execute(database, sa.select(table.c.name).where(table.c.created_at.is_(None))) == []


def test_nothing_is_written_when_nothing_is_missing(database, database_url):
    standard.insert(database)
    before = everything(database)
    with opened(database_url) as next_start, sql_hooks.writes(next_start.engine) as statements:
        standard.insert(next_start)
    assert statements == []
    assert everything(database) == before


def test_only_missing_rows_are_added(database):
    standard.insert(database)
    execute(
        database,
        sa.insert(resource_classes).values(id=10000, name="CUSTOM_A"),
        sa.insert(traits).values(name="CUSTOM_B"),
    )
    whole = (
        [(row.id, row.name) for row in execute(database, sa.select(resource_classes).order_by("id"))],
        trait_names(database),
    )
    execute(
        database,
        sa.delete(resource_classes).where(resource_classes.c.name.in_(["VCPU", "FPGA"])),
        sa.delete(traits).where(traits.c.name == "HW_CPU_X86_AVX2"),
    )
    standard.insert(database)
    assert (classes(database), trait_names(database)) == whole


@pytest.mark.parametrize("place", ["INTO resource_classes", "INTO traits", "feed_instance"])
def test_a_failed_attempt_is_rolled_back_and_the_next_one_succeeds(database, place):
    """LP 1760322, 1759863, 1756151: the sync was recorded as done although it had been rolled back."""
    execute(database, sa.delete(feed_instance))
    with sql_hooks.power_cut(database.engine, lambda statement: place in statement), pytest.raises(sql_hooks.PowerCut):
        standard.insert(database)
    assert everything(database) == [[], [], []]
    standard.insert(database)
    assert [len(rows) for rows in everything(database)] == [len(standard.CLASS_IDS), len(os_traits.get_traits()), 1]


@pytest.mark.parametrize("backend", ["mariadb", "postgresql"], indirect=True)
def test_a_collision_is_retried_with_the_rows_of_that_time(database, database_url):
    """Another process inserts everything between our SELECT and our INSERT; with SQLite transactions cannot overlap."""
    with opened(database_url) as other:
        others = [other]

        def other_starts(statement):
            if "INTO resource_classes" in statement and others:
                standard.insert(others.pop())

        with sql_hooks.statements(database.engine, other_starts):
            standard.insert(database)
        assert others == []
    assert [len(rows) for rows in everything(database)] == [len(standard.CLASS_IDS), len(os_traits.get_traits()), 1]


def test_a_standard_class_does_not_take_the_id_of_another_class(database):
    execute(database, sa.insert(resource_classes).values(id=3, name="SOMETHING_ELSE"))
    with pytest.raises(RuntimeError, match=r"ids \[3\]"):
        standard.insert(database)
    assert classes(database) == [(3, "SOMETHING_ELSE")]


def test_the_feed_keeps_its_identity_when_something_else_is_missing(database):
    standard.insert(database)
    before = execute(database, sa.select(feed_instance))
    execute(database, sa.delete(traits).where(traits.c.name == "HW_CPU_X86_AVX2"))
    standard.insert(database)
    assert execute(database, sa.select(feed_instance)) == before


def test_two_starters_agree_on_the_identity_of_the_feed(database, database_url):
    standard.insert(database)
    execute(database, sa.delete(feed_instance))
    with opened(database_url) as other:
        starter = threading.Thread(target=standard.insert, args=[other])

        def other_starts(statement):
            if "INTO feed_instance" in statement:
                starter.start()
                starter.join(0.5)  # the other process waits for our transaction

        with sql_hooks.statements(database.engine, other_starts):
            standard.insert(database)
        starter.join()
    assert len(execute(database, sa.select(feed_instance))) == 1


@pytest.mark.parametrize("backend", ["mariadb"], indirect=True)
@pytest.mark.parametrize("mode", ["TRADITIONAL", ""])
def test_the_sql_mode_is_restored(database_url, mode):
    with opened(database_url, mysql_sql_mode=mode, pool_size=1, max_overflow=0) as database:
        made.sync(database.engine)

        def sql_mode():
            return execute(database, sa.text("SELECT @@SESSION.sql_mode"))

        before = sql_mode()
        with (
            sql_hooks.power_cut(database.engine, lambda text: "INTO traits" in text),
            pytest.raises(sql_hooks.PowerCut),
        ):
            standard.insert(database)
        assert sql_mode() == before
        standard.insert(database)
        assert sql_mode() == before
        assert classes(database)[0] == (0, "VCPU")


def test_eight_processes_start_concurrently(database_url):
    complete = {
        "version": schema.HEAD,
        "resource_classes": len(standard.CLASS_IDS),
        "traits": len(os_traits.get_traits()),
        "feed_instance": 1,
    }
    assert forks.from_new_process(starters, database_url) == [complete] * 8


def starters(url):
    return forks.together(8, start, url)


def start(wait, url):
    """Return the version of the schema and the numbers of rows after a start of the service."""
    with opened(url) as database:
        wait()
        made.sync(database.engine)
        wait()
        standard.insert(database)
        state = {"version": schema.version(database.engine)}
        for table in (resource_classes, traits, feed_instance):
            [[state[table.name]]] = map(tuple, execute(database, sa.select(sa.func.count()).select_from(table)))
        return state


# --- under a running service ---


def delete_rows(database):
    """Delete the rows, as if the database had been dropped and only its schema created again."""
    execute(database, sa.delete(resource_classes), sa.delete(traits), sa.delete(feed_instance))


TREE = "/resource_providers/00000000-0000-0000-0000-000000000001"
STOCK = {"inventories": {"VCPU": {"total": 8}}, "resource_provider_generation": 0}
NAMING = (
    ("GET", "/resource_classes/VCPU", None, 200),
    ("GET", "/traits/HW_CPU_X86_AVX", None, 204),
    ("PUT", f"{TREE}/inventories", STOCK, 200),
    ("PUT", f"{TREE}/traits", {"traits": ["HW_CPU_X86_AVX"], "resource_provider_generation": 0}, 200),
    ("GET", "/allocation_candidates?resources=VCPU:1", None, 200),
    ("GET", "/allocation_candidates?resources=VCPU:1&required=HW_CPU_X86_AVX", None, 200),
    ("GET", "/resource_providers?required=HW_CPU_X86_AVX", None, 200),
)


@pytest.mark.parametrize(("method", "path", "body", "status"), NAMING, ids=[f"{call[0]} {call[1]}" for call in NAMING])
def test_names_that_vanish_under_a_running_service_are_restored_by_the_request_that_misses_them(
    database, caplog, method, path, body, status
):
    standard.insert(database)
    call = placement(database)
    call("POST", "/resource_providers", body={"name": "host", "uuid": TREE[-36:]})
    assert call("GET", "/allocation_candidates?resources=VCPU:1").status == 200
    delete_rows(database)
    assert call(method, path, body=body).status == status
    assert len(classes(database)) == len(CLASSES)
    searches = path.startswith(("/resource_providers?", "/allocation_candidates?"))
    assert ("The database has no identity" if searches else "has lost standard names") in caplog.text
    assert call("GET", "/resource_providers").status == 200
    identity = execute(database, sa.select(feed_instance.c.uuid))
    assert len(identity) == 1


def test_an_index_shows_a_class_that_is_inserted_again(database):
    standard.insert(database)
    execute(database, sa.delete(resource_classes).where(resource_classes.c.name == "VCPU"))
    live_index = LiveIndex(database)
    assert "VCPU" not in live_index.current().class_ids
    standard.insert(database)
    assert live_index.current().class_ids["VCPU"] == 0


def test_unknown_names_are_still_refused(database, caplog):
    standard.insert(database)
    call, seen = placement(database), []
    with sql_hooks.statements(database.engine, seen.append):
        assert call("GET", "/resource_classes/CUSTOM_NONE").status == 404
        assert call("GET", "/traits/CUSTOM_NONE").status == 404
        assert call("GET", "/allocation_candidates?resources=CUSTOM_NONE:1").status == 400
        assert call("GET", "/allocation_candidates?resources=VCPU:1&required=CUSTOM_NONE").status == 400
    assert not [statement for statement in seen if statement.startswith("INSERT")]
    assert "has lost standard names" not in caplog.text


def test_names_whose_ids_are_taken_are_not_inserted_again(database, caplog):
    call = placement(database)
    execute(database, sa.delete(resource_classes), sa.insert(resource_classes).values(id=2, name="CUSTOM_TWO"))
    assert call("GET", "/resource_classes/VCPU").status == 404
    assert "cannot be inserted again" in caplog.text


def test_a_database_without_an_identity_gets_one_from_the_next_search(database):
    standard.insert(database)
    call = placement(database)
    call("GET", "/resource_providers")
    execute(database, sa.delete(feed_instance))
    assert call("GET", "/resource_providers").status == 200
    assert len(execute(database, sa.select(feed_instance.c.uuid))) == 1


def test_a_database_that_cannot_store_an_identity_is_searched(database, caplog):
    standard.insert(database)
    call = placement(database)
    vcpu = resource_classes.c.name == "VCPU"
    execute(database, sa.delete(feed_instance), sa.update(resource_classes).where(vcpu).values(name="CUSTOM_ZERO"))
    assert call("GET", "/resource_providers").status == 200
    assert "inserting one failed: Resource class ids [0] belong to other classes" in caplog.text
