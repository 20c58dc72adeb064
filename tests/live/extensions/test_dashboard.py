"""Every query of the dashboard matches the metrics of a running service."""

from __future__ import annotations

import json
import secrets
import time
from collections import defaultdict
from pathlib import Path

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from tests import children, running
from tests.docs.blocks import text_of
from tests.live.test_metrics import MetricsPage
from tests.load.storm import Call, Storm, claim, new
from tests.promql import Malformed, reads

DASHBOARD = json.loads((Path(__file__).parents[3] / "etc/grafana/placement.json").read_text())
PANELS = [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]
QUERIES = [(panel["title"], target["expr"]) for panel in PANELS for target in panel["targets"]]
RULES = text_of("docs/observability.rst", "alerts.yml")
ALERTS = [(rule["alert"], rule["expr"]) for group in yaml.safe_load(RULES)["groups"] for rule in group["rules"]]
#: Prometheus adds these labels.
ADDED = {"instance", "job"}


def render(expression: str) -> str:
    """Return the query that Grafana sends if all machines are selected."""
    return expression.replace("$__rate_interval", "5m").replace("$instance", ".*")


def lease_and_wait_for_its_expiry(storm):
    """Claim for a second.  The next search releases the expired lease."""
    owner = {"consumer_type": "INSTANCE", "project_id": "p", "user_id": "u"}
    request = {"consumer": new(), **owner, "query": "resources=VCPU:1"}
    assert storm.ask("POST", "/v1/claims", {"requests": [request], "expires_in": 1}).status == 200
    while storm.ask("GET", f"/v1/claims/{request['consumer']}").status == 200:
        time.sleep(0.05)


@pytest.fixture(scope="module")
def labels():
    """The values of each label of each metric, on the page of a service after operations of every kind."""
    directory = children.run_directory() / f"metrics-{secrets.token_hex(4)}"
    database = children.run_directory() / f"dashboard-{secrets.token_hex(4)}.sqlite"
    page = MetricsPage(directory)
    options = {"metrics": {"directory": directory}, "baremetal": {"enabled": True}}
    with running.embedded(f"sqlite:///{database}", options, module="tests.eager_maintenance") as service:
        storm = Storm(service.url)
        provider = storm.provider(VCPU=2)
        for amount in (1, 2):
            storm.together(claim({provider: {"VCPU": amount}}))
            storm.together(Call("GET", f"/allocation_candidates?resources=VCPU:{amount}"))
        lease_and_wait_for_its_expiry(storm)
        storm.together(Call("GET", "/v1/capacity?resources=VCPU:1"), Call("DELETE", f"/allocations/{new()}"))
        storm.together(Call("GET", "/v1/events?after=7000000-0badcafe"), Call("GET", "/v1/doctor"))
        text = page.text()
    page.child.stop()
    values_of = defaultdict(lambda: defaultdict(set))
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            values = values_of[sample.name]
            for label, value in sample.labels.items():
                values[label].add(value)
    return dict(values_of)


@pytest.mark.parametrize(("title", "expression"), QUERIES)
def test_a_query_reads_metrics_and_labels_that_exist(labels, title, expression):
    metrics = reads(render(expression))
    assert metrics, title
    for metric, needed, values in metrics:
        assert metric in labels, title
        assert needed - ADDED <= labels[metric].keys(), title
        assert all(value in labels[metric][label] for label, value in values), title


@pytest.mark.parametrize(("alert", "expression"), ALERTS)
def test_an_alert_of_the_documentation_reads_metrics_and_labels_that_exist(labels, alert, expression):
    """A label value that it compares with may not have occurred."""
    metrics = reads(expression)
    assert metrics, alert
    for metric, needed, _ in metrics:
        assert metric in labels, alert
        assert needed <= labels[metric].keys(), alert


def test_the_dashboard_has_queries_and_the_page_has_alerts():
    assert min(len(QUERIES), len(ALERTS)) > 10


def test_legends_name_labels_that_the_query_keeps():
    for panel in PANELS:
        for target in panel["targets"]:
            legend_labels = {part.partition("}}")[0] for part in target["legendFormat"].split("{{")[1:]}
            assert reads(render(target["expr"]), legend_labels), panel["title"]


def test_a_legend_that_names_a_dropped_label_is_found():
    with pytest.raises(Malformed, match="sum drops instance"):
        reads('sum by (outcome) (rate(b{instance=~".*"}[5m]))', {"instance"})


def test_panels_do_not_overlap_and_have_their_own_ids():
    cells = [
        (x, y)
        for panel in DASHBOARD["panels"]
        for place in (panel["gridPos"],)
        for x in range(place["x"], place["x"] + place["w"])
        for y in range(place["y"], place["y"] + place["h"])
    ]
    assert len(cells) == len(set(cells))
    assert all(0 <= x < 24 for x, _ in cells)
    assert len({panel["id"] for panel in DASHBOARD["panels"]}) == len(DASHBOARD["panels"])


@pytest.mark.parametrize(
    "expression",
    [
        "sum(",
        "sum by (a (b)",
        "rate(b)",
        "b[5m]",
        "sum(rate(b{c=1}[5m]))",
        "b c",
        'b{c="d" e="f"}',
        "frobnicate(b)",
        "rate(b[m])",
        "histogram_quantile(0.5, sum by (route) (rate(b_bucket[5m])))",
        "sum by (a) (sum(rate(b[5m])))",
        "max by (a) (b) / sum by (c",
    ],
)
def test_an_invalid_query_is_detected(expression):
    with pytest.raises(Malformed):
        reads(expression)
