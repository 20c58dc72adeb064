"""Commands that are interrupted, whose output pipe is closed, or that connect to the database."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from placement.cmd import program

PROGRAM = "import sys; from placement.cmd import program; sys.exit(program.exit_code('x', lambda: print('a') or 0, 1))"


def test_an_interrupt_prints_one_line(capsys):
    def work():
        raise KeyboardInterrupt

    assert program.exit_code("placement-x", work, failed=1) == 130
    assert capsys.readouterr() == ("", "placement-x: interrupted\n")


def test_a_closed_output_pipe_is_not_a_failure():
    reading, writing = os.pipe()
    os.close(reading)
    with open(writing, "w") as pipe:
        buffered = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
        words = [sys.executable, "-c", PROGRAM]
        result = subprocess.run(words, env=buffered, stdout=pipe, stderr=subprocess.PIPE, text=True, check=False)
    assert (result.returncode, result.stderr) == (141, "")


@pytest.mark.parametrize(("line", "retries"), [("", 0), ("max_retries = 3\n", 3)])
def test_a_command_connects_once_unless_configured_to_retry(tmp_path, restored_log, line, retries):
    path = tmp_path / "placement.conf"
    path.write_text(f"[placement_database]\nconnection = sqlite://\n{line}")
    conf = program.read_configuration(
        "placement-x", ["--config-file", str(path), "run"], lambda subparsers: subparsers.add_parser("run")
    )
    assert conf.placement_database.max_retries == retries
