"""A program that is forked cannot be told from one that is started, but by the time it takes."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

from tests import children, preloaded

SAYS = """
import os, sys
print(sys.argv, os.getcwd(), dict(os.environ), sys.stdin.read(), __name__)
print("nothing to complain of", file=sys.stderr)
sys.exit(3)
"""
LIVES = "import os, time; print(os.getpid() == os.getsid(0), flush=True); time.sleep(600)"
ASKS = "import sys; print('waitress' in sys.modules, 'placement.db.tables' in sys.modules, hasattr(sys, 'left'))"


@pytest.mark.parametrize(
    "words",
    [["-c", SAYS, "a b", "c"], ["-c", "1 / 0"], ["-c", "exit('no')"], ["-m", "json.tool", "--nothing"], ["says", "-c"]],
    ids=["code", "an error", "an end", "a module", "a script"],
)
def test_it_does_what_its_words_say(tmp_path, words):
    (tmp_path / "says").write_text(SAYS)
    argv, told = [sys.executable, *words], {"env": {"LC_CTYPE": "C.UTF-8", "NAME": "a value"}, "cwd": tmp_path}
    started = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, **told)
    forked = preloaded.service().run(argv, **told)
    assert (forked.returncode, forked.stdout) == (started.returncode, started.stdout)
    assert forked.stderr.splitlines()[-1] == started.stderr.splitlines()[-1]
    assert forked.returncode > 0


def test_one_finds_what_it_needs_and_nothing_of_another():
    preloaded.service().run([sys.executable, "-c", "import sys; sys.left = 'behind'"])
    assert preloaded.service().run([sys.executable, "-c", ASKS]).stdout == "True True False\n"


def test_one_that_does_not_end_is_a_child_as_others_are(tmp_path):
    argv = [sys.executable, "-c", LIVES]
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


def test_one_that_hangs_is_killed(monkeypatch):
    monkeypatch.setattr(preloaded, "_PATIENCE", 0.5)
    assert preloaded.service().run([sys.executable, "-c", LIVES]).returncode == -signal.SIGKILL
