"""Traces of services run as by operators, with and without a collector."""

from __future__ import annotations

import contextlib
import http.client
import json
import re
import secrets
import signal
import sys
import time
from pathlib import Path

import pytest

from placement.tracing import provider
from tests import children, running, servers, web_servers
from tests.collector import collecting
from tests.docs.run_by import blocks_of
from tests.load.storm import Storm, holding, new

pytestmark = [
    # Traces do not depend on the kind of database.
    pytest.mark.parametrize("backend", [servers.SQLite.kind], indirect=True, scope="session"),
    # Only one process of the run starts web servers.
    pytest.mark.xdist_group("web servers"),
]
#: No span is sent within this time, unless the process ends.
LATER = {"OTEL_BSP_SCHEDULE_DELAY": str(24 * 3600 * 1000)}
#: The web servers, each with two processes if it supports several.
SERVERS = {
    "placement-serve": lambda url, environment: running.embedded(url, environment=environment),
    "uwsgi, lazy": lambda url, environment: web_servers.uwsgi(url, environment=environment),
    "uwsgi, forked": lambda url, environment: forked_uwsgi(url, environment),
    "mod_wsgi": lambda url, environment: web_servers.mod_wsgi(url, environment=environment),
}
#: The servers that wait until a process has sent its spans; Apache kills it after three seconds.
PATIENT = [name for name in SERVERS if name != "mod_wsgi"]
#: Threads of a worker of the sample.
THREADS = int(
    re.search(r"^threads = (\d+)$", (web_servers.SAMPLES / "uwsgi" / "placement.ini").read_text(), re.MULTILINE)[1]
)
#: The part of a log line that names a logger of the libraries.
LIBRARY_LOGGERS = " opentelemetry."


@contextlib.contextmanager
def forked_uwsgi(url, environment):
    """The service under the sample of uWSGI, but with workers forked from a master that has loaded it."""
    argv, port, directory = web_servers.uwsgi_command(url)
    sample = directory / "placement.ini"
    assert "lazy-apps = true" in sample.read_text()
    sample.write_text(sample.read_text().replace("lazy-apps = true", "lazy-apps = false"))
    yield from running.run(argv, port, directory, environment=environment)


@pytest.fixture
def collector():
    with collecting() as collector:
        yield collector


@pytest.fixture(params=SERVERS)
def serving(request, database_url):
    """Return a function that starts the service under a web server, with environment variables."""
    return lambda environment: SERVERS[request.param](database_url, environment)


def send_traced(service, method="GET", path="/resource_providers", body=None):
    """Send a request as part of a new trace; return the id of the trace, the id of its span, and the status."""
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
    """Return the log lines of the libraries, wherever the web server writes them."""
    logs = [service.log, *service.directory.glob("*.log")]
    return [line for log in logs for line in log.read_text().splitlines() if LIBRARY_LOGGERS in line]


def test_each_worker_sends_its_spans(serving, collector):
    with serving(collector.environment) as service:
        for _ in range(20):
            trace, span, status = send_traced(service)
            assert status == 200
            [request] = [collected for collected in collector.wait_for(trace) if collected.kind == "SERVER"]
            assert (request.parent, request.name) == (span, "GET /resource_providers")
        assert not lines_of_libraries(service)


def takes_signals(task):
    """Whether a thread may receive SIGTERM."""
    blocked = re.search(r"^SigBlk:\t(\w+)$", (task / "status").read_text(), re.MULTILINE)[1]
    return not int(blocked, 16) & 1 << signal.SIGTERM - 1


@pytest.mark.parametrize(
    ("serving", "threads", "taking"),
    # uWSGI delivers signals to the first thread of a worker; waitress has one thread that accepts, and eight more.
    [("placement-serve", 9, 9), ("uwsgi, lazy", THREADS, 1), ("uwsgi, forked", THREADS, 1)],
    indirect=["serving"],
)
def test_the_thread_that_sends_spans_receives_no_signal(serving, collector, threads, taking):
    with serving(collector.environment) as service:
        collector.wait_for(send_traced(service)[0])
        tasks = max(([*Path(f"/proc/{worker}/task").iterdir()] for worker in service.workers), key=len)
        assert len(tasks) == threads + 1
        assert sum(map(takes_signals, tasks)) == taking


@pytest.mark.parametrize("serving", PATIENT, indirect=True)
def test_a_process_that_stops_sends_its_remaining_spans(serving, collector):
    with serving(collector.environment | LATER) as service:
        traces = {send_traced(service)[0] for _ in range(20)}
        assert not collector.spans
        service.stop()
        assert traces <= {span.trace for span in collector.spans if span.kind == "SERVER"}


@pytest.mark.parametrize("serving", ["placement-serve", "uwsgi, lazy"], indirect=True)
def test_without_a_collector_requests_are_answered_and_the_log_is_not_flooded(serving):
    nowhere = f"http://127.0.0.1:{children.free_port()}"
    limits = {"OTEL_BSP_SCHEDULE_DELAY": "20", "OTEL_BSP_MAX_QUEUE_SIZE": "16", "OTEL_BSP_MAX_EXPORT_BATCH_SIZE": "8"}
    began = time.monotonic()
    with serving({"OTEL_EXPORTER_OTLP_ENDPOINT": nowhere, **limits}) as service:
        # Each minute fills the queues several times.
        assert {send_traced(service)[2] for _ in range(100)} == {200}
        service.wait_until(lambda: lines_of_libraries(service))
        service.stop()
        minutes = 1 + (time.monotonic() - began) // provider.QUIET
        assert len(lines_of_libraries(service)) <= 2 * minutes  # one per minute and process


def test_an_unresponsive_collector_delays_neither_requests_nor_the_stop(database_url, collector):
    limits = {
        "OTEL_BSP_MAX_QUEUE_SIZE": "8",
        "OTEL_BSP_MAX_EXPORT_BATCH_SIZE": "4",
        "OTEL_EXPORTER_OTLP_TIMEOUT": "86400",
    }
    collector.answers.clear()
    with running.embedded(database_url, environment=collector.environment | limits) as service:
        assert {send_traced(service)[2] for _ in range(100)} == {200}
        children.until(lambda: collector.requests, "no span is sent")
        service.stop()
    assert not collector.answers.is_set()
    assert collector.spans == []


def test_the_log_lines_of_a_request_have_the_ids_of_its_trace(database_url, collector):
    with running.embedded(database_url, {"DEFAULT": {"use_json": True}}, environment=collector.environment) as service:
        trace, *_ = send_traced(service)
        [request] = [span for span in collector.wait_for(trace) if span.kind == "SERVER"]
        records = [json.loads(line) for line in service.log.read_text().splitlines() if line.startswith("{")]
    assert any(line_record["extra"].get("trace_id") is None for line_record in records)  # log lines of the start
    [record] = [line_record for line_record in records if line_record["extra"].get("route") == "/resource_providers"]
    assert (record["extra"]["trace_id"], record["extra"]["span_id"]) == (trace, request.id)
    assert record["context"]["request_id"] == request.attributes["openstack.request_id"]
    assert trace not in record["message"]


def test_nothing_is_traced_twice_under_an_instrumenting_program(database_url, collector):
    port, directory = children.free_port(), running.write_configuration(database_url, None)
    instrument = Path(sys.executable).with_name("opentelemetry-instrument")
    argv = [str(instrument), sys.executable, "-m", "placement.cmd.serve", "--port", str(port)]
    environment = collector.environment | {
        "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf",
        "OTEL_METRICS_EXPORTER": "none",
        "OTEL_LOGS_EXPORTER": "none",
    }
    with contextlib.contextmanager(running.run)(argv, port, directory, environment=environment) as service:
        trace, parent, _ = send_traced(service)
        spans = collector.wait_for(trace)
    [request] = [span for span in spans if span.kind == "SERVER"]
    assert (request.name, request.parent) == ("GET /resource_providers", parent)
    assert "telemetry.auto.version" in request.resource  # the exporter of opentelemetry-instrument has sent it
    assert "Overriding" not in service.log.read_text()  # there is only one provider
    # Spans of statements come from the service, or from the instrumentation if it supports the installed SQLAlchemy.
    assert len({"db.query.text" in span.attributes for span in spans if span.name.startswith("SELECT")}) == 1


# --- docs/observability.rst ---


def test_the_configuration_of_the_page_sends_traces(database_url, collector):
    [block] = blocks_of(__file__, "docs/observability.rst", "*/traces.conf")
    text = block.text.replace("http://collector.example.org:4318", collector.url)
    variables = dict(re.findall("^ *Environment=(\\w+)=(.*)$", text, re.MULTILINE))
    assert collector.url in variables.values()
    argv, port, directory = web_servers.uwsgi_command(database_url)
    environment = variables | {"OTEL_BSP_SCHEDULE_DELAY": "50"}
    with contextlib.contextmanager(running.run)(argv, port, directory, environment=environment) as service:
        trace, *_ = send_traced(
            service
        )  # the request is part of a sampled trace, so the sampler of the page samples it, too
        [request] = [span for span in collector.wait_for(trace) if span.kind == "SERVER"]
    assert request.resource["deployment.environment.name"] == "production"
    assert request.resource["service.name"] == "placement"


def test_the_spans_of_a_claim_and_a_search_are_as_shown(database_url, collector):
    (tree, _) = blocks_of(__file__, "docs/observability.rst", "text")
    with running.embedded(database_url, environment=collector.environment) as service:
        storm = Storm(service.url)
        host = storm.provider(VCPU=4)
        traces = [
            send_traced(service, "PUT", f"/allocations/{new()}", holding([host])),
            send_traced(service, "GET", "/allocation_candidates?resources=VCPU:1"),
        ]
        spans = [span for trace, *_ in traces for span in collector.wait_for(trace)]
    names = {span.id: span.name for span in spans}
    pairs = {(names.get(span.parent), span.name) for span in spans}
    path = []
    for line in tree.text.splitlines():
        name = line.strip()
        depth = (len(line) - len(name)) // 2
        path[depth:] = [name]
        assert (path[depth - 1] if depth else None, name) in pairs


def test_the_log_line_of_a_request_is_as_shown(database_url, collector):
    (_, line) = blocks_of(__file__, "docs/observability.rst", "text")
    with running.embedded(database_url, environment=collector.environment) as service:
        trace, *_ = send_traced(service)
        [request] = [span for span in collector.wait_for(trace) if span.kind == "SERVER"]
        log = service.log.read_text()
    ids = {"trace_id": trace, "span_id": request.id}
    expected = line.text.strip().replace("192.0.2.17", "127.0.0.1")
    assert re.sub(r"(trace_id|span_id): \w+", lambda match: f"{match[1]}: {ids[match[1]]}", expected) in log
