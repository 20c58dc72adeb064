"""placement-manage baremetal import, from this service, which responds to the import like Ironic."""

from __future__ import annotations

import functools
import re
import sys

import bcrypt
import openstack
import pytest
import yaml

from placement import package
from placement.cmd import manage
from placement.extensions.baremetal.objects import holding
from placement.extensions.baremetal.objects.locked_node import LockedNode
from placement.extensions.baremetal.objects.node import Node
from placement.extensions.baremetal.objects.record import Record
from placement.objects.consumer import Owner
from placement.objects.locked_provider import LockedProvider
from tests import closed, made, running
from tests.docs.run_by import blocks_of
from tests.made import opened

pytestmark = pytest.mark.filterwarnings("ignore")  # warnings of the SDK itself

PAGE = "docs/extensions/baremetal.rst"
BUSY, OTHER = "11111111-1111-4111-8111-111111111111", "22222222-2222-4222-8222-222222222222"
#: Tests that do not depend on the kind of database.
SQLITE = pytest.mark.parametrize("backend", ["sqlite"], indirect=True, scope="session")


def service(directory, **options):
    return running.embedded(f"sqlite:///{directory}/there.sqlite", {"baremetal": {"enabled": True}, **options})


@pytest.fixture(scope="module")
def ironic_url(tmp_path_factory):
    """The URL of a service with four nodes: n1 allocated, n2 in use without an allocation, n3 free, n4 new."""
    with service(tmp_path_factory.mktemp("there")) as source:
        url = f"{source.url}/baremetal"
        client = openstack.connect(auth_type="none", endpoint=url).baremetal
        for name in ("n1", "n2", "n3", "n4"):
            client.create_node(driver="redfish", name=name, resource_class=f"bm.{name}", extra={"rack": name})
        for name in ("n1", "n2", "n3"):
            client.set_node_provision_state(name, "manage", wait=True)
            client.set_node_provision_state(name, "provide", wait=True)
            client.set_node_power_state(name, "power off")
        client.set_node_traits("n1", ["CUSTOM_RAID", "HW_CPU_X86_VMX"])
        allocation = client.create_allocation(name="web", resource_class="bm.n1", traits=["CUSTOM_RAID"])
        client.wait_for_allocation(allocation)
        client.create_allocation(name="none", resource_class="bm.none")
        client.patch_node("n2", [{"op": "add", "path": "/instance_uuid", "value": BUSY}])
        client.set_node_provision_state("n2", "active", wait=True)
        yield url


@pytest.fixture
def target(database_url, tmp_path, monkeypatch):
    """The target database of the import."""
    configuration = tmp_path / "placement.conf"
    configuration.write_text(f"[placement_database]\nconnection = {database_url}\nmax_retries = 0\n")
    monkeypatch.setenv("OS_PLACEMENT_CONFIG_DIR", str(tmp_path))
    with opened(database_url) as database:
        made.sync(database.engine)
        yield database


@pytest.fixture
def run(target, in_process):
    """Return a function that runs the import with arguments."""
    return functools.partial(in_process, manage, "baremetal", "import")


def numbers(out):
    """Return the numbers of the summary."""
    return {name: int(number) for name, number in re.findall(r"^\| +([\w, ]+?) +\| +(\d+) +\|$", out, flags=re.M)}


def imported_nodes(database):
    """Return all imported fields of the nodes, by name."""
    imported = database.read(lambda db: [Node.find(db, name) for name in ("n1", "n2", "n3", "n4")])
    return {node.name: node for node in imported if node is not None}


def test_a_dry_run_previews_an_import_and_a_repeated_import_changes_nothing(ironic_url, target, run):
    dry_run = run("--endpoint", ironic_url, "--dry-run")
    assert dry_run.code == 0
    assert dry_run.out.endswith("Dry run: nothing was written.\n")
    expected = {"new": 4, "changed": 0, "unchanged": 0}
    expected |= {"in use in Ironic, claimed": 2, "left different": 0, "only here": 0}
    assert numbers(dry_run.out) == expected
    assert imported_nodes(target) == {}

    done = run("--endpoint", f"{ironic_url}/v1")
    assert done.code == 0
    assert numbers(done.out) == expected
    assert f"(n2): in use in Ironic by {BUSY}, not claimed here: claimed\n" in done.out
    imported = imported_nodes(target)
    assert (imported["n1"].available, imported["n1"].details["extra"]) == (True, {"rack": "n1"})
    assert (imported["n2"].instance_uuid, imported["n2"].provision_state) == (BUSY, "active")
    assert (imported["n3"].instance_uuid, imported["n4"].provision_state) == (None, "enroll")
    record = target.read(lambda db: Record.get(db, "web"))
    assert (record.node_uuid, record.uuid) == (imported["n1"].uuid, imported["n1"].instance_uuid)
    assert target.read(lambda db: Record.find(db, "none")) is None

    repeated = run("--endpoint", ironic_url)
    assert repeated.code == 0
    assert numbers(repeated.out) == {**dict.fromkeys(expected, 0), "unchanged": 4}
    assert imported_nodes(target) == imported


def test_differences_are_shown_and_written(ironic_url, target, run):
    run("--endpoint", ironic_url)
    uuid = imported_nodes(target)["n3"].uuid
    target.write(lambda db: LockedNode.lock(db, uuid).update(power_state="power on", details={"extra": None}))
    done = run("--endpoint", ironic_url)
    assert done.code == 0
    assert [line for line in done.out.splitlines() if "n3" in line] == [
        f"{uuid} (n3): power_state: power on -> power off",
        f"{uuid} (n3): extra",
    ]
    assert numbers(done.out)["changed"] == 1


def shape(line):
    """Return a line of the import without the parts that vary by node."""
    line = re.sub(r"\S+-\S+ \(n\d\)", "NODE (NAME)", re.sub(r"(by|allocation) [\w-]{36}", r"\1 UUID", line))
    return re.sub(r"power (on|off)|\+[A-Z].*|\d+", "*", re.sub(" +", " ", line))


def test_the_commands_of_the_page_print_the_output_shown(ironic_url, shell):
    cloud, endpoint = blocks_of(__file__, PAGE, "shell")
    (shown_block,) = blocks_of(__file__, PAGE, "text")
    (shell.directory / "clouds.yaml").write_text(
        yaml.safe_dump({"clouds": {"production": {"auth_type": "none", "auth": {"endpoint": ironic_url}}}})
    )
    url = f"sqlite:///{shell.directory}/var/placement.sqlite"
    (shell.directory / "var").mkdir()
    shell.stand_in("pip")  # it needs a package index
    shell.variables |= {"OS_PLACEMENT_DATABASE__CONNECTION": url}
    shell.run("placement-manage db sync")
    _, planned, done = shell.run(cloud.text)
    assert planned.out.endswith("Dry run: nothing was written.\n")
    with opened(url) as database:
        imported = imported_nodes(database)
        database.write(lambda db: LockedProvider.lock(db, imported["n1"].uuid).replace_traits(()))
        database.write(lambda db: LockedNode.lock(db, imported["n3"].uuid).update(power_state="power on"))
    *_, differs = shell.run(endpoint.text, {"http://ironic:6385": ironic_url})
    printed = {shape(line) for line in (done.out + differs.out).splitlines()}
    assert {shape(line) for line in shown_block.text.splitlines() if "+--" not in line} <= printed


def test_a_holder_that_differs_is_reported(ironic_url, target, run):
    run("--endpoint", ironic_url)
    node = imported_nodes(target)["n3"]
    unit, owner = target.read(lambda db: Node.get(db, node.uuid).inventory_class), Owner("red", "ann", "INSTANCE")
    target.write(lambda db: holding.assign(db, node.uuid, unit, OTHER, owner))
    done = run("--endpoint", ironic_url)
    assert done.code == 1
    assert f"{node.uuid} (n3): held here by {OTHER}, free in Ironic\n" in done.out
    assert numbers(done.out)["left different"] == 1


@SQLITE
def test_the_source_may_be_a_cloud_of_clouds_yaml(ironic_url, run, tmp_path, monkeypatch):
    clouds = {"there": {"auth_type": "none", "auth": {"endpoint": ironic_url}}}
    (tmp_path / "clouds.yaml").write_text(yaml.safe_dump({"clouds": clouds}))
    monkeypatch.setenv("OS_CLIENT_CONFIG_FILE", str(tmp_path / "clouds.yaml"))
    assert numbers(run("--os-cloud", "there", "--dry-run").out)["new"] == 4
    unknown = run("--os-cloud", "nowhere")
    assert (unknown.code, unknown.err) == (1, "placement-manage: Cloud nowhere was not found.\n")


@SQLITE
def test_the_password_of_http_basic_is_read_from_the_environment(run, tmp_path, monkeypatch):
    users = tmp_path / "htpasswd"
    users.write_text(f"ann:{bcrypt.hashpw(b's3cret', bcrypt.gensalt(4)).decode()}\n")
    options = {"api": {"auth_strategy": "http_basic"}, "oslo_middleware": {"http_basic_auth_user_file": users}}
    with service(tmp_path, **options) as source:
        arguments = ("--endpoint", f"{source.url}/baremetal", "--username", "ann")
        monkeypatch.delenv("OS_PASSWORD", raising=False)
        assert run(*arguments).err == "placement-manage: The password of ann is missing: set $OS_PASSWORD.\n"
        monkeypatch.setenv("OS_PASSWORD", "wrong")
        assert run(*arguments).err.startswith("placement-manage: Ironic cannot be read: ")
        monkeypatch.setenv("OS_PASSWORD", "s3cret")
        assert run(*arguments).code == 0


@SQLITE
@pytest.mark.parametrize(
    "url", [closed.URL, f"{closed.URL}/baremetal/v1", "nonsense"], ids=["nobody", "nobody below a prefix", "no URL"]
)
def test_an_ironic_that_cannot_be_read_is_reported_in_one_line(run, url):
    done = run("--endpoint", url)
    assert done.code == 1
    assert re.fullmatch(r"placement-manage: Ironic cannot be read: .+\n", done.err)
    assert done.out == ""


@SQLITE
def test_a_service_of_another_kind_is_reported_in_one_line(ironic_url, run):
    done = run("--endpoint", ironic_url.removesuffix("/baremetal"))
    assert (done.code, done.out) == (1, "")
    assert re.fullmatch(r"placement-manage: Ironic cannot be read: .+\n", done.err)


@SQLITE
def test_a_missing_openstacksdk_is_reported(run, monkeypatch):
    monkeypatch.setitem(sys.modules, "openstack", None)
    done = run("--endpoint", closed.URL)
    assert (done.code, done.err) == (
        1,
        f"placement-manage: openstacksdk is not installed: {package.install_command('baremetal')}\n",
    )


@SQLITE
def test_a_database_without_tables_is_refused(run, target):
    with target.engine.begin() as connection:
        connection.exec_driver_sql("DROP TABLE alembic_version")
    done = run("--endpoint", closed.URL)
    assert done.code == 1
    assert "db sync" in done.err


def test_one_of_the_two_sources_is_required(in_process):
    done = in_process(manage, "baremetal", "import")
    assert done.code == 2
    assert "one of the arguments --os-cloud --endpoint is required" in done.err
