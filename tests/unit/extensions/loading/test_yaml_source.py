"""The text of a file: its values as YAML defines them, and the line of each mistake."""

from __future__ import annotations

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from placement.extensions.loading import yaml_source
from placement.extensions.loading.yaml_source import InvalidFile, YamlSource
from tests.json_strategies import json_values


def findings(text):
    try:
        YamlSource(text)
    except InvalidFile as raised:
        return [(finding.line, finding.text) for finding in raised.findings]
    return []


@given(json_values())
def test_a_text_has_the_values_that_pyyaml_reads(value):
    text = yaml.safe_dump(value)
    assert YamlSource(text).value == yaml.safe_load(text)


def test_aliases_and_merged_keys_are_expanded():
    source = YamlSource("a: &a {x: 1, y: 2}\nb:\n  <<: *a\n  y: 3\nc: *a\n")
    assert source.value == {"a": {"x": 1, "y": 2}, "b": {"x": 1, "y": 3}, "c": {"x": 1, "y": 2}}
    assert source.line(("b", "y")) == 4


def test_the_line_of_a_value_is_its_first_line():
    source = YamlSource("# first\na:\n  - b: 1\n    c: 2\n  - d\n")
    lines = [source.line(path) for path in ((), ("a",), ("a", 0, "c"), ("a", 1), ("a", 1, "missing"))]
    assert lines == [2, 3, 4, 5, 5]


@pytest.mark.parametrize(
    "text",
    [
        "{a: &a {x: 1, y: 2}, b: &b {y: 3, z: 4}, c: {<<: [*a, *b], z: 5}}",
        "{a: &a {x: 1}, b: &b {<<: *a, y: 2}, c: {y: 3, <<: *b}, d: *b}",
        "{a: {<<: {x: 1, <<: &i {y: 2}}}, b: *i}",
        "{a: {<<: [{x: 1}, {x: 2}]}, b: {<<: []}}",
    ],
)
def test_merged_keys_have_the_values_that_pyyaml_reads(text):
    assert YamlSource(text).value == yaml.safe_load(text)


def _tower(first, template, levels):
    """Return lines of YAML, each of which refers to the previous one ten times."""
    return "\n".join([first, *(template.format(n=n, many=", ".join([f"*a{n - 1}"] * 10)) for n in range(1, levels))])


def test_a_value_with_many_aliases_is_built_once():
    source = YamlSource(_tower("a0: &a0 [x]", "a{n}: &a{n} [{many}]", 6))
    assert source.value["a5"][0] is source.value["a4"]


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        (_tower("a0: &a0 [x]", "a{n}: &a{n} [{many}]", 11), 8, "The file has more than 5,000,000 values"),
        (_tower("a0: &a0 {x: 1}", "a{n}: &a{n} {{y{n}: [{many}]}}", 11), 8, "The file has more than 5,000,000 values"),
        ("\n".join(["- &a0 [x]", *(f"- &a{n} [*a{n - 1}]" for n in range(1, 1000))]), 101, "nested too deeply"),
    ],
    ids=["lists", "objects", "depth"],
)
def test_exponential_and_deep_aliases_are_refused(text, line, words):
    """Ten aliases of ten aliases ... of a list expand to ten thousand million values."""
    ((number, sentence),) = findings(text)
    assert (number, words in sentence) == (line, True), sentence


def test_keys_that_are_repeatedly_merged_are_merged_once():
    """Repeated merging would build ten thousand million keys."""
    source = YamlSource(_tower("a0: &a0 {x: 1}", "a{n}: &a{n} {{<<: [{many}]}}", 11))
    assert source.value["a10"] == {"x": 1}


def test_merged_keys_are_counted(monkeypatch):
    """Each object into which keys are merged contains its own copies."""
    monkeypatch.setattr(yaml_source, "MAX_VALUES", 1000)
    keys = ", ".join(f"k{n}: 1" for n in range(100))
    text = "\n".join([f"- &all {{{keys}}}", *["- {<<: *all}"] * 100])
    ((line, sentence),) = findings(text)
    assert (line, "more than 1,000 values" in sentence) == (12, True)


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("a: 1\nb: 2\na: 3\n", 3, "The key 'a' is repeated; it is also on line 1"),
        ("a: [1\nb: 2\n", 2, "not YAML"),
        ("a: 1\n\tb: 2\n", 2, "not YAML"),
        ("a: 1\nb: *c\n", 2, "undefined alias"),
        ("a: &a\n  - 1\n  - *a\n", 1, "contains itself"),
        ("a: 1\n[1, 2]: 3\n", 2, "A key must be a string"),
        ("a: .inf\n", 1, "not a number that can be stored"),
        ("a: 010\n", 1, "'010' is not a decimal number"),
        ("a: 1:30\n", 1, "'1:30' is not a decimal number"),
        ("a: 0x10\n", 1, "'0x10' is not a decimal number"),
        ("a: !!int ''\n", 1, "'' is not a decimal number"),
        ("a: !!bool maybe\n", 1, "not a number that can be stored"),
        ("a: !!timestamp never\n", 1, "not a number that can be stored"),
        ("a: &a {<<: *a}\n", 1, "The value of << must be another mapping"),
        ("a: {<<: 1}\n", 1, "The value of << must be another mapping"),
        ("a: {<<: [{}, [{}]]}\n", 1, "The value of << must be another mapping"),
        ("a: .nan\n", 1, "not a number that can be stored"),
        ("a: 1\nb: !!set {x}\n", 2, "Values of the type"),
        ("a: 1\nb: !!python/name:os.system x\n", 2, "could not determine a constructor"),
        ("a: \x00\n", 1, "not YAML"),
        ("--- 1\n--- 2\n", 2, "not YAML"),
        ("[" * 100_000, 1, "nest"),  # PyYAML may refuse it first: "exceeded maximum nesting depth"
        (f"a: {'9' * 10_000}\n", 1, f"'{'9' * 80}...' is not a number that can be stored"),
    ],
)
def test_a_mistake_in_yaml_is_reported_with_its_line(text, line, words):
    ((number, sentence),) = findings(text)
    assert number == line
    assert words in sentence


def test_all_mistakes_in_yaml_are_found():
    assert [line for line, _ in findings("a: 1\na: 2\nb: .inf\nb: .inf\n")] == [2, 3, 4, 4]


@given(st.text(alphabet="ab:-[]{}&*!<>|'\"\n 1,#?%@`", max_size=60))
def test_any_text_is_read_or_refused(text):
    assert all(1 <= line <= text.count("\n") + 2 for line, _ in findings(text))
