"""Metrics of the service, whose labels have a bounded set of values."""

from __future__ import annotations

import importlib.metadata
import platform
import re
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry

from placement import errors, routes, signals
from placement.extension import Extension, installed_extensions
from placement.http.endpoint import endpoint
from placement.http.response import no_content
from placement.metrics import definitions
from tests import web
from tests.docs.blocks import text_of
from tests.unit.metrics.registries import counting_registry, modes, samples

ADMIN = {"x-auth-token": "admin"}
CONSUMER = "/allocations/{consumer_uuid}"
DOCUMENT = (Path(__file__).parents[3] / "docs" / "observability.rst").read_text()


@endpoint()
def succeed(_req, **_values):
    return no_content()


@endpoint()
def refuse(_req, consumer_uuid):
    if consumer_uuid == "bad":
        raise errors.MalformedJSON(reason="none")
    raise errors.CapacityExceeded(resource_class="VCPU", uuid="some")


@endpoint()
def fail_internally(_req, **_values):
    raise RuntimeError("secret")


TABLE = {
    "/": {"GET": succeed},
    "/traits/{name}": {"GET": succeed},
    CONSUMER: {"PUT": refuse, "DELETE": succeed},
    "/allocations": {"POST": succeed},
    "/reshaper": {"POST": fail_internally},
}


@pytest.fixture(scope="module")
def app():
    return web.service(TABLE)


@pytest.fixture
def registry():
    """Return a registry whose metrics count during the test."""
    with counting_registry() as registry:
        yield registry


def test_requests_are_counted_by_route_method_and_status(app, registry):
    for path in ("/traits/A", "/traits/B", "/nowhere", "/nowhere/else"):
        web.ask(app, "GET", path, ADMIN)
    web.ask(app, "GET", "/traits/A")
    web.ask(app, "POST", "/traits/A", ADMIN)
    web.ask(app, "GET", "/", {"openstack-api-version": "placement 9.9"})
    assert samples(registry, "request_seconds_count") == {
        ("/traits/{name}", "GET", "204"): 2,
        ("/traits/{name}", "POST", "405"): 1,
        ("none", "GET", "404"): 2,
        ("none", "GET", "401"): 1,
        ("none", "GET", "406"): 1,
    }
    seconds = samples(registry, "request_seconds_sum")
    assert seconds.keys() == samples(registry, "request_seconds_count").keys()
    assert all(0 < duration < 60 for duration in seconds.values())


def test_claims_are_counted_by_outcome(app, registry):
    for method, path in [
        ("PUT", "/allocations/a"),
        ("PUT", "/allocations/b"),
        ("PUT", "/allocations/bad"),
        ("DELETE", "/allocations/a"),
        ("POST", "/allocations"),
        ("POST", "/reshaper"),
        ("GET", "/nowhere"),
    ]:
        web.ask(app, method, path, ADMIN)
    web.ask(app, "GET", "/traits/A", ADMIN)
    assert samples(registry, "claims_total") == {
        ("capacity_exceeded",): 2, ("malformed_json",): 1, ("released",): 1, ("placed",): 1, ("internal_error",): 1,
    }  # fmt: skip
    assert samples(registry, "conflicts_total") == {("capacity_exceeded",): 2}


def test_the_routes_counted_as_claims_exist():
    assert all(method in routes.TABLE[path] for method, path in definitions.CLAIMS)


@given(method=st.from_regex("[A-Z]{1,12}", fullmatch=True), path=st.text(st.characters(codec="latin-1")))
def test_a_client_cannot_create_label_values(app, method, path):
    with counting_registry() as registry:
        web.ask(app, method, "/", ADMIN, environ={"PATH_INFO": f"/{path}"})
    [(route, counted_method, _)] = samples(registry, "request_seconds_count")
    assert route in {*TABLE, "none"}
    assert counted_method in {"GET", "PUT", "POST", "DELETE", "HEAD", "OPTIONS", "PATCH", "other"}


def test_events_of_lower_layers_are_counted(registry):
    signals.driver_error("deadlock")
    signals.retried("changed")
    signals.retried("deadlock")
    signals.written_jointly(1)
    signals.written_jointly(6)
    signals.reloaded("differs")
    signals.refreshed(0.25, 3, 700)
    signals.refreshed(0.25, 0, 701)
    signals.searched(0.5, 10, True, "")
    signals.searched(0.5, 10, True, "")
    signals.searched(0.5, 2, False, "")
    signals.searched(0.5, 0, False, "resources")
    signals.claims_answered("released", 5)
    signals.claims_answered("NoRoom", 2)
    signals.leases_expired(3)
    signals.leases_expired(2)
    signals.leases_due(4)
    signals.leases_due(1)
    assert samples(registry, "database_errors_total") == {("deadlock",): 1}
    assert samples(registry, "retries_total") == {("changed",): 1, ("deadlock",): 1}
    assert samples(registry, "claims_per_transaction_count") == {(): 2}
    assert samples(registry, "claims_per_transaction_sum") == {(): 7}
    assert samples(registry, "index_reloads_total") == {("differs",): 1}
    assert samples(registry, "index_refresh_seconds_sum") == {(): 0.5}
    assert samples(registry, "index_missed_transactions_sum") == {(): 3}
    assert samples(registry, "index_missed_transactions_count") == {(): 1}
    assert samples(registry, "index_providers") == {(): 701}
    assert samples(registry, "candidate_searches_total") == {
        ("limited", ""): 2, ("all", ""): 1, ("none", "resources"): 1,
    }  # fmt: skip
    assert samples(registry, "candidate_search_seconds_sum") == {(): 2.0}
    assert samples(registry, "candidates_found_sum") == {(): 22}
    assert samples(registry, "claims_total") == {("released",): 5, ("no_room",): 2}
    assert samples(registry, "leases_expired_total") == {(): 5}
    assert samples(registry, "leases_due") == {(): 1}


def test_amounts_are_shown_by_class(registry):
    nothing = (0.0, 0.0, 0.0)
    signals.amounts_changed({"VCPU": (64.0, 3.0, 2.0), "PGPU": (2.0, 0.0, 0.0), "FPGA": nothing})
    assert samples(registry, "capacity") == {("VCPU",): 64, ("PGPU",): 2}
    assert samples(registry, "used") == {("VCPU",): 3}
    assert samples(registry, "reserved") == {("VCPU",): 2}
    signals.amounts_changed({"VCPU": (64.0, 4.0, 2.0), "PGPU": nothing, "FPGA": nothing})
    signals.amounts_changed({"VCPU": (64.0, 5.0, 2.0)})
    assert samples(registry, "capacity") == {("VCPU",): 64}
    assert samples(registry, "used") == {("VCPU",): 5}
    assert registry.get_sample_value("placement_capacity", {"resource_class": "PGPU"}) == 0


def test_a_class_that_an_earlier_process_may_have_shown_is_set_to_zero(registry):
    signals.amounts_changed({"PGPU": (0.0, 0.0, 0.0)})
    assert registry.get_sample_value("placement_used", {"resource_class": "PGPU"}) == 0


def test_amounts_outlive_their_process_and_the_size_of_its_index_does_not(registry):
    """These modes determine how the files of several processes are merged (test_directory.py)."""
    amounts = dict.fromkeys(("capacity", "used", "reserved"), "mostrecent")
    gauges_of_live_processes = dict.fromkeys(("index_providers", "leases_due"), "livemostrecent")
    assert modes(registry) == {**amounts, **gauges_of_live_processes, "build_info": "livemax"}


def test_two_metrics_with_the_same_name_prevent_the_start():
    twice = Extension(name="twice", metrics=lambda create: [(signals.retried, create.counter("claims", "").inc)])
    with pytest.raises(errors.StartError, match="Two metrics have the name placement_claims"), counting_registry(twice):
        pass


def test_counters_of_rare_events_start_at_zero(registry):
    assert registry.get_sample_value("placement_index_reloads_total", {"cause": "feed_lost"}) == 0
    assert registry.get_sample_value("placement_database_errors_total", {"error": "lost"}) == 0


def test_a_process_without_metrics_still_serves(app, caplog):
    def join():
        raise OSError("No space left on device")

    registry = CollectorRegistry()
    definitions.Metrics(join, registry=registry).connect()
    assert web.ask(app, "GET", "/traits/A", ADMIN).status_int == 204
    assert web.ask(app, "GET", "/traits/A", ADMIN).status_int == 204
    assert [record.message for record in caplog.records if record.name == definitions.__name__] == [
        "This process stops recording metrics: No space left on device"
    ]
    assert not signals.answered.connected
    assert samples(registry, "request_seconds_count") == {}


# --- the document ---


def test_every_metric_is_documented_with_its_labels():
    registry = CollectorRegistry()
    definitions.Metrics(lambda: None, installed_extensions().values(), registry)
    for metric in registry._collector_to_names:
        total = "_total" if metric._type == "counter" else ""
        [row] = re.findall(rf"^``{metric._name}{total}``  .*?(?=^``|^==)", DOCUMENT, re.MULTILINE | re.DOTALL)
        assert metric._type in row
        assert all(f"``{label}``" in row for label in metric._labelnames), metric._name


@pytest.mark.parametrize("value", [*signals.ErrorLabel.__args__, *signals.ReloadCause.__args__, "changed"])
def test_every_label_value_is_documented(value):
    assert f"``{value}``" in DOCUMENT


def test_the_documented_alerts_are_valid_rules():
    [group] = yaml.safe_load(text_of("docs/observability.rst", "alerts.yml"))["groups"]
    assert len(group["rules"]) >= 5
    for rule in group["rules"]:
        assert rule.keys() <= {"alert", "expr", "for"}
        assert re.fullmatch("Placement[A-Za-z]+", rule["alert"])
        assert rule["expr"].count("(") == rule["expr"].count(")")
        assert "placement_" in rule["expr"]


def test_build_info_has_the_versions_of_the_service_and_python(registry):
    version = importlib.metadata.version("placement-service")
    assert samples(registry, "build_info") == {(version, platform.python_version()): 1}
