"""The terms of the glossary (docs/glossary.rst) are used, with one meaning each, and the words they replace are not."""

from __future__ import annotations

import ast
import functools
import itertools
import re
from collections import defaultdict
from collections.abc import Iterator

import pytest

from tests.docs.blocks import PAGES, ROOT
from tests.unit.test_writes_go_through_objects import modules

#: One process runs these tests, and parses the package once.
pytestmark = pytest.mark.xdist_group("sources")

GLOSSARY = PAGES["docs/glossary.rst"]
#: Packages with docstrings and texts for users.
PACKAGES = ("placement", "client/placement_client")
#: Pages that ``PAGES`` leaves out, because their blocks are not run.
OTHER_PAGES = ("CHANGELOG.rst", "jepsen/README.rst")
#: The tests of other projects request this fixture by its name.
FIXED = {"Database"}
#: Ambiguous or meaningless names.
AVOIDED = {"patience", "seating", "parts", "keeper", "whole", "settle", "list"}
#: Meaningless names of variables.
EMPTY = {
    *("one", "found", "thing", "things", "what", "each", "others", "those", "these", "rest"),
    *("asked", "given", "got", "held", "kept", "known", "said", "shown", "taken", "told", "wanted"),
}
#: Functions that may be named by a participle, although they return something or do something.
PARTICIPLES = {
    *("batched", "connected", "enabled", "framed", "shared"),  # docs/whole-extension.rst promises these names
    *("accepted", "created"),  # the responses 202 and 201
    "committed",  # called when that has happened
    "required",  # a keyword of schemas
    "timed",  # a decorator, and a context manager
}
#: The statements, expressions and comments of a template.
JINJA = re.compile(r"\{([{%#]).*?[}%#]\}", re.DOTALL)
#: Words after which a phrase is allowed: "each of which", "if there is none".
ALLOWED_AFTER = {
    "of which": ("each ", "all ", "some ", "none ", "behalf "),
    "is none": ("there ",),
    "are none": ("there ",),
}


def test_a_public_class_name_has_one_meaning():
    places = defaultdict(list)
    for path, module in modules().items():
        for node in ast.walk(module):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(path)
    assert {name: paths for name, paths in places.items() if len(paths) > 1 and name not in FIXED} == {}


def test_no_module_function_or_class_has_an_avoided_name():
    places = [path for path in modules() if path.rpartition("/")[2].strip("_") in AVOIDED]
    for path, module in modules().items():
        for node in ast.walk(module):
            if isinstance(node, ast.ClassDef | ast.FunctionDef) and node.name.strip("_").lower() in AVOIDED:
                places.append(f"{path}:{node.lineno}")
    assert places == []


def test_no_variable_has_a_meaningless_name():
    places = []
    for path, module in modules().items():
        # Fields of responses keep their names.
        fields = {
            part.target
            for node in ast.walk(module)
            if isinstance(node, ast.ClassDef)
            for part in node.body
            if isinstance(part, ast.AnnAssign)
        }
        for node in ast.walk(module):
            name = node.arg if isinstance(node, ast.arg) else node.id if isinstance(node, ast.Name) else ""
            stored = isinstance(node, ast.arg) or isinstance(getattr(node, "ctx", None), ast.Store)
            if stored and name in EMPTY and node not in fields:
                places.append(f"{path}:{node.lineno}")
    assert places == []


def test_a_function_that_returns_no_bool_is_not_named_by_a_participle():
    named = []
    for path, module in modules().items():
        for node in ast.walk(module):
            if isinstance(node, ast.FunctionDef) and re.fullmatch("_?[a-z]+ed", node.name):
                is_property = any("property" in ast.unparse(decorator) for decorator in node.decorator_list)
                is_predicate = node.returns is not None and ast.unparse(node.returns) == "bool"
                if not is_property and not is_predicate and node.name not in PARTICIPLES:
                    named.append(f"{path}:{node.lineno} {node.name}")
    assert named == []


# --- the glossary ----------------------------------------------------------------------------------------------------


def section(title: str) -> str:
    """Return the text of a section of the glossary."""
    _, heading, text = GLOSSARY.partition(f"\n{title}\n===")
    assert heading, title  # or nothing would be tested
    return text.split("\n\n\n")[0]


def terms() -> list[str]:
    """Return the terms that the glossary defines."""
    return re.findall(r"^   (\S.*)$", section("Terms").partition(":sorted:")[2], re.MULTILINE)


def replaced_words() -> list[str]:
    """Return the words that the terms replace: the second column of the table."""
    rows = section("Words that these terms replace").split("\n")
    words = [word.strip() for row in rows if "  " in row.strip() for word in row.split("  ", 1)[1].split(",")]
    return [re.sub(r"^(a|an|the) | \(.*\)", "", word) for word in words if word not in ("", "not") and "=" not in word]


def headings(text: str) -> Iterator[str]:
    """Yield the titles of a page and its sections."""
    lines = text.split("\n")
    for title, underline in itertools.pairwise(lines):
        if title.strip() and re.fullmatch(r'([=\-~^"])\1{3,}', underline) and len(underline) >= len(title.rstrip()):
            yield title


def texts_of_module(module: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield docstrings and all other constants of several words, each with its line."""
    for node in ast.walk(module):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and len(node.value.split()) > 2:
            yield node.lineno, node.value


@functools.cache
def texts() -> list[tuple[str, str]]:
    """Return headings, docstrings and texts for users, on one line each, with file and line.

    A line may have several texts, as the parts of an f-string have.
    """
    texts = []
    for name, page in {**PAGES, **{name: (ROOT / name).read_text() for name in OTHER_PAGES}}.items():
        for number, title in enumerate(headings(page)):
            texts.append((f"{name}, heading {number}", title))
    for package in PACKAGES:
        for path in (ROOT / package).rglob("*.py"):
            for line, text in texts_of_module(ast.parse(path.read_text())):
                texts.append((f"{path.relative_to(ROOT)}:{line}", " ".join(text.split())))
        for path in (ROOT / package).rglob("*.html"):
            words = JINJA.sub(" ", path.read_text()).split()
            texts.append((str(path.relative_to(ROOT)), " ".join(words)))
    return texts


def pattern_of(words: str) -> re.Pattern[str]:
    """Return a pattern that finds the words, in the singular or plural, even at the beginning of a sentence."""
    unless = "".join(f"(?<!{before})" for before in ALLOWED_AFTER.get(words, ()))
    first, tail = words[0], re.escape(words[1:]).replace(r"\ ", "[ -]")
    return re.compile(rf"\b{unless}[{first.lower()}{first.upper()}]{tail}(s|es)?\b")


@pytest.mark.parametrize("term", terms())
def test_a_term_is_used(term):
    pattern = pattern_of(term)
    assert any(pattern.search(text) for _, text in texts())


@pytest.mark.parametrize("words", replaced_words())
def test_no_text_has_words_that_a_term_replaces(words):
    pattern = pattern_of(words)
    assert [place for place, text in texts() if pattern.search(text)] == []
