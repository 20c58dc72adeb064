"""Every ``python -m jepsen`` of README.rst is run, for a few seconds instead of the times that it names."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
README = ROOT / "jepsen/README.rst"
COMMANDS = re.findall(r"^    ((?:\w+=\S+ )?python -m jepsen.*)$", README.read_text(), re.MULTILINE)
#: Replacements of the times in the commands.
SHORT = {"--seconds": "3", "--minutes": "0.01", "--segment": "1"}


def test_the_commands_run(tmp_path):
    """The planted fault is found, kept in a file and replayed; the other commands find nothing."""
    history_path = None
    for command in COMMANDS:
        words = [
            SHORT.get(previous, word) for previous, word in zip(["", *command.split()], command.split(), strict=False)
        ]
        planted = dict(word.split("=") for word in words if re.match(r"[A-Z_]+=", word))
        words = [re.sub(r"/tmp/history\S*", str(history_path), word) for word in words if "=" not in word]
        process = subprocess.run(
            [sys.executable, *words[1:]],
            cwd=tmp_path,
            env={**os.environ, **planted, "PYTHONPATH": str(ROOT), "TMPDIR": str(tmp_path)},
            capture_output=True,
            text=True,
        )
        wrong = bool(planted) or "replay" in words
        assert process.returncode == wrong, f"{command}\n{process.stdout}{process.stderr}"
        if planted:
            history_path = re.search(r"history: (\S+)", process.stdout)[1]
    assert history_path
    assert (tmp_path / "report.json").stat().st_size
    assert (tmp_path / "history.svg").stat().st_size
