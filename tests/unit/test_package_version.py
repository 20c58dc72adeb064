"""The version of a distribution that is built from a clone, an archive of git, or files alone."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests import servers
from tests.clock import PATIENCE

ROOT = Path(__file__).parent.parent.parent
#: The files that determine the version of a distribution.
FILES = ("pyproject.toml", ".gitattributes", ".git_archival.txt")
GIT_VARIABLES = {
    f"GIT_{role}_{field}": "x@example.org" for role in ("AUTHOR", "COMMITTER") for field in ("NAME", "EMAIL")
}
# The hooks and signatures that the user configures are ignored.
GIT_VARIABLES |= {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith(("GIT_", "SETUPTOOLS_SCM"))}


def version(directory, **variables):
    """Return the version of a distribution that is built in a directory."""
    command = [sys.executable, "-W", "ignore", "-m", "setuptools_scm"]
    environment = ENVIRONMENT | variables
    result = subprocess.run(
        command, cwd=directory, env=environment, capture_output=True, text=True, timeout=PATIENCE, check=True
    )
    return result.stdout.strip()


@pytest.fixture
def files(tmp_path):
    """Create a directory with the files, which is not a repository."""
    directory = tmp_path / "files"
    directory.mkdir()
    for name in FILES:
        shutil.copy(ROOT / name, directory / name)
    return directory


@pytest.fixture
def git(files, monkeypatch):
    """Make the directory a repository with one commit; return a function that runs git in it."""
    if shutil.which("git") is None:
        raise servers.Missing("git is not installed: apt install git")

    def run(*words):
        settings = ("-c", "commit.gpgsign=false", "-c", "tag.gpgsign=false")
        subprocess.run(
            ["git", *settings, *words], cwd=files, env=ENVIRONMENT | GIT_VARIABLES, timeout=PATIENCE, check=True
        )

    run("init", "--quiet")
    run("add", ".")
    run("commit", "--quiet", "--message", "one")
    return run


def test_a_tag_is_the_version(files, git):
    git("tag", "1.2.3")
    assert version(files) == "1.2.3"


def test_a_commit_after_a_tag_precedes_the_next_version(files, git):
    git("tag", "1.2.3")
    git("commit", "--quiet", "--allow-empty", "--message", "two")
    assert version(files).startswith("1.2.4.dev1+g")


def test_a_repository_without_tags_has_a_version(files, git):
    assert version(files).startswith("0.1.dev1+g")


@pytest.mark.parametrize(("tags", "expected"), [(["1.2.3"], "1.2.3"), ([], "0.0")], ids=["tagged", "untagged"])
def test_an_archive_of_git_has_the_version_of_its_tag(files, git, tmp_path, tags, expected):
    """Hosts of repositories offer such archives for download."""
    for tag in tags:
        git("tag", tag)
    git("archive", "--output", str(tmp_path / "archive.zip"), "HEAD")
    shutil.unpack_archive(tmp_path / "archive.zip", tmp_path / "unpacked")
    assert version(tmp_path / "unpacked") == expected


def test_files_alone_and_a_repository_without_git_have_a_version(files, git, tmp_path):
    """An installation from such files requires only Python."""
    git("tag", "1.2.3")
    assert version(files, PATH=str(tmp_path)) == "0.0"
    shutil.rmtree(files / ".git")
    assert version(files) == "0.0"
