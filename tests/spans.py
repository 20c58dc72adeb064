"""Spans of services in this process, in memory."""

from __future__ import annotations

import contextlib
import functools
import logging
from collections.abc import Iterator
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from placement.tracing import inner_spans


class Spans:
    """The spans that have ended since the last call of ``clear``."""

    def __init__(self, exporter: InMemorySpanExporter) -> None:
        self._exporter = exporter
        self.clear = exporter.clear

    def all(self) -> list[Any]:
        """Return all spans, in the order of their ends."""
        return list(self._exporter.get_finished_spans())

    def named(self, name: str) -> Any:
        """Return the only span with a name."""
        [span] = [span for span in self.all() if span.name == name]
        return span

    def children(self, parent: Any) -> list[str]:
        """Return the names of the spans directly below a span, in the order of their starts."""
        inner = [span for span in self.all() if span.parent and span.parent.span_id == parent.context.span_id]
        return [span.name for span in sorted(inner, key=lambda span: span.start_time)]


@functools.cache
def _exporter() -> InMemorySpanExporter:
    """Return the exporter of this process, which can set its tracer provider only once."""
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    trace.set_tracer_provider(provider)
    return exporter


@contextlib.contextmanager
def recording(monkeypatch: pytest.MonkeyPatch) -> Iterator[Spans]:
    """Provide the spans of services started in the block."""
    spans, factory = Spans(_exporter()), logging.getLogRecordFactory()
    spans.clear()
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "otlp")
    try:
        yield spans
    finally:
        inner_spans.disconnect()
        logging.setLogRecordFactory(factory)
