"""The attributes and exporters of traces, and the log of failed exports."""

from __future__ import annotations

import logging
import threading

import pytest
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace.export import ConsoleSpanExporter, SpanExporter, SpanExportResult

from placement import package
from placement.tracing import provider
from tests.clock import PATIENCE, Clock


@pytest.mark.parametrize(
    ("variables", "name"),
    [
        ({}, "placement"),
        ({"OTEL_SERVICE_NAME": "other"}, "other"),
        ({"OTEL_RESOURCE_ATTRIBUTES": "service.name=other,service.version=9"}, "other"),
        ({"OTEL_RESOURCE_ATTRIBUTES": "deployment.environment.name=test"}, "placement"),
    ],
)
def test_the_service_has_a_name_and_a_version_unless_the_environment_sets_them(monkeypatch, variables, name):
    for variable, value in variables.items():
        monkeypatch.setenv(variable, value)
    attributes = provider._resource().attributes
    assert attributes["service.name"] == name
    assert attributes["service.version"] == ("9" if "version" in str(variables) else package.version())
    assert ("deployment.environment.name" in attributes) == ("deployment" in str(variables))


@pytest.mark.parametrize(
    ("variables", "exporters"),
    [
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4318"}, [OTLPSpanExporter]),
        ({"OTEL_TRACES_EXPORTER": "otlp"}, [OTLPSpanExporter]),
        ({"OTEL_TRACES_EXPORTER": "otlp", "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf"}, [OTLPSpanExporter]),
        (
            {"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "http/protobuf"},
            [OTLPSpanExporter],
        ),
        ({"OTEL_TRACES_EXPORTER": "console, otlp"}, [ConsoleSpanExporter, OTLPSpanExporter]),
    ],
)
def test_the_environment_determines_the_exporters(monkeypatch, variables, exporters):
    for variable, value in variables.items():
        monkeypatch.setenv(variable, value)
    assert provider._load_exporters() == exporters


@pytest.fixture
def libraries_log():
    """Restore the log of the libraries after the test."""
    log = logging.getLogger("opentelemetry")
    before = log.handlers[:], log.propagate
    yield
    log.handlers[:], log.propagate = before


@pytest.mark.parametrize(
    ("variables", "longest"),
    [
        ({}, 4096),
        ({"OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT": "20"}, 20),
        ({"OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT": "8192"}, 8192),
    ],
)
def test_the_environment_limits_the_length_of_an_attribute_which_is_4096_by_default(
    monkeypatch, libraries_log, variables, longest
):
    for variable, value in variables.items():
        monkeypatch.setenv(variable, value)
    tracer_provider = provider._create_provider()
    span = tracer_provider.get_tracer("test").start_span("name", attributes={"db.query.text": "x" * 10000})
    assert len(span.attributes["db.query.text"]) == longest
    tracer_provider.shutdown()


class Sender(SpanExporter):
    """An exporter whose collector responds once ``answers`` is set, or after 20 seconds; the SDK would wait for 30."""

    def __init__(self):
        self.sent, self.ended = [], False
        self.began, self.answers = threading.Event(), threading.Event()

    def export(self, spans):
        self.began.set()
        self.answers.wait(20)
        self.sent += [span.name for span in spans]
        return SpanExportResult.SUCCESS

    def shutdown(self):
        self.ended = True


def test_a_collector_that_does_not_respond_delays_neither_the_end_of_the_process_nor_other_exporters(
    monkeypatch, libraries_log
):
    stuck, other = Sender(), Sender()
    other.answers.set()
    monkeypatch.setattr(provider, "_exporters", [lambda: stuck, lambda: other])
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", str(24 * 3600 * 1000))
    monkeypatch.setenv("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "1")
    monkeypatch.setattr(provider, "GRACE", 0.01)
    # The other exporter gets its time once the first one's has ended.
    monkeypatch.setattr(stuck, "shutdown", lambda: monkeypatch.setattr(provider, "GRACE", PATIENCE))
    tracer_provider = provider._create_provider()
    tracer = tracer_provider.get_tracer("test")
    tracer.start_span("first").end()
    assert stuck.began.wait(PATIENCE)
    tracer.start_span("second").end()
    tracer_provider.shutdown()
    assert not stuck.sent
    stuck.answers.set()
    assert (other.sent, other.ended) == (["first", "second"], True)


def test_the_log_of_the_libraries_is_limited_to_one_line_an_interval(monkeypatch, caplog):
    clock = Clock()
    monkeypatch.setattr(provider, "time", clock)
    log = logging.Logger("opentelemetry.sdk.any")
    log.addHandler(provider._RateLimit())
    for _ in range(3):
        log.warning("Failed: %s", "a reason")
    log.info("no warning")
    assert caplog.messages == ["Failed: a reason"]
    clock.sleep(provider.QUIET)
    log.warning("Queue full")
    log.warning("Queue full")
    assert caplog.messages[1:] == ["Queue full (lines suppressed before this one: 2)"]
    clock.sleep(provider.QUIET)
    try:
        raise OSError("refused")
    except OSError:
        log.exception("Failed:")
    assert caplog.messages[2:] == ["Failed: refused (lines suppressed before this one: 1)"]
    assert "Traceback" not in caplog.text
