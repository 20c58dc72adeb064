"""The ids of trace and span in the log lines of a request."""

from __future__ import annotations

import functools
import logging
from typing import Any

from opentelemetry import trace

from placement.log import OneLineRecord


def start(*, in_message: bool) -> None:
    """Add the ids to all further log records.

    Args:
        in_message: Whether to append them to the message as well; JSON output contains them in ``extra``.
    """
    logging.setLogRecordFactory(functools.partial(TracedRecord, in_message=in_message))


class TracedRecord(OneLineRecord):
    """A log record with the ids of the current span; outside requests it has none."""

    def __init__(self, *args: Any, in_message: bool, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._ids: dict[str, str] = {}
        span = trace.get_current_span().get_span_context()
        if span.is_valid:
            trace_id, span_id = trace.format_trace_id(span.trace_id), trace.format_span_id(span.span_id)
            self._ids = {"trace_id": trace_id, "span_id": span_id}
            vars(self).update(self._ids)
            if in_message:
                self.msg = f"{self.msg} trace_id: {trace_id} span_id: {span_id}"

    @property
    def extra_keys(self) -> list[str]:
        """The names of the attributes that oslo.log shows.

        A property, because loggers of oslo.log also store a value in ``__dict__``, which the standard library refuses
        to overwrite.
        """
        return [*vars(self).get("extra_keys", ()), *self._ids]

    @extra_keys.setter
    def extra_keys(self, names: list[str]) -> None:
        vars(self)["extra_keys"] = names
