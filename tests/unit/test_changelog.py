"""Every fragment of the changelog has a known kind and renders as one list entry."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import docutils.core
import docutils.nodes
import pytest

ROOT = Path(__file__).parents[2]
TOWNCRIER = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["towncrier"]
DIRECTORY = ROOT / TOWNCRIER["directory"]
FRAGMENTS = sorted(path for path in DIRECTORY.iterdir() if path.name not in TOWNCRIER["ignore"])
NAME = re.compile(rf"[a-z0-9-]+\.({'|'.join(kind['directory'] for kind in TOWNCRIER['type'])})\.rst")


@pytest.mark.parametrize("fragment", FRAGMENTS, ids=lambda path: path.name)
def test_every_fragment_has_a_known_kind(fragment):
    assert NAME.fullmatch(fragment.name)


@pytest.mark.parametrize("fragment", FRAGMENTS, ids=lambda path: path.name)
def test_every_fragment_is_one_entry_of_a_list(fragment):
    entry = "* " + fragment.read_text().strip().replace("\n", "\n  ")
    document = docutils.core.publish_doctree(entry, settings_overrides={"report_level": 1, "halt_level": 2})
    assert [type(child) for child in document.children] == [docutils.nodes.bullet_list]
    assert document.astext().strip()


def test_the_readme_explains_every_kind():
    explained = re.findall(r"^``(\w+)``$", (DIRECTORY / "README.rst").read_text(), flags=re.MULTILINE)
    assert sorted(explained) == sorted(kind["directory"] for kind in TOWNCRIER["type"])


def test_the_changelog_has_a_place_for_the_next_release():
    assert ".. towncrier release notes start\n" in (ROOT / TOWNCRIER["filename"]).read_text()
