"""The text of a file: its values as YAML defines them, and the line of each mistake."""

from __future__ import annotations

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from placement.loading.yaml_source import InvalidFile, YamlSource
from tests.json_strategies import json_values


def findings(text):
    try:
        YamlSource(text)
    except InvalidFile as refused:
        return [(found.line, found.text) for found in refused.findings]
    return []


@given(json_values())
def test_a_text_is_read_as_the_library_reads_it(value):
    text = yaml.safe_dump(value)
    assert YamlSource(text).value == yaml.safe_load(text)


def test_aliases_and_merged_keys_are_filled_in():
    source = YamlSource("a: &a {x: 1, y: 2}\nb:\n  <<: *a\n  y: 3\nc: *a\n")
    assert source.value == {"a": {"x": 1, "y": 2}, "b": {"x": 1, "y": 3}, "c": {"x": 1, "y": 2}}
    assert source.line(("b", "y")) == 4


def test_the_line_of_a_value_is_where_it_begins():
    source = YamlSource("# first\na:\n  - b: 1\n    c: 2\n  - d\n")
    lines = [source.line(path) for path in ((), ("a",), ("a", 0, "c"), ("a", 1), ("a", 1, "missing"))]
    assert lines == [2, 3, 4, 5, 5]


def test_a_value_that_many_aliases_name_is_made_once():
    """Ten aliases of ten aliases ... of a list would be ten thousand million values."""
    lines = ["a0: &a0 [x]", *(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 11))]
    source = YamlSource("\n".join(lines))
    assert source.value["a10"][0] is source.value["a9"]


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("a: 1\nb: 2\na: 3\n", 3, "The key 'a' is repeated; it is on line 1"),
        ("a: [1\nb: 2\n", 2, "not YAML"),
        ("a: 1\n\tb: 2\n", 2, "not YAML"),
        ("a: 1\nb: *c\n", 2, "undefined alias"),
        ("a: &a\n  - 1\n  - *a\n", 1, "contains itself"),
        ("a: 1\n[1, 2]: 3\n", 2, "A key has to be a text"),
        ("a: .inf\n", 1, "no number that can be stored"),
        ("a: .nan\n", 1, "no number that can be stored"),
        ("a: 1\nb: !!set {x}\n", 2, "Values of the type"),
        ("a: 1\nb: !!python/name:os.system x\n", 2, "could not determine a constructor"),
        ("a: \x00\n", 1, "not YAML"),
        ("--- 1\n--- 2\n", 2, "not YAML"),
        ("[" * 100_000, 1, "nested too deeply"),
        (f"a: {'9' * 10_000}\n", 1, "no number that can be stored"),
    ],
)
def test_a_mistake_has_its_line(text, line, words):
    ((found, sentence),) = findings(text)
    assert found == line
    assert words in sentence


def test_all_mistakes_are_found():
    assert [line for line, _ in findings("a: 1\na: 2\nb: .inf\nb: .inf\n")] == [2, 3, 4, 4]


@given(st.text(alphabet="ab:-[]{}&*!<>|'\"\n 1,#?%@`", max_size=60))
def test_any_text_is_read_or_refused(text):
    assert all(1 <= line <= text.count("\n") + 2 for line, _ in findings(text))
