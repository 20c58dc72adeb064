"""placement_client against a running service, with and without asyncio, and through a proxy that loses responses
(docs: client).
"""

from __future__ import annotations

import contextlib
import logging
import queue
import threading
import time
import uuid

import pytest
from placement_client import (
    BadRequest,
    Claim,
    Client,
    Conflict,
    Forbidden,
    HeldOtherwise,
    LeaseLost,
    NoReply,
    NoRoom,
    NotFound,
    NothingHeld,
    NothingPlaced,
    PositionLost,
    Request,
    Token,
    Unavailable,
    lease,
    query,
)

from tests import ask_process, asynchronous, children, clients, proxies, running, servers
from tests.clock import Clock
from tests.proxy_faults import Manner, Reset

pytestmark = [
    pytest.mark.parametrize("backend", [servers.SQLite.kind], indirect=True, scope="session"),
    pytest.mark.parametrize("kind", ["sync", "async"]),
]

#: Two hosts, each with two NUMA nodes with a GPU.
PROVIDERS = """
providers:
  - name: host-[1-2]
    inventories: {MEMORY_MB: 1024}
    children:
      - name: "{parent}-numa[0-1]"
        inventories: {VCPU: 8}
        children:
          - name: "{parent}-gpu"
            inventories: {CUSTOM_GPU: 1}
"""
GPU = {
    "groups": {"_node": {"resources": {"VCPU": 2}}, "_gpu": {"resources": {"CUSTOM_GPU": 1}}},
    "same_subtree": [["_node", "_gpu"]],
    "group_policy": "isolate",
}
OWNER = {"project_id": "ml", "user_id": "ada", "consumer_type": "JOB"}


@pytest.fixture(scope="module")
def cluster(backend):
    with ask_process.service_with_providers(backend, PROVIDERS) as loaded:
        yield loaded


@pytest.fixture
def service(cluster):
    """The cluster, without consumers at the start of a test."""
    yield cluster
    with clients.admin(cluster) as client:
        client.release(consumer.uuid for consumer in client.consumers(project="ml"))


@pytest.fixture
def connect(kind):
    """Return a function that creates clients of the kind."""
    with contextlib.ExitStack() as stack:

        def make(url, token="admin", **options):
            new_client = {"sync": Client, "async": asynchronous.blocking}[kind](
                url, Token(token), **{**clients.PATIENT, **options}
            )
            return stack.enter_context(new_client)

        yield make


@pytest.fixture
def client(service, connect):
    return connect(service.url)


@pytest.fixture
def proxy(service):
    with proxies.proxy(service.port) as between:
        yield between


@pytest.fixture
def afar(proxy, connect):
    """A client behind the proxy."""
    return connect(f"http://127.0.0.1:{proxy.port}")


def new():
    return str(uuid.uuid4())


class Answers(Manner):
    """A proxy that forwards every request, but replaces the first responses by others, which close the connection.

    Attributes:
        requests: The request lines received.
    """

    def __init__(self, *replies):
        self._replies = [*replies]
        #: By connection, the response that replaces the service's; empty once it has been sent.
        self._instead = {}
        self.requests = []

    def to_server(self, connection, data):
        if data.split(b" ", 1)[0] in (b"GET", b"POST", b"PUT", b"DELETE"):
            self.requests.append(data.split(b"\r\n", 1)[0].decode())
            if self._replies:
                self._instead[connection] = self._replies.pop(0)
        return data

    def to_client(self, connection, data):
        if connection not in self._instead:
            return data
        reply, self._instead[connection] = self._instead[connection], b""
        if reply is LOST:
            raise Reset
        return reply


#: A lost response.
LOST = None


class Drips(Manner):
    """A proxy that answers requests to extend a lease itself, byte by byte until ``ended`` is set.

    Attributes:
        begun: Set with the first such response.
    """

    def __init__(self):
        self.begun, self.ended = threading.Event(), threading.Event()

    def to_server(self, connection, data):
        if b"/extend HTTP" not in data:
            return data
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")
        self.begun.set()
        while not self.ended.wait(0.1):
            connection.sendall(b" ")
        raise Reset


def response(status, body, *headers):
    """Return a response that a proxy or the service might send."""
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", "Connection: close", *headers]
    return ("\r\n".join(lines) + "\r\n\r\n" + body).encode()


#: The responses of HAProxy for a missing service, and of this service if a COMMIT may have succeeded.
AWAY = response("503 Service Unavailable", "<html>No server</html>", "Content-Type: text/html")
BUSY = response("503 Service Unavailable", "{}", "Content-Type: application/json", "Retry-After: 1")


# --- claims ----------------------------------------------------------------------------------------------------------


def test_a_claim_has_a_place_until_it_is_released(client):
    consumer = new()
    claim = client.claim(consumer, GPU, **OWNER, count=2, expires_in=3600)
    assert (claim.consumer, claim.outcome, claim.consumer_generation) == (consumer, "claimed", 1)
    assert [{*mapping} for mapping in claim.mappings] == [{"_node", "_gpu"}] * 2
    node, gpu = (claim.mappings[0][group][0] for group in ("_node", "_gpu"))
    assert claim.allocations[gpu].resources == {"CUSTOM_GPU": 1}
    assert claim.allocations[gpu].name == claim.allocations[node].name + "-gpu"
    assert client.show(consumer) == Claim(**{**vars(claim), "outcome": None})
    assert client.claim(consumer, query.query_string(GPU), **OWNER, count=2).outcome == "held"
    assert client.extend(consumer, 7200).expires_at > claim.expires_at
    assert client.extend(consumer, None).expires_at is None
    missing = new()
    released = client.release([consumer, missing])
    assert (released.released, released.missing) == ([consumer], [missing])
    with pytest.raises(NothingHeld):
        client.show(consumer)


def test_a_batch_returns_the_result_of_each_request(client):
    first, second = Request(new(), GPU, **OWNER, count=2), Request(uuid.uuid4(), GPU, **OWNER, count=3)
    placed, refused = client.claims([first, second])
    assert placed.outcome == "claimed"
    assert isinstance(refused, NoRoom)
    assert (refused.consumer, refused.status) == (str(second.consumer), 409)
    assert refused.request_id.startswith("req-")
    assert client.claims([first])[0].outcome == "held"
    together = client.claims([Request(new(), "resources=VCPU:1", **OWNER), second], all_or_nothing=True)
    assert [type(result) for result in together] == [NothingPlaced, NoRoom]
    assert [consumer.uuid for consumer in client.consumers(project="ml", type="JOB")] == [first.consumer]


def test_a_consumer_is_moved(client):
    request = Request(new(), "resources=VCPU:1", **OWNER)
    [claim] = client.claims([request])
    move = Request(request.consumer, "resources=VCPU:1", **OWNER, keep=False, consumer_generation=1)
    [moved] = client.claims([move], apart_from=[request.consumer])
    assert (moved.outcome, moved.consumer_generation) == ("moved", 2)
    assert moved.allocations.keys() != claim.allocations.keys()
    [stale] = client.claims([Request(request.consumer, "resources=VCPU:2", **OWNER, keep=False, consumer_generation=1)])
    assert stale.code == "placement.concurrent_update"


@pytest.mark.parametrize(
    "replies", [(LOST,), (LOST, LOST), (AWAY,), (BUSY, LOST)], ids=["lost", "twice", "503", "both"]
)
def test_a_claim_with_a_lost_response_is_made_once(client, afar, proxy, replies):
    consumer = new()
    with proxy.behaving(manner := Answers(*replies)):
        claim = afar.claim(consumer, GPU, **OWNER)
    assert manner.requests == ["POST /v1/claims HTTP/1.1"] * (len(replies) + 1)
    assert claim.outcome == "held"
    assert client.show(consumer).allocations == claim.allocations
    assert [holder.uuid for holder in client.consumers(project="ml")] == [consumer]


def test_a_refusal_is_not_a_lost_response(afar, proxy, client):
    consumer = new()
    client.claim(consumer, GPU, **OWNER)
    with proxy.behaving(manner := Answers()):
        with pytest.raises(HeldOtherwise):
            afar.claim(consumer, "resources=VCPU:1", **OWNER)
        with pytest.raises(NoRoom) as refused:
            afar.claim(new(), "resources=VCPU:9", **OWNER)
        with pytest.raises(BadRequest) as malformed:
            afar.claim("job-1", GPU, **OWNER)
    assert manner.requests == ["POST /v1/claims HTTP/1.1"] * 3
    explanation = refused.value.explanation
    assert (explanation.rule, explanation.group) == ("resources", "")
    assert "resources=VCPU:8" in [relaxation.query for relaxation in explanation.relaxations]
    assert malformed.value.field == "requests[0].consumer"
    assert malformed.value.expected in malformed.value.detail
    assert malformed.value.request_id in str(malformed.value)


def test_retries_end_with_a_timeout(connect, proxy, client):
    hasty, consumer = connect(f"http://127.0.0.1:{proxy.port}", patience=0), new()
    with proxy.behaving(Answers(BUSY)), pytest.raises(Unavailable) as failed:
        hasty.claim(consumer, GPU, **OWNER)
    assert failed.value.status == 503
    with proxy.refusing(), pytest.raises(NoReply, match=str(proxy.port)):
        hasty.release([consumer])
    assert client.show(consumer)


def test_releases_and_extensions_are_retried_too(client, afar, proxy):
    consumer = new()
    ends = client.claim(consumer, GPU, **OWNER, expires_in=60).expires_at
    with proxy.behaving(manner := Answers(LOST, AWAY)):
        assert afar.extend(consumer, 120).expires_at > ends
        assert afar.release([consumer]).released == [consumer]
    assert [request.split(" ")[0] for request in manner.requests] == ["POST", "POST", "POST", "DELETE"]
    with proxy.behaving(Answers(LOST)):
        assert afar.release([consumer]).missing == [consumer]


def test_more_consumers_are_released_than_one_query_can_name(client):
    consumers = [new() for _ in range(700)]
    for consumer in (consumers[0], consumers[-1]):
        client.claim(consumer, "resources=VCPU:1", **OWNER)
    released = client.release(consumers)
    assert released.released == [consumers[0], consumers[-1]]
    assert released.missing == consumers[1:-1]


def test_an_incomplete_release_is_repeated(afar, proxy):
    consumer = new()
    afar.claim(consumer, GPU, **OWNER)
    cut = response("200 OK", f'{{"released": ["{consumer}"], "missing": [], "complete": false}}')
    with proxy.behaving(manner := Answers(cut)):
        released = afar.release([consumer])
    assert (released.released, released.missing) == ([consumer], [])
    assert len(manner.requests) == 2


# --- a place that the caller chooses ---------------------------------------------------------------------------------


def test_a_candidate_is_claimed_once(client, afar, proxy):
    first, second = client.candidates(GPU)[:2]
    consumer = new()
    with proxy.behaving(manner := Answers(LOST)):
        afar.take(first, consumer, **OWNER)
    assert [request.split(" ")[0] for request in manner.requests] == ["PUT", "PUT", "GET"]
    allocations = {provider: allocation.resources for provider, allocation in client.show(consumer).allocations.items()}
    assert allocations == first.allocations
    with pytest.raises(Conflict):
        client.take(first, new(), **OWNER)
    with pytest.raises(Conflict, match="generation"):
        client.take(second, consumer, **OWNER)
    assert first not in client.candidates(GPU)
    assert len(client.candidates(GPU, limit=1)) == 1


# --- leases ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def frequent_extensions(monkeypatch):
    """Leases are extended every tenth of a second."""
    monkeypatch.setattr(lease, "EXTENSIONS_PER_LEASE", 36000)


@pytest.fixture
def clock(monkeypatch):
    """The clock of leases, which a test advances, so that the duration of a claim does not matter."""
    clock = Clock(time.monotonic())
    monkeypatch.setattr(lease, "time", clock)
    return clock


def test_a_lease_is_extended_until_its_block_ends(client, frequent_extensions):
    consumer = new()
    with client.lease(consumer, GPU, **OWNER, expires_in=3600) as gpu_lease:
        first_expiry = gpu_lease.expires_at
        children.until(lambda: client.show(consumer).expires_at > first_expiry)
        assert gpu_lease.remaining > 0
        gpu_lease.check()
    with pytest.raises(NothingHeld):
        client.show(consumer)
    assert not gpu_lease.lost


def test_a_lease_continues_a_claim_of_another_process(client):
    consumer = new()
    first_expiry = client.claim(consumer, GPU, **OWNER, expires_in=60).expires_at
    with client.lease(consumer, GPU, **OWNER, expires_in=3600) as gpu_lease:
        assert gpu_lease.expires_at > first_expiry
        assert gpu_lease.claim.consumer_generation == 1
    with pytest.raises(NothingHeld):
        client.show(consumer)


def test_a_lease_ends_with_an_exception_of_its_block(client):
    consumer = new()
    with pytest.raises(ZeroDivisionError), client.lease(consumer, GPU, **OWNER, expires_in=3600):
        raise ZeroDivisionError
    with pytest.raises(NothingHeld):
        client.show(consumer)


def test_the_block_of_a_lease_without_a_place_does_not_run(client):
    with pytest.raises(NoRoom), client.lease(new(), "resources=VCPU:9", **OWNER, expires_in=3600):
        pytest.fail("the block was entered")


def test_a_lease_that_another_client_ends_is_lost(client, frequent_extensions):
    consumer, losses = new(), []

    def work():
        with client.lease(consumer, GPU, **OWNER, expires_in=3600, on_lost=losses.append) as gpu_lease:
            client.release([consumer])
            children.until(lambda: losses)
            assert gpu_lease.lost
            client.claim(consumer, "resources=VCPU:1", **OWNER)  # by the next process of the job

    with pytest.raises(LeaseLost, match=consumer) as raised:
        work()
    assert [str(loss) for loss in losses] == [str(raised.value)]
    assert isinstance(raised.value.__cause__, NothingHeld)
    assert client.show(consumer)


def test_a_lease_that_cannot_be_extended_is_lost_at_its_expiry(client, afar, proxy, clock):
    losses = []

    def work():
        with afar.lease(new(), GPU, **OWNER, expires_in=1, on_lost=losses.append) as gpu_lease, proxy.silent():
            clock.sleep(3600)
            children.until(lambda: losses)
            assert gpu_lease.lost
            with pytest.raises(LeaseLost):
                gpu_lease.check()

    with proxy.behaving(manner := Answers()), pytest.raises(LeaseLost):
        work()
    children.until(lambda: not client.consumers(project="ml"))  # the service releases it
    assert not [request for request in manner.requests if request.startswith("DELETE")]


@pytest.fixture
def drips(proxy):
    """A proxy whose endless responses end before it stops."""
    drips = Drips()
    yield drips
    drips.ended.set()


def test_a_lease_is_lost_at_its_expiry_while_an_extension_waits(afar, proxy, drips, clock):
    """Each part of the response arrives in time, but the response never completes."""
    losses = []

    def work():
        with proxy.behaving(drips), afar.lease(new(), GPU, **OWNER, expires_in=1, on_lost=losses.append):
            assert drips.begun.wait(children.PATIENCE)
            assert not losses
            clock.sleep(3600)
            children.until(lambda: losses)

    with pytest.raises(LeaseLost):
        work()
    assert len(losses) == 1


def test_temporarily_failing_extensions_lose_no_lease(client, afar, proxy, frequent_extensions):
    consumer = new()
    with afar.lease(consumer, GPU, **OWNER, expires_in=3600) as gpu_lease:
        with proxy.behaving(manner := Answers(*[AWAY, LOST, response("401 Unauthorized", "{}")] * 2)):
            children.until(lambda: len(manner.requests) > 6)
        expiry = gpu_lease.expires_at
        children.until(lambda: gpu_lease.expires_at > expiry)
        assert not gpu_lease.lost


def test_an_unreachable_service_at_the_end_of_a_block_is_not_awaited(client, afar, proxy, monkeypatch, caplog):
    monkeypatch.setattr(lease, "RELEASE_PATIENCE", 0.1)
    consumer = new()
    caplog.set_level(logging.WARNING)
    with contextlib.ExitStack() as stack, afar.lease(consumer, GPU, **OWNER, expires_in=3600) as gpu_lease:
        stack.enter_context(proxy.silent())
    assert f"{consumer} was not released; its lease expires at {gpu_lease.expires_at}" in caplog.text
    assert client.show(consumer).expires_at == gpu_lease.expires_at


# --- queries and errors ----------------------------------------------------------------------------------------------


def test_possible_placements_are_counted_and_explained(client):
    capacity = client.capacity(GPU)
    assert (capacity.count, capacity.at_most, capacity.exact) == (4, 4, True)
    assert client.capacity(GPU, count=2).count == 2
    assert client.capacity(GPU, until=3).limiting is None
    assert client.explain("resources=VCPU:8").found == 4
    refusal = client.explain("resources=VCPU:12")
    assert (refusal.found, refusal.rule) == (0, "resources")
    assert "8" in refusal.summary
    assert refusal.document["near_misses"]


def test_any_other_request_is_sent(client):
    name = new()
    created = client.request("POST", "/resource_providers", {"name": name})
    assert created["name"] == name
    [provider] = client.request("GET", "/resource_providers", query={"name": name})["resource_providers"]
    assert "root_provider_uuid" in provider
    [old] = client.request("GET", "/resource_providers", query={"name": name}, version="1.0")["resource_providers"]
    assert "root_provider_uuid" not in old
    assert client.request("DELETE", f"/resource_providers/{provider['uuid']}") is None
    with pytest.raises(NotFound) as missing:
        client.request("GET", f"/resource_providers/{provider['uuid']}")
    assert missing.value.detail.startswith(f"No resource provider with uuid {provider['uuid']} found")
    assert (missing.value.title, missing.value.code) == ("Not Found", "placement.undefined_code")


def test_a_foreign_response_is_shown(connect, proxy):
    client = connect(f"http://127.0.0.1:{proxy.port}")
    with proxy.behaving(Answers(response("200 OK", "<html>Welcome</html>"))), pytest.raises(Exception, match="Welcome"):
        client.capacity(GPU)
    with proxy.behaving(manner := Answers(AWAY)), pytest.raises(Unavailable, match="No server"):
        client.request("POST", "/resource_providers", {"name": new()})
    assert len(manner.requests) == 1


def test_a_caller_without_rights_is_refused(connect, service):
    with pytest.raises(Forbidden):
        connect(service.url, "bob").claim(new(), GPU, **OWNER)


# --- events ----------------------------------------------------------------------------------------------------------


def test_events_are_followed_from_a_position(client):
    position = client.position()
    consumers = [new(), new()]
    for consumer in consumers:
        client.claim(consumer, "resources=VCPU:1", **OWNER)
    events = client.follow(position, kind="consumer")
    first = next(events)
    assert (first.kind, first.uuid, first.generation) == ("consumer", consumers[0], [None, 1])
    assert first.request["global_request_id"].startswith("req-")
    assert next(client.follow(first.position, kind="consumer")).uuid == consumers[1]
    assert next(events).uuid == consumers[1]
    client.release(consumers[:1])
    assert next(client.follow(events.position, project="ml")).generation == [1, None]


def test_a_restart_of_the_service_does_not_end_events(connect, database_url):
    with running.embedded(database_url) as service:
        client, names, received = connect(service.url), [new(), new()], queue.Queue()
        events = client.follow(client.position(), kind="provider")
        threading.Thread(target=lambda: [received.put(next(events).name) for _ in names], daemon=True).start()
        clients.request(service, "POST", "/resource_providers", {"name": names[0]})
        assert received.get(timeout=children.PATIENCE) == names[0]
        service.kill()
        service.start()
        clients.request(service, "POST", "/resource_providers", {"name": names[1]})
        assert received.get(timeout=children.PATIENCE) == names[1]


def test_a_lost_position_is_reported(client):
    with pytest.raises(PositionLost):
        next(client.follow("7000000-0badcafe"))
