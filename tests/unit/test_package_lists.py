"""The docstrings of packages that list their modules list all of them, and only modules that exist."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import placement

ROOT = Path(placement.__file__).parent
#: A line of a list: names of modules, spaces, and a description.
LINE = re.compile(r"^ *([a-z_]+(?:, [a-z_]+)*) {2,}\S")
#: Modules that the docstring describes as a whole: a module per noun of the API.
NOUNS = {
    "schemas": {
        *("aggregate", "allocation", "allocation_candidate", "inventory", "provider", "reshaper"),
        *("resource_class", "root", "trait", "usage"),
    }
}


def listed(package: Path) -> list[str]:
    docstring = ast.get_docstring(ast.parse((package / "__init__.py").read_text())) or ""
    lines = map(LINE.match, docstring.splitlines())
    return [name for line in lines if line for name in line[1].split(", ")]


#: Packages whose docstring lists every module.
COMPLETE = (
    *("checks", "cmd", "conf", "http", "metrics", "middleware", "policy", "tracing"),
    *("objects", "objects/claims", "schemas", "search", "search/narrow", "search/query", "search/solver"),
)


def modules(package: Path) -> set[str]:
    return {path.stem for path in package.glob("*.py")} - {"__init__"} | {
        path.parent.name for path in package.glob("*/__init__.py")
    }


@pytest.mark.parametrize("name", COMPLETE)
def test_every_module_is_listed_once(name):
    package = ROOT / name
    assert sorted(listed(package)) == sorted(modules(package) - NOUNS.get(name, set()))
