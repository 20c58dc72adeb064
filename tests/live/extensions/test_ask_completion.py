"""Each shell completes the commands, options and choices of placement-ask, as docs/extensions/ask.rst sets it up."""

from __future__ import annotations

import os
import pty
import shutil
import subprocess
import threading

import pytest

from tests import ask_process, children, servers, transcripts
from tests.docs.run_by import blocks_of

#: What is typed in a new shell of each kind, so that it finds the script where the page puts it.
#: With -u zsh does not ask about directories that others may write to.
SETUP = {
    "bash": "source ~/.local/share/bash-completion/completions/placement-ask",
    "zsh": "fpath=(~/.zfunc $fpath); autoload -U compinit; compinit -u -D",
    "fish": "",
}
#: How each is started without the files of the machine's administrator.
SHELLS = {"bash": ["--norc", "--noprofile", "-i"], "zsh": ["-f", "-i"], "fish": ["--private"]}
#: Beginnings of the last word after placement-ask, and the word.
WORDS = [
    ("ov", "overview"),
    ("overview --over", "--over-committed"),
    ("claim --strategy pa", "pack"),
    ("claim --file jo", "jobs.json"),
    ("--print-completion ba", "bash"),
]


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A directory of a user, after the commands of the page, with a file."""
    home = tmp_path_factory.mktemp("home")
    transcripts.install(home / "bin")
    (block,) = blocks_of(__file__, "docs/extensions/ask.rst")
    variables = {**transcripts.environment(), "HOME": str(home), "PATH": f"{home / 'bin'}:{os.environ['PATH']}"}
    subprocess.run(["bash", "-euc", block.text], cwd=home, env=variables, check=True)
    (home / "jobs.json").write_text("[]")
    return home


@pytest.fixture(params=SHELLS)
def shell(request):
    """A shell that is installed."""
    if shutil.which(request.param) is None:
        raise servers.Missing(f"{request.param} is not installed: `make servers` installs {request.param}")
    return request.param


def completed(shell, home, typed):
    """Return the last word of a command line after the key Tab."""
    variables = {**ask_process.environment(), "HOME": str(home), "TERM": "dumb", "PS1": "$ "}
    for name in ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "ZDOTDIR"):
        variables.pop(name, None)
    if shell == "fish":  # it has a command for what the key does
        words = ["fish", *SHELLS[shell], "--command", f"complete --do-complete 'placement-ask {typed}'"]
        done = subprocess.run(words, cwd=home, env=variables, capture_output=True, text=True, check=True)
        (line,) = done.stdout.splitlines()
        return line.partition("\t")[0]
    return _typed([shell, *SHELLS[shell]], variables, home, SETUP[shell], typed)


def _typed(words, variables, home, setup, typed):
    """Type into a terminal, complete with Tab, and return what the shell then takes as the last word."""
    leader, follower = pty.openpty()
    streams = dict.fromkeys(("stdin", "stdout", "stderr"), follower)
    with subprocess.Popen(words, cwd=home, env=variables, start_new_session=True, **streams) as process:
        os.close(follower)
        watchdog = threading.Timer(children.PATIENCE, process.kill)  # it may wait for an answer
        watchdog.start()
        try:
            return _last_word(leader, setup, typed)
        finally:
            watchdog.cancel()
            process.kill()
            os.close(leader)


def _last_word(leader, setup, typed):
    # The marks are written in two parts, since the terminal echoes what is typed.
    os.write(leader, f"placement-ask() {{ echo last'='${{@: -1}}'=' ; }}; {setup}; echo re''ady\n".encode())
    _read(leader, "ready")
    os.write(leader, f"placement-ask {typed}\t\n".encode())
    written = _read(leader, "last=", "=")
    return written.partition("last=")[2].partition("=")[0]


def _read(leader, mark, end=""):
    """Read from a terminal until there is a mark, and an end after it."""
    written = ""
    while mark not in written or end not in written.partition(mark)[2]:
        try:
            chunk = os.read(leader, 65536)
        except OSError:
            chunk = b""
        assert chunk, written
        written += chunk.decode(errors="replace")
    return written


@pytest.mark.parametrize(("typed", "word"), WORDS)
def test_a_word_is_completed(shell, home, typed, word):
    assert completed(shell, home, typed) == word
