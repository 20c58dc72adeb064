"""placement-ask --watch as a process, in a terminal and in a pipe, against a service that is restarted (docs: ask)."""

from __future__ import annotations

import os
import pty
import re
import signal
import subprocess

import pytest

from tests import ask_process, clients, closed, preloaded, running, servers
from tests.ask_process import ASK, until, watching
from tests.children import PATIENCE

# The output of a client does not depend on the kind of database.
pytestmark = pytest.mark.parametrize("backend", [servers.SQLite.kind], indirect=True, scope="session")
CLEAR = "\x1b[H\x1b[2J"
HEADING = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ  every (\S+) seconds, until Ctrl-C")


@pytest.fixture
def service(database_url):
    with running.embedded(database_url) as embedded:
        yield embedded


@pytest.fixture
def environment(service):
    return {**ask_process.environment(), "OS_ENDPOINT": service.url, "OS_TOKEN": "admin"}


def create(service, name):
    clients.request(service, "POST", "/resource_providers", {"name": name})


def test_responses_are_printed_repeatedly_even_after_an_outage_of_the_service(service, environment):
    words = ("overview", "--watch", "0.1")
    with watching(environment, *words, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        heading, empty, answer = (process.stdout.readline() for _ in range(3))
        assert HEADING.match(heading)[1] == "0.1"
        assert (empty, answer) == ("\n", "No providers.\n")
        create(service, "host1")
        lines = until(process.stdout, "host1")
        assert HEADING.match(lines[-4])
        service.kill()
        assert "Retrying." in process.stderr.readline()
        service.start()
        create(service, "host2")
        lines += until(process.stdout, "host2")
        service.kill()
        assert "Retrying." in process.stderr.readline(), "each outage is reported"
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE) == 130
        assert "\x1b" not in "".join(lines)
        assert process.stderr.read() == ""


def test_a_terminal_is_cleared_for_each_response(service, environment):
    create(service, "host1")
    leader, follower = pty.openpty()
    streams = dict.fromkeys(("stdin", "stdout", "stderr"), follower)
    with watching(
        {**environment, "TERM": "xterm", "NO_COLOR": "1"}, "overview", "--watch", "0.1", **streams
    ) as process:
        os.close(follower)
        output = ""
        while output.count("until Ctrl-C") < 3:
            output += os.read(leader, 65536).decode()
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE) == 130
        os.close(leader)
    empty, *screens = output.split(CLEAR)
    assert (empty, len(screens) >= 3) == ("", True)
    for screen in screens[:2]:
        heading, _, header, row, *_ = screen.splitlines()
        assert HEADING.fullmatch(heading)
        assert (header.split()[0], row) == ("provider", "host1")


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        (["overview", "--watch", "--json"], 2, "--watch and --json cannot be combined."),
        (["overview", "--watch", "--at", "1h"], 2, "--watch and --at cannot be combined."),
        (["usage", "--watch", "--to", "1h"], 2, "--watch and --to cannot be combined."),
        (["capacity", "--watch", "0", "resources=VCPU:1"], 2, "'0' is invalid: use a number of seconds above 0"),
        (["capacity", "--watch"], 2, "The query is missing"),
        (["overview", "--watch", "--root", "nothing"], 2, "400 Bad Request"),
        (["overview", "--watch", "--url", closed.URL], 3, "cannot be reached"),
    ],
)
def test_a_command_that_cannot_be_watched_ends(environment, words, code, sentence):
    done = preloaded.client().run([*ASK, *words], environment)
    assert (done.returncode, done.stdout) == (code, "")
    assert sentence in done.stderr


QUERY = ("--resource", "VCPU=1")


@pytest.mark.parametrize(
    "words",
    [
        ("explain", *QUERY),
        ("capacity", *QUERY),
        ("overview",),
        ("consumers",),
        ("usage",),
        ("doctor", "--check", "roots"),
    ],
)
def test_each_query_about_the_present_can_be_watched(service, environment, words):
    expected = preloaded.client().run([*ASK, *words], environment).stdout.splitlines()
    with watching(environment, *words, "--watch", "0.1", stdout=subprocess.PIPE) as process:
        for _ in range(2):
            assert HEADING.match(process.stdout.readline())
            assert process.stdout.readline() == "\n"
            assert [process.stdout.readline().rstrip() for _ in expected] == [line.rstrip() for line in expected]
            assert process.stdout.readline() == "\n"
