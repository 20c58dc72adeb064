"""The service in its own processes responds, survives the loss of a worker, and leaves no process behind."""

import urllib.request

import pytest

from tests import children, running


def responds(service):
    with urllib.request.urlopen(f"{service.url}/", timeout=children.PATIENCE) as reply:
        return reply.status == 200


def wait_until_gone(pids):
    """Wait until the processes have ended; a killed process takes some time."""
    children.until(lambda: not any(map(children.alive, pids)))


@pytest.mark.parametrize("backend", ["sqlite"], indirect=True)
def test_uwsgi_replaces_a_killed_worker(database_url):
    with running.uwsgi(database_url, flags=["--lazy-apps"]) as service:
        service.wait_until(lambda: len(service.workers) == 2)
        workers = service.workers
        killed = service.kill_worker()
        service.wait_until(lambda: len(service.workers) == 2 and killed not in service.workers)
        service.wait_until_loaded()
        assert responds(service)
        workers += service.workers
    wait_until_gone(workers)


@pytest.mark.parametrize("backend", ["sqlite"], indirect=True)
def test_uwsgi_stops_even_while_it_replaces_a_worker(database_url):
    with running.uwsgi(database_url, flags=["--lazy-apps"]) as service:
        service.wait_until_loaded()
        killed = service.kill_worker()
        service.wait_until(lambda: killed not in service.workers)
    wait_until_gone([service.pid])


@pytest.mark.parametrize("backend", ["sqlite"], indirect=True)
def test_placement_serve_is_one_process(database_url):
    with running.embedded(database_url) as service:
        (worker,) = service.workers
        assert responds(service)
    wait_until_gone([worker])


@pytest.mark.parametrize("backend", ["sqlite"], indirect=True)
def test_options_reach_the_service(database_url):
    with (
        pytest.raises(RuntimeError, match="max_retries"),
        running.embedded(database_url, {"placement_database": {"max_retries": "many"}}),
    ):
        pass
