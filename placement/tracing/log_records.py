"""The ids of trace and span in the log lines of a request."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from opentelemetry import trace

RecordFactory = Callable[..., logging.LogRecord]


def start(*, in_message: bool) -> None:
    """Let records have the ids from now on.

    Args:
        in_message: Whether they end the message too; JSON has them among ``extra``.
    """
    factory = logging.getLogRecordFactory()
    if isinstance(factory, Traced):
        factory = factory.factory
    logging.setLogRecordFactory(Traced(factory, in_message))


class Traced:
    """Makes records of another factory, with the ids of the current span."""

    def __init__(self, factory: RecordFactory, in_message: bool) -> None:
        self.factory, self._in_message = factory, in_message

    def __call__(self, *args: Any, **kwargs: Any) -> logging.LogRecord:
        """Return a record; outside of a request it is as it was without traces."""
        record = self.factory(*args, **kwargs)
        span = trace.get_current_span().get_span_context()
        if span.is_valid:
            ids = {"trace_id": trace.format_trace_id(span.trace_id), "span_id": trace.format_span_id(span.span_id)}
            vars(record).update(ids, extra_keys=[*ids])  # oslo.log's name for attributes that are shown
            if self._in_message:
                record.msg = f"{record.msg} trace_id: {ids['trace_id']} span_id: {ids['span_id']}"
        return record
