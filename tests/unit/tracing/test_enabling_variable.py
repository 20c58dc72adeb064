"""Traces are sent if, and only if, a standard variable enables them."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from placement import package
from placement.tracing import enabling_variable
from tests.running import ROOT

COLLECTOR = "http://127.0.0.1:4318"


@pytest.mark.parametrize(
    ("environment", "variable"),
    [
        ({}, None),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": COLLECTOR}, "OTEL_EXPORTER_OTLP_ENDPOINT"),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": COLLECTOR}, "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"),
        ({"OTEL_TRACES_EXPORTER": "console"}, "OTEL_TRACES_EXPORTER"),
        ({"OTEL_TRACES_EXPORTER": "None", "OTEL_EXPORTER_OTLP_ENDPOINT": COLLECTOR}, None),
        ({"OTEL_TRACES_EXPORTER": "", "OTEL_EXPORTER_OTLP_ENDPOINT": ""}, None),
        ({"OTEL_SDK_DISABLED": "True", "OTEL_TRACES_EXPORTER": "otlp"}, None),
        ({"OTEL_SDK_DISABLED": "false", "OTEL_TRACES_EXPORTER": "otlp"}, "OTEL_TRACES_EXPORTER"),
        ({"OTEL_SERVICE_NAME": "placement", "OTEL_METRICS_EXPORTER": "otlp"}, None),
    ],
)
def test_standard_variables_enable_traces(environment, variable):
    assert enabling_variable(environment) == variable


START = """
import logging, sys
logging.basicConfig(level=logging.WARNING, stream=sys.stdout, format="%(name)s %(message)s")
{before}
from placement import deploy
from tests import made, web
database = made.Database("sqlite://")
made.sync(database.engine)
application = deploy.loadapp(web.configuration(), database)
for _ in range(2):
    assert web.ask(application, "GET", "/resource_providers", {{"x-auth-token": "admin"}}).status_int == 200
print("imported:", *[name for name in sys.modules if name.startswith("placement.tracing.")])
"""


def start_service(before="", **variables):
    """Start a service in its own process, send two requests, and return its output."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("OTEL_")}
    program = [sys.executable, "-c", START.format(before=before)]
    result = subprocess.run(program, env=environment | variables, cwd=ROOT, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    return result.stdout.splitlines()


def test_opentelemetry_is_imported_only_if_enabled():
    """A library may import OpenTelemetry anyway: oslo.middleware does if it is installed."""
    assert start_service() == ["imported:"]
    assert start_service(OTEL_TRACES_EXPORTER="none") == ["imported:"]
    assert start_service("sys.modules['opentelemetry'] = None") == ["imported:"]
    assert "placement.tracing.provider" in start_service(OTEL_TRACES_EXPORTER="otlp")[0]


def test_a_missing_extra_is_reported_in_one_line_and_requests_are_served():
    output, imported = start_service("sys.modules['opentelemetry'] = None", OTEL_TRACES_EXPORTER="otlp")
    advice = package.install_command("opentelemetry")
    assert output.startswith("placement.tracing $OTEL_TRACES_EXPORTER is set, but nothing is traced: ")
    assert output.endswith(f"To install it: {advice}")
    assert imported == "imported:"


@pytest.mark.parametrize(
    ("variables", "sentence"),
    [
        (
            {"OTEL_TRACES_EXPORTER": "otlp", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"},
            "$OTEL_EXPORTER_OTLP_PROTOCOL: grpc needs an exporter that is not installed; "
            "opentelemetry-exporter-otlp-proto-grpc may contain it.",
        ),
        (
            {"OTEL_TRACES_EXPORTER": "console, zipkin"},
            "$OTEL_TRACES_EXPORTER: zipkin needs an exporter that is not installed; "
            "opentelemetry-exporter-zipkin may contain it.",
        ),
    ],
)
def test_a_missing_library_is_reported_at_start_and_requests_are_served(variables, sentence):
    [output, _] = start_service(**variables)
    assert output == f"placement.tracing $OTEL_TRACES_EXPORTER is set, but nothing is traced: {sentence}"


def test_a_broken_exporter_is_reported_at_start_and_requests_are_served(tmp_path):
    (tmp_path / "broken.py").write_text("raise TypeError('Descriptors cannot be created directly.')\n")
    metadata = tmp_path / "broken-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: broken\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text("[opentelemetry_traces_exporter]\nbroken = broken:Exporter\n")
    [output, _] = start_service(OTEL_TRACES_EXPORTER="broken", PYTHONPATH=str(tmp_path))
    reason = "Descriptors cannot be created directly."
    assert output == f"placement.tracing $OTEL_TRACES_EXPORTER is set, but nothing is traced: {reason}"


def test_a_provider_that_cannot_be_created_is_reported_once_and_requests_are_served():
    variables = {"OTEL_TRACES_EXPORTER": "otlp", "OTEL_BSP_MAX_QUEUE_SIZE": "1"}  # fewer than in a batch
    [output, _] = start_service(**variables)
    assert output.startswith("placement.tracing.provider Nothing is traced: max_export_batch_size must be ")
