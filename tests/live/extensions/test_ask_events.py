"""placement-ask events and history as processes, against a running service that is restarted (docs: ask)."""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess

import pytest

from tests import ask_process, clients, preloaded, running, servers
from tests.ask_process import ASK

# The output of a client does not depend on the kind of database.
pytestmark = pytest.mark.parametrize("backend", [servers.SQLite.kind], indirect=True, scope="session")


@pytest.fixture
def service(database_url):
    with running.embedded(database_url) as embedded:
        yield embedded


def create(service, name):
    return clients.request(service, "POST", "/resource_providers", {"name": name})["uuid"]


def environment(service):
    return {**ask_process.environment(), "OS_ENDPOINT": service.url, "OS_TOKEN": "admin"}


def ask(service, *words):
    return preloaded.client().run([*ASK, *words], environment(service))


def test_a_follower_prints_each_event_once_although_the_service_is_restarted(service):
    earlier = create(service, "first")
    with following(service, "events", "--kind", "provider", "--since", "1h") as follower:
        assert json.loads(follower.stdout.readline())["uuid"] == earlier
        service.kill()
        assert "Retrying" in follower.stderr.readline()
        service.start()
        created = [create(service, name) for name in ("second", "third")]
        assert [json.loads(follower.stdout.readline())["uuid"] for _ in created] == created
        follower.send_signal(signal.SIGINT)
        assert follower.wait() == 130
        assert follower.stdout.read() == ""


@contextlib.contextmanager
def following(service, *words):
    command = [*ASK, *words, "--follow", "--json"]
    with subprocess.Popen(
        command, env=environment(service), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as follower:
        try:
            yield follower
        finally:
            follower.kill()


def rename(service, provider, name):
    clients.request(service, "PUT", f"/resource_providers/{provider}", {"name": name})


def test_the_history_of_one_object_is_followed(service):
    provider = create(service, "host1")
    with following(service, "history", "host1") as follower:
        assert json.loads(follower.stdout.readline())["changes"] == {"name": [None, "host1"]}
        create(service, "host2")
        rename(service, provider, "host3")  # its name is no longer the one in the command
        create(service, "host1")
        rename(service, provider, "host4")
        assert [json.loads(follower.stdout.readline())["changes"]["name"][1] for _ in range(2)] == ["host3", "host4"]
        follower.send_signal(signal.SIGINT)
        assert follower.wait() == 130
        assert follower.stdout.read() == ""
    done = ask(service, "history", "host4", "--follow", "--newest")
    assert (done.returncode, done.stdout) == (2, "")
    assert "--follow and --newest cannot be combined." in done.stderr


def test_the_history_of_a_deleted_provider_is_printed(service):
    provider = create(service, "rack/host1")
    clients.request(service, "DELETE", f"/resource_providers/{provider}")
    done = ask(service, "history", "rack/host1")
    assert done.returncode == 0, done.stderr
    created, deleted = done.stdout.splitlines()
    assert "admin  provider rack/host1 created" in created
    assert "POST /resource_providers" in created
    assert "provider rack/host1 deleted" in deleted
    newest = ask(service, "history", provider, "--newest", "--limit", "1", "--json")
    assert json.loads(newest.stdout)["generation"] == [0, None]


def test_the_events_of_a_provider_are_printed(service):
    create(service, "host1")
    done = ask(service, "events", "--provider", "host1")
    assert done.returncode == 0, done.stderr
    assert ["provider host1 created" in line for line in done.stdout.splitlines()] == [True]


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        (["history", "nothing"], 3, "There is no provider, node or consumer nothing"),
        (["events", "--after", "99-00000000"], 3, "410 Gone"),
        (["events", "--after", "seven"], 2, "after"),
        (["events", "--kind", "host"], 2, "kind"),
    ],
)
def test_a_refusal_of_the_service_is_reported(service, words, code, sentence):
    done = ask(service, *words)
    assert (done.returncode, done.stdout) == (code, "")
    assert sentence in done.stderr
