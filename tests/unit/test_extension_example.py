"""The extension in docs/architecture.rst, installed beside the service, works as the page says."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.children import PATIENCE
from tests.docs.blocks import ROOT, captioned

PAGE = "docs/architecture.rst"
#: Serves with the configuration that is named, and prints the reply, the options and the policy rules.
CHILD = """
import json, sys
import webob
from placement import conf, deploy, extension

options = conf.load([f"--config-file={sys.argv[1]}"])
application = deploy.loadapp(options)
reply = webob.Request.blank("/hello", headers={"x-auth-token": "admin"}).get_response(application)
print(json.dumps({
    "status": reply.status_int,
    "reply": reply.json,
    "has option": "hello" in options and "word" in options.hello,
    "has rule": "hello:show" in {rule.name for rule in deploy.rules_of(extension.enabled(options))},
}))
"""
#: Sends the requests of the page, whose replies it compares.
EXAMPLES = """
import sys
from pathlib import Path
from placement import conf, deploy
from tests.docs import examples

application = deploy.loadapp(conf.load([f"--config-file={sys.argv[1]}"]))
examples.run(examples.parse(Path("docs/architecture.rst").read_text()), application)
"""


@pytest.fixture
def run(tmp_path):
    """Run a program with the extension installed and these lines of configuration; return what it prints."""
    (tmp_path / "site").mkdir()
    install(tmp_path / "site")

    def run(program: str, *lines: str) -> str:
        basis = ["[api]", "auth_strategy = noauth2"]
        basis += ["[placement_database]", "connection = sqlite://", "sync_on_startup = true"]
        (tmp_path / "placement.conf").write_text("\n".join([*basis, *lines]))
        done = subprocess.run(
            [sys.executable, "-c", program, str(tmp_path / "placement.conf")],
            cwd=ROOT,
            env=os.environ | {"PYTHONPATH": str(tmp_path / "site")},
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


def install(site: Path) -> None:
    """Put the module, and the entry points of its distribution, into a directory, as an installer does."""
    (site / "hello.py").write_text(captioned(PAGE, "hello.py"))
    project = tomllib.loads(captioned(PAGE, "pyproject.toml"))
    assert [f"{module}.py" for module in project["tool"]["setuptools"]["py-modules"]] == ["hello.py"]
    project = project["project"]
    information = site / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
    information.mkdir()
    (information / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"
    )
    groups = (
        "\n".join([f"[{group}]", *(f"{name} = {value}" for name, value in named.items())])
        for group, named in project["entry-points"].items()
    )
    (information / "entry_points.txt").write_text("\n".join(groups))


def test_an_installed_extension_is_served_as_the_page_shows(run):
    run(EXAMPLES)


def test_its_option_and_its_rule_count(run):
    served = json.loads(run(CHILD, "[extensions]", "enabled = hello", "[hello]", "word = Good morning"))
    assert served == {"status": 200, "reply": {"greeting": "Good morning!"}, "has option": True, "has rule": True}


def test_a_policy_file_may_override_its_rule(run, tmp_path):
    (tmp_path / "policy.yaml").write_text('"hello:show": "role:nobody"\n')
    refused = json.loads(run(CHILD, "[oslo_policy]", f"policy_file = {tmp_path}/policy.yaml"))
    assert refused["status"] == 403


@pytest.mark.parametrize("enabled", ["", "doctor, v1"])
def test_of_an_extension_that_is_not_enabled_there_is_nothing(run, enabled):
    left_out = json.loads(run(CHILD, "[extensions]", f"enabled = {enabled}"))
    assert (left_out["status"], left_out["has option"], left_out["has rule"]) == (404, False, False)
