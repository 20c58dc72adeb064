"""A program forked from the preloaded service behaves like a started one."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

from tests import children, preloaded

PRINT_SCRIPT = """
import os, sys
print(sys.argv, os.getcwd(), dict(os.environ), sys.stdin.read(), __name__)
print("no error", file=sys.stderr)
sys.exit(3)
"""
SLEEP_SCRIPT = "import os, time; print(os.getpid() == os.getsid(0), flush=True); time.sleep(600)"
MODULES_SCRIPT = (
    "import sys; print('waitress' in sys.modules, 'placement.db.schema.tables' in sys.modules, hasattr(sys, 'left'))"
)


@pytest.mark.parametrize(
    "arguments",
    [
        ["-c", PRINT_SCRIPT, "a b", "c"],
        ["-c", "1 / 0"],
        ["-c", "exit('no')"],
        ["-m", "json.tool", "--nothing"],
        ["prints", "-c"],
    ],
    ids=["code", "an error", "an end", "a module", "a script"],
)
def test_a_forked_program_behaves_like_a_started_one(tmp_path, arguments):
    (tmp_path / "prints").write_text(PRINT_SCRIPT)
    argv, options = [sys.executable, *arguments], {"env": {"LC_CTYPE": "C.UTF-8", "NAME": "a value"}, "cwd": tmp_path}
    expected = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, **options)
    result = preloaded.service().run(argv, **options)
    assert (result.returncode, result.stdout) == (expected.returncode, expected.stdout)
    assert result.stderr.splitlines()[-1] == expected.stderr.splitlines()[-1]
    assert result.returncode > 0


def test_a_forked_program_has_the_preloaded_modules_and_no_state_of_another():
    preloaded.service().run([sys.executable, "-c", "import sys; sys.left = 'behind'"])
    assert preloaded.service().run([sys.executable, "-c", MODULES_SCRIPT]).stdout == "True True False\n"


def test_a_forked_program_can_run_as_a_child_process(tmp_path):
    argv = [sys.executable, "-c", SLEEP_SCRIPT]
    running = [children.Child(argv, tmp_path / name, begin=preloaded.service().popen) for name in ("one", "two")]
    for child in running:
        child.wait_until(lambda child=child: child.log.read_text() == "True\n")
    assert len({child.pid for child in running}) == 2
    running[0].stop()
    assert [children.alive(child.pid) for child in running] == [False, True]
    running[1].kill()
    assert not children.alive(running[1].pid)
    ended = children.Child([sys.executable, "-c", "exit('no')"], tmp_path / "three", begin=preloaded.service().popen)
    with pytest.raises(RuntimeError, match="no"):
        ended.wait_until(lambda: False)


def test_a_forked_program_that_hangs_is_killed(monkeypatch):
    monkeypatch.setattr(preloaded, "TIMEOUT", 0.5)
    assert preloaded.service().run([sys.executable, "-c", SLEEP_SCRIPT]).returncode == -signal.SIGKILL
