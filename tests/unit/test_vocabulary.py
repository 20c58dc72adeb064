"""One name has one meaning in the whole package (docs/architecture.rst, "Glossary")."""

import ast
from collections import defaultdict

import pytest

from tests.unit.test_writes_go_through_objects import modules

#: In one process, which parses the package once.
pytestmark = pytest.mark.xdist_group("sources")

#: Other projects' tests ask for this fixture by its name.
FIXED = {"Database"}
#: Words that have been names of several things, or of nothing that a reader could guess.
AVOIDED = {"patience", "seating", "parts", "keeper", "whole", "settle", "list"}


def test_a_public_class_name_has_one_meaning():
    places = defaultdict(list)
    for path, module in modules().items():
        for node in ast.walk(module):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(path)
    assert {name: found for name, found in places.items() if len(found) > 1 and name not in FIXED} == {}


def test_no_module_function_or_class_has_an_avoided_name():
    named = [path for path in modules() if path.rpartition("/")[2].strip("_") in AVOIDED]
    for path, module in modules().items():
        for node in ast.walk(module):
            if isinstance(node, ast.ClassDef | ast.FunctionDef) and node.name.strip("_").lower() in AVOIDED:
                named.append(f"{path}:{node.lineno}")
    assert named == []
