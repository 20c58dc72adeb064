"""The docstrings of packages list every module and directory, and nothing that does not exist."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import placement

ROOT = Path(placement.__file__).parent
#: A line of a list: the names of modules, two or more spaces, and a description.
LINE = re.compile(r"^ *([a-z_0-9]+(?:, [a-z_0-9]+)*) {2,}\S")
#: Modules that the docstring describes as a whole: a module per noun of the API.
NOUNS = {
    "schemas": {
        *("aggregate", "allocation", "allocation_candidate", "inventory", "provider", "reshaper"),
        *("resource_class", "root", "trait", "usage"),
    }
}


def listed_names(package: Path) -> list[str]:
    """Return the names in the list of a package's docstring."""
    docstring = ast.get_docstring(ast.parse((package / "__init__.py").read_text())) or ""
    lines = map(LINE.match, docstring.splitlines())
    return [name for line in lines if line for name in line[1].split(", ")]


#: Packages whose docstring lists every module.
COMPLETE = (
    *("checks", "cmd", "conf", "http", "metrics", "middleware", "policy", "tracing"),
    *("db", "db/engine", "db/schema", "db/upkeep", "db/writes", "index", "objects", "objects/claims"),
    *("extensions", "extensions/baremetal", "extensions/baremetal/objects", "extensions/console", "extensions/doctor"),
    *("extensions/loading", "extensions/loading/demo", "extensions/orphans", "extensions/terminal"),
    *("extensions/v1", "extensions/v1/count", "extensions/v1/explain", "extensions/v1/pick"),
    *("schemas", "search", "search/narrow", "search/query", "search/solver"),
)


def modules(package: Path) -> set[str]:
    """Return the names of the modules of a package, and of its directories: subpackages, templates and assets."""
    directories = {path.name for path in package.iterdir() if path.is_dir()} - {"__pycache__"}
    return {path.stem for path in package.glob("*.py")} - {"__init__"} | directories


@pytest.mark.parametrize("name", COMPLETE)
def test_every_module_is_listed_once(name):
    package = ROOT / name
    assert sorted(listed_names(package)) == sorted(modules(package) - NOUNS.get(name, set()))
