"""Traces with OpenTelemetry (docs/observability.rst, ADR 53).

    provider     the exporters and the tracer of this process
    requests     the layer that creates a span for each request, which continues the client's trace
    inner_spans  spans and events within a request, created from instrumentation events
    log_records  the ids of trace and span in log lines

OpenTelemetry is not imported unless the environment enables traces.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from wsgiref.types import WSGIApplication

from placement import package
from placement.http.service import Service

LOG = logging.getLogger(__name__)

EXPORTERS = "OTEL_TRACES_EXPORTER"
ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
DISABLED = "OTEL_SDK_DISABLED"


def enabling_variable(environment: Mapping[str, str] = os.environ) -> str | None:
    """Return the name of the environment variable that enables traces; None if they are disabled."""
    if environment.get(DISABLED, "").strip().lower() == "true":
        return None
    # The specification treats an empty variable as unset.
    if exporters := environment.get(EXPORTERS, "").strip().lower():
        return None if exporters == "none" else EXPORTERS
    return next((name for name in ENDPOINTS if environment.get(name, "").strip()), None)


def with_spans(application: WSGIApplication, service: Service) -> WSGIApplication:
    """Return the application with a span for each request if the environment enables traces.

    If a package is missing or a variable is invalid, log a warning and return the application without traces: these
    variables are often set for all services of a host.
    """
    variable = enabling_variable()
    if variable is None:
        return application
    reason = ""
    try:
        from placement.tracing import inner_spans, log_records, provider, requests

        provider.choose_exporters()
    except ModuleNotFoundError as error:
        reason = f"{error}. To install it: {package.install_command('opentelemetry')}"
    except Exception as error:  # libraries may raise anything for an invalid variable
        reason = str(error)
    if reason:  # outside the except clause, where oslo.log would append the exception
        LOG.warning("$%s is set, but nothing is traced: %s", variable, reason)
        return application
    inner_spans.connect(service.database)
    log_records.start(in_message=not ("use_json" in service.conf and service.conf.use_json))
    return requests.Requests(application)
