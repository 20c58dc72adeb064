"""The controller of docs/extensions/batch.rst, against a running service; test_client.py covers lost responses."""

from __future__ import annotations

import types

import pytest
import sqlalchemy as sa
from placement_client import HeldOtherwise

from placement.db.schema.tables import resource_providers
from tests import ask_process, clients, made, servers
from tests.docs.blocks import captioned
from tests.docs.run_by import blocks_of
from tests.made import opened

pytestmark = pytest.mark.parametrize("backend", [servers.SQLite.kind], indirect=True, scope="session")

PAGE = "docs/extensions/batch.rst"


@pytest.fixture(scope="module")
def cluster(backend):
    with ask_process.loaded(backend, captioned(PAGE, "cluster.yaml")) as loaded:
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
    exec(compile(captioned(PAGE, "controller.py"), PAGE, "exec"), module.__dict__)
    return module


def test_the_commands_of_the_page_load_the_cluster(backend, shell):
    (block,) = blocks_of(__file__, PAGE, "console")
    (shell.directory / "cluster.yaml").write_text(captioned(PAGE, "cluster.yaml"))
    (shell.directory / "var").mkdir()
    url = f"sqlite:///{shell.directory}/var/placement.sqlite"
    with opened(url) as database:
        made.sync(database.engine)
        shell.run(block.text)
        names = database.read(lambda db: db.execute(sa.select(resource_providers.c.name)).scalars().all())
    assert "batch-5-numa1-gpu1" in names


def test_a_job_has_a_place_until_it_ends(client, controller):
    place = controller.book(client, "job-1", "ada", 4)
    assert [set(worker) for worker in place.mappings] == [{"_node", "_gpu0", "_gpu1"}] * 4
    again = controller.book(client, "job-1", "ada", 4)
    assert (again.outcome, again.mappings, again.expires_at) == ("held", place.mappings, place.expires_at)
    assert controller.book(client, "job-2", "bob", 4) is not None  # on the other NUMA nodes
    assert controller.book(client, "job-3", "bob", 4) is None
    assert controller.extend(client, "job-1") > place.expires_at
    controller.end(client, ["job-1", "job-2"])
    assert controller.extend(client, "job-1") is None
    assert controller.book(client, "job-3", "bob", 5) is not None


def test_a_job_with_other_needs_is_reported(client, controller):
    assert controller.book(client, "job-1", "ada", 1)
    with pytest.raises(HeldOtherwise):
        controller.book(client, "job-1", "ada", 2)
