"""The walk of README.rst with the client that operators use: every command is run, every answer shown is the answer."""

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests import children

README = Path(__file__).parents[2] / "README.rst"
PROMPT = "    $ "


@pytest.fixture
def endpoint(tmp_path):
    """The URL of a service as ``make serve`` starts it."""
    port = children.free_port()
    service = children.Child(
        [sys.executable, "-m", "placement.cmd.serve", "--port", str(port)],
        tmp_path / "log",
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.getcwd()},
    )
    try:
        service.wait_until(lambda: "Ctrl-C" in service.log.read_text())
        yield f"http://127.0.0.1:{port}"
    finally:
        service.stop()


def walk():
    """The commands of that section of the README, each with the lines shown below it."""
    section = README.read_text().partition("With the client that operators use")[2].partition("What it promises")[0]
    steps = []
    for line in section.replace("\\\n        ", "").splitlines():
        if line.startswith(PROMPT):
            steps.append((line.removeprefix(PROMPT), []))
        elif line.startswith("    "):
            steps[-1][1].append(line.strip())
    return steps


def test_the_walk_in_the_readme_answers_as_it_shows(endpoint):
    openstack = shutil.which("openstack", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    assert openstack, "python-openstackclient and osc-placement are in the extra named test"
    steps = walk()
    assert sum(command.startswith("openstack ") for command, _ in steps) == 6
    variables = dict(os.environ)
    for command, shown in steps:
        if not command.startswith("openstack "):
            words = shlex.split(command.removeprefix("export "))
            variables |= dict(word.split("=", 1) for word in words)
            variables["OS_ENDPOINT"] = endpoint
            continue
        argv = [openstack, *shlex.split(_expanded(command, variables))[1:]]
        done = subprocess.run(argv, env=variables, capture_output=True, text=True, timeout=300, check=False)
        assert done.returncode == 0, f"{command}\n{done.stderr}"
        if shown:
            assert [line.strip() for line in done.stdout.splitlines()] == shown, command


def _expanded(command, variables):
    """The command with $HOST and $SERVER filled in."""
    for name in ("HOST", "SERVER"):
        command = command.replace(f"${name}", variables.get(name, ""))
    return command
