"""The sums for Prometheus over all processes of a service, running and ended."""

from __future__ import annotations

import contextlib
import secrets
import shlex
import sqlite3
import sys
import urllib.error
import urllib.request
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests import children, preloaded, running
from tests.docs.run_by import blocks_of
from tests.load.storm import Call, Storm, claim, new, statuses

ROUTE = "/allocations/{consumer_uuid}"


class MetricsPage:
    """The page of placement-metrics for a directory."""

    def __init__(self, directory: Path) -> None:
        self.port = children.free_port()
        (block,) = blocks_of(__file__, "docs/observability.rst")
        program, *words = shlex.split(block.text.splitlines()[-1])
        assert program == "placement-metrics"
        words = [{"/run/placement/metrics": str(directory), "9178": str(self.port)}.get(word, word) for word in words]
        argv = [sys.executable, "-m", "placement.cmd.metrics", *words]
        log = directory.parent / f"{directory.name}.log"
        self.child = children.Child(argv, log, begin=preloaded.service().popen)
        self.child.wait_until(self._answers)

    def text(self, page="/metrics", accept="text/plain"):
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{page}", headers={"Accept": accept})
        with urllib.request.urlopen(request, timeout=children.PATIENCE) as reply:
            return reply.read().decode()

    def samples(self):
        return [sample for family in text_string_to_metric_families(self.text()) for sample in family.samples]

    def sum(self, name, **labels):
        """Return the sum over the samples with these labels."""
        return sum(
            sample.value
            for sample in self.samples()
            if sample.name == f"placement_{name}" and labels.items() <= sample.labels.items()
        )

    def _answers(self):
        with contextlib.suppress(urllib.error.URLError):
            self.text()
            return True
        return False


@pytest.fixture
def directory():
    return children.run_directory() / f"metrics-{secrets.token_hex(4)}"


@pytest.fixture
def metrics_page(directory):
    page = MetricsPage(directory)
    yield page
    page.child.stop()


def process_ids(directory):
    """Return the ids of the processes with their own files."""
    return {int(path.stem.rpartition("_")[2]) for path in directory.glob("counter_*.db") if "ended" not in path.name}


def files_with_claims(directory):
    """Return the files of the processes that have answered a claim."""
    return [path for path in directory.glob("histogram_*.db") if ROUTE.encode() in path.read_bytes()]


@pytest.mark.parametrize("backend", ["sqlite"], indirect=True)
@pytest.mark.parametrize(
    "flags",
    [
        pytest.param(("--enable-threads", "--threads", "2"), id="forked, threads"),
        pytest.param(("--lazy-apps", "--enable-threads"), id="lazy", marks=pytest.mark.long),
    ],
)
def test_counts_of_workers_are_added_up_and_kept_after_their_end(database_url, directory, metrics_page, flags):
    with running.uwsgi(
        database_url, processes=2, flags=flags, options={"metrics": {"directory": directory}}
    ) as service:
        storm = Storm(service.url)
        provider = storm.provider(VCPU=20)
        claims, answers = 0, []
        if "--lazy-apps" in flags:
            service.wait_until_loaded()

        def both_have_claimed():  # one worker may serve all requests for a while
            nonlocal claims
            claims += 12
            answers.extend(storm.together(*(claim([provider]) for _ in range(12))))
            return len(files_with_claims(directory)) == 2

        service.wait_until(both_have_claimed)
        assert statuses(answers).keys() <= {204, 409}
        granted = min(claims, 20)
        assert metrics_page.sum("claims_total", outcome="placed") == granted
        assert metrics_page.sum("claims_total", outcome="capacity_exceeded") == claims - granted
        assert metrics_page.sum("request_seconds_count", route=ROUTE, method="PUT") == claims
        assert metrics_page.sum("request_seconds_count", route=ROUTE, status="204") == granted
        assert metrics_page.sum("conflicts_total", cause="capacity_exceeded") == claims - granted

        searches = statuses(storm.together(*[Call("GET", "/allocation_candidates?resources=VCPU:1")] * 8))
        assert searches == {200: 8}
        # Several threads may share one refresh.
        assert metrics_page.sum("candidate_searches_total") == 8
        assert 1 <= metrics_page.sum("index_refresh_seconds_count") <= 8
        assert metrics_page.sum("index_providers") == 1
        amounts = {name: metrics_page.sum(name, resource_class="VCPU") for name in ("capacity", "used", "reserved")}
        assert amounts == {"capacity": 20, "used": granted, "reserved": 0}
        assert 1 <= metrics_page.sum("index_reloads_total", cause="start") <= 2

        killed = service.kill_worker()
        service.wait_until(lambda: len(service.workers) == 2 and killed not in service.workers)
        assert metrics_page.sum("claims_total") == claims
        assert killed not in process_ids(directory)
        if "--lazy-apps" in flags:
            service.wait_until_loaded()
        assert not [*directory.glob(f"*_{killed}.db"), *directory.glob(f"{killed}.*")]
        later_statuses = statuses(storm.together(*(Call("DELETE", f"/allocations/{new()}") for _ in range(5))))
        assert later_statuses == {404: 5}
        assert metrics_page.sum("claims_total") == claims + 5

        with pytest.raises(urllib.error.HTTPError, match="404"):
            urllib.request.urlopen(urllib.request.Request(f"{service.url}/metrics", headers={"X-Auth-Token": "admin"}))

    # No process runs: no count is lost, the last amounts remain, and gauges of running processes are not exported.
    assert metrics_page.sum("used", resource_class="VCPU") == granted
    assert metrics_page.sum("claims_total") == claims + 5
    assert metrics_page.sum("request_seconds_bucket", route=ROUTE, method="PUT", le="+Inf") == claims
    assert "placement_index_providers " not in metrics_page.text()
    assert not process_ids(directory)
    files_of_ended = [f"{kind}_ended.db" for kind in ("counter", "gauge_mostrecent", "histogram")]
    assert sorted(path.name for path in directory.iterdir()) == [*files_of_ended, "lock"]


@pytest.mark.parametrize("backend", ["sqlite"], indirect=True)
def test_the_history_and_its_readers_are_counted(database_url, directory, metrics_page):
    options = {"metrics": {"directory": directory}, "history": {"max_waiting_requests": 1}}
    with running.embedded(database_url, options, module="tests.eager_maintenance") as service:
        storm = Storm(service.url)
        provider = storm.provider(VCPU=20)
        assert statuses(storm.together(claim([provider]))) == {204: 1}
        events = storm.ask("GET", "/v1/events?limit=1000").body["events"]
        assert len(events) > 2
        kinds = Counter(event["kind"] for event in events)
        assert {kind: metrics_page.sum("events_recorded_total", kind=kind) for kind in kinds} == kinds
        assert metrics_page.sum("events_recorded_total") == metrics_page.sum("history_events") == len(events)
        assert 0 < metrics_page.sum("transactions_ordered_total") <= len(events)
        assert metrics_page.sum("transactions_unordered") == 0
        assert 0 < metrics_page.sum("history_oldest_seconds") < 600
        assert metrics_page.sum("events_pruned_total") == 0

        with ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(storm.ask, "GET", "/v1/events?after=now&wait=60")
            service.wait_until(lambda: metrics_page.sum("waiting_requests") == 1)
            assert storm.ask("GET", "/v1/events?after=now&wait=60").body["events"] == []
            assert metrics_page.sum("waits_refused_total") == 1
            assert statuses(storm.together(claim([provider]))) == {204: 1}
            assert waiting.result().body["events"]
        service.wait_until(lambda: metrics_page.sum("waiting_requests") == 0)
        # No waiting request orders events concurrently, so the maintenance after this claim counts all of them.
        assert statuses(storm.together(claim([provider]))) == {204: 1}

        assert storm.ask("GET", "/v1/events?after=7000000-0badcafe").status == 410
        assert metrics_page.sum("request_seconds_count", route="/v1/events", status="410") == 1
        assert metrics_page.sum("positions_lost_total") == 1

        assert metrics_page.sum("doctor_findings") == 0
        with contextlib.closing(sqlite3.connect(database_url.removeprefix("sqlite:///"))) as connection, connection:
            connection.execute("UPDATE inventories SET total = 1")
        assert storm.ask("GET", "/v1/doctor?check=over_commitment").status == 200
        assert metrics_page.sum("doctor_findings", check="over_commitment", severity="warning") == 1
    # The metrics of the database remain.
    assert metrics_page.sum("doctor_findings", check="over_commitment") == 1
    assert metrics_page.sum("history_events") == len(events) + 4


def test_the_page_supports_both_formats_and_is_the_only_one(metrics_page):
    assert metrics_page.text(accept="application/openmetrics-text; version=1.0.0").endswith("# EOF\n")
    assert "# EOF" not in metrics_page.text()
    with pytest.raises(urllib.error.HTTPError, match="404"):
        metrics_page.text("/")
    with pytest.raises(urllib.error.HTTPError, match="405"):
        urllib.request.urlopen(f"http://127.0.0.1:{metrics_page.port}/metrics", data=b"", timeout=children.PATIENCE)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [(["/dev/null/x"], "Not a directory"), (["{}", "--port", "{port}"], "Address already in use")],
)
def test_metrics_that_cannot_be_served_are_reported_in_one_line(metrics_page, tmp_path, arguments, sentence):
    words = [argument.format(tmp_path, port=metrics_page.port) for argument in arguments]
    done = preloaded.service().run([sys.executable, "-m", "placement.cmd.metrics", *words])
    assert done.returncode == 1
    assert done.stderr.startswith("placement-metrics: ")
    assert sentence in done.stderr
    assert done.stderr.count("\n") == 1
    assert done.stdout == ""


OFF = """
import sys
from placement import deploy, signals
from tests import caller, web
app = deploy.loadapp(web.configuration(placement_database__sync_on_startup=True))
assert caller.inside(app)("GET", "/allocation_candidates?resources=VCPU:1").status == 200
print("prometheus_client" in sys.modules)
print([name for name, signal in vars(signals).items() if isinstance(signal, signals.Signal) and signal.connected])
"""


def test_nothing_is_counted_unless_metrics_are_enabled():
    done = preloaded.service().run([sys.executable, "-c", OFF])
    assert done.returncode == 0, done.stderr
    assert done.stdout.split("\n")[-3:] == ["False", "[]", ""]
