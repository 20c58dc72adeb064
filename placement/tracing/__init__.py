"""Traces with OpenTelemetry (docs/observability.rst, ADR 53).

    provider     the exporters that the environment names, and the provider of this process
    requests     the layer: a span for each request, which continues the trace of the client
    inner_spans  the spans and events within a request, from the instrumentation events of the layers below
    log_records  the ids of trace and span in log lines

Nothing here imports OpenTelemetry unless the environment asks for traces.
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


def asked_by(environment: Mapping[str, str] = os.environ) -> str | None:
    """Return the name of the variable that asks for traces; None if none does."""
    if environment.get(DISABLED, "").strip().lower() == "true":
        return None
    # By the specification, a variable that is empty counts as unset.
    if exporters := environment.get(EXPORTERS, "").strip().lower():
        return None if exporters == "none" else EXPORTERS
    return next((name for name in ENDPOINTS if environment.get(name, "").strip()), None)


def with_spans(application: WSGIApplication, service: Service) -> WSGIApplication:
    """Return the application, with a span for each request if the environment asks for traces.

    If that is not possible, because something is not installed or a variable is wrong, that is logged, and nothing is
    traced: variables such as these are often set for all services of a host.
    """
    variable = asked_by()
    if variable is None:
        return application
    reason = ""
    try:
        from placement.tracing import inner_spans, log_records, provider, requests

        provider.choose_exporters()
    except ModuleNotFoundError as error:
        reason = f"{error}. To install what is missing: {package.install('opentelemetry')}"
    except Exception as error:  # another library may raise anything for what a variable says
        reason = str(error)
    if reason:  # logged here because oslo.log appends the exception that is being handled
        LOG.warning("$%s is set, and nothing is traced: %s", variable, reason)
        return application
    inner_spans.connect(service.database)
    log_records.start(in_message=not ("use_json" in service.conf and service.conf.use_json))
    return requests.Requests(application)
