"""What is sent, as whom, and what is logged if it cannot be."""

from __future__ import annotations

import logging
import threading

import pytest
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
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
def test_the_service_has_a_name_and_a_version_unless_the_environment_says_others(monkeypatch, variables, name):
    for variable, value in variables.items():
        monkeypatch.setenv(variable, value)
    told = provider._resource().attributes
    assert told["service.name"] == name
    assert told["service.version"] == ("9" if "version" in str(variables) else package.version())
    assert ("deployment.environment.name" in told) == ("deployment" in str(variables))


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
def test_the_exporters_are_those_that_the_environment_names(monkeypatch, variables, exporters):
    for variable, value in variables.items():
        monkeypatch.setenv(variable, value)
    assert provider._named() == exporters


@pytest.fixture
def libraries_log():
    """Leaves the log of the libraries as it was."""
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
def test_an_attribute_is_as_long_as_the_environment_says_or_4096(monkeypatch, libraries_log, variables, longest):
    for variable, value in variables.items():
        monkeypatch.setenv(variable, value)
    made = provider._provider()
    span = made.get_tracer("test").start_span("name", attributes={"db.query.text": "x" * 10000})
    assert len(span.attributes["db.query.text"]) == longest
    made.shutdown()


class Sender(SpanExporter):
    """An exporter that takes spans while ``result`` says so; it remembers how often it was asked, and shut down."""

    def __init__(self):
        self.result, self.asked, self.ended = SpanExportResult.SUCCESS, 0, 0
        self.began, self.goes_on = threading.Event(), threading.Event()
        self.goes_on.set()

    def export(self, spans):
        self.asked += 1
        self.began.set()
        self.goes_on.wait(PATIENCE)
        if isinstance(self.result, OSError):
            raise self.result
        return self.result

    def shutdown(self):
        self.ended += 1


@pytest.fixture
def sender():
    return Sender()


def test_spans_are_sent_at_the_end_if_the_last_ones_were_taken(sender):
    exporter = provider._Exporter(sender)
    assert exporter.export([]) is SpanExportResult.SUCCESS
    assert exporter.can_finish()
    assert exporter.export([]) is SpanExportResult.SUCCESS
    exporter.shutdown()
    assert (sender.asked, sender.ended) == (2, 1)


def test_no_more_are_sent_at_the_end_to_a_collector_that_was_away(sender):
    exporter = provider._Exporter(sender)
    sender.result = SpanExportResult.FAILURE
    exporter.export([])
    assert exporter.can_finish()
    assert exporter.export([]) is SpanExportResult.FAILURE
    exporter.shutdown()
    assert (sender.asked, sender.ended) == (1, 1)


def test_an_exporter_that_raises_has_failed(sender):
    exporter = provider._Exporter(sender)
    sender.result = OSError("refused")
    with pytest.raises(OSError, match="refused"):
        exporter.export([])
    assert exporter.can_finish()
    assert exporter.export([]) is SpanExportResult.FAILURE
    assert sender.asked == 1


def test_what_fails_at_the_end_is_the_last_that_is_sent(sender):
    exporter = provider._Exporter(sender)
    assert exporter.can_finish()
    sender.result = SpanExportResult.FAILURE
    assert [exporter.export([]) for _ in range(3)] == [SpanExportResult.FAILURE] * 3
    assert (sender.asked, sender.ended) == (1, 1)


def test_a_collector_that_does_not_answer_is_not_waited_for_at_the_end(sender, monkeypatch):
    monkeypatch.setattr(provider, "GRACE", 0.01)
    exporter = provider._Exporter(sender)
    sender.goes_on.clear()
    thread = threading.Thread(target=exporter.export, args=([],))
    thread.start()
    sender.began.wait(PATIENCE)
    assert not exporter.can_finish()
    assert sender.ended == 1
    sender.goes_on.set()
    thread.join()


def test_each_exporter_sends_at_the_end_whether_or_not_another_one_can(monkeypatch):
    monkeypatch.setattr(provider, "GRACE", 0.01)
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", str(24 * 3600 * 1000))
    senders = first, stuck, last = Sender(), Sender(), Sender()
    exporters = [provider._Exporter(each) for each in senders]
    made = TracerProvider()
    for exporter in exporters:
        made.add_span_processor(provider._Processor(exporter))
    made.get_tracer("test").start_span("left").end()
    stuck.goes_on.clear()
    thread = threading.Thread(target=exporters[1].export, args=([],), daemon=True)
    thread.start()
    stuck.began.wait(PATIENCE)
    made.shutdown()
    assert (first.asked, stuck.asked, last.asked) == (1, 1, 1)
    assert [each.ended for each in senders] == [1, 1, 1]
    stuck.goes_on.set()
    thread.join()


def test_the_log_of_the_libraries_has_one_line_in_a_while(monkeypatch, caplog):
    clock = Clock()
    monkeypatch.setattr(provider, "time", clock)
    log = logging.Logger("opentelemetry.sdk.any")
    log.addHandler(provider._Limited())
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
