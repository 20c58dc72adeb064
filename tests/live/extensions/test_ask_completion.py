"""Each shell, set up by docs/extensions/ask.rst, completes the commands, options and choices of placement-ask."""

from __future__ import annotations

import os
import pty
import shutil
import subprocess
import threading

import pytest

from tests import ask_process, children, servers, transcripts
from tests.docs.run_by import blocks_of

#: The input for a new shell of each kind, so that it finds the script where the page puts it.
#: With -u zsh does not prompt about directories that others may write to.
SETUP = {
    "bash": "source ~/.local/share/bash-completion/completions/placement-ask",
    "zsh": "fpath=(~/.zfunc $fpath); autoload -U compinit; compinit -u -D",
    "fish": "",
}
#: The command of each shell, which ignores the files of the machine's administrator.
SHELLS = {"bash": ["--norc", "--noprofile", "-i"], "zsh": ["-f", "-i"], "fish": ["--private"]}
#: Prefixes of the last word after placement-ask, and the completed word.
WORDS = [
    ("ov", "overview"),
    ("overview --over", "--over-committed"),
    ("claim --strategy pa", "pack"),
    ("claim --file jo", "jobs.json"),
    ("--print-completion ba", "bash"),
]


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A home directory after the commands of the page, with a file."""
    home = tmp_path_factory.mktemp("home")
    transcripts.install(home / "bin")
    (block,) = blocks_of(__file__, "docs/extensions/ask.rst")
    variables = {**transcripts.environment(), "HOME": str(home), "PATH": f"{home / 'bin'}:{os.environ['PATH']}"}
    subprocess.run(["bash", "-euc", block.text], cwd=home, env=variables, check=True)
    (home / "jobs.json").write_text("[]")
    return home


@pytest.fixture(params=SHELLS)
def shell(request):
    """An installed shell."""
    if shutil.which(request.param) is None:
        raise servers.Missing(f"{request.param} is not installed: `make servers` installs {request.param}")
    return request.param


def complete(shell, home, typed):
    """Return the last word of a command line after pressing Tab."""
    variables = {**ask_process.environment(), "HOME": str(home), "TERM": "dumb", "PS1": "$ "}
    for name in ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "ZDOTDIR"):
        variables.pop(name, None)
    if shell == "fish":  # fish has a command that prints completions
        words = ["fish", *SHELLS[shell], "--command", f"complete --do-complete 'placement-ask {typed}'"]
        done = subprocess.run(words, cwd=home, env=variables, capture_output=True, text=True, check=True)
        (line,) = done.stdout.splitlines()
        return line.partition("\t")[0]
    return _complete_in_terminal([shell, *SHELLS[shell]], variables, home, SETUP[shell], typed)


def _complete_in_terminal(words, variables, home, setup, typed):
    """Type into a terminal, press Tab, and return the last word of the resulting command line."""
    leader, follower = pty.openpty()
    streams = dict.fromkeys(("stdin", "stdout", "stderr"), follower)
    with subprocess.Popen(words, cwd=home, env=variables, start_new_session=True, **streams) as process:
        os.close(follower)
        watchdog = threading.Timer(children.PATIENCE, process.kill)  # it may wait for input
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
    output = _read(leader, "last=", "=")
    return output.partition("last=")[2].partition("=")[0]


def _read(leader, mark, end=""):
    """Read from a terminal up to a mark, and on to an end after it."""
    output = ""
    while mark not in output or end not in output.partition(mark)[2]:
        try:
            chunk = os.read(leader, 65536)
        except OSError:
            chunk = b""
        assert chunk, output
        output += chunk.decode(errors="replace")
    return output


@pytest.mark.parametrize(("typed", "word"), WORDS)
def test_a_word_is_completed(shell, home, typed, word):
    assert complete(shell, home, typed) == word
