"""Every command and request of docs/runbooks.rst runs, in order, with the response shown."""

from __future__ import annotations

import datetime
import json
import re
import secrets

import pytest
import sqlalchemy as sa
import yaml

from placement import deploy
from placement.db.schema.tables import consumers
from tests import children, made, running, transcripts, web
from tests.docs import examples
from tests.docs.blocks import PAGES, blocks
from tests.docs.run_by import blocks_of
from tests.made import opened
from tests.nova import fake
from tests.transcripts import pattern

#: The text of each runbook, by its label.
RUNBOOKS = dict(
    re.findall(
        r"^\.\. _(runbook-\w+):\n(.*?)(?=^\.\. _runbook-|\Z)", PAGES["docs/runbooks.rst"], re.MULTILINE | re.DOTALL
    )
)
#: A comment with the servers of a runbook's nova.
_SERVERS = re.compile(r"^\.\. runbook-nova:\n\n((?:   .*\n)+)", re.MULTILINE)
_DATE = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
#: The age of the consumers when the first command runs.
_AGE = datetime.timedelta(days=41)


def servers_of(text):
    """Yield the servers of nova: uuid, host, VCPU, MEMORY_MB."""
    for block in _SERVERS.findall(text):
        for line in block.splitlines():
            uuid, host, vcpus, memory = line.split()
            yield uuid, host, int(vcpus), int(memory)


def request(text, application):
    """Send the requests of part of a page, and compare the responses with those shown."""
    note = "" if re.search(r"^ *\.\. code-block:: http$", text, re.MULTILINE) else "\n.. example-none: only commands\n"
    examples.run(examples.parse(text + note), application)


def age(database, since=_AGE, *conditions):
    """Set the age of the creation and the last change of the consumers that meet conditions."""
    at = datetime.datetime.now(datetime.UTC).replace(tzinfo=None) - since
    with database.engine.begin() as connection:
        connection.execute(sa.update(consumers).where(*conditions).values(created_at=at, updated_at=at))


@pytest.fixture
def nova(tmp_path):
    with fake.serve() as state:
        clouds = {"mycloud": {"auth_type": "none", "auth": {"endpoint": state.url}}}
        (tmp_path / "clouds.yaml").write_text(yaml.safe_dump({"clouds": clouds}))
        yield state


@pytest.fixture
def url():
    return f"sqlite:///{children.run_directory()}/runbook-{secrets.token_hex(4)}.sqlite"


@pytest.fixture
def operator(url, nova, shell, tmp_path):
    """An operator's shell, configured for the database, the service and nova."""
    with running.embedded(url) as service:
        shell.variables |= {
            "OS_PLACEMENT_DATABASE__CONNECTION": url,
            "OS_CLIENT_CONFIG_FILE": str(tmp_path / "clouds.yaml"),
            "OS_AUTH_TYPE": "admin_token",
            "OS_ENDPOINT": service.url,
            "OS_TOKEN": "admin",
        }
        yield shell


def without_dates(value):
    """Return a text with a constant instead of each date."""
    return _DATE.sub("DATE", value)


@pytest.mark.parametrize("name", RUNBOOKS)
def test_the_commands_and_requests_of_a_runbook_have_the_results_shown(name, operator, url, nova):
    text = RUNBOOKS[name]
    for uuid, host, vcpus, memory in servers_of(text):
        nova.add(uuid, host, {"vcpus": vcpus, "ram": memory, "disk": 0})
    # Up to the next block of commands: the commands, and the requests after them.
    preparation, *pieces = re.split(r"^(?= *\.\. code-block:: console$)", text, flags=re.MULTILINE)
    assert pieces
    with opened(url) as database:
        application = deploy.loadapp(web.configuration(), database)
        request(preparation, application)
        age(database)
        for piece in pieces:
            [block] = (block for block in blocks(piece) if block.kind == "console")
            for command, expected in transcripts.steps(block.text):
                (done,) = operator.run(command, codes=(0, 1, 3))
                assert pattern(without_dates(expected)).fullmatch(without_dates(done.out.strip("\n"))), done
            request(piece, application)
    assert nova.invalid == []


#: The consumers of the page: VCPU and MEMORY_MB by provider; the project, and days since the last change.
CONSUMERS = {
    "8f2c1d8e-5f1c-4a0f-9d6e-2b7a0e4d9c11": ({"17": {"VCPU": 8, "MEMORY_MB": 16384}}, "5d1f", 41),
    "1b9d6bcd-bbfd-4b2d-9b5d-ab8dfbbd4bed": ({"17": {"VCPU": 2}, "04": {"VCPU": 2}}, "77aa", 3),
}


def test_the_commands_of_the_page_of_orphans_print_the_output_shown(url, nova, shell, tmp_path):
    def ask(method, path, body):
        headers = {"X-Auth-Token": "admin", "OpenStack-API-Version": "placement 1.39"}
        headers["Content-Type"] = "application/json"
        assert web.ask(application, method, path, headers, json.dumps(body).encode()).status_int in (200, 204)

    ids = {number: f"c1000000-0000-4000-8000-0000000000{number}" for number in ("17", "04")}
    orphan, double = CONSUMERS
    nova.add(double, "compute-4", {"vcpus": 2})
    shell.variables |= {
        "OS_PLACEMENT_DATABASE__CONNECTION": url,
        "OS_CLIENT_CONFIG_FILE": str(tmp_path / "clouds.yaml"),
    }
    shell.stand_in("openstack", f'test "$*" = "server list --all-projects -f value -c ID"; echo {double}')
    with opened(url) as database:
        made.sync(database.engine)
        application = deploy.loadapp(web.configuration(), database)
        for number, uuid in ids.items():
            ask("POST", "/resource_providers", {"name": f"compute-{int(number)}", "uuid": uuid})
            inventories = {"VCPU": {"total": 16}, "MEMORY_MB": {"total": 32768}}
            path = f"/resource_providers/{uuid}/inventories"
            ask("PUT", path, {"resource_provider_generation": 0, "inventories": inventories})
        for consumer, (amounts, project, days) in CONSUMERS.items():
            allocations = {ids[number]: {"resources": resources} for number, resources in amounts.items()}
            owner = {"project_id": project, "user_id": "ann", "consumer_type": "INSTANCE", "consumer_generation": None}
            ask("PUT", f"/allocations/{consumer}", {"allocations": allocations, **owner})
            age(database, datetime.timedelta(days=days), consumers.c.uuid == consumer)
        shown_block, *other_blocks = blocks_of(__file__, "docs/extensions/orphans.rst")
        ((_, text),) = transcripts.steps(shown_block.text)
        (report,) = shell.run(shown_block.text, codes=(3,))
        assert pattern(text).fullmatch(report.out.strip("\n")), report.out
        planned, released, compared, *last = (
            done for block in other_blocks for done in shell.run(block.text, codes=(0, 3))
        )
        assert planned.out.endswith("Dry run: nothing was released.  Consumers that --yes releases: 1.\n")
        assert released.out.endswith("Released consumers: 1 of 1.\n")
        assert (compared.code, orphan in compared.out) == (0, False), compared
        assert [done.code for done in last] == [0, 0]
    assert double in (shell.directory / "consumers.csv").read_text()
    assert nova.invalid == []


def test_the_runbooks_are_found():
    assert RUNBOOKS.keys() == {"runbook-full", "runbook-ratio", "runbook-evacuation", "runbook-restore"}
    assert [len([*servers_of(text)]) for text in RUNBOOKS.values()] == [2, 0, 1, 2]
