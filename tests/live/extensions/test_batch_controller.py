"""The controller of docs/extensions/batch.rst, with a running service; test_client.py covers lost responses."""

from __future__ import annotations

import types

import pytest
import sqlalchemy as sa
from placement_client import HeldOtherwise

from placement.db.schema.tables import resource_providers
from tests import ask_process, clients, made, servers
from tests.docs.blocks import text_of
from tests.docs.run_by import blocks_of
from tests.made import opened

pytestmark = pytest.mark.parametrize("backend", [servers.SQLite.kind], indirect=True, scope="session")

PAGE = "docs/extensions/batch.rst"


@pytest.fixture(scope="module")
def cluster(backend):
    with ask_process.service_with_providers(backend, text_of(PAGE, "cluster.yaml")) as loaded:
        yield loaded


@pytest.fixture
def client(cluster):
    """A client of the cluster, which has no jobs at the start of a test."""
    with clients.admin(cluster) as connected:
        yield connected
        connected.release(job.uuid for job in connected.consumers(type="JOB"))


@pytest.fixture
def controller():
    module = types.ModuleType("controller")
    exec(compile(text_of(PAGE, "controller.py"), PAGE, "exec"), module.__dict__)
    return module


def test_the_commands_of_the_page_load_the_cluster(backend, shell):
    (block,) = blocks_of(__file__, PAGE, "console")
    (shell.directory / "cluster.yaml").write_text(text_of(PAGE, "cluster.yaml"))
    (shell.directory / "var").mkdir()
    url = f"sqlite:///{shell.directory}/var/placement.sqlite"
    with opened(url) as database:
        made.sync(database.engine)
        shell.run(block.text)
        names = database.read(lambda db: db.execute(sa.select(resource_providers.c.name)).scalars().all())
    assert "batch-5-numa1-gpu1" in names


def test_a_job_holds_its_claim_until_its_release(client, controller):
    claim = controller.claim(client, "job-1", "ada", 4)
    assert [set(worker) for worker in claim.mappings] == [{"_node", "_gpu0", "_gpu1"}] * 4
    repeated = controller.claim(client, "job-1", "ada", 4)
    assert (repeated.outcome, repeated.mappings, repeated.expires_at) == ("held", claim.mappings, claim.expires_at)
    assert controller.claim(client, "job-2", "bob", 4) is not None  # on the other NUMA nodes
    assert controller.claim(client, "job-3", "bob", 4) is None
    assert controller.extend(client, "job-1") > claim.expires_at
    controller.release(client, ["job-1", "job-2"])
    assert controller.extend(client, "job-1") is None
    assert controller.claim(client, "job-3", "bob", 5) is not None


def test_a_different_claim_for_the_same_job_is_refused(client, controller):
    assert controller.claim(client, "job-1", "ada", 1)
    with pytest.raises(HeldOtherwise):
        controller.claim(client, "job-1", "ada", 2)
