"""Every command and request of docs/runbooks.rst is run, in its order, and answered as it is shown."""

from __future__ import annotations

import datetime
import re
import secrets
import sys
from pathlib import Path

import pytest
import sqlalchemy as sa
import yaml

from placement import deploy
from placement.db.schema.tables import consumers
from tests import children, running, transcripts, web
from tests.docs import examples
from tests.docs.blocks import PAGES, blocks
from tests.made import opened
from tests.nova import fake
from tests.transcripts import pattern

#: The text of each runbook, by its label.
RUNBOOKS = dict(
    re.findall(
        r"^\.\. _(runbook-\w+):\n(.*?)(?=^\.\. _runbook-|\Z)", PAGES["docs/runbooks.rst"], re.MULTILINE | re.DOTALL
    )
)
#: The servers of a runbook's nova, in a comment.
_SERVERS = re.compile(r"^\.\. runbook-nova:\n\n((?:   .*\n)+)", re.MULTILINE)
_DATE = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
#: How old the consumers are when the first command is run.
_AGE = datetime.timedelta(days=41)


def servers(text):
    """Yield the servers that nova has: uuid, host, VCPU, MEMORY_MB."""
    for block in _SERVERS.findall(text):
        for line in block.splitlines():
            uuid, host, vcpus, memory = line.split()
            yield uuid, host, int(vcpus), int(memory)


def request(text, application):
    """Send the requests of a piece of a page, and compare the replies with those that are shown."""
    none = "" if re.search(r"^ *\.\. code-block:: http$", text, re.MULTILINE) else "\n.. example-none: only commands\n"
    examples.run(examples.parse(text + none), application)


def age(database):
    """Let all consumers be created and changed long ago."""
    at = datetime.datetime.now(datetime.UTC).replace(tzinfo=None) - _AGE
    with database.engine.begin() as connection:
        connection.execute(sa.update(consumers).values(created_at=at, updated_at=at))


@pytest.fixture
def nova(tmp_path):
    with fake.served() as state:
        clouds = {"mycloud": {"auth_type": "none", "auth": {"endpoint": state.url}}}
        (tmp_path / "clouds.yaml").write_text(yaml.safe_dump({"clouds": clouds}))
        yield state


@pytest.fixture
def url():
    return f"sqlite:///{children.run_directory()}/runbook-{secrets.token_hex(4)}.sqlite"


@pytest.fixture
def environment(url, nova, tmp_path):
    programs = tmp_path / "bin"
    transcripts.install(programs)
    client = Path(sys.executable).with_name("openstack")
    if not client.exists():
        raise servers.Missing("openstack is not installed: pip install python-openstackclient osc-placement")
    (programs / "openstack").symlink_to(client)
    with running.embedded(url) as service:
        found = transcripts.environment()
        yield {
            **found,
            "PATH": f"{programs}:{found['PATH']}",
            "OS_PLACEMENT_DATABASE__CONNECTION": url,
            "OS_CLIENT_CONFIG_FILE": str(tmp_path / "clouds.yaml"),
            "OS_AUTH_TYPE": "admin_token",
            "OS_ENDPOINT": service.url,
            "OS_TOKEN": "admin",
        }


def known(value):
    """Return a text with a constant in place of each date."""
    return _DATE.sub("DATE", value)


@pytest.mark.parametrize("name", RUNBOOKS)
def test_the_commands_and_requests_of_a_runbook_are_answered_as_shown(name, environment, url, nova, tmp_path):
    text = RUNBOOKS[name]
    for uuid, host, vcpus, memory in servers(text):
        nova.add(uuid, host, {"vcpus": vcpus, "ram": memory, "disk": 0})
    # From one block of commands to the next: the commands, and the requests after them.
    first, *others = re.split(r"^(?= *\.\. code-block:: console$)", text, flags=re.MULTILINE)
    assert others
    with opened(url) as database:
        application = deploy.loadapp(web.configuration(), database)
        request(first, application)
        age(database)
        for piece in others:
            [block] = (block for block in blocks(piece) if block.kind == "console")
            walked = transcripts.steps(block.text)
            printed, errors = transcripts.run([command for command, _ in walked], tmp_path, environment)
            for (command, shown), output in zip(walked, printed, strict=True):
                assert pattern(known(shown)).fullmatch(known(output.strip("\n"))), f"$ {command}\n{output}\n{errors}"
            request(piece, application)
    assert nova.invalid == []


def test_the_runbooks_are_found():
    assert RUNBOOKS.keys() == {"runbook-full", "runbook-ratio", "runbook-evacuation", "runbook-restore"}
    assert [len([*servers(text)]) for text in RUNBOOKS.values()] == [2, 0, 1, 2]
