"""The files for the forges and Read the Docs conform to their schemas, and name existing commands."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.clock import PATIENCE
from tests.docs import commands
from tools import distributions

ROOT = Path(__file__).parents[2]
#: The schemas, which check-jsonschema includes, by file pattern; the last match of a file counts.
SCHEMAS = {
    ".readthedocs.yaml": "vendor.readthedocs",
    ".github/dependabot.yml": "vendor.dependabot",
    ".github/workflows/*.yml": "vendor.github-workflows",
    ".github/ISSUE_TEMPLATE/*.yml": "vendor.github-issue-forms",
    ".github/ISSUE_TEMPLATE/config.yml": "vendor.github-issue-config",
}
FILES = {str(path.relative_to(ROOT)): schema for pattern, schema in SCHEMAS.items() for path in ROOT.glob(pattern)}
WORKFLOWS = [name for name in FILES if "/workflows/" in name]
ENVIRONMENTS = {"py3", *re.findall(r"^\[testenv:(\w+)\]", (ROOT / "tox.ini").read_text(), re.MULTILINE)}
#: The texts for visitors of the forges.
TEXTS = [*("SECURITY.md", "CODE_OF_CONDUCT.md"), *FILES, ".github/pull_request_template.md"]


def load(name: str) -> Any:
    return yaml.safe_load((ROOT / name).read_text())


def validate(path: Path, schema: str) -> subprocess.CompletedProcess[str]:
    """Validate a file, without the network."""
    argv = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", schema, str(path)]
    return subprocess.run(argv, capture_output=True, text=True, timeout=PATIENCE, check=False)


@pytest.mark.parametrize("name", FILES)
def test_a_file_conforms_to_the_schema_of_its_reader(name):
    result = validate(ROOT / name, FILES[name])
    assert result.returncode == 0, result.stdout + result.stderr


def test_every_form_and_workflow_has_a_schema():
    files = {str(path.relative_to(ROOT)) for path in (ROOT / ".github").glob("*/*") if path.is_file()}
    assert files - {*FILES} == set()


# --- workflows ---


def steps(workflow: Any) -> Iterator[Any]:
    for job in workflow["jobs"].values():
        yield from job["steps"]


@pytest.mark.parametrize("name", WORKFLOWS)
def test_a_workflow_has_a_timeout_and_only_reads_unless_a_job_states_otherwise(name):
    workflow = load(name)
    assert workflow["permissions"] in ({}, {"contents": "read"})  # a job may have more rights
    assert all(0 < job["timeout-minutes"] < 360 for job in workflow["jobs"].values())


@pytest.mark.parametrize("name", WORKFLOWS)
def test_an_action_has_a_complete_version(name):
    actions = [step["uses"] for step in steps(load(name)) if "uses" in step]
    assert [action for action in actions if not re.fullmatch(r"[\w./-]+@(v\d+\.\d+\.\d+|[0-9a-f]{40})", action)] == []


@pytest.mark.parametrize("name", WORKFLOWS)
def test_the_commands_and_files_of_a_workflow_exist(name):
    workflow = load(name)
    scripts = {row["run"] for job in workflow["jobs"].values() for row in _rows(job) if "run" in row}
    scripts |= {step["run"] for step in steps(workflow) if "run" in step}
    for line in "\n".join(scripts).splitlines():
        if program := re.match(r"\.ci/\w+", line):
            assert (ROOT / program[0]).stat().st_mode & 0o111, line
        elif line.startswith("make ") and ".venv/gates" not in line:
            commands.check(line)
        for names in re.findall(r"tox run .*-e ([\w,]+)", line):
            assert {*names.split(",")} <= ENVIRONMENTS, line


def _rows(job: Any) -> list[Any]:
    return job.get("strategy", {}).get("matrix", {}).get("include", [])


def test_every_version_of_python_is_tested_each_night():
    [job] = load(".github/workflows/nightly.yml")["jobs"].values()
    tested = [row["python"] for row in _rows(job) if row["run"] == "make test"]
    assert tested == re.findall(r":: (3\.\d+)$", (ROOT / "setup.cfg").read_text(), re.MULTILINE)


def test_a_release_is_tested_on_every_version_of_python_and_can_be_repeated():
    jobs = load(".github/workflows/release.yml")["jobs"]
    [build] = [step for step in jobs["build"]["steps"] if "make dist" in step.get("run", "")]
    assert build["run"].split()[-1] == "ARGS=--every-python"
    [set_up] = [step["with"] for step in jobs["build"]["steps"] if "python-version" in step.get("with", {})]
    declared = tomllib.loads((ROOT / "client" / "pyproject.toml").read_text())["project"]["classifiers"]
    versions = [line.removeprefix("Programming Language :: Python :: ") for line in declared]
    assert {*set_up["python-version"].split()} == {version for version in versions if re.fullmatch(r"3\.\d+", version)}
    assert {*set_up["python-version"].split()} == {*distributions.CLIENT_VERSIONS}
    [upload] = [step["with"] for step in jobs["publish"]["steps"] if "pypi-publish" in step.get("uses", "")]
    assert upload["skip-existing"] is True


# --- texts ---


@pytest.mark.parametrize("name", TEXTS)
def test_the_commands_and_files_that_a_text_names_exist(name):
    text = (ROOT / name).read_text()
    for literal in re.findall(r"`([^`]+)`", text):
        if re.match(r"(placement-\w+|make) ", literal):
            commands.check(literal)
        elif re.search(r"\w(/|\.rst|\.md)$", literal) and not literal.startswith("/"):
            assert (ROOT / literal).exists(), literal
    for target in re.findall(r"\]\(([^):]+)\)", text):
        assert (ROOT / target).exists(), target
