"""The metrics directory: sums of running and ended processes, its page, and the start of metrics."""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import struct
import subprocess
import sys
import time

import pytest
from prometheus_client import values
from prometheus_client.mmap_dict import MmapedDict, mmap_key

from placement import metrics, package
from placement.cmd.metrics import Page
from placement.errors import StartError
from placement.metrics.directory import Directory
from tests import children, web
from tests.clock import PATIENCE

#: An id that no process has: it is above the maximum.
NO_PROCESS = 2**22 + 1
BUCKET = ("placement_s", "placement_s_bucket", ["le"])


@pytest.fixture
def directory(tmp_path):
    return Directory(str(tmp_path / "deep" / "metrics"))


def write_files(directory, process, kind, value, *labels, name="claims"):
    """Write the files of a process, as if it had counted and ended."""
    (directory.path / f"{process}.alive").touch()
    numbers = MmapedDict(str(directory.path / f"{kind}_{process}.db"))
    total = "_total" if kind == "counter" else ""
    key = mmap_key(f"placement_{name}", f"placement_{name}{total}", ["outcome"][: len(labels)], list(labels), "Help")
    numbers.write_value(key, value, 1.0)
    numbers.close()


def lines(directory):
    return [line for line in directory.text()[0].decode().splitlines() if not line.startswith("#")]


def files(directory):
    return sorted(path.name for path in directory.path.iterdir())


def test_counts_of_ended_processes_are_kept_and_their_files_removed(directory):
    for process, value in ((NO_PROCESS, 2), (NO_PROCESS + 1, 3)):
        write_files(directory, process, "counter", value, "placed")
        write_files(directory, process, "gauge_livemostrecent", 7, name="index_providers")
    write_files(directory, NO_PROCESS, "counter", 1, "released", name="other")
    for _ in range(2):
        assert lines(directory) == [
            'placement_claims_total{outcome="placed"} 5.0',
            'placement_other_total{outcome="released"} 1.0',
        ]
        assert files(directory) == ["counter_ended.db", "lock"]
    write_files(directory, NO_PROCESS, "counter", 10, "placed")  # another process with the same id
    assert lines(directory)[0] == 'placement_claims_total{outcome="placed"} 15.0'


def test_the_newest_value_of_a_kept_gauge_counts(directory):
    """The last process to set it may end before processes that set it earlier."""
    for process, value, timestamp in ((NO_PROCESS, 7, 20.0), (NO_PROCESS + 1, 8, 30.0), (NO_PROCESS + 2, 9, 10.0)):
        (directory.path / f"{process}.alive").touch()
        numbers = MmapedDict(str(directory.path / f"gauge_mostrecent_{process}.db"))
        numbers.write_value(
            mmap_key("placement_used", "placement_used", ["resource_class"], ["VCPU"], "Help"), value, timestamp
        )
        numbers.close()
        lines(directory)
    assert lines(directory) == ['placement_used{resource_class="VCPU"} 8.0']
    assert files(directory) == ["gauge_mostrecent_ended.db", "lock"]
    running = MmapedDict(str(directory.path / "gauge_mostrecent_1.db"))
    key = mmap_key("placement_used", "placement_used", ["resource_class"], ["VCPU"], "Help")
    for value, timestamp, expected in ((5, 25.0, 8), (6, 40.0, 6)):
        running.write_value(key, value, timestamp)
        assert lines(directory) == [f'placement_used{{resource_class="VCPU"}} {expected}.0']
    running.close()


def test_an_unfinished_sum_is_not_counted_twice(directory):
    """The process was killed before it renamed the file with the sum."""
    write_files(directory, NO_PROCESS, "counter", 2, "placed")
    shutil.copyfile(directory.path / f"counter_{NO_PROCESS}.db", directory.path / "ended.new")
    assert lines(directory) == ['placement_claims_total{outcome="placed"} 2.0']


def test_buckets_of_ended_processes_are_not_accumulated_twice(directory):
    for process in (NO_PROCESS, NO_PROCESS + 1):
        (directory.path / f"{process}.alive").touch()
        numbers = MmapedDict(str(directory.path / f"histogram_{process}.db"))
        for bound, value in (("1.0", 2), ("+Inf", 1)):
            numbers.write_value(mmap_key(*BUCKET, [bound], "Help"), value, 0.0)
        numbers.write_value(mmap_key("placement_s", "placement_s_sum", [], [], "Help"), 4.5, 0.0)
        numbers.close()
    for _ in range(2):
        assert set(lines(directory)) == {
            'placement_s_bucket{le="1.0"} 4.0', 'placement_s_bucket{le="+Inf"} 6.0',
            "placement_s_count 6.0", "placement_s_sum 9.0",
        }  # fmt: skip


def test_files_of_running_processes_are_not_changed(directory):
    directory.join()
    write_files(directory, os.getpid(), "counter", 2, "placed")
    write_files(directory, os.getpid(), "gauge_livemostrecent", 7, name="index_providers")
    before = files(directory)
    assert set(lines(directory)) == {'placement_claims_total{outcome="placed"} 2.0', "placement_index_providers 7.0"}
    assert files(directory) == before


# Runs in a separate process: forking the test process, with its threads and libraries, is not safe.
FORKING = """
import os, signal, sys
from placement.metrics.directory import Directory
from placement.cmd.metrics import Page
from tests.unit.metrics.test_directory import write_files
directory = Directory(sys.argv[1])
directory.join()
write_files(directory, os.getpid(), "counter", 1, "placed")
if not os.fork():
    directory.join()
    write_files(directory, os.getpid(), "counter", 10, "placed")
    print(os.getpid(), flush=True)
    signal.pause()
os._exit(0)
"""


def test_a_forked_child_keeps_its_own_files_and_not_those_of_its_parent(directory):
    with subprocess.Popen([sys.executable, "-c", FORKING, directory.path], stdout=subprocess.PIPE, text=True) as parent:
        child = int(parent.stdout.readline())
        try:
            assert parent.wait() == 0
            assert lines(directory) == ['placement_claims_total{outcome="placed"} 11.0']
            assert files(directory) == sorted([f"{child}.alive", f"counter_{child}.db", "counter_ended.db", "lock"])
        finally:
            os.kill(child, signal.SIGKILL)
    while children.alive(child):
        time.sleep(0.01)
    assert lines(directory) == ['placement_claims_total{outcome="placed"} 11.0']
    assert files(directory) == ["counter_ended.db", "lock"]


@pytest.mark.parametrize("content", [b"", struct.pack("ii", 64, 0) + b"\x7f" * 56], ids=["empty", "garbage"])
def test_a_damaged_file_of_an_ended_process_is_skipped(directory, content, caplog):
    write_files(directory, NO_PROCESS, "counter", 2, "placed")
    (directory.path / f"{NO_PROCESS + 1}.alive").touch()
    (directory.path / f"counter_{NO_PROCESS + 1}.db").write_bytes(content)
    assert lines(directory) == ['placement_claims_total{outcome="placed"} 2.0']
    assert files(directory) == ["counter_ended.db", "lock"]
    assert "is skipped" in caplog.text


# --- the page ---


def test_the_page_answers_only_get_and_head(directory):
    write_files(directory, NO_PROCESS, "counter", 2, "placed")
    page = Page(directory)
    page_reply, head_reply = (web.ask(page, method, "/metrics") for method in ("GET", "HEAD"))
    assert (page_reply.status_int, head_reply.status_int, head_reply.body) == (200, 200, b"")
    assert head_reply.headers == page_reply.headers
    assert int(page_reply.headers["content-length"]) == len(page_reply.body) > 0
    post_reply = web.ask(page, "POST", "/metrics")
    assert (post_reply.status_int, post_reply.headers["allow"]) == (405, "GET, HEAD")


# --- the start ---


@pytest.fixture
def restored_metrics(monkeypatch):
    """Restore the environment and the library after the start of metrics has changed them."""
    monkeypatch.setenv("PROMETHEUS_MULTIPROC_DIR", "")
    for name in ("MmapedDict", "ValueClass"):
        monkeypatch.setattr(values, name, getattr(values, name))


@pytest.mark.usefixtures("restored_metrics")
def test_an_unusable_metrics_directory_prevents_the_start():
    with pytest.raises(StartError, match=r"\[metrics\]directory: .*Not a directory"):
        metrics.start("/dev/null/x")


@pytest.mark.usefixtures("restored_metrics")
def test_two_processes_with_the_same_id_cannot_share_a_directory(tmp_path):
    """Processes in different containers can have the same id."""
    with (tmp_path / f"{os.getpid()}.alive").open("w") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        with pytest.raises(StartError, match=r"\[metrics\]directory: "):
            metrics.start(str(tmp_path))


WITHOUT = """
import sys
sys.modules["prometheus_client"] = None
from placement import metrics
from placement.cmd import metrics as command
from placement.errors import StartError
try:
    metrics.start(sys.argv[1])
except StartError as error:
    print(error)
print(command.main([sys.argv[1]]))
"""


def test_a_missing_library_is_reported_in_one_line(tmp_path):
    result = subprocess.run(
        [sys.executable, "-c", WITHOUT, str(tmp_path)], capture_output=True, text=True, check=True, timeout=PATIENCE
    )
    sentence = f"prometheus_client is not installed: {package.install_command('metrics')}\n"
    assert (result.stdout, result.stderr) == (f"[metrics]directory: {sentence}1\n", f"placement-metrics: {sentence}")


TWICE = """
import sys
import prometheus_client  # as if another module had imported it first
from placement import metrics, signals
from placement.metrics.directory import Directory
from placement.cmd.metrics import Page
metrics.start(sys.argv[1])
metrics.start(sys.argv[1])
signals.retried("deadlock")
print(Directory(sys.argv[1]).text()[0].decode())
"""


def test_several_applications_in_one_process_count_once(tmp_path):
    result = subprocess.run(
        [sys.executable, "-c", TWICE, str(tmp_path)], capture_output=True, text=True, check=True, timeout=PATIENCE
    )
    assert 'placement_retries_total{cause="deadlock"} 1.0' in result.stdout


@pytest.mark.parametrize(
    "accept",
    [
        "text/plain;version=1.0.0;escaping=nonsense",
        "application/openmetrics-text;version=1.0.0;escaping=nonsense",
        "application/openmetrics-text;version=nonsense",
        "text/plain;version=1.0.0;escaping=",
        "text/plain;version=99",
        "application/openmetrics-text;version=1.0.0;escaping=values\r\nSet-Cookie: e=1",
        "\x1b;;==,,",
    ],
)
def test_any_accept_header_gets_a_page(directory, accept):
    write_files(directory, NO_PROCESS, "counter", 2, "placed")
    text, content_type = directory.text(accept)
    assert b'placement_claims_total{outcome="placed"} 2.0' in text
    assert content_type.isprintable()
    assert "nonsense" not in content_type
