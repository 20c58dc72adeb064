"""The extension in docs/architecture.rst, installed beside the service, behaves as documented.

tests/live/extensions/test_whole_extension.py tests the extension in docs/whole-extension.rst.
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
#: A program that serves with the named configuration; prints the response, and whether the option and rule exist.
CHILD = """
import json, sys
import webob
from placement import conf, deploy, extension

options = conf.load([f"--config-file={sys.argv[1]}"])
application = deploy.loadapp(options)
def show(**headers):
    return webob.Request.blank("/hello", headers={"x-auth-token": "admin", **headers}).get_response(application)


reply, with_system_scope = show(), show(**{"openstack-system-scope": "all"})
print(json.dumps({
    "status": reply.status_int,
    "reply": reply.json,
    "status with system scope": with_system_scope.status_int,
    "has option": "hello" in options and "word" in options.hello,
    "has rule": "hello:show" in {rule.name for rule in deploy.rules_of(extension.enabled(options))},
}))
"""
#: A program that sends the requests of the page and compares the responses.
EXAMPLES = """
import sys
from pathlib import Path
from placement import conf, deploy
from tests.docs import examples

application = deploy.loadapp(conf.load([f"--config-file={sys.argv[1]}"]))
examples.run(examples.parse(Path("docs/architecture.rst").read_text()), application)
"""


@pytest.fixture
def run_program(tmp_path):
    """Return a function that runs a program with the extension installed, and returns its output."""
    distribution.install(PAGE, tmp_path / "site")

    def run(program: str, *lines: str) -> str:
        basic_lines = ["[api]", "auth_strategy = noauth2"]
        basic_lines += ["[placement_database]", "connection = sqlite://", "sync_on_startup = true"]
        (tmp_path / "placement.conf").write_text("\n".join([*basic_lines, *lines]))
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


def test_an_installed_extension_is_served_as_the_page_shows(run_program):
    run_program(EXAMPLES)


def test_the_option_and_the_rule_of_the_extension_take_effect(run_program):
    output = json.loads(run_program(CHILD, "[extensions]", "enabled = hello", "[hello]", "word = Good morning"))
    assert output == {
        "status": 200,
        "reply": {"greeting": "Good morning!"},
        "status with system scope": 403,
        "has option": True,
        "has rule": True,
    }


def test_a_policy_file_may_override_the_rule_of_the_extension(run_program, tmp_path):
    (tmp_path / "policy.yaml").write_text('"hello:show": "role:nobody"\n')
    output = json.loads(run_program(CHILD, "[oslo_policy]", f"policy_file = {tmp_path}/policy.yaml"))
    assert output["status"] == 403


@pytest.mark.parametrize("enabled", sorted({"", ", ".join(extension.installed_extensions())}))
def test_a_disabled_extension_has_no_routes_options_or_rules(run_program, enabled):
    output = json.loads(run_program(CHILD, "[extensions]", f"enabled = {enabled}"))
    assert (output["status"], output["has option"], output["has rule"]) == (404, False, False)


@pytest.mark.parametrize("page", [PAGE, "docs/whole-extension.rst"])
def test_the_examples_import_only_modules_promised_to_extensions(page):
    promised_modules = promised_files()
    assert {"placement/extension.py", "placement/db/schema/tables.py"} <= promised_modules
    assert files_imported_by(page) - promised_modules == set()


def promised_files():
    """Return the files in the table of modules that extensions may rely on."""
    table = PAGES["docs/whole-extension.rst"].partition(".. _extension-promises:")[2].partition("\nExtensions of")[0]
    return set(re.findall(r"``(placement/[\w/]+\.py)``", table))


def files_imported_by(page):
    """Return the files of the core that the blocks of a page import."""
    modules = [ast.parse(block.text) for block in blocks(PAGES[page]) if block.language == "python"]
    names = {
        name
        for module in modules
        for node in ast.walk(module)
        if isinstance(node, ast.ImportFrom)
        for name in (node.module, *(f"{node.module}.{alias.name}" for alias in node.names))
    }
    paths = {f"{name.replace('.', '/')}.py" for name in names if name.startswith("placement.")}
    return {path for path in paths if (ROOT / path).is_file()}
