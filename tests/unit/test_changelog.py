"""Fragments of the changelog are entries of a known kind; a release inserts its notes before the older ones."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import docutils.core
import docutils.nodes
import pytest

from tests.clock import PATIENCE

ROOT = Path(__file__).parents[2]
TOWNCRIER = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["towncrier"]
DIRECTORY = ROOT / TOWNCRIER["directory"]
KINDS = {kind["directory"]: kind["name"] for kind in TOWNCRIER["type"]}
FRAGMENT_NAME = re.compile(rf"[a-z0-9-]+\.({'|'.join(KINDS)})\.rst")


def fragments():
    """Return the paths of the fragments since the last release; there may be none."""
    return sorted(path for path in DIRECTORY.iterdir() if path.name not in TOWNCRIER["ignore"])


def parse(text):
    return docutils.core.publish_doctree(text, settings_overrides={"report_level": 1, "halt_level": 2})


def is_single_entry(text):
    """Whether the text, as an item of the template's list, is a single item."""
    document = parse("* " + text.strip().replace("\n", "\n  "))
    return [type(child) for child in document.children] == [docutils.nodes.bullet_list] and bool(
        document.astext().strip()
    )


def test_every_fragment_has_a_known_kind():
    assert [path.name for path in fragments() if not FRAGMENT_NAME.fullmatch(path.name)] == []


def test_every_fragment_is_one_entry_of_a_list():
    assert [path.name for path in fragments() if not is_single_entry(path.read_text())] == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [("One, \n``two``.", True), ("", False), ("Title\n=====\n\nText.", False), ("One.\n\n* Two.", True)],
)
def test_a_single_entry_is_recognized(text, expected):
    try:
        assert is_single_entry(text) is expected
    except docutils.utils.SystemMessage:
        assert not expected


def test_the_readme_explains_every_kind():
    explained = re.findall(r"^``(\w+)``$", (DIRECTORY / "README.rst").read_text(), flags=re.MULTILINE)
    assert explained == [*KINDS]


# --- a release -------------------------------------------------------------------------------------------------------


@pytest.fixture
def checkout(tmp_path):
    """Return a directory with the changelog of this repository and one fragment of each kind."""
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    shutil.copy(ROOT / TOWNCRIER["filename"], tmp_path)
    fragments_directory = tmp_path / TOWNCRIER["directory"]
    fragments_directory.mkdir()
    for name in TOWNCRIER["ignore"]:
        shutil.copy(DIRECTORY / name, fragments_directory)
    for kind in KINDS:
        (fragments_directory / f"a-change.{kind}.rst").write_text(f"The {kind},\nin two lines with ``code``.\n")
    return tmp_path


def towncrier(checkout, *words):
    argv = [sys.executable, "-m", "towncrier", "build", "--name", "placement-service", *words]
    result = subprocess.run(argv, cwd=checkout, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert result.returncode == 0, result.stderr
    return result.stdout


def releases(text):
    """Return the titles of the sections of each release of a changelog, by the title of the release."""
    return {
        release.next_node(docutils.nodes.title).astext(): [
            section.next_node(docutils.nodes.title).astext()
            for section in release.children
            if isinstance(section, docutils.nodes.section)
        ]
        for release in parse(text).children
        if isinstance(release, docutils.nodes.section)
    }


def test_a_release_is_inserted_before_earlier_ones(checkout):
    before = (checkout / TOWNCRIER["filename"]).read_text()
    towncrier(checkout, "--yes", "--version", "1.0.1", "--date", "2026-12-24")
    after = (checkout / TOWNCRIER["filename"]).read_text()
    assert releases(after) == {"1.0.1 (2026-12-24)": [*KINDS.values()]} | releases(before)
    assert next(iter(releases(after))) == "1.0.1 (2026-12-24)"
    marker = ".. towncrier release notes start\n"
    assert after.partition(marker)[0] == before.partition(marker)[0]
    assert after.endswith(before.partition(marker)[2])
    assert {path.name for path in (checkout / TOWNCRIER["directory"]).iterdir()} == {*TOWNCRIER["ignore"]}


def test_a_draft_shows_the_notes_and_keeps_the_fragments(checkout):
    before = (checkout / TOWNCRIER["filename"]).read_text()
    draft = towncrier(checkout, "--draft", "--version", "unreleased")
    assert all(f"* The {kind},\n  in two lines with ``code``.\n" in draft for kind in KINDS)
    assert (checkout / TOWNCRIER["filename"]).read_text() == before
    assert len([*(checkout / TOWNCRIER["directory"]).iterdir()]) == len(KINDS) + len(TOWNCRIER["ignore"])
