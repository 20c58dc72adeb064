"""The controller of docs/extensions/batch.rst, against a running service, with answers that are lost."""

from __future__ import annotations

import http.server
import re
import socket
import threading
import types
import urllib.request
from typing import NamedTuple

import pytest
import sqlalchemy as sa

from placement.db.schema.tables import resource_providers
from tests import ask_process, made, servers
from tests.docs.blocks import captioned
from tests.docs.run_by import blocks_of
from tests.made import opened

pytestmark = pytest.mark.parametrize("backend", [servers.SQLite.kind], indirect=True, scope="session")

PAGE = "docs/extensions/batch.rst"


class Address(NamedTuple):
    url: str
    token: str = "admin"


@pytest.fixture(scope="module")
def cluster(backend):
    with ask_process.loaded(backend, captioned(PAGE, "cluster.yaml")) as found:
        yield Address(found.url)


@pytest.fixture
def service(cluster):
    """The address of the cluster, which has no jobs when a test begins."""
    yield cluster
    new_controller().end(cluster, [f"job-{number}" for number in (*range(4), 699)])


@pytest.fixture
def controller():
    return new_controller()


def new_controller():
    module = types.ModuleType("controller")
    exec(compile(captioned(PAGE, "controller.py"), PAGE, "exec"), module.__dict__)
    return module


class Forgetting:
    """An address at which requests are passed on to a service, and the first answer to each is lost."""

    def __init__(self, url):
        self._target = tuple(url.removeprefix("http://").split(":"))
        self._server = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._server.getsockname()[1]}"
        self.lost = []
        self._thread = threading.Thread(target=self._serve)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._server.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._server.close()

    def _serve(self):
        while True:
            try:
                client, _ = self._server.accept()
            except OSError:  # shut down
                return
            with client, socket.create_connection(self._target) as service:
                request = client.recv(65536)
                head, _, body = request.partition(b"\r\n\r\n")
                length = int((re.search(rb"content-length: (\d+)", head, re.IGNORECASE) or [b"", b"0"])[1])
                while len(body) < length:
                    more = client.recv(65536)
                    request, body = request + more, body + more
                service.sendall(request)
                answer = b""
                while more := service.recv(65536):
                    answer += more
                if request in self.lost:
                    client.sendall(answer)
                else:
                    self.lost.append(request)


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


def test_a_job_has_a_place_until_it_ends(service, controller):
    place = controller.book(service, "job-1", "ada", 4)
    assert [set(worker) for worker in place["workers"]] == [{"_node", "_gpu0", "_gpu1"}] * 4
    assert controller.book(service, "job-1", "ada", 4) == place
    assert controller.book(service, "job-2", "bob", 4) is not None  # at the other NUMA nodes
    assert controller.book(service, "job-3", "bob", 4) is None
    assert controller.extend(service, "job-1") > place["until"]
    controller.end(service, ["job-1", "job-2"])
    assert controller.extend(service, "job-1") is None
    assert controller.book(service, "job-3", "bob", 5) is not None


def test_a_service_that_refuses_is_reported(service, controller):
    with pytest.raises(RuntimeError, match="403: "):
        controller.book(controller.Service(service.url, ""), "job-1", "ada", 4)
    with pytest.raises(RuntimeError, match="400: "):
        controller.book(controller.Service(service.url), "job-1", "ada", 0)


def test_a_job_with_other_needs_is_reported(service, controller):
    assert controller.book(service, "job-1", "ada", 1)
    with pytest.raises(ValueError, match="other needs"):
        controller.book(service, "job-1", "ada", 2)


def test_more_jobs_end_than_one_query_can_name(service, controller):
    jobs = [f"job-{number}" for number in range(700)]
    assert controller.book(service, jobs[0], "ada", 5)
    assert controller.book(service, jobs[-1], "ada", 5)
    controller.end(service, jobs)
    assert controller.extend(service, jobs[0]) is None
    assert controller.extend(service, jobs[-1]) is None


def test_a_release_that_is_refused_is_reported(service, controller, monkeypatch):
    monkeypatch.setattr(controller, "MOST", 1000)
    with pytest.raises(RuntimeError, match="max_query_length"):
        controller.end(service, [f"job-{number}" for number in range(700)])


class Interrupted(http.server.BaseHTTPRequestHandler):
    """An address at which the first release is answered as by a service that did not get to it in time."""

    def do_DELETE(self):
        self.server.paths.append(self.path)
        if len(self.server.paths) == 1:
            body = b'{"released": [], "missing": [], "complete": false}'
        else:
            request = urllib.request.Request(self.server.target.url + self.path, method="DELETE")
            request.add_header("X-Auth-Token", self.server.target.token)
            with urllib.request.urlopen(request) as reply:
                body = reply.read()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def test_a_release_that_is_not_complete_is_repeated(service, controller):
    assert controller.book(service, "job-1", "ada", 1)
    with http.server.HTTPServer(("127.0.0.1", 0), Interrupted) as server:
        server.target, server.paths = service, []
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            controller.end(Address(f"http://127.0.0.1:{server.server_port}"), ["job-1"])
        finally:
            server.shutdown()
            thread.join()
    assert server.paths == ["/v1/claims?consumer=" + controller.consumer("job-1")] * 2
    assert controller.extend(service, "job-1") is None


def test_an_answer_that_is_lost_changes_nothing(service, controller, monkeypatch):
    monkeypatch.setattr(controller, "time", types.SimpleNamespace(sleep=lambda _: None))
    with Forgetting(service.url) as away:
        address = Address(away.url)
        place = controller.book(address, "job-1", "ada", 5)
        assert place == controller.book(service, "job-1", "ada", 5)
        assert controller.extend(address, "job-1") > place["until"]
        controller.end(address, ["job-1"])
    assert [request.split(b" ", 1)[0] for request in away.lost] == [b"POST", b"POST", b"DELETE"]
    assert controller.extend(service, "job-1") is None
