"""The extension in docs/architecture.rst, installed beside the service, behaves as documented.

That of docs/whole-extension.rst is in tests/live/extensions/test_whole_extension.py.
"""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys

import pytest

from placement import extension
from tests.children import PATIENCE
from tests.docs import distribution
from tests.docs.blocks import PAGES, ROOT, blocks

PAGE = "docs/architecture.rst"
#: A program that serves with the named configuration, and prints the reply, the options and the policy rules.
CHILD = """
import json, sys
import webob
from placement import conf, deploy, extension

options = conf.load([f"--config-file={sys.argv[1]}"])
application = deploy.loadapp(options)
def asked(**headers):
    return webob.Request.blank("/hello", headers={"x-auth-token": "admin", **headers}).get_response(application)


reply, of_system = asked(), asked(**{"openstack-system-scope": "all"})
print(json.dumps({
    "status": reply.status_int,
    "reply": reply.json,
    "status of a system": of_system.status_int,
    "has option": "hello" in options and "word" in options.hello,
    "has rule": "hello:show" in {rule.name for rule in deploy.rules_of(extension.enabled(options))},
}))
"""
#: A program that sends the requests of the page and compares the replies.
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
    """Return a function that runs a program with the extension and lines of configuration, and returns its output."""
    distribution.install(PAGE, tmp_path / "site")

    def run(program: str, *lines: str) -> str:
        basis = ["[api]", "auth_strategy = noauth2"]
        basis += ["[placement_database]", "connection = sqlite://", "sync_on_startup = true"]
        (tmp_path / "placement.conf").write_text("\n".join([*basis, *lines]))
        result = subprocess.run(
            [sys.executable, "-c", program, str(tmp_path / "placement.conf")],
            cwd=ROOT,
            env=os.environ | {"PYTHONPATH": str(tmp_path / "site")},
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )
        assert result.returncode == 0, result.stderr
        return result.stdout

    return run


def test_an_installed_extension_is_served_as_the_page_shows(run):
    run(EXAMPLES)


def test_its_option_and_its_rule_take_effect(run):
    served = json.loads(run(CHILD, "[extensions]", "enabled = hello", "[hello]", "word = Good morning"))
    assert served == {
        "status": 200,
        "reply": {"greeting": "Good morning!"},
        "status of a system": 403,
        "has option": True,
        "has rule": True,
    }


def test_a_policy_file_may_override_its_rule(run, tmp_path):
    (tmp_path / "policy.yaml").write_text('"hello:show": "role:nobody"\n')
    refused = json.loads(run(CHILD, "[oslo_policy]", f"policy_file = {tmp_path}/policy.yaml"))
    assert refused["status"] == 403


@pytest.mark.parametrize("enabled", sorted({"", ", ".join(extension.installed_extensions())}))
def test_a_disabled_extension_has_no_routes_options_or_rules(run, enabled):
    left_out = json.loads(run(CHILD, "[extensions]", f"enabled = {enabled}"))
    assert (left_out["status"], left_out["has option"], left_out["has rule"]) == (404, False, False)


@pytest.mark.parametrize("page", [PAGE, "docs/whole-extension.rst"])
def test_the_examples_need_only_what_extensions_may_rely_on(page):
    promised = promises()
    assert {"placement/extension.py", "placement/db/schema/tables.py"} <= promised
    assert imported_by(page) - promised == set()


def promises():
    """Return the files in the table of what extensions may rely on."""
    table = PAGES["docs/whole-extension.rst"].partition(".. _extension-promises:")[2].partition("\nExtensions of")[0]
    return set(re.findall(r"``(placement/[\w/]+\.py)``", table))


def imported_by(page):
    """Return the files of the core that the blocks of a page import."""
    modules = [ast.parse(block.text) for block in blocks(PAGES[page]) if block.language == "python"]
    names = {
        name
        for module in modules
        for node in ast.walk(module)
        if isinstance(node, ast.ImportFrom)
        for name in (node.module, *(f"{node.module}.{each.name}" for each in node.names))
    }
    paths = {f"{name.replace('.', '/')}.py" for name in names if name.startswith("placement.")}
    return {path for path in paths if (ROOT / path).is_file()}
