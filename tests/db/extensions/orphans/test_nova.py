"""placement-manage consumers --nova: openstacksdk reads a fake nova whose responses conform to nova's schemas."""

from __future__ import annotations

import json
import math
import sys
import urllib.parse

import pytest
import sqlalchemy as sa

from placement import package
from placement.db.schema.tables import allocations, consumers, resource_providers
from placement.extensions.orphans import command as command
from placement.extensions.orphans.nova import VERSION
from tests import closed
from tests.db.cloud import FLAVOR, Cloud, uuids
from tests.nova import fake

pytestmark = pytest.mark.filterwarnings("ignore")  # warnings of the SDK itself
RELEASE = ("--release", "--older-than", "1d", "--yes", "--force")
#: A mark for tests that do not depend on the kind of database.
SQLITE = pytest.mark.parametrize("backend", ["sqlite"], indirect=True, scope="session")


@pytest.fixture
def nova():
    with fake.serve() as state:
        yield state


@pytest.fixture
def cloud(database, tmp_path, monkeypatch, in_process, nova):
    made = Cloud(database, tmp_path, monkeypatch, in_process)
    made.connect(here=nova.url)
    return made


def compare(cloud, *words):
    return cloud.run("--nova", "here", *words, "--json")


def findings(ran):
    """Return the kind and the reason of each finding, by consumer."""
    assert ran.out, ran.err
    return {finding["consumer"]: (finding["kind"], finding["reason"]) for finding in json.loads(ran.out)["found"]}


def kinds(ran):
    return {consumer: kind for consumer, (kind, _) in findings(ran).items()}


def errors(ran):
    """Return the lines on stderr without the progress, which is printed on a busy machine."""
    return [line for line in ran.err.splitlines() if not line.startswith("consumers: ")]


def server(cloud, nova, host="host1", flavor=None, resources=None, **fields):
    """Create a server with the allocations of its flavor, or with others; return its uuid."""
    [uuid] = uuids(1)
    nova.add(uuid, host, flavor, **fields)
    if resources is None:
        cloud.claim(uuid, **{host: FLAVOR})
    elif resources:
        cloud.claim(uuid, **resources)
    return uuid


def test_a_consistent_cloud_has_no_findings(cloud, nova):
    for _ in range(10):
        server(cloud, nova)
    ran = compare(cloud)
    assert (ran.code, findings(ran), json.loads(ran.out)["summary"]["compared"]) == (0, {}, 10)
    # All pages, of all projects, at one version.
    pages = [urllib.parse.parse_qs(urllib.parse.urlsplit(path).query) for path in nova.requested if "/detail" in path]
    assert [page.get("all_tenants") for page in pages] == [["1"]] * 4
    assert ["marker" in page for page in pages] == [False, True, True, True]


def test_an_orphan_is_found_and_released(cloud, nova):
    servers = [server(cloud, nova) for _ in range(4)]
    orphan, untyped, young = cloud.claim(), cloud.claim(kind=None), cloud.claim(days=0)
    foreign = cloud.claim(kind="LEASE")
    ran = compare(cloud)
    assert (ran.code, kinds(ran)) == (command.DISCREPANCIES, {orphan: "orphan", untyped: "orphan", young: "young"})
    assert json.loads(ran.out)["summary"]["not_compared"] == {"LEASE": 1}
    assert compare(cloud, *RELEASE).code == 0
    assert cloud.consumers() == {*servers, young, foreign}


def test_a_list_and_a_nova_are_combined(cloud, nova):
    server(cloud, nova)
    listed, orphan, lease = cloud.claim(), cloud.claim(), cloud.claim(kind="LEASE")
    file = cloud.file(listed)
    assert kinds(compare(cloud, "--not-in", file)) == {orphan: "orphan"}
    # Consumers of other services are compared only if their type is named.
    assert kinds(compare(cloud, "--not-in", file, "--type", "LEASE")) == {lease: "orphan"}


def test_a_server_missing_on_every_page_is_not_an_orphan(cloud, nova):
    """The server is soft-deleted, or in a cell that does not respond."""
    instance = server(cloud, nova)
    hidden = server(cloud, nova, status="SOFT_DELETED")
    nova.hidden[hidden] = nova.servers.pop(hidden)
    ran = compare(cloud, *RELEASE)
    assert (ran.code, findings(ran), cloud.consumers()) == (0, {}, {instance, hidden})


@pytest.mark.parametrize(
    "status",
    [
        *("accepted", "queued", "preparing", "pre-migrating", "running", "running (post-copy)"),
        *("migrating", "post-migrating", "finished", "confirming", "reverting"),
    ],
)
def test_a_migrating_server_is_neither_an_orphan_nor_a_double(cloud, nova, status):
    moving = server(cloud, nova, "host2", resources={"host1": FLAVOR, "host2": FLAVOR})
    [move] = uuids(1)
    nova.migrate(moving, move, status)
    cloud.claim(move, kind="MIGRATION")
    ran = compare(cloud, *RELEASE)
    assert (ran.code, findings(ran), cloud.consumers()) == (0, {}, {moving, move})


def test_more_migrations_than_a_page_are_all_read(cloud, nova):
    moving = server(cloud, nova)
    moves = uuids(7)
    for move in moves:
        nova.migrate(moving, move, "finished", "resize")
        cloud.claim(move, kind="MIGRATION")
    assert compare(cloud, *RELEASE).code == 0
    assert cloud.consumers() == {moving, *moves}


@pytest.mark.parametrize("status", ["error", "completed", "confirmed", "reverted", "cancelled", "failed"])
def test_a_migration_that_has_ended_is_an_orphan(cloud, nova, status):
    stays = server(cloud, nova)
    [move] = uuids(1)
    nova.migrate(stays, move, status)
    cloud.claim(move, kind="MIGRATION")
    assert kinds(compare(cloud)) == {move: "orphan"}
    assert compare(cloud, *RELEASE).code == 0
    assert cloud.consumers() == {stays}


def test_an_evacuated_server_holds_on_both_hosts_until_the_old_one_is_back(cloud, nova):
    moved = server(cloud, nova, "host2", resources={"host1": FLAVOR, "host2": FLAVOR})
    nova.migrate(moved, uuids(1)[0], "done", "evacuation")
    assert compare(cloud).code == 0
    nova.migrations[0]["status"] = "completed"
    assert kinds(compare(cloud)) == {moved: "double"}


def test_an_instance_on_two_hosts_is_a_double(cloud, nova):
    twice = server(cloud, nova, "host2", resources={"host1": FLAVOR, "host2": FLAVOR})
    ran = compare(cloud)
    assert findings(ran) == {
        twice: ("double", "holds resources on host1 and host2; nova runs it on host2, without a migration"),
    }
    [finding] = json.loads(ran.out)["found"]
    unset = f"openstack resource provider allocation unset --provider {cloud.providers['host1']} {twice}"
    assert finding["hint"] == unset
    assert f"    fix: {unset}\n" in cloud.run("--nova", "here").out


def test_the_hint_for_a_double_unsets_everything_on_the_other_host(cloud, nova):
    resources = {"host1": {"MEMORY_MB": 512}, "numa1": {"VCPU": 2}, "host2": FLAVOR, "pool": {"DISK_GB": 20}}
    twice = server(cloud, nova, "host2", resources=resources)
    [finding] = json.loads(compare(cloud).out)["found"]
    command_line = finding["hint"].split()
    assert command_line[:5] == ["openstack", "resource", "provider", "allocation", "unset"]
    assert command_line[5::2] == ["--provider", "--provider", twice]
    assert {*command_line[6::2]} == {cloud.providers["host1"], cloud.providers["numa1"]}


def test_the_hint_for_a_double_without_allocations_on_its_host_unsets_nothing(cloud, nova):
    lost = server(cloud, nova, "host3", resources={"host1": FLAVOR, "host2": FLAVOR})
    [finding] = json.loads(compare(cloud).out)["found"]
    assert finding["kind"] == "double"
    assert finding["hint"] == f"nova-manage placement heal_allocations --force --instance {lost}"


def test_a_child_and_a_shared_pool_are_not_a_second_host(cloud, nova):
    server(
        cloud, nova, resources={"host1": {"VCPU": 1, "MEMORY_MB": 512}, "numa1": {"VCPU": 1}, "pool": {"DISK_GB": 20}}
    )
    assert compare(cloud).code == 0


def test_a_provider_without_a_root_is_its_own_host(cloud, nova):
    """Old releases stored no roots."""
    server(cloud, nova)
    moved = server(cloud, nova, "host2", resources={"host1": FLAVOR})
    rootless = sa.update(resource_providers).where(resource_providers.c.name == "host1").values(root_provider_id=None)
    cloud.database.write(lambda db: db.execute(rootless))
    assert findings(compare(cloud)) == {moved: ("wrong-host", "holds resources on host1; nova runs it on host2")}


def test_an_instance_on_the_wrong_host_is_found(cloud, nova):
    moved = server(cloud, nova, "host2", resources={"host1": FLAVOR})
    homeless = server(cloud, nova, "host2", resources={"pool": {"DISK_GB": 20}})
    assert findings(compare(cloud)) == {
        moved: ("wrong-host", "holds resources on host1; nova runs it on host2"),
        homeless: ("wrong-host", "holds resources on no host; nova runs it on host2"),
    }


def test_a_running_server_without_allocations_is_missing(cloud, nova):
    missing = server(cloud, nova, resources={})
    other = server(cloud, nova, resources={}, tenant_id="blue")
    none = {f"resources:{name}": "0" for name in FLAVOR}
    server(cloud, nova, resources={}, flavor={"extra_specs": none})
    metal = server(cloud, nova, resources={}, flavor={"extra_specs": {**none, "resources:VGPU": "1"}})
    server(cloud, nova, resources={}, **{fake.TASK: "deleting"})
    server(cloud, nova, None, resources={}, status="SHELVED_OFFLOADED")
    server(cloud, nova, None, resources={}, status="ERROR")
    ran = compare(cloud)
    assert (ran.code, kinds(ran)) == (command.DISCREPANCIES, dict.fromkeys((missing, other, metal), "missing"))
    assert json.loads(ran.out)["found"][0]["hint"] == f"nova-manage placement heal_allocations --instance {missing}"
    assert kinds(compare(cloud, "--project", "blue")) == {other: "missing"}
    assert kinds(compare(cloud, "--type", "MIGRATION")) == {}


def test_a_server_without_a_host_should_have_no_allocations(cloud, nova):
    shelved = server(cloud, nova, None, resources={"host1": FLAVOR}, status="SHELVED_OFFLOADED")
    server(cloud, nova, None, resources={"host1": FLAVOR}, status="BUILD", **{fake.TASK: "scheduling"})
    assert findings(compare(cloud)) == {shelved: ("no-host", "nova runs it on no host (SHELVED_OFFLOADED)")}
    with cloud.database.engine.begin() as connection:  # another implementation may write such rows
        connection.execute(sa.update(allocations).where(allocations.c.consumer_id == shelved).values(used=0))
    assert findings(compare(cloud)) == {}


SPECS = {"hw:cpu_policy": "dedicated"}


@pytest.mark.parametrize(
    ("flavor", "amounts", "sentence"),
    [
        ({}, {**FLAVOR, "VCPU": 3}, "VCPU+PCPU 3 instead of 2"),
        ({}, {"VCPU": 2, "MEMORY_MB": 512}, "DISK_GB 0 instead of 20"),
        ({}, {**FLAVOR, "MEMORY_MB": 1024, "DISK_GB": 1}, "MEMORY_MB 1024 instead of 512, DISK_GB 1 instead of 20"),
        ({"ephemeral": 5, "swap": 1025}, FLAVOR, "DISK_GB 20 instead of 27"),
        ({"ephemeral": 5, "swap": 1024}, {**FLAVOR, "DISK_GB": 26}, None),
        ({"extra_specs": SPECS}, {"PCPU": 2, "MEMORY_MB": 512, "DISK_GB": 20}, None),
        ({"extra_specs": SPECS}, {"PCPU": 3, "MEMORY_MB": 512, "DISK_GB": 20}, "VCPU+PCPU 3 instead of 2"),
        ({"extra_specs": {"resources:VCPU": "4"}}, {**FLAVOR, "VCPU": 4}, None),
        ({"extra_specs": {"resources:DISK_GB": "0"}}, FLAVOR, "DISK_GB 20 instead of 0"),
        ({"extra_specs": {"resources:VGPU": "1"}}, FLAVOR, "VGPU 0 instead of 1"),
        ({"extra_specs": {"resources:VGPU": "1"}}, {**FLAVOR, "VGPU": 2}, None),
        ({"extra_specs": {"resources1:VCPU": "1"}}, {**FLAVOR, "VCPU": 9}, None),
        ({"extra_specs": {"trait:HW_CPU_X86_AVX": "required"}}, FLAVOR, None),
    ],
)
def test_amounts_that_differ_from_the_flavor_are_found(cloud, nova, flavor, amounts, sentence):
    uuid = server(cloud, nova, flavor=flavor, resources={"host1": amounts})
    expected = (
        {} if sentence is None else {uuid: ("amounts", f"holds amounts that differ from its flavor's: {sentence}")}
    )
    assert findings(compare(cloud)) == expected


@pytest.mark.parametrize("more", [0, 1])
def test_all_recorded_replies_are_understood(cloud, nova, more):
    """The schemas allow flavors of any size, with swap and volumes, and all states."""
    differing = set()
    for document in fake.RECORDED["servers"]:
        uuid = document["id"]
        nova.servers[uuid] = {**document, **({fake.HOST: "host2", fake.TASK: None} if "flavor" in document else {})}
        if "flavor" not in document:
            cloud.claim(uuid)
            continue
        flavor = document["flavor"]
        root = 0 if document["image"] == "" else flavor["disk"]
        disk = root + flavor["ephemeral"] + math.ceil(flavor["swap"] / 1024)
        amounts = {"VCPU": flavor["vcpus"], "MEMORY_MB": flavor["ram"], "DISK_GB": disk + more}
        if any(amounts.values()):
            cloud.claim(uuid, host2={name: amount for name, amount in amounts.items() if amount})
        if more and "extra_specs" in flavor:
            differing.add(uuid)
    assert kinds(compare(cloud)) == dict.fromkeys(differing, "amounts")


def test_a_root_disk_on_a_volume_requests_no_disk(cloud, nova):
    server(cloud, nova, resources={"host1": {"VCPU": 2, "MEMORY_MB": 512}}, image="")
    assert compare(cloud).code == 0


def test_fields_missing_in_nova_are_not_compared(cloud, nova):
    hidden = server(cloud, nova, resources={"host1": {"VCPU": 99}})
    del nova.servers[hidden]["flavor"]["extra_specs"]
    # This server is in a cell that does not respond.
    silent = server(cloud, nova, resources={"host1": {"VCPU": 99}, "host2": {"VCPU": 99}})
    fields = ("id", "created", "links", "tenant_id")
    nova.servers[silent] = {**{name: nova.servers[silent][name] for name in fields}, "status": "UNKNOWN"}
    server(cloud, nova, resources={"host2": FLAVOR}, **{fake.TASK: "migrating"})
    assert compare(cloud).code == 0


class TestCellsThatDoNotAnswer:
    """nova's responses silently lack the migrations of such cells, and a migration cannot be read by its uuid."""

    @pytest.fixture
    def scene(self, cloud, nova):
        """Return a server, an orphan, and two consumers that may be migrations."""
        instance, orphan = server(cloud, nova), cloud.claim()
        moves = {cloud.claim(kind="MIGRATION"), cloud.claim(kind=None)}
        return instance, orphan, moves

    @staticmethod
    def check(cloud, scene, *others):
        instance, orphan, moves = scene
        ran = compare(cloud)
        assert (ran.code, kinds(ran)) == (command.DISCREPANCIES, {orphan: "orphan"})
        assert json.loads(ran.out)["summary"]["perhaps_migrations"] == 2
        assert "2 consumers unknown to nova are not counted as orphans" in cloud.run("--nova", "here").out
        assert compare(cloud, *RELEASE).code == command.DISCREPANCIES
        assert cloud.consumers() == {instance, *moves, *others}

    def test_a_silent_cell_is_detected_by_a_server_listed_without_details(self, cloud, nova, scene):
        silent = server(cloud, nova)
        fields = ("id", "created", "links", "tenant_id")
        nova.servers[silent] = {**{name: nova.servers[silent][name] for name in fields}, "status": "UNKNOWN"}
        self.check(cloud, scene, silent)

    def test_a_silent_cell_is_detected_by_a_server_missing_on_every_page(self, cloud, nova, scene):
        silent = server(cloud, nova)
        fields = ("id", "created", "links", "tenant_id", "user_id", "image", "flavor")
        hidden = nova.servers.pop(silent)
        nothing = {"OS-EXT-AZ:availability_zone": "UNKNOWN", "OS-EXT-STS:power_state": 0}
        nova.hidden[silent] = {**{name: hidden[name] for name in fields}, **nothing, "status": "UNKNOWN"}
        self.check(cloud, scene, silent)

    def test_a_silent_cell_is_detected_by_a_resized_server_without_a_migration(self, cloud, nova, scene):
        resized = server(cloud, nova, status="VERIFY_RESIZE")
        self.check(cloud, scene, resized)
        nova.changed.add(resized)  # its migration has just ended
        assert json.loads(compare(cloud).out)["summary"]["perhaps_migrations"] == 0


def test_a_consumer_younger_than_the_reading_is_not_an_orphan(cloud, nova, monkeypatch):
    """A migration that begins during the reading is on no page."""
    instance, move = server(cloud, nova), cloud.claim(kind="MIGRATION", days=0.5)
    assert kinds(compare(cloud, "--older-than", "1h")) == {move: "orphan"}
    ask, clock = command._read_sources, command.time.monotonic

    def slowly(*arguments):
        monkeypatch.setattr(command.time, "monotonic", lambda: clock() + 86400)
        return ask(*arguments)

    monkeypatch.setattr(command, "_read_sources", slowly)
    ran = compare(cloud, "--release", "--older-than", "1h", "--yes")
    monkeypatch.undo()
    assert (kinds(ran), cloud.consumers()) == ({move: "young"}, {instance, move})


def test_no_orphan_is_looked_up_in_a_wrong_nova(cloud, nova):
    """Hundreds of thousands of orphans would each take a request."""
    instance, others = server(cloud, nova), {cloud.claim() for _ in range(3)}
    ran = compare(cloud, "--release", "--older-than", "1d", "--yes")
    assert (ran.code, cloud.consumers()) == (1, {instance, *others})
    assert not [path for path in nova.requested if any(fragment in path for fragment in others)]


def test_a_consumer_that_changes_meanwhile_is_not_a_finding(cloud, nova):
    moved, other = server(cloud, nova, "host2", resources={"host1": FLAVOR}), server(cloud, nova, resources={})
    nova.changed.add(moved)
    ran = compare(cloud)
    assert (kinds(ran), json.loads(ran.out)["summary"]["changed_meanwhile"]) == ({other: "missing"}, 1)
    with cloud.database.engine.begin() as connection:  # a spelling that another implementation may store
        for column in (consumers.c.uuid, allocations.c.consumer_id):
            connection.execute(sa.update(column.table).where(column == moved).values({column.name: moved.upper()}))
    assert kinds(compare(cloud)) == {other: "missing"}


@pytest.mark.parametrize("status", [403, 500])
@pytest.mark.parametrize(
    ("path", "at"), [("/servers/detail", 1), ("/servers/detail", 2), ("/os-migrations", 1), ("/os-migrations", 9)]
)
def test_a_failure_at_any_page_releases_nothing(cloud, nova, path, at, status):
    before = {server(cloud, nova) for _ in range(5)} | {cloud.claim()}
    nova.failing[path] = (at, status)
    ran = compare(cloud, *RELEASE)
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.splitlines()[-1].startswith("placement-manage: nova in cloud here cannot be read: ")
    assert cloud.consumers() == before


def test_an_orphan_that_cannot_be_looked_up_in_nova_is_not_released(cloud, nova):
    instance, unclear = server(cloud, nova), cloud.claim()
    for status in (403, 500, 404):
        nova.requested.clear()
        nova.failing[f"/servers/{unclear}"] = (1, status)
        ran = compare(cloud, *RELEASE)
        assert (ran.code, ran.out, cloud.consumers()) == (1, "", {instance, unclear})


@SQLITE
def test_a_nova_without_servers_is_refused(cloud, nova):
    orphans = {cloud.claim()}
    ran = compare(cloud, *RELEASE)
    assert (ran.code, ran.out, cloud.consumers()) == (1, "", orphans)
    assert "nova in cloud here shows no servers" in ran.err
    assert compare(cloud, "--allow-empty").code == command.DISCREPANCIES


@SQLITE
def test_a_comparison_without_administrator_rights_is_refused(cloud, nova):
    uuid = server(cloud, nova)
    del nova.servers[uuid][fake.HOST]
    ran = compare(cloud)
    assert (ran.code, ran.out) == (1, "")
    assert f"that an administrator sees: '{fake.HOST}' is missing" in ran.err


@SQLITE
def test_a_nova_that_is_too_old_is_refused(cloud, nova):
    server(cloud, nova)
    nova.newest = (2, 60)
    ran = compare(cloud)
    assert (ran.code, ran.out) == (1, "")
    assert f"Version compute {VERSION} is not supported" in ran.err


@SQLITE
@pytest.mark.parametrize(
    "replies", [[], {}, {"servers": None}, {"servers": [{}]}, {"servers": [], "servers_links": [{"rel": "next"}]}]
)
def test_replies_of_another_service_are_reported_in_one_line(cloud, nova, monkeypatch, replies):
    monkeypatch.setattr(nova, "reply", _with(nova.reply, "/servers/detail", replies))
    ran = compare(cloud)
    assert (ran.code, ran.out, len(errors(ran))) == (1, "", 1)


def _with(reply, route, document):
    return lambda path, version: (200, document) if route in path else reply(path, version)


@SQLITE
def test_a_next_page_that_repeats_ends_the_command(cloud, nova, monkeypatch):
    document = nova.add(uuids(1)[0], "host1")
    page = {"servers": [document], "servers_links": [{"rel": "next", "href": "http://nova.invalid"}]}
    monkeypatch.setattr(nova, "reply", _with(nova.reply, "/servers/detail", page))
    ran = compare(cloud)
    assert (ran.code, ran.out) == (1, "")
    assert "a next page that repeats the last one" in ran.err


@SQLITE
def test_an_unreachable_cloud_is_reported(cloud, nova, monkeypatch):
    cloud.connect(here=f"{closed.URL}/v2.1")
    for name in ("here", "nowhere"):
        ran = cloud.run("--nova", name)
        assert (ran.code, ran.out, len(errors(ran))) == (1, "", 1)
        assert name in ran.err
    monkeypatch.setitem(sys.modules, "openstack", None)
    ran = cloud.run("--nova", "here")
    assert ran.err == f"placement-manage: openstacksdk is not installed: {package.install_command('orphans')}\n"
