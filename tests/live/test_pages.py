"""The remaining commands and configurations of the pages (tests/docs/run_by.py)."""

from __future__ import annotations

import json
import re

import pytest
import sqlalchemy as sa

from placement.policy import rules
from tests import children, made, running
from tests.docs.blocks import ROOT
from tests.docs.run_by import blocks_of, options_of
from tests.load.storm import Call, Storm, claim, new
from tests.made import opened

URL = "https://placement.example.org"


@pytest.fixture
def url(backend):
    url = backend.create_database()
    yield url
    backend.drop_database(url)


def test_the_tools_of_libraries_work_with_the_service(shell):
    (generate,) = blocks_of(__file__, "docs/configuration.rst", "shell")
    (tools,) = blocks_of(__file__, "docs/policy.rst", "shell")
    shell.variables |= {"OS_PLACEMENT_CONFIG_DIR": str(shell.directory)}
    (shell.directory / "placement.conf").write_text("[placement_database]\nconnection = sqlite://\n")
    (sample,) = shell.run(generate.text)
    assert "#slow_request_threshold = 0" in sample.out
    overrides = blocks_of(__file__, "docs/policy.rst", "policy.yaml")
    policy = "".join(block.text for block in overrides)
    (shell.directory / "policy.yaml").write_text(policy)
    listed, in_force, redundant, _ = shell.run(tools.text)
    assert {rule.name for rule in rules.RULES} <= set(re.findall(r'^#?"(\S+)":', listed.out, re.MULTILINE))
    assert all(line in in_force.out for line in policy.splitlines() if not line.startswith("#"))
    assert "placement:" not in redundant.out


def test_the_samples_are_copied_to_where_the_system_finds_them(shell):
    """Commands that need root are stand-ins; ``systemctl`` and ``a2ensite`` find the copies below the test's root."""
    (shell.directory / "etc").symlink_to(ROOT / "etc")
    root = shell.directory / "root"
    for place in ("placement", "systemd/system", "apache2/sites-available"):
        (root / "etc" / place).mkdir(parents=True)
    others = "-*|apache2|enable|restart"
    units = f'{root}/etc/systemd/system/"$name"*'
    shell.stand_in("systemctl", f"for name; do case $name in {others}) ;; *) ls {units} ;; esac; done")
    shell.stand_in("a2ensite", f'ls {root}/etc/apache2/sites-available/"$1.conf"')
    for name in ("apt", "a2enmod"):
        shell.stand_in(name)
    for block in blocks_of(__file__, "docs/deployment.rst", "shell"):
        shell.run(block.text, {" /etc/": f" {root}/etc/"})
    assert {path.name for path in root.rglob("*") if path.is_file()} >= {"uwsgi.ini", "placement.conf"}


@pytest.mark.parametrize("backend", ["sqlite"], indirect=True)
def test_the_commands_of_an_installation_work(url, shell):
    sync, check = blocks_of(__file__, "docs/install.rst")
    (restored,) = blocks_of(__file__, "docs/backup.rst")
    shell.variables |= {"OS_PLACEMENT_DATABASE__CONNECTION": url, "OS_API__AUTH_STRATEGY": "noauth2"}
    shell.run(sync.text)
    with running.embedded(url) as service:
        shell.variables |= {"OS_AUTH_TYPE": "admin_token", "OS_TOKEN": "admin", "OS_ENDPOINT": service.url}
        health, _, classes = shell.run(check.text, {URL: service.url})
        assert (json.loads(health.out)["reasons"], "VCPU" in classes.out) == (["OK"], True)
        shell.run(restored.text)
    (crontab,) = blocks_of(__file__, "docs/deployment.rst", "/etc/cron.d/placement")
    for line in crontab.text.splitlines():
        *_, command = re.split(" +", line, maxsplit=6)
        (done,) = shell.run(command, {"/opt/placement/bin/": ""})
        assert done.out == done.err == ""


# --- the log ---


def shape(line):
    """Return a line of the log without the parts that vary by request."""
    line = re.sub(r"req-[\w-]+(\.\.\.)?", "REQUEST", re.sub(r"/7c1f[\w.-]+|/[0-9a-f-]{36}", "/UUID", line))
    line = re.sub(r"(?<=REQUEST )\S+ \S+ - - \S+ \S+(?=])", "CALLER", line)
    return re.sub(r"\d[\d.:-]*", "0", line)


@pytest.mark.parametrize("backend", ["sqlite"], indirect=True)
def test_the_log_is_as_shown(url):
    metrics, slow = (options_of(block) for block in blocks_of(__file__, "docs/observability.rst", "ini"))
    placed, search, slow_one, refused = (
        block.text.replace(",\n", ", ").replace("\n", " ").strip()
        for block in blocks_of(__file__, "docs/observability.rst", "text")
    )
    directory = children.run_directory() / f"shown-{new()}"
    metrics["metrics"]["directory"] = str(directory)
    with running.embedded(url, metrics) as service:
        storm = Storm(service.url)
        provider = storm.provider(VCPU=2)
        fits, too_much = (claim({provider: {"VCPU": amount}}) for amount in (1, 3))
        storm.together(fits, Call("GET", "/allocation_candidates?resources=VCPU%3A64"))
        lines = {shape(line) for line in service.log.read_text().splitlines()}
    assert shape(placed) in lines
    assert any(line.endswith(shape(search)) for line in lines)
    assert [*directory.iterdir()]
    slow["api"]["slow_request_threshold"] = "0.000001"  # no request takes a second
    with running.embedded(url, {**slow, "DEFAULT": {"use_json": True}}) as service:
        Storm(service.url).together(claim({provider: {"VCPU": 1}}), too_much)
        records = [json.loads(line) for line in service.log.read_text().splitlines() if line.startswith("{")]
    assert {shape(slow_one)} <= {shape(record["message"]) for record in records}
    (record,) = (record for record in records if record["extra"].get("status") == 409)
    assert_like(json.loads(refused.replace(", ...}", "}")), record)


def assert_like(expected, actual):
    """Check that a document contains the fields of an example, with values of the same form."""
    if isinstance(expected, dict):
        assert expected.keys() <= actual.keys()
        for name in expected:
            assert_like(expected[name], actual[name])
    elif isinstance(expected, str):
        # The actual message may be longer: each request here is also slow, which another block shows.
        assert actual is None or shape(actual).startswith(shape(expected)) or " " not in expected, (expected, actual)
    else:
        assert type(expected) is type(actual)


@pytest.mark.parametrize("backend", ["postgresql"], indirect=True)
def test_the_serving_host_of_several_in_the_url_is_used(backend, url):
    (block,) = blocks_of(__file__, "docs/deployment.rst", "ini")
    url_parts = sa.make_url(url)
    replacements = {
        "user:secret@": f"{url_parts.username}:{url_parts.password}@",
        "/placement?": f"/{url_parts.database}?",
        "db1:5432": f"127.0.0.1:{children.free_port()}",
        "db2:5432": f"127.0.0.1:{url_parts.port}",
    }
    (connection,) = re.findall("connection = (.*)", block.text)
    for old, replacement in replacements.items():
        assert old in connection
        connection = connection.replace(old, replacement)
    with opened(connection) as database:
        made.sync(database.engine)
        assert database.read(lambda db: db.execute(sa.text("SHOW transaction_read_only")).scalar()) == "off"
