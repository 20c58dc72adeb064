"""Waiting for events, and streams of events, of services in their own processes (docs: v1-events)."""

from __future__ import annotations

import contextlib
import functools
import http.client
import json
import queue
import secrets
import socket
import struct
import threading
import uuid

import pytest

from tests import children, running, servers, web_servers
from tests.live.test_metrics import MetricsPage

# Waiting does not depend on the kind of database.
pytestmark = pytest.mark.parametrize("backend", [servers.SQLite.kind], indirect=True, scope="session")
HEADERS = {"X-Auth-Token": "admin", "Content-Type": "application/json", "OpenStack-API-Version": "placement 1.39"}
OPTIONS = {"api": {"auth_strategy": "noauth2"}}


patient_service = functools.partial(running.embedded, module="tests.patient")


@pytest.fixture
def serve(database_url):
    """Return a function that starts a service, by default with eight threads, two for requests that wait.

    All services of a test share one database.  A request with ``wait=60`` waits for ten minutes, so that it does not
    time out before a test continues.
    """
    with contextlib.ExitStack() as stack:

        def start(start=patient_service, **options):
            return stack.enter_context(start(database_url, {**OPTIONS, **options}))

        yield start


@pytest.fixture
def observed_service(serve):
    """A service, and the page of its metrics, which show the number of waiting requests."""
    directory = children.run_directory() / f"metrics-{secrets.token_hex(4)}"
    page = MetricsPage(directory)
    yield serve(metrics={"directory": directory}), page
    page.child.stop()


def connection_to(service):
    return contextlib.closing(http.client.HTTPConnection("127.0.0.1", service.port, timeout=children.PATIENCE))


def ask(service, method, path, body=None, **headers):
    """Return status and JSON of the response."""
    with connection_to(service) as connection:
        connection.request(method, service.prefix + path, body and json.dumps(body), HEADERS | headers)
        reply = connection.getresponse()
        return reply.status, json.loads(reply.read() or "null")


def create(service):
    """Create a provider; return its uuid."""
    provider = str(uuid.uuid4())
    assert ask(service, "POST", "/resource_providers", {"uuid": provider, "name": provider})[0] == 200
    return provider


def newest_position(service):
    return ask(service, "GET", "/v1/events?after=now")[1]["position"]


class Waiters:
    """Requests that wait, each in a thread; ``answers`` receives the status and the document of each response."""

    def __init__(self, service, number, path):
        self.answers = queue.Queue()
        self._threads = [threading.Thread(target=self._ask, args=(service, path)) for _ in range(number)]
        for thread in self._threads:
            thread.start()

    def _ask(self, service, path):
        self.answers.put(ask(service, "GET", path))

    def remaining(self):
        """Return the remaining responses, once all have arrived."""
        for thread in self._threads:
            thread.join()
        return [self.answers.get_nowait() for _ in range(self.answers.qsize())]


def wait_until_request_waits(service, metrics, waiters):
    """Wait until the only request waits, or has been answered too early."""
    service.wait_until(lambda: metrics.sum("waiting_requests") == 1 or waiters.answers.qsize())


def test_a_waiting_request_is_answered_by_a_write_of_another_process(serve, observed_service):
    (service, metrics), other_service = observed_service, serve()
    waiters = Waiters(service, 1, f"/v1/events?after={newest_position(service)}&wait=60")
    wait_until_request_waits(service, metrics, waiters)
    created = create(other_service)
    [(status, document)] = waiters.remaining()
    assert (status, [event["uuid"] for event in document["events"]]) == (200, [created])


def test_other_requests_are_answered_while_the_maximum_number_waits(serve):
    """Two of eight threads may wait: further waiting requests get an empty response at once, and others are served."""
    service = serve()
    position = newest_position(service)
    waiters = Waiters(service, 8, f"/v1/events?after={position}&wait=60")
    at_once = [waiters.answers.get(timeout=children.PATIENCE) for _ in range(6)]
    assert at_once == [(200, {"events": [], "position": position})] * 6
    for _ in range(10):
        assert ask(service, "GET", "/v1/overview")[0] == 200
    assert waiters.answers.empty()
    created = create(service)
    answers = waiters.remaining()
    assert [[event["uuid"] for event in document["events"]] for _, document in answers] == [[created]] * 2


@pytest.mark.parametrize("limit", [0, 3])
def test_an_operator_sets_how_many_requests_may_wait(serve, limit):
    service = serve(history={"max_waiting_requests": limit})
    waiters = Waiters(service, 6, f"/v1/events?after={newest_position(service)}&wait=60")
    for _ in range(6 - limit):
        assert waiters.answers.get(timeout=children.PATIENCE)[1]["events"] == []
    assert waiters.answers.empty()
    create(service)
    assert [len(document["events"]) for _, document in waiters.remaining()] == [1] * limit


def create_and_wait_until_seen(service, metrics, waiters):
    """Create a provider; wait until its event has a position, which only the waiting request assigns."""
    before = metrics.sum("transactions_ordered_total")
    create(service)
    service.wait_until(lambda: metrics.sum("transactions_ordered_total") > before or waiters.answers.qsize())


def test_a_wait_continues_past_other_events(observed_service):
    """Each other event wakes the request, which finds no match, before the next one is written."""
    service, metrics = observed_service
    provider = str(uuid.uuid4())
    waiters = Waiters(service, 1, f"/v1/events?after={newest_position(service)}&provider={provider}&wait=60")
    wait_until_request_waits(service, metrics, waiters)
    for _ in range(3):
        create_and_wait_until_seen(service, metrics, waiters)
    assert ask(service, "POST", "/resource_providers", {"uuid": provider, "name": provider})[0] == 200
    [(_, document)] = waiters.remaining()
    assert [event["uuid"] for event in document["events"]] == [provider]


# --- streams ---------------------------------------------------------------------------------------------------------


class EventSource:
    """A client of server-sent events, by the rules of the HTML standard; ``reached`` is its last event id."""

    def __init__(self, service, path, **headers):
        self._connection = http.client.HTTPConnection("127.0.0.1", service.port, timeout=children.PATIENCE)
        self._connection.request(
            "GET", service.prefix + path, headers=HEADERS | {"Accept": "text/event-stream"} | headers
        )
        self._socket = self._connection.sock
        self.reply = self._connection.getresponse()
        self.reached = headers.get("Last-Event-ID", "")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        # A reset, so that the service's next write fails; the response keeps the socket open, too.
        if self._socket.fileno() >= 0:  # the end of a stream closes it
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.reply.close()
        self._connection.close()

    def next(self):
        """Return the type and the data of the next message; None at the end of the stream."""
        kind, data = "message", []
        while line := self.reply.readline():
            text = line.decode().rstrip("\n")
            name, _, value = text.partition(":")
            value = value.removeprefix(" ")
            if name == "id":
                self.reached = value
            elif name == "event":
                kind = value
            elif name == "data":
                data.append(value)
            elif not text and data:
                return kind, json.loads("\n".join(data))
        return None


@pytest.mark.parametrize(
    "start",
    [
        running.embedded,
        pytest.param(running.uwsgi, marks=pytest.mark.long),
        web_servers.uwsgi,
        web_servers.mod_wsgi,
    ],
    ids=lambda start: start.__module__.removeprefix("tests.") + "." + start.__name__,
)
def test_a_stream_sends_each_event_when_it_is_committed(serve, start):
    """The second event is written after the first one has been read from the same connection."""
    if start is running.uwsgi:
        start = lambda url, options: running.uwsgi(url, 1, options, flags=("--lazy-apps", "--threads", "8"))  # noqa: E731
    service = serve(start, history={"max_waiting_requests": 2})
    with EventSource(service, "/v1/events?after=now&kind=provider") as source:
        assert source.reply.status == 200
        assert source.reply.headers["Content-Type"] == "text/event-stream"
        assert source.reply.headers["X-Accel-Buffering"] == "no"
        for _ in range(2):
            created = create(service)
            kind, event = source.next()
            assert (kind, event["uuid"], source.reached) == ("provider", created, event["position"])
    missed = create(service)
    with EventSource(service, "/v1/events?after=now", **{"Last-Event-ID": source.reached}) as source:
        assert source.next()[1]["uuid"] == missed
    create(service)  # written to both streams, so that the service notices their end; its stop would wait for them


def test_a_proxy_forwards_each_event(serve):
    """Apache in front of uWSGI, as in the sample in etc/."""
    with (
        web_servers.mod_proxy_uwsgi(serve(web_servers.uwsgi, history={"max_waiting_requests": 2})) as proxy,
        EventSource(proxy, "/v1/events?after=now&kind=provider") as source,
    ):
        for _ in range(2):
            created = create(proxy)
            assert source.next()[1]["uuid"] == created


def test_streams_beyond_the_bound_send_existing_events_and_end(serve):
    service = serve(history={"max_waiting_requests": 1})
    position = newest_position(service)
    with EventSource(service, f"/v1/events?after={position}") as first:
        created = create(service)
        assert first.next()[1]["uuid"] == created
        with EventSource(service, f"/v1/events?after={position}") as second:
            assert second.next()[1]["uuid"] == created
            assert second.next() is None
            assert second.reached == first.reached
        later = create(service)
        assert first.next()[1]["uuid"] == later
        with EventSource(service, "/v1/events", **{"Last-Event-ID": second.reached}) as third:
            assert third.next()[1]["uuid"] == later


def test_the_slot_of_a_disconnected_client_is_freed(serve, monkeypatch):
    service = serve(history={"max_waiting_requests": 1})
    with EventSource(service, "/v1/events?after=now") as source:
        create(service)
        source.next()
    # Each event is sent to the disconnected client, until the server notices.
    while True:
        create(service)
        with EventSource(service, "/v1/events?after=now") as source:
            created = create(service)
            message = source.next()
        if message is not None:
            assert message[1]["uuid"] == created
            break


def test_a_stream_from_a_lost_position_is_410(serve):
    service = serve()
    with EventSource(service, "/v1/events?after=99-00000000") as source:
        assert source.reply.status == 410
    with EventSource(service, "/v1/events", **{"Last-Event-ID": "99-00000000"}) as source:
        assert source.reply.status == 410
