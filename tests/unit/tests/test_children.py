"""Child processes and files of a test run are removed when it ends, even if it is killed."""

import os
import signal
import subprocess
import sys

import pytest

from tests import children
from tests.servers import Missing

RUN = """
import os, signal, sys, time
from tests import children

# The parent may ignore SIGINT, as a shell does for background jobs; children inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)
children.begin_run()
child = children.Child([sys.executable, "-c", {program!r}], children.run_directory() / "log")
child.wait_until(lambda: "ready" in child.log.read_text())
print(child.pid, children.run_directory(), flush=True)
{end}
"""
SLEEP = "import time; print('ready', flush=True); time.sleep(600)"
STUBBORN = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); " + SLEEP


@pytest.mark.parametrize(
    ("end", "program"),
    [
        ("children.end_run()", SLEEP),
        ("children.end_run()", STUBBORN),
        ("os.kill(os.getpid(), signal.SIGKILL)", SLEEP),
        ("os.killpg(os.getpgid(0), signal.SIGINT); time.sleep(600)", SLEEP),
    ],
)
def test_no_child_or_file_outlives_the_run(end, program):
    script = RUN.format(end=end, program=program)
    run = subprocess.Popen(
        [sys.executable, "-c", script],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )
    pid, directory = run.stdout.readline().split()
    run.wait()
    run.stdout.close()
    children.until(lambda: not children.alive(int(pid)), "the child outlives the run")
    children.until(lambda: not os.path.exists(directory), "the directory outlives the run")


@pytest.mark.parametrize(("options", "in_memory"), [("size=8G", True), ("size=64M", False), ("size=8G,noexec", False)])
def test_a_run_is_in_memory_if_the_file_system_is_large_enough_and_executable(options, in_memory):
    mount = f"mount -t tmpfs -o {options} tmpfs /dev/shm"
    attempt = subprocess.run(["unshare", "--mount", *mount.split()], capture_output=True, text=True)
    if attempt.returncode:
        raise Missing(f"a namespace of mounts needs root with CAP_SYS_ADMIN: {attempt.stderr.strip()}")
    run = "from tests import children; children.begin_run(); print(children.run_directory()); children.end_run()"
    words = ["unshare", "--mount", "sh", "-c", f'{mount} && exec "$@"', "sh", sys.executable, "-c", run]
    directory = subprocess.run(words, check=True, capture_output=True, text=True, timeout=children.PATIENCE).stdout
    assert directory.startswith("/dev/shm/") is in_memory


def test_a_child_that_ends_before_it_is_ready_is_reported_with_its_log(tmp_path):
    child = children.Child([sys.executable, "-c", "raise SystemExit('no such thing')"], tmp_path / "log")
    with pytest.raises(RuntimeError, match="no such thing"):
        child.wait_until(lambda: False)
    child.stop()
    assert child.ended


def test_a_child_that_does_not_stop_is_killed_and_reported_with_its_log(tmp_path, monkeypatch):
    child = children.Child([sys.executable, "-c", STUBBORN], tmp_path / "log")
    child.wait_until(lambda: "ready" in child.log.read_text())
    monkeypatch.setattr(children, "PATIENCE", 0.1)
    with pytest.raises(RuntimeError, match=r"did not stop in 0\.1 s:\nready"):
        child.stop()
    assert child.ended
    child.stop()


def test_a_zombie_counts_as_stopped_and_no_signal_to_it_fails():
    ended = subprocess.Popen([sys.executable, "-c", ""])
    children.until(lambda: not children.alive(ended.pid))
    assert children.is_stopped(ended.pid)
    children.send(ended.pid, signal.SIGSTOP)
    ended.wait()
    children.send(ended.pid, signal.SIGSTOP)
    running = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(3600)"])
    assert not children.is_stopped(running.pid)
    running.kill()
    running.wait()


@pytest.mark.xdist_group("together")
def test_the_group_of_a_test_is_in_its_node_id(request):
    """pytest-xdist reads the group from there; tests of a group share services and must run in one process."""
    if "PYTEST_XDIST_WORKER" not in os.environ:
        pytest.skip("one process runs all tests")
    assert request.node.nodeid.endswith("@together")
