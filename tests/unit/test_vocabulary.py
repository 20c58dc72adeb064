"""One name has one meaning in the whole package (docs/architecture.rst, "Glossary")."""

import ast
from collections import defaultdict
from pathlib import Path

import pytest

import placement

PACKAGE = Path(placement.__file__).parent
MODULES = {path: ast.parse(path.read_text()) for path in sorted(PACKAGE.rglob("*.py"))}
#: Other projects' tests ask for this fixture by its name.
FIXED = {"Database"}
#: Words that have been names of several things, or of nothing that a reader could guess.
AVOIDED = {"patience", "seating", "parts", "keeper", "whole", "settle", "list"}


def test_a_public_class_name_has_one_meaning():
    places = defaultdict(list)
    for path, module in MODULES.items():
        for node in ast.walk(module):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(str(path.relative_to(PACKAGE)))
    assert {name: found for name, found in places.items() if len(found) > 1 and name not in FIXED} == {}


@pytest.mark.parametrize("word", sorted(AVOIDED))
def test_no_module_function_or_class_has_an_avoided_name(word):
    named = [str(path) for path in MODULES if path.stem.strip("_") == word]
    for path, module in MODULES.items():
        for node in ast.walk(module):
            if isinstance(node, ast.ClassDef | ast.FunctionDef) and node.name.strip("_").lower() == word:
                named.append(f"{path}:{node.lineno}")
    assert named == []
