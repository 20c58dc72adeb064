"""A copy of the repository without extensions installs, serves, and passes all tests of the Placement API."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Sequence
from pathlib import Path

import pytest

from placement import extension
from tests import caller, children, running, servers
from tools import copy_core

#: Tests that a long run runs in the copy, one part after another: short parts, since a long test counts as hanging.
PARTS = (
    *("tests/gabbi", "tests/unit", "tests/search", "tests/index"),
    *("tests/db/cmd", "tests/db/objects", "tests/db/test_*.py"),
    *(f"tests/db/db/{name}" for name in ("engine", "schema", "upkeep", "writes", "test_*.py")),
)
#: The excluded tests, about the repository as a whole: its documents, samples and declarations, and jepsen/, which runs
#: the service with its extensions.
WHOLE_REPOSITORY = tuple(
    f"tests/unit/{name}.py" for name in ("test_documents", "test_packaging", "test_samples", "tests/test_sessions")
)

#: One process makes the copy, and runs all tests of it.
pytestmark = pytest.mark.xdist_group("core alone")


class Copy:
    """The core in a directory, installed in an environment with the packages of this one, but without this service.

    Attributes:
        root: The directory of the copy.
    """

    def __init__(self, directory: Path) -> None:
        self.root, self._programs = directory / "copy", directory / "environment" / "bin"
        copy_core.copy(self.root)
        venv.EnvBuilder(symlinks=True).create(self._programs.parent)
        site_packages = sysconfig.get_path("purelib", vars={"base": str(self._programs.parent)})
        # Python reads no .pth files of a directory named here, so it does not find an editable installation there.
        Path(site_packages, "packages.pth").write_text(sysconfig.get_path("purelib"))
        install = (sys.executable, "-m", "uv", "pip", "install", "--quiet", "--offline", "--no-deps")
        done = self._run(*install, "--no-build-isolation", "--python", self.program("python"), ".")
        assert done.returncode == 0, done.stderr

    def program(self, name: str) -> str:
        return str(self._programs / name)

    def run(self, name: str, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
        """Run a command of the copy, and return the completed process."""
        return self._run(self.program(name), *words, **variables)

    def _run(self, *argv: str, **variables: str) -> subprocess.CompletedProcess[str]:
        """Run a command in the directory of the copy, without the variables that pytest sets for its workers."""
        inherited = {
            name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "PYTHONPATH"))
        }
        return subprocess.run(
            argv, cwd=self.root, env=inherited | variables, capture_output=True, text=True, check=False
        )

    def check_tests(self, *patterns: str, options: Sequence[str] = ("-n", "2")) -> None:
        """Run the tests that match patterns of paths, on SQLite; raise AssertionError with the failures."""
        files = [str(path) for pattern in patterns for path in sorted(self.root.glob(pattern))]
        assert files, patterns
        ignored = [f"--ignore={path}" for path in WHOLE_REPOSITORY]
        arguments = ("-m", "pytest", "-q", "--tb=short", "-p", "no:cacheprovider", "--databases", "sqlite")
        done = self.run("python", *arguments, *options, *ignored, *files)
        assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]


@pytest.fixture(scope="module")
def core(tmp_path_factory: pytest.TempPathFactory) -> Copy:
    if not (copy_core.ROOT / ".git").exists():
        pytest.skip("not a repository")
    if not Path(sys.executable).with_name("uv").exists():
        raise servers.Missing("uv is not installed: pip install uv")
    return Copy(tmp_path_factory.mktemp("core"))


# --- installed --------------------------------------------------------------------------------------------------------


def test_nothing_of_an_extension_is_installed(core):
    code = (
        "import placement.extension as e; print(e.__file__, [*e.installed_extensions()]); import placement.extensions"
    )
    done = core.run("python", "-P", "-c", code)
    file, _, names = done.stdout.strip().rpartition(" ")
    assert Path(file).is_relative_to(Path(core.program("")).parent)
    assert names == "[]"
    assert "No module named 'placement.extensions'" in done.stderr
    assert not Path(core.program("placement-ask")).exists()


def test_it_serves_the_placement_api_and_no_other(core):
    port = children.free_port()
    directory = running.write_configuration(f"sqlite:///{core.root}/served.sqlite", None)
    argv = [core.program("placement-serve"), "--port", str(port)]
    for service in running.run(argv, port, directory):
        call = caller.over_http(service.url)
        assert call("GET", "/").body["versions"][0]["max_version"] == "1.39"
        provider = {"uuid": "6c1b0f5e-0b8e-4f6e-8a57-51a3f0a4c0aa", "name": "host"}
        assert call("POST", "/resource_providers", body=provider).status == 200
        assert call("GET", f"/resource_providers/{provider['uuid']}").body.items() >= provider.items()
        for path in ("/v1/overview", "/console/", "/baremetal/v1/nodes"):
            assert call("GET", path).status == 404, path
        browser = caller.over_http(service.url, {"Accept": "text/html"})
        assert "versions" in browser("GET", "/").body


def test_its_commands_are_those_of_the_core(core, tmp_path):
    variables = {"OS_PLACEMENT_DATABASE__CONNECTION": f"sqlite:///{tmp_path}/placement.sqlite"}
    assert core.run("placement-manage", "db", "sync", **variables).returncode == 0
    check = core.run("placement-status", "upgrade", "check", **variables)
    assert check.returncode == 0, check.stdout + check.stderr
    added = commands_of_extensions()
    assert added
    refused = core.run("placement-manage", min(added), **variables)
    assert refused.returncode == 2
    choices = refused.stderr.rpartition("choose from ")[2]
    assert "db" in choices
    assert [name for name in added if name in choices] == []


def commands_of_extensions():
    """Return the commands that extensions add to placement-manage."""
    commands = argparse.ArgumentParser().add_subparsers()
    for installed_extension in extension.installed_extensions().values():
        if installed_extension.commands:
            installed_extension.commands(commands)
    return {*commands.choices}


# --- tested -----------------------------------------------------------------------------------------------------------


def test_its_tests_import_nothing_of_an_extension(core):
    core.check_tests(*PARTS, options=("--collect-only",))


def test_all_tests_of_the_core_in_the_copy_are_in_a_part(core):
    """Each test file in a directory of the parts belongs to exactly one of them."""
    tops = {"/".join(part.split("/")[:2]) for part in PARTS}
    parts = [path for part in PARTS for path in core.root.glob(part)]
    for test in (path for top in tops for path in (core.root / top).rglob("test_*.py")):
        assert sum(test.is_relative_to(part) for part in parts) == 1, test


@pytest.mark.long
@pytest.mark.parametrize("path", PARTS)
def test_it_passes_all_tests_of_the_core(core, path):
    core.check_tests(path)
