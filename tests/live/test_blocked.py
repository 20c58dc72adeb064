"""A lock held by another session stalls only the requests that need the database."""

from __future__ import annotations

import http.client
import json
import threading

import pytest
import sqlalchemy as sa

from placement.db.schema.tables import resource_providers
from tests import children, running
from tests.made import opened

UUID = "b0000000-0000-4000-8000-000000000001"
#: Clients, three times as many as threads.
CROWD = 12
HEADERS = {"x-auth-token": "admin", "openstack-api-version": "placement 1.39", "content-type": "application/json"}


@pytest.fixture
def blocked(backend):
    """A service of one worker with four threads, and its database."""
    url = backend.create_database()
    try:
        flags = ("--lazy-apps", "--enable-threads", "--threads", "4")
        with running.uwsgi(url, processes=1, flags=flags) as service, opened(url) as database:
            yield service, database
    finally:
        backend.drop_database(url)


def ask(service, method, path, body=None):
    connection = http.client.HTTPConnection("127.0.0.1", service.port, timeout=children.PATIENCE)
    try:
        connection.request(method, path, None if body is None else json.dumps(body), HEADERS)
        answer = connection.getresponse()
        answer.read()
        return answer
    finally:
        connection.close()


@pytest.mark.every_database
@pytest.mark.parametrize("backend", ["mariadb", "postgresql"], indirect=True)
def test_the_root_and_the_health_check_respond_while_another_session_holds_a_lock(blocked):
    service, database = blocked
    assert ask(service, "POST", "/resource_providers", {"uuid": UUID, "name": UUID}).status == 200
    answers = []
    body = {"resource_provider_generation": 0, "inventories": {"VCPU": {"total": 8}}}

    def write():
        answers.append(ask(service, "PUT", f"/resource_providers/{UUID}/inventories", body))

    crowd = [threading.Thread(target=write) for _ in range(CROWD)]
    with database.engine.begin() as stranger:
        stranger.execute(sa.select(resource_providers.c.id).where(resource_providers.c.uuid == UUID).with_for_update())
        for client in crowd:
            client.start()
        # All threads for the database wait for the lock, and others are refused at once, not after a minute, when
        # the waiting ones give up, with 409.
        service.wait_until(lambda: answers)
        assert answers[0].status == 503
        for path in ("/", "/healthcheck", "/"):
            assert ask(service, "GET", path).status == 200
    for client in crowd:
        client.join()
    statuses = [answer.status for answer in answers]
    assert statuses.count(200) <= 1
    assert ask(service, "PUT", f"/resource_providers/{UUID}/inventories", body).status == (
        409 if 200 in statuses else 200
    )
    busy = [answer for answer in answers if answer.status == 503]
    assert busy
    assert all(answer.getheader("retry-after") == "1" for answer in busy)
    assert set(statuses) <= {200, 409, 503}
