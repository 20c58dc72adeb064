"""Spans and events within a request, created from instrumentation events (``placement/signals.py``).

The parts of a request have the same names as in the log line of a slow request, and statements are child spans of their
part.  Nothing is recorded without a recording span: outside requests, or if the sampler dropped the request.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Mapping
from contextvars import Token
from typing import Any

from opentelemetry import context, trace
from opentelemetry.context import Context
from opentelemetry.trace import SpanKind, StatusCode

from placement import signals
from placement.db.database import Database
from placement.tracing import provider

#: The part "sql" is the COMMIT; statements are published as separate events.
_COMMIT = "sql"


class _OpenParts(threading.local):
    """The open parts of this thread's request, innermost last; None for a part without a span."""

    def __init__(self) -> None:
        self.parts: list[tuple[trace.Span, Token[Context]] | None] = []


_OPEN = _OpenParts()
#: Attributes of the database for the spans of statements.
_database: dict[str, str | int] = {}


def connect(database: Database) -> None:
    """Subscribe to the events, including the statements of this database."""
    url = database.url
    attributes = {
        "db.system.name": url.get_backend_name(),
        "db.namespace": url.database,
        "server.address": url.host,
        "server.port": url.port,
    }
    _database.clear()
    _database.update({name: value for name, value in attributes.items() if value})
    for signal, listener in _SUBSCRIPTIONS:
        signal.connect(listener)
    # An instrumentation of SQLAlchemy, as loaded by opentelemetry-instrument, creates its own spans for statements.
    if not _is_instrumented():
        database.publish_statements()
        signals.executed.connect(_add_statement)


def disconnect() -> None:
    """Unsubscribe."""
    for signal, listener in _SUBSCRIPTIONS:
        signal.disconnect(listener)
    signals.executed.disconnect(_add_statement)


def _is_instrumented() -> bool:
    module = sys.modules.get("opentelemetry.instrumentation.sqlalchemy")
    return module is not None and bool(module.SQLAlchemyInstrumentor().is_instrumented_by_opentelemetry)


# --- parts and statements --------------------------------------------------------------------------------------------


def _begin(name: str) -> None:
    if not trace.get_current_span().is_recording():
        _OPEN.parts.append(None)
        return
    if name == _COMMIT:
        attributes = {**_database, "db.operation.name": "COMMIT"}
        span = provider.tracer().start_span("COMMIT", kind=SpanKind.CLIENT, attributes=attributes)
    else:
        span = provider.tracer().start_span(name)
    _OPEN.parts.append((span, context.attach(trace.set_span_in_context(span))))


def _end(_name: str) -> None:
    # A part may have begun before the subscription.
    part = _OPEN.parts.pop() if _OPEN.parts else None
    if part is not None:
        span, token = part
        context.detach(token)
        span.end()


def _add_statement(text: str, seconds: float, error: str) -> None:
    if not trace.get_current_span().is_recording():
        return
    ended = time.time_ns()
    verb = text.lstrip("(").split(None, 1)[0]
    span = provider.tracer().start_span(
        verb,
        kind=SpanKind.CLIENT,
        attributes={**_database, "db.operation.name": verb, "db.query.text": text},
        start_time=ended - int(seconds * 1e9),
    )
    if error:
        span.set_attribute("error.type", error)
        span.set_status(StatusCode.ERROR)
    span.end(ended)


# --- events and attributes of the part, or of the request ------------------------------------------------------------


def _add(event: str, **attributes: str | int) -> None:
    trace.get_current_span().add_event(event, attributes)


def _set(name: str, attributes: Mapping[str, Any]) -> None:
    trace.get_current_span().set_attributes({f"placement.{name}.{key}": value for key, value in attributes.items()})


def _add_attempt(number: int) -> None:
    _add("attempt", number=number)


def _add_retry(cause: signals.RetryCause) -> None:
    _add("retry", cause=cause)


def _add_driver_error(label: signals.ErrorLabel) -> None:
    _add("database error", error=label)


def _add_reload(cause: signals.ReloadCause) -> None:
    _add("reload", cause=cause)


def _set_refresh(_seconds: float, missed: int, providers: int) -> None:
    _set("index", {"missed_transactions": missed, "providers": providers})


def _set_search(_seconds: float, candidates: int, limited: bool, obstacle: str) -> None:
    _set("search", {"candidates": candidates, "limited": limited, **({"obstacle": obstacle} if obstacle else {})})


def _set_joint_writes(number: int) -> None:
    _set("joint", {"writes": number})


_SUBSCRIPTIONS: tuple[tuple[signals.Signal[Any], Any], ...] = (
    (signals.part_begun, _begin),
    (signals.part_ended, _end),
    (signals.attempted, _add_attempt),
    (signals.retried, _add_retry),
    (signals.driver_error, _add_driver_error),
    (signals.reloaded, _add_reload),
    (signals.refreshed, _set_refresh),
    (signals.searched, _set_search),
    (signals.written_jointly, _set_joint_writes),
)
