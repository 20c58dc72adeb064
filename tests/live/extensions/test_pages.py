"""The remaining commands and configurations of the pages of extensions (tests/docs/run_by.py)."""

from __future__ import annotations

import datetime
import json
import re
import shlex
import subprocess

import openstack
import pytest
import requests
import sqlalchemy as sa

from placement import deploy
from placement.db.schema.tables import allocations, consumers, inventories, projects, resource_providers, users
from tests import ask_process, children, made, running, transcripts, web
from tests.docs.run_by import blocks_of, options_of
from tests.made import opened
from tests.shells import lines

ADDRESS = "http://127.0.0.1:8778"
#: The providers in the commands of docs/extensions/ask.rst.
CLOUD = """
providers:
  - name: compute-[01-05]
    inventories: {VCPU: 64, MEMORY_MB: 65536}
    children:
      - name: "{parent}-numa0"
        inventories: {VCPU: 32}
        traits: [HW_NUMA_ROOT]
        children:
          - {name: "{parent}-nic", inventories: {SRIOV_NET_VF: 8}}
          - {name: "{parent}-gpu[0-3]", inventories: {PGPU: 2}}
"""


@pytest.fixture
def url(backend):
    url = backend.create_database()
    yield url
    backend.drop_database(url)


@pytest.fixture
def operator(shell, url):
    """An operator's shell, configured for a database with the schema."""
    shell.variables |= {"OS_PLACEMENT_DATABASE__CONNECTION": url, "OS_API__AUTH_STRATEGY": "noauth2"}
    with opened(url) as database:
        made.sync(database.engine)
    return shell


@pytest.mark.parametrize("backend", ["sqlite"], indirect=True)
@pytest.mark.filterwarnings("ignore")  # warnings of the SDK
def test_the_queries_and_configurations_of_the_pages_work(operator, url):
    options = {}
    for page in ("docs/extensions/baremetal.rst", "docs/extensions/console.rst"):
        (block,) = blocks_of(__file__, page, "ini")
        options |= options_of(block)
    (operator.directory / "cloud.yaml").write_text(CLOUD)
    operator.run("placement-manage load cloud.yaml")
    with running.embedded(url, options) as service:
        assert requests.get(f"{service.url}/console/", timeout=children.PATIENCE).status_code == 200
        replacements = {ADDRESS: service.url, "https://placement.example.org": service.url}
        # With noauth2 the service requires no password; tests/live/test_web_servers.py covers http_basic.
        (exports,) = blocks_of(__file__, "docs/extensions/baremetal.rst", "shell")
        for export in exports.text.split("\n\n"):
            operator.run(export, replacements)
            operator.run("openstack baremetal node list")
        (clouds,) = blocks_of(__file__, "docs/extensions/baremetal.rst", "clouds.yaml")
        file = operator.directory / "clouds.yaml"
        file.write_text(clouds.text.replace(ADDRESS, service.url))
        config = openstack.config.OpenStackConfig(config_files=[str(file)], load_envvars=False)
        assert [*openstack.connection.Connection(config=config.get_one("here")).baremetal.nodes()] == []
        (curl,) = blocks_of(__file__, "docs/api/baremetal/protocol.rst")
        (nodes,) = operator.run(curl.text, replacements)
        assert json.loads(nodes.out) == {"nodes": []}

        operator.variables |= {"OS_AUTH_TYPE": "admin_token", "OS_ENDPOINT": service.url, "OS_TOKEN": "admin"}
        questions, *other_blocks = blocks_of(__file__, "docs/extensions/ask.rst")
        *queries, release_command = lines(questions.text)
        (consumer,) = re.findall(r"extend (\S+)", questions.text)
        operator.run(f"placement-ask claim --consumer {consumer} --resource VCPU=1 --project ml --user ada")
        # The command continues until Ctrl-C.
        follow = {"placement-ask events --follow": "timeout 1 placement-ask events --follow"}
        for command in queries:
            (done,) = operator.run(command, follow, codes=(0, 124))
            assert (done.code == 124) == ("--follow" in command), done
        with opened(url) as database, database.engine.begin() as connection:
            week_ago = datetime.datetime.now(datetime.UTC).replace(tzinfo=None) - datetime.timedelta(days=8)
            connection.execute(sa.update(consumers).where(consumers.c.uuid == consumer).values(created_at=week_ago))
        words = shlex.split(release_command, comments=True)[1:]
        code, output = ask_process.in_terminal([*ask_process.ASK, *words], operator.environment, 200, "y\n")
        assert (code, consumer in output) == (0, True), output
        (cron,) = blocks_of(__file__, "docs/observability.rst")
        for line in cron.text.splitlines():
            operator.run(re.split(" +", line, maxsplit=6)[-1])
        watch_block, count_block, claim_block = other_blocks
        (line,) = lines(watch_block.text)
        with ask_process.watching(operator.environment, *shlex.split(line)[1:], stdout=subprocess.PIPE) as process:
            ask_process.until(process.stdout, "compute-0")
        (done,) = operator.run(count_block.text)
        assert done.out.startswith("This fits exactly ")
        (_, jobs), _ = transcripts.steps(claim_block.text)
        (operator.directory / "jobs.json").write_text(f"{jobs}\n")
        _, done = operator.run(claim_block.text)
        assert done.out.count(" 2 PGPU") == 4


@pytest.mark.parametrize("backend", ["sqlite"], indirect=True)
def test_a_file_of_providers_is_loaded_and_its_mistakes_are_reported(operator, url):
    (block,) = blocks_of(__file__, "docs/extensions/load.rst", "yaml")
    file = operator.directory / "cloud.yaml"
    file.write_text(block.text)
    (done,) = operator.run("placement-manage load cloud.yaml")
    assert "|    new    |   33   |" in done.out
    with opened(url) as database, database.engine.begin() as connection:
        allocation = sa.select(resource_providers.c.id, sa.literal("c"), inventories.c.resource_class_id, 1)
        allocation = allocation.join(inventories, inventories.c.resource_provider_id == resource_providers.c.id)
        allocation = allocation.where(resource_providers.c.name == "gpu-host-1-numa0-gpu0")
        columns = ["resource_provider_id", "consumer_id", "resource_class_id", "used"]
        connection.execute(sa.insert(allocations).from_select(columns, allocation))
    mistakes = (("MEMORY_MB", "VCPUS"), ("{PGPU: 1}", "{}"))
    for output, (old, new) in zip(blocks_of(__file__, "docs/extensions/load.rst", "text"), mistakes, strict=True):
        file.write_text(block.text.replace(old, new))
        (done,) = operator.run("placement-manage load cloud.yaml", codes=(1,))
        assert transcripts.pattern(output.text).fullmatch(done.err), done


@pytest.mark.parametrize("backend", ["sqlite"], indirect=True)
def test_the_doctor_prints_the_findings_shown_and_fixes_them(operator, url):
    (block,) = blocks_of(__file__, "docs/extensions/doctor.rst")
    ((_, output), *_) = transcripts.steps(block.text)
    consumer, provider = re.search(r"consumer (\S+): provider id (\d+)", output).groups()
    with opened(url) as database:
        deploy.loadapp(web.configuration(), database)
        with database.engine.begin() as connection:
            connection.execute(sa.insert(projects).values(id=1, external_id="red"))
            connection.execute(sa.insert(users).values(id=1, external_id="ann"))
            connection.execute(sa.insert(consumers).values(uuid=consumer, project_id=1, user_id=1, generation=1))
            row = {"resource_provider_id": int(provider), "consumer_id": consumer, "resource_class_id": 0, "used": 1}
            connection.execute(sa.insert(allocations).values(row))
    findings, _, fixed = operator.run(block.text, codes=(0, 3, 4))
    assert transcripts.pattern(output).fullmatch(findings.out.strip("\n")), findings.out
    assert fixed.code == 0
