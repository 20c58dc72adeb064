"""Metrics on a full file system: the process stops counting, and continues to serve."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

import pytest

from placement.metrics.allocated_file import AllocatedFile
from tests.clock import PATIENCE

#: The beginning of programs that run in their own namespace, where they mount a file system of three megabytes.
BEGIN = """
import logging, os, signal, subprocess, sys
logging.basicConfig()
directory = sys.argv[1]
subprocess.run(["mount", "-t", "tmpfs", "-o", "size=3m,mode=755", "tmpfs", directory], check=True)
from placement import metrics, signals
from placement.metrics.directory import Directory

def fill():
    with open(f"{directory}/filler", "wb", buffering=0) as filler:
        try:
            while filler.write(b"x" * 4096):
                pass
        except OSError:
            pass

def answer(route):
    environ = {"REQUEST_METHOD": "GET", "placement.route": route}
    signals.answered(environ, 200, 0.1)

def page():
    return Directory(directory).text()[0].decode()
"""
FULL_LATER = """
metrics.start(f"{directory}/m")
directory += "/m"
answer("/early")
directory = sys.argv[1]
fill()
for number in range(200):
    answer(f"/late/{number}")
    signals.retried("deadlock")
print("serves", signals.answered.connected)
directory += "/m"
print('route="/early"' in page(), 'route="/late/0"' in page(), 'route="/late/199"' in page())
os.unlink(f"{sys.argv[1]}/filler")
"""
FULL_FORK = """
metrics.start(f"{directory}/m")
answer("/early")
fill()
if child := os.fork():
    print("child", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    directory += "/m"
    print('placement_request_seconds_count{method="GET",route="/early",status="200"} 1.0' in page())
else:
    for _ in range(3):
        answer("/late")
    os._exit(7)
"""
FULL_BEFORE = """
fill()
metrics.start(f"{directory}/m")
for _ in range(3):
    answer("/late")
print("serves", signals.answered.connected)
"""


def run(directory, code):
    if (
        not shutil.which("unshare")
        or subprocess.run(["unshare", "-Urm", "true"], check=False, timeout=PATIENCE).returncode
    ):
        pytest.skip("no user namespaces: a full file system cannot be mounted")
    argv = ["unshare", "-Urm", sys.executable, "-c", BEGIN + code, str(directory)]
    result = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=PATIENCE)
    assert result.returncode == 0, result
    return result


def test_a_disk_that_becomes_full_stops_the_metrics_and_not_the_process(tmp_path):
    result = run(tmp_path, FULL_LATER)
    # Values that fit into the reserved space are still counted.
    assert result.stdout.splitlines() == ["serves False", "True True False"]
    assert result.stderr.count("This process stops recording metrics: ") == 1


def test_a_worker_forked_on_a_full_disk_runs_and_the_page_shows_the_others(tmp_path):
    result = run(tmp_path, FULL_FORK)
    assert result.stdout.splitlines() == ["child 7", "True"]


def test_a_service_that_starts_on_a_full_disk_serves(tmp_path):
    result = run(tmp_path, FULL_BEFORE)
    assert result.stdout == "serves False\n"
    assert result.stderr.count("This process has no metrics: ") == 1
    assert "No space left on device" in result.stderr


def test_a_file_of_numbers_has_no_holes_however_it_grows(tmp_path):
    numbers = AllocatedFile(str(tmp_path / "counter_1.db"))
    for number in range(2000):
        numbers.write_value(f"{number}" * 20, float(number), 0.0)
    status = os.stat(tmp_path / "counter_1.db")
    assert status.st_blocks * 512 >= status.st_size > 2**17
    assert [numbers.read_value(f"{number}" * 20)[0] for number in (0, 1999)] == [0.0, 1999.0]
    numbers.close()
    reopened = AllocatedFile(str(tmp_path / "counter_1.db"))
    assert reopened.read_value("1999" * 20)[0] == 1999.0
    reopened.close()


@pytest.mark.parametrize("length", [*range(1, 20), 65000, 70000])
def test_a_key_of_any_length_can_be_stored(tmp_path, length):
    numbers = AllocatedFile(str(tmp_path / "counter_1.db"))
    while numbers._used < 2**16 - 40:
        numbers.write_value(f"{numbers._used}", 1.0, 0.0)
    numbers.write_value("k" * length, 2.0, 0.0)
    assert numbers.read_value("k" * length)[0] == 2.0
    numbers.close()
