"""``openstack`` and placement-ask show the same columns for the same command (docs: ask)."""

from __future__ import annotations

import configparser
import csv
import re
import shlex
import uuid

import pytest

from tests import ask_process, clients, preloaded, servers
from tests.ask_process import ASK
from tests.docs.blocks import PAGES, ROOT

# The output of a client does not depend on the kind of database.
pytestmark = pytest.mark.parametrize("backend", [servers.SQLite.kind], indirect=True, scope="session")

#: The commands of openstack, with the equivalent command of placement-ask.
PAIRS = dict(re.findall(r"^``openstack ([a-z ]+)`` +``placement-ask (\w+)``$", PAGES["docs/extensions/ask.rst"], re.M))
CONSUMER, OTHER = (str(uuid.UUID(int=number)) for number in (1, 2))
#: The arguments of each command of placement-ask.
ARGUMENTS = {
    "explain": "--resource VCPU=400",
    "capacity": "--resource VCPU=1",
    "overview": "",
    "consumers": "",
    "history": "host1",
    "usage": "",
    "claim": f"--consumer {CONSUMER} --resource VCPU=1 --project red --user ada",
    "extend": f"{CONSUMER} 2h",
    "release": OTHER,
}
HOSTS = "providers: [{name: 'host[1-2]', inventories: {VCPU: 8}}]"


@pytest.fixture(scope="module")
def service(backend):
    """A service with two hosts and a claim."""
    with ask_process.service_with_providers(backend, HOSTS) as loaded:
        with clients.admin(loaded) as client:
            client.claim(CONSUMER, "resources=VCPU:1", project_id="red", user_id="ada", consumer_type="JOB")
        yield loaded


@pytest.fixture
def ask(service):
    """Return a function that runs placement-ask, and returns the lines that it prints."""

    def run(*words):
        environment = {**ask_process.environment(), "OS_ENDPOINT": service.url, "OS_TOKEN": "admin"}
        done = preloaded.service().run([*ASK, *words], environment)
        assert done.stderr == ""
        return done.stdout.splitlines()

    return run


@pytest.fixture
def openstack(service, openstack_command):
    """Return a function that runs openstack, and returns the rows that it prints, header first."""
    identity = ["--os-auth-type", "admin_token", "--os-endpoint", service.url, "--os-token", "admin"]

    def run(*words):
        done = openstack_command([*identity, *words, "-f", "csv"])
        assert done.stderr == ""
        return [*csv.reader(done.stdout.splitlines())]

    return run


def test_the_page_lists_the_commands_of_both_clients(backend):
    points = configparser.ConfigParser()
    points.read(ROOT / "setup.cfg")
    declared = re.findall(r"^(\w+) = ", points["options.entry_points"]["openstack.placement.v1"], re.M)
    assert [command.replace(" ", "_") for command in sorted(PAIRS)] == sorted(declared)
    assert {*PAIRS.values()} == ARGUMENTS.keys()


@pytest.mark.parametrize("command", PAIRS)
def test_both_clients_show_the_same_columns(command, ask, openstack):
    """Both tables have the same header and first row; events are lines with the same cells, without a header."""
    ask_process.require_command(command)
    ask_command = PAIRS[command]
    words = shlex.split(ARGUMENTS[ask_command])
    header, *rows = openstack(*command.split(), *words)
    printed = ask(ask_command, *words)
    assert rows
    if ask_command == "history":
        for cells, line in zip(rows, printed, strict=True):
            assert re.fullmatch(":?  ".join(map(re.escape, filter(None, cells))), line)
    else:
        printed_rows = [line.split() for line in printed]
        assert printed_rows.count(header) == 1
        printed_row, expected = printed_rows[printed_rows.index(header) + 1], " ".join(rows[0]).split()
        if ask_command == "extend":  # each time to another timestamp
            until = header.index("until")
            printed_row[until], expected[until] = (
                re.sub(r"\d", "0", cells[until]) for cells in (printed_row, expected)
            )
        assert printed_row == expected
