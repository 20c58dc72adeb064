"""placement-manage load: the database matches the file afterwards, or is unchanged (docs: load)."""

from __future__ import annotations

import threading
import uuid

import hypothesis
import pytest
import sqlalchemy as sa
import yaml
from hypothesis import strategies as st

from placement import errors
from placement.cmd import manage
from placement.db.schema.tables import placement_aggregates, resource_classes, traits
from placement.extensions.loading import writing
from placement.extensions.loading.description import read_entries
from placement.extensions.loading.provider_contents import ProviderContents
from placement.extensions.loading.yaml_source import InvalidFile, YamlSource
from placement.index.live import LiveIndex
from placement.objects.claims.claim import Claim
from placement.objects.claims.claim_set import ClaimSet
from placement.objects.consumer import Owner
from placement.objects.locked_provider import LockedProvider
from placement.objects.provider import SELECT, ResourceProvider
from tests.db import faults
from tests.index.contents import contents
from tests.made import opened

RACK, OTHER = "5a8b0f0e-31a9-4f6a-9c2e-0d8a9f0f3c11", "7c1f0a52-0b5e-4a0f-8f6b-2d3e4f5a6b7c"
HOST = "c9a3e7a0-5c1a-4b0e-9d0c-1f6f1d1f7a01"
CONNECTION = "OS_PLACEMENT_DATABASE__CONNECTION"
HOSTS = f"""
aggregates: {{rack: {RACK}, other: {OTHER}}}
providers:
  - name: host[1-2]
    inventories: {{MEMORY_MB: {{total: 4096, reserved: 96, allocation_ratio: 1.5}}}}
    traits: [CUSTOM_SITE]
    aggregates: [rack, other]
    children:
      - name: "{{parent}}-numa[0-1]"
        inventories: {{VCPU: 8, CUSTOM_NIC: 2}}
        traits: [HW_NUMA_ROOT]
"""


def load(database, text, **options):
    return writing.load(database, read_entries(YamlSource(text)), **options)


def mistakes_in(database, text):
    with pytest.raises(InvalidFile) as refusal:
        load(database, text)
    return [(finding.line, finding.text) for finding in refusal.value.findings]


def claim(database, provider, **amounts):
    claims = [Claim(OTHER, {provider.uuid: amounts}, Owner("project", "user"))]
    database.write(lambda db: ClaimSet(db, claims).place())


def everything(database):
    """Return all providers by name with their data, and the numbers of classes, traits and aggregates."""

    def read(db):
        records = [ResourceProvider(*row) for row in db.execute(SELECT)]
        contents_by_id = ProviderContents.of_ids(db, [record.id for record in records])
        names = {record.uuid: record.name for record in records}
        tables = (resource_classes, traits, placement_aggregates)
        counts = [db.execute(sa.select(sa.func.count()).select_from(table)).scalar() for table in tables]
        providers = {
            record.name: {
                "uuid": record.uuid,
                "generation": record.generation,
                "parent": names.get(record.parent_uuid),
                "inventories": {
                    name: inventory.columns for name, inventory in contents_by_id[record.id].inventories.items()
                },
                "traits": contents_by_id[record.id].traits,
                "aggregates": contents_by_id[record.id].aggregates,
            }
            for record in records
        }
        return providers, counts

    return database.read(read)


def test_a_load_makes_the_database_match_the_file(database):
    plan = load(database, HOSTS)
    assert sum(change.record is None for change in plan.changes) == 6
    providers, _ = everything(database)
    assert sorted(providers) == ["host1", "host1-numa0", "host1-numa1", "host2", "host2-numa0", "host2-numa1"]
    host, numa = providers["host2"], providers["host2-numa1"]
    assert (host["parent"], numa["parent"]) == (None, "host2")
    memory = {
        "total": 4096,
        "reserved": 96,
        "allocation_ratio": 1.5,
        "min_unit": 1,
        "max_unit": 2**31 - 1,
        "step_size": 1,
    }
    assert host["inventories"] == {"MEMORY_MB": memory}
    assert {name: inventory["total"] for name, inventory in numa["inventories"].items()} == {"VCPU": 8, "CUSTOM_NIC": 2}
    assert (host["traits"], numa["traits"]) == ({"CUSTOM_SITE"}, {"HW_NUMA_ROOT"})
    assert (host["aggregates"], numa["aggregates"]) == ({RACK, OTHER}, set())


def test_a_repeated_load_writes_nothing(database):
    load(database, HOSTS)
    before = everything(database)
    assert not load(database, HOSTS).is_needed
    assert everything(database) == before


def test_the_index_sees_a_load(database):
    live = LiveIndex(database)
    assert len(live.current()) == 0
    moved = "providers: [{name: host1-numa0, parent: null, traits: []}, {name: host2-numa1, parent: host1-numa0}]"
    for text in (HOSTS, moved):
        load(database, text)
        snapshot = live.current()
        assert len(snapshot) == 6
        assert contents(snapshot) == contents(LiveIndex(database).current())
    assert snapshot.with_trait("HW_NUMA_ROOT").count == 3


def test_loads_and_claims_run_concurrently(database):
    """All succeed, and the final state is the state of one of the files."""
    load(database, HOSTS)
    wide = HOSTS.replace("VCPU: 8", "VCPU: 16").replace("[CUSTOM_SITE]", "[CUSTOM_OTHER]")
    hosts = database.read(
        lambda db: ResourceProvider.by_uuid_or_name(db, [f"host{h}-numa{n}" for h in (1, 2) for n in (0, 1)])
    )
    failures = []

    def loading(texts):
        for text in texts:
            load(database, text)

    def claiming(consumer, providers):
        for provider in providers * 3:
            claims = [Claim(consumer, {provider.uuid: {"VCPU": 1}}, Owner("project", "user"))]
            database.write(lambda db, claims=claims: ClaimSet(db, claims).place(), attempts=50)

    def noting(work, *arguments):
        try:
            work(*arguments)
        except Exception as failure:
            failures.append(failure)

    threads = [
        threading.Thread(target=noting, args=arguments)
        for arguments in (
            (loading, [HOSTS, wide] * 3),
            (loading, [wide, HOSTS] * 3),
            (claiming, OTHER, hosts),
            (claiming, RACK, hosts[::-1]),
        )
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert not all(load(database, text, dry_run=True).is_needed for text in (HOSTS, wide))


def test_progress_counts_every_write_once(database):
    """The first attempt lacks the rows of the aggregates, is rolled back, and is repeated."""
    counts = []
    load(database, HOSTS, advance=counts.append)
    assert sum(counts) == 6
    assert -6 in counts


def test_a_dry_run_prints_the_same_and_writes_nothing(database):
    before = everything(database)
    lines = list(load(database, HOSTS, dry_run=True).lines())
    assert everything(database) == before
    assert list(load(database, HOSTS).lines()) == lines
    assert lines[:3] == ["resource class CUSTOM_NIC: new", "trait CUSTOM_SITE: new", "host1: new"]


def test_changes_are_written_and_shown(database):
    load(database, HOSTS)
    providers_before, _ = everything(database)
    text = f"""
providers:
  - name: host1
    inventories: {{MEMORY_MB: {{total: 8192, reserved: 96}}, DISK_GB: 10}}
    traits: [CUSTOM_OTHER]
    aggregates: [{OTHER}]
  - {{name: host1-numa1, parent: null, inventories: {{VCPU: 8}}}}
  - {{name: host2-numa0, parent: host1-numa1}}
"""
    assert list(load(database, text).lines()) == [
        "trait CUSTOM_OTHER: new",
        "host1: inventory of MEMORY_MB: total 8192, was 4096; allocation_ratio 1, was 1.5",
        "host1: inventory of DISK_GB: new, total 10",
        "host1: trait CUSTOM_OTHER: added",
        "host1: trait CUSTOM_SITE: removed",
        f"host1: aggregate {RACK}: removed",
        "host1-numa1: a root, was below host1",
        "host1-numa1: inventory of CUSTOM_NIC: removed",
        "host2-numa0: below host1-numa1, was below host2",
    ]
    providers_after, _ = everything(database)
    assert providers_after["host1"]["traits"] == {"CUSTOM_OTHER"}
    assert providers_after["host1"]["inventories"].keys() == {"MEMORY_MB", "DISK_GB"}
    assert (providers_after["host1-numa1"]["parent"], providers_after["host2-numa0"]["parent"]) == (None, "host1-numa1")
    # Omitted fields stay, and so does the generation.
    assert providers_after["host1-numa1"]["traits"] == {"HW_NUMA_ROOT"}
    assert {name: providers_after[name] for name in ("host2", "host1-numa0", "host2-numa1")} == {
        name: providers_before[name] for name in ("host2", "host1-numa0", "host2-numa1")
    }
    assert not load(database, text).is_needed


def test_the_generation_changes_only_for_differences(database):
    load(database, "providers: [{name: a, inventories: {VCPU: 1}, traits: [CUSTOM_A]}]")
    before = everything(database)[0]["a"]["generation"]
    load(database, "providers: [{name: a, inventories: {VCPU: 1}, traits: [CUSTOM_B]}]")
    assert everything(database)[0]["a"]["generation"] == before + 1


def test_a_file_can_have_many_new_aggregates(database):
    uuids = [str(uuid.UUID(int=number)) for number in range(1, 21)]
    providers = [{"name": f"p{at}", "aggregates": [aggregate]} for at, aggregate in enumerate(uuids)]
    load(database, yaml.safe_dump({"providers": providers}))
    providers_read, _ = everything(database)
    assert {name: provider["aggregates"] for name, provider in providers_read.items()} == {
        f"p{at}": {u} for at, u in enumerate(uuids)
    }


def test_a_provider_with_a_uuid_is_renamed(database):
    load(database, f"providers: [{{name: a, uuid: {HOST}, traits: [CUSTOM_A]}}]")
    plan = load(database, f"providers: [{{name: b, uuid: {HOST}}}]")
    assert list(plan.lines()) == ["b: new name, was a"]
    providers, _ = everything(database)
    assert [(name, provider["uuid"], provider["traits"]) for name, provider in providers.items()] == [
        ("b", HOST, {"CUSTOM_A"})
    ]


def test_a_parent_need_not_be_described_in_the_file(database):
    load(database, f"providers: [{{name: a, uuid: {HOST}}}, {{name: b}}]")
    text = f"providers: [{{name: c, parent: b}}, {{name: d, parent: {HOST}}}]"
    load(database, text)
    providers, _ = everything(database)
    assert (providers["c"]["parent"], providers["d"]["parent"]) == ("b", "a")
    assert not load(database, text).is_needed


@pytest.mark.parametrize(
    ("lines", "line", "words"),
    [
        (["- {name: new, parent: hots1}"], 2, "the parent hots1 does not exist"),
        (["- name: new", "  inventories: {VCPUS: 1}"], 2, "no resource class VCPUS (did you mean VCPU?)"),
        (["- name: new", "  traits: [HW_NUMA_ROOTS]"], 2, "no trait HW_NUMA_ROOTS (did you mean HW_NUMA_ROOT?)"),
        (["- name: new", "  traits: [custom_x]"], 2, "There is no trait custom_x; custom names consist of CUSTOM_"),
        ([f"- {{name: host1, uuid: {HOST}}}"], 2, "The provider host1 already exists with the uuid"),
        (
            ["- {name: new}", "- {name: host1, inventories: {}}"],
            3,
            "host1: Inventory for 'MEMORY_MB' on",
        ),
        (["- {name: host1, parent: host1-numa0}"], 2, "host1: Unable to save resource provider"),
    ],
)
def test_a_mistake_is_reported_with_its_line_and_nothing_is_written(database, lines, line, words):
    load(database, HOSTS)
    with_claim = database.read(lambda db: ResourceProvider.by_uuid_or_name(db, ["host1"])[0])
    claim(database, with_claim, MEMORY_MB=1)
    before = everything(database)
    ((number, sentence),) = mistakes_in(database, "\n".join(["providers:", *lines]))
    assert (number, words in sentence) == (line, True), sentence
    assert everything(database) == before


def test_all_failures_are_reported_at_once(database):
    load(database, HOSTS)
    for name in ("host1", "host2"):
        host = database.read(lambda db, name=name: ResourceProvider.by_uuid_or_name(db, [name])[0])
        claims = [Claim(host.uuid, {host.uuid: {"MEMORY_MB": 1}}, Owner("project", "user"))]
        database.write(lambda db, claims=claims: ClaimSet(db, claims).place())
    text = "providers:\n- {name: new}\n- name: host1\n  inventories: {}\n- name: host2\n  inventories: {}\n"
    assert [line for line, _ in mistakes_in(database, text)] == [3, 5]


def test_a_lost_database_is_not_reported_as_a_mistake_in_the_file(database):
    lost = faults.Plan("INSERT INTO inventories", [faults.lose], permanent=True)
    with faults.plant(database, lost), pytest.raises(errors.Unavailable):
        load(database, HOSTS)
    assert lost.injected == 2
    assert everything(database)[0] == {}


def test_changes_since_the_comparison_are_read_under_the_lock(database, monkeypatch):
    """Another writer adds a trait after the comparison; the provider is compared again, and the trait removed."""
    load(database, HOSTS)
    lock_all = LockedProvider.lock_all.__func__

    def late(cls, db, ids):
        if ids:
            monkeypatch.undo()
            LockedProvider.lock(db, uuid).replace_traits(["HW_NUMA_ROOT"])
        return lock_all(cls, db, ids)

    uuid = database.read(lambda db: ResourceProvider.by_uuid_or_name(db, ["host1"])[0].uuid)
    monkeypatch.setattr(LockedProvider, "lock_all", classmethod(late))
    plan = load(database, "providers: [{name: host1, traits: [CUSTOM_NEW]}]")
    assert list(plan.lines()) == [
        "trait CUSTOM_NEW: new",
        "host1: trait CUSTOM_NEW: added",
        "host1: trait HW_NUMA_ROOT: removed",
    ]
    assert everything(database)[0]["host1"]["traits"] == {"CUSTOM_NEW"}


NAMES = st.sampled_from(["a", "b", "c", "d"])
ENTRIES = st.fixed_dictionaries(
    {"name": NAMES},
    optional={
        "parent": st.none() | NAMES,
        "inventories": st.dictionaries(st.sampled_from(["VCPU", "CUSTOM_X"]), st.integers(1, 3)),
        "traits": st.lists(st.sampled_from(["CUSTOM_A", "HW_NUMA_ROOT"]), unique=True),
        "aggregates": st.lists(st.sampled_from([RACK, OTHER]), unique=True),
    },
)
FILES = st.lists(st.lists(ENTRIES, max_size=4, unique_by=lambda entry: entry["name"]), min_size=1, max_size=3)


@hypothesis.given(FILES)
@hypothesis.settings(max_examples=40, suppress_health_check=list(hypothesis.HealthCheck))
def test_after_any_files_the_database_matches_the_last_file(synced_database, files):
    with opened(synced_database.clean()) as database:
        for providers in files:
            text = yaml.safe_dump({"providers": providers})
            before = everything(database)
            try:
                shown_lines = list(load(database, text, dry_run=True).lines())
            except InvalidFile:
                assert everything(database) == before
                continue
            assert everything(database) == before
            assert list(load(database, text).lines()) == shown_lines
            providers_read, _ = everything(database)
            for stated in providers:
                has = providers_read[stated["name"]]
                assert has["parent"] == stated.get("parent", has["parent"])
                assert {name: inventory["total"] for name, inventory in has["inventories"].items()} == stated.get(
                    "inventories", {name: inventory["total"] for name, inventory in has["inventories"].items()}
                )
                for part in ("traits", "aggregates"):
                    assert has[part] == set(stated.get(part, has[part]))
            assert not load(database, text).is_needed
            assert everything(database)[0] == providers_read


class TestCommand:
    """The command: its arguments, output and exit code."""

    @pytest.fixture
    def run(self, tmp_path, database, in_process, monkeypatch):
        """Return a function that runs the command on a file with a text."""
        url = database.url.render_as_string(hide_password=False)
        monkeypatch.setenv(CONNECTION, url)

        def run(text, *words):
            path = tmp_path / "cloud.yaml"
            path.write_text(text)
            return in_process(manage, "load", str(path), *words)

        return run

    def test_new_objects_are_printed_with_their_number(self, run):
        ran = run("providers: [{name: a, inventories: {VCPU: 1}}]")
        assert ran.code == 0
        assert ran.out.splitlines()[0] == "a: new"
        assert "|    new    |    1   |" in ran.out

    def test_a_dry_run_is_marked_as_one(self, run, database):
        ran = run("providers: [{name: a}]", "--dry-run")
        assert (ran.code, ran.out.splitlines()[-1]) == (0, "Dry run: nothing was written.")
        assert everything(database)[0] == {}

    def test_mistakes_are_printed_with_file_and_line(self, run, tmp_path, database):
        ran = run("providers:\n- {name: a}\n- {name: b, traits: [NONE]}\n")
        assert (ran.code, ran.out) == (1, "")
        # On a busy machine a load reports its progress.
        first, last = (line for line in ran.err.splitlines() if not line.startswith("load: "))
        assert first.startswith(f"{tmp_path}/cloud.yaml:3: There is no trait NONE")
        assert last == "placement-manage: nothing was written."
        assert everything(database)[0] == {}

    def test_a_file_that_is_missing_or_not_a_text_is_reported_in_one_line(self, in_process, tmp_path, monkeypatch):
        monkeypatch.setenv(CONNECTION, "sqlite://")
        for path in (tmp_path / "missing", tmp_path, _binary(tmp_path)):
            ran = in_process(manage, "load", str(path))
            assert (ran.code, ran.err.count("\n")) == (1, 1)
            assert "cannot be read" in ran.err


def _binary(directory):
    path = directory / "binary"
    path.write_bytes(b"\xff\xfe\x00")
    return path


@pytest.mark.parametrize("backend", ["sqlite"], indirect=True)
def test_a_database_without_tables_is_named(database_url, in_process, tmp_path, monkeypatch):
    monkeypatch.setenv(CONNECTION, database_url)
    (tmp_path / "a.yaml").write_text("providers: [{name: a}]")
    ran = in_process(manage, "load", str(tmp_path / "a.yaml"))
    assert (ran.code, ran.out) == (1, "")
    assert "placement-manage db sync" in ran.err
