"""A YAML text with the line of each value.  Duplicate keys, which YAML parsers ignore, are mistakes here."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import yaml

#: Written in C where the library has it, which is ten times as fast.
_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_MERGE = "tag:yaml.org,2002:merge"
_MAPPING = "tag:yaml.org,2002:map"
_SEQUENCE = "tag:yaml.org,2002:seq"

#: Values inside of each other.  The parser in C has no limit, and its stack overflows.
_DEEPEST = 100

#: Keys and indexes that lead to a value from the top.
Path = Sequence[str | int]


@dataclass(frozen=True, slots=True, order=True)
class FileFinding:
    """A mistake in a file: its line, counted from 1, and a sentence."""

    line: int
    text: str


class InvalidFile(Exception):
    """A file has mistakes.

    Attributes:
        findings: All of them, in the order of their lines.
    """

    def __init__(self, findings: Iterable[FileFinding]) -> None:
        self.findings = tuple(sorted(set(findings)))
        super().__init__("; ".join(f"line {found.line}: {found.text}" for found in self.findings))


class YamlSource:
    """A parsed text.

    Attributes:
        value: What it says, as dictionaries, lists, strings, numbers, booleans and None.
    """

    def __init__(self, text: str) -> None:
        """Parse the text.

        Raises:
            InvalidFile: It is not YAML, repeats a key, has values that JSON does not have, or contains itself.
        """
        reader = _Reader()
        self.value: Any = None
        try:
            _check_depth(text)
            self._top = reader.compose(text)
            if self._top is not None:
                self.value = reader.value(self._top)
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            raise InvalidFile([FileFinding(1 if mark is None else mark.line + 1, _sentence(error))]) from error
        except yaml.YAMLError as error:  # a character that no YAML text has
            raise InvalidFile([FileFinding(1, f"This is not YAML: {' '.join(str(error).split())}.")]) from error
        if reader.findings:
            raise InvalidFile(reader.findings)

    def line(self, path: Path) -> int:
        """Return the line on which a value begins; for a value that is missing, that of the innermost one around it."""
        node = self._top
        for step in path:
            inner = _member(node, step)
            if inner is None:
                break
            node = inner
        return 1 if node is None else _line(node)


class _Reader:
    """Makes values of nodes; a node that several aliases refer to is made once."""

    def __init__(self) -> None:
        self.findings: list[FileFinding] = []
        self._made: dict[int, Any] = {}
        self._open: set[int] = set()

    def compose(self, text: str) -> yaml.Node | None:
        """Return the tree of nodes, None for an empty text."""
        self._loader = _Loader(text)
        try:
            node: yaml.Node | None = self._loader.get_single_node()
        finally:
            self._loader.dispose()
        return node

    def value(self, node: yaml.Node) -> Any:
        """Return the value of a node, and add what is wrong in it to ``findings``."""
        if id(node) in self._open:
            self._report(node, "This value contains itself.")
            return None
        if id(node) not in self._made:
            self._open.add(id(node))
            self._made[id(node)] = self._make(node)
            self._open.remove(id(node))
        return self._made[id(node)]

    def _make(self, node: yaml.Node) -> Any:
        if isinstance(node, yaml.MappingNode) and node.tag == _MAPPING:
            return self._mapping(node)
        if isinstance(node, yaml.SequenceNode) and node.tag == _SEQUENCE:
            return [self.value(item) for item in node.value]
        if not isinstance(node, yaml.ScalarNode):
            self._report(node, f"Values of the type {node.tag} are not possible here.")
            return None
        return self._scalar(node)

    def _mapping(self, node: yaml.MappingNode) -> dict[str, Any]:
        self._check_keys(node)
        self._loader.flatten_mapping(node)  # fills in what "<<" refers to
        return {key.value: self.value(value) for key, value in node.value if isinstance(key, yaml.ScalarNode)}

    def _check_keys(self, node: yaml.MappingNode) -> None:
        first: dict[str, int] = {}
        for key, _ in node.value:
            if key.tag == _MERGE:
                continue
            if not isinstance(key, yaml.ScalarNode):
                self._report(key, "A key has to be a text.")
            elif key.value in first:
                self._report(key, f"The key {key.value!r} is repeated; it is on line {first[key.value]}, too.")
            else:
                first[key.value] = _line(key)

    def _scalar(self, node: yaml.ScalarNode) -> Any:
        try:
            value = self._loader.construct_object(node)
        except ValueError:
            value = math.nan
        if value is not None and not isinstance(value, str | bool | int | float):
            return node.value  # a date, for example: the text is what was meant
        if isinstance(value, float) and not math.isfinite(value):
            self._report(node, f"{node.value!r} is no number that can be stored.")
            return None
        return value

    def _report(self, node: yaml.Node, text: str) -> None:
        self.findings.append(FileFinding(_line(node), text))


def _check_depth(text: str) -> None:
    """Raise InvalidFile if values are nested too deeply."""
    depth = 0
    for event in yaml.parse(text, _Loader):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > _DEEPEST:
            raise InvalidFile([FileFinding(event.start_mark.line + 1, "The values are nested too deeply.")])


def _line(node: yaml.Node) -> int:
    return int(node.start_mark.line) + 1


def _member(node: yaml.Node | None, step: str | int) -> yaml.Node | None:
    if isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
        item: yaml.Node = node.value[step]
        return item
    if isinstance(node, yaml.MappingNode):
        # Of a key that is merged and stated, the stated one comes last and counts.
        found = [value for key, value in node.value if getattr(key, "value", None) == step]
        return found[-1] if found else None
    return None


def _sentence(error: yaml.MarkedYAMLError) -> str:
    said = [text for text in (error.problem, error.context) if text]
    return f"This is not YAML: {', '.join(said)}."
