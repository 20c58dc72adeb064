"""Nothing that a test run started is left when it has ended, however it ended."""

import os
import pathlib
import signal
import subprocess
import sys
import time

import pytest

RUN = """
import os, signal, subprocess, sys, time
from pathlib import Path
from tests import children

children.begin_run()
stubborn = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)" if {stubborn} else "import time; time.sleep(600)"
child = children.Child([sys.executable, "-c", stubborn], children.run_directory() / "log")
print(child.pid, children.run_directory(), flush=True)
{end}
"""


def alive(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.parametrize(
    ("end", "stubborn"),
    [
        ("children.end_run()", False),
        ("children.end_run()", True),
        ("os.kill(os.getpid(), signal.SIGKILL)", False),
        ("os.killpg(os.getpgid(0), signal.SIGINT); time.sleep(600)", False),
    ],
)
def test_nothing_outlives_the_run(end, stubborn):
    script = RUN.format(end=end, stubborn=stubborn)
    run = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, start_new_session=True)
    pid, directory = run.stdout.readline().split()
    run.wait()
    run.stdout.close()
    deadline = time.monotonic() + 60
    while (alive(pid) or os.path.exists(directory)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not alive(pid)
    assert not os.path.exists(directory)


def test_a_child_that_ends_before_it_is_ready_is_told_of_with_its_log(tmp_path):
    from tests import children

    child = children.Child([sys.executable, "-c", "raise SystemExit('no such thing')"], tmp_path / "log")
    with pytest.raises(RuntimeError, match="no such thing"):
        child.wait_until(lambda: False)
    child.stop()
    assert child.ended
