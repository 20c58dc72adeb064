"""Traces of services as operators run them, at a collector that takes them, and where there is none."""

from __future__ import annotations

import contextlib
import http.client
import json
import secrets

import pytest

from tests import children, running, servers, web_servers
from tests.collector import collecting

pytestmark = [
    # Traces do not depend on the kind of database.
    pytest.mark.parametrize("backend", [servers.SQLite.kind], indirect=True, scope="session"),
    # One process of the run starts web servers, not each.
    pytest.mark.xdist_group("web servers"),
]
#: No span is sent before this time is over, unless the process ends.
LATER = {"OTEL_BSP_SCHEDULE_DELAY": str(24 * 3600 * 1000)}
#: The web servers, each with two processes where it has several.
SERVERS = {
    "placement-serve": lambda url, environment: running.embedded(url, environment=environment),
    "uwsgi, lazy": lambda url, environment: web_servers.uwsgi(url, environment=environment),
    "uwsgi, forked": lambda url, environment: forked(url, environment),
    "mod_wsgi": lambda url, environment: web_servers.mod_wsgi(url, environment=environment),
}
#: Apache kills a process that has not ended after three seconds.
PATIENT = [name for name in SERVERS if name != "mod_wsgi"]
#: What the libraries log.
OF_LIBRARIES = " opentelemetry."


@contextlib.contextmanager
def forked(url, environment):
    """The service as the sample of uWSGI starts it, but with workers that are forks of a master that has loaded it."""
    argv, port, directory = web_servers.uwsgi_command(url)
    sample = directory / "placement.ini"
    assert "lazy-apps = true" in sample.read_text()
    sample.write_text(sample.read_text().replace("lazy-apps = true", "lazy-apps = false"))
    yield from running.run(argv, port, directory, environment=environment)


@pytest.fixture
def collector():
    with collecting() as collecting_now:
        yield collecting_now


@pytest.fixture(params=SERVERS)
def serving(request, database_url):
    """Starts the service under a web server, with these variables."""
    return lambda environment: SERVERS[request.param](database_url, environment)


def asked(service, method="GET", path="/resource_providers", body=None):
    """Send a request as a part of a new trace; return the id of the trace, that of its span, and the status."""
    trace, span = secrets.token_hex(16), secrets.token_hex(8)
    headers = {
        "X-Auth-Token": "admin",
        "OpenStack-API-Version": "placement 1.39",
        "Content-Type": "application/json",
        "traceparent": f"00-{trace}-{span}-01",
    }
    connection = http.client.HTTPConnection("127.0.0.1", service.port, timeout=children.PATIENCE)
    with contextlib.closing(connection):
        connection.request(method, service.prefix + path, body and json.dumps(body), headers)
        reply = connection.getresponse()
        reply.read()
        return trace, span, reply.status


def lines_of_libraries(service):
    """Return what the libraries have logged, wherever the web server has it."""
    logs = [service.log, *service.directory.glob("*.log")]
    return [line for log in logs for line in log.read_text().splitlines() if OF_LIBRARIES in line]


def test_each_worker_sends_its_spans(serving, collector):
    with serving(collector.environment) as service:
        for _ in range(20):
            trace, span, status = asked(service)
            assert status == 200
            [request] = [each for each in collector.wait_for(trace) if each.kind == "SERVER"]
            assert (request.parent, request.name) == (span, "GET /resource_providers")
        assert not lines_of_libraries(service)


@pytest.mark.parametrize("serving", PATIENT, indirect=True)
def test_a_process_that_stops_sends_what_it_has(serving, collector):
    with serving(collector.environment | LATER) as service:
        traces = {asked(service)[0] for _ in range(20)}
        assert not collector.spans
        service.stop()
        assert traces <= {span.trace for span in collector.spans if span.kind == "SERVER"}
        service.start()


def test_without_a_collector_requests_are_answered_and_the_log_is_not_flooded(serving):
    nowhere = f"http://127.0.0.1:{children.free_port()}"
    few = {"OTEL_BSP_SCHEDULE_DELAY": "20", "OTEL_BSP_MAX_QUEUE_SIZE": "16", "OTEL_BSP_MAX_EXPORT_BATCH_SIZE": "8"}
    with serving({"OTEL_EXPORTER_OTLP_ENDPOINT": nowhere, **few}) as service:
        # Each fills the queues several times.
        assert {asked(service)[2] for _ in range(100)} == {200}
        service.wait_until(lambda: lines_of_libraries(service))
        service.stop()
        assert len(lines_of_libraries(service)) <= 2
        service.start()


def test_a_collector_that_does_not_answer_delays_no_request(database_url, collector):
    few = {"OTEL_BSP_MAX_QUEUE_SIZE": "8", "OTEL_BSP_MAX_EXPORT_BATCH_SIZE": "4", "OTEL_EXPORTER_OTLP_TIMEOUT": "1"}
    collector.answers.clear()
    with running.embedded(database_url, environment=collector.environment | few) as service:
        # They are all answered before the collector is.
        assert {asked(service)[2] for _ in range(100)} == {200}
        assert not collector.spans
        collector.answers.set()


def test_the_log_lines_of_a_request_have_the_ids_of_its_trace(database_url, collector):
    with running.embedded(database_url, {"DEFAULT": {"use_json": True}}, environment=collector.environment) as service:
        trace, *_ = asked(service)
        [request] = [span for span in collector.wait_for(trace) if span.kind == "SERVER"]
        records = [json.loads(line) for line in service.log.read_text().splitlines() if line.startswith("{")]
    [record] = [each for each in records if each["extra"].get("trace_id") == trace]
    assert record["extra"]["span_id"] == request.id
    assert record["extra"]["route"] == "/resource_providers"
    assert record["context"]["request_id"] == request.attributes["openstack.request_id"]
    assert trace not in record["message"]
