"""A transaction that waited for another one sees all its changes."""

from __future__ import annotations

import threading
import uuid

import pytest

from placement.db import feed
from placement.db.upkeep import standard
from placement.db.writes import attempt
from placement.objects.locked_provider import LockedProvider
from placement.objects.provider import ResourceProvider
from tests import made
from tests.clock import PATIENCE
from tests.db.in_process import placement
from tests.db.interleaving import wait_for_lock
from tests.made import opened


class Meanwhile:
    """A function that runs in its own thread."""

    def __init__(self, work, *arguments, **options):
        self._thread = threading.Thread(target=lambda: setattr(self, "result", work(*arguments, **options)))
        self._thread.start()

    def wait(self, seconds=PATIENCE):
        """Whether the function ends within the time."""
        self._thread.join(seconds)
        return not self._thread.is_alive()


@pytest.mark.every_database
@pytest.mark.parametrize("backend", ["mariadb", "postgresql"], indirect=True)
@pytest.mark.parametrize("request_kind", ["creates a child", "renames"])
def test_a_request_that_waited_for_a_move_sees_the_new_tree(database, request_kind):
    """The new root was created after the waiting statement had begun."""
    moved, root, child = (str(uuid.uuid4()) for _ in range(3))
    with opened(database.url) as other:
        service = placement(other)
        assert service("POST", "/resource_providers", 39, {"uuid": moved, "name": moved}).status == 200
        started = []

        def move(db):
            LockedProvider.lock(db, moved)
            if request_kind == "renames":
                body = {"name": f"new {moved}"}
                meanwhile = Meanwhile(service, "PUT", f"/resource_providers/{moved}", 39, body)
            else:
                body = {"uuid": child, "name": child, "parent_provider_uuid": moved}
                meanwhile = Meanwhile(service, "POST", "/resource_providers", 39, body)
            wait_for_lock(database)
            LockedProvider.create(db, uuid=root, name=root)
            LockedProvider.lock_and_move(db, moved, root, may_reparent=True)
            started.append(meanwhile)

        database.write(move)
        [meanwhile] = started
        assert meanwhile.wait()
        assert meanwhile.result.status == 200
        assert meanwhile.result.body["root_provider_uuid"] == root


@pytest.mark.parametrize("url", ["sqlite://", "sqlite:///file:/crowd?vfs=memdb&uri=true"])
def test_threads_use_a_database_in_memory_one_at_a_time(monkeypatch, caplog, url):
    """The maintenance of the feed uses the only connection, too."""
    monkeypatch.setattr(feed, "MAINTENANCE_INTERVAL", -1.0)
    monkeypatch.setattr(attempt, "LOCK_TIMEOUT", PATIENCE)
    with opened(url) as database:
        made.sync(database.engine)
        standard.insert(database)
        service = placement(database)

        def create():
            uuids = [str(uuid.uuid4()) for _ in range(8)]
            answers = []
            for provider_uuid in uuids:
                answers.append(
                    service("POST", "/resource_providers", 39, {"uuid": provider_uuid, "name": provider_uuid})
                )
                answers.append(service("GET", f"/resource_providers/{provider_uuid}"))
            return [answer.status for answer in answers]

        crowd = [Meanwhile(create) for _ in range(12)]
        assert all(thread.wait() for thread in crowd)
        assert [thread.result for thread in crowd] == [[200] * 16] * 12
        assert len(service("GET", "/resource_providers").body["resource_providers"]) == 96
    assert "maintenance of the change feed failed" not in caplog.text


@pytest.mark.parametrize("backend", ["sqlite"], indirect=True)
def test_a_writer_locks_a_sqlite_file_before_its_first_read(database):
    """Otherwise the data changes before the write, which is then retried, possibly forever."""
    attempts = []
    with opened(database.url) as other:

        def create(db):
            LockedProvider.create(db, uuid="late", name="late")

        def work(db):
            assert ResourceProvider.find(db, "late") is None
            attempts.append(Meanwhile(other.write, create))
            assert not attempts[0].wait(0.5)
            LockedProvider.create(db, uuid="early", name="early")

        database.write(work)
        assert attempts[0].wait()
    assert len(attempts) == 1
    early, late = (database.read(lambda db, uuid=uuid: ResourceProvider.get(db, uuid)) for uuid in ("early", "late"))
    assert early.id < late.id
