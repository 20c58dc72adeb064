"""Parsed YAML with the line of each value.  Duplicate keys, which PyYAML accepts, are reported as mistakes."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import yaml

#: The loader in C, which is ten times as fast, if it is available.
_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_MERGE = "tag:yaml.org,2002:merge"
_MAPPING = "tag:yaml.org,2002:map"
_SEQUENCE = "tag:yaml.org,2002:seq"

_INTEGER = "tag:yaml.org,2002:int"
_DECIMAL = re.compile(r"[-+]?(0|[1-9][0-9_]*)")

#: Maximum number of values in a file, aliases expanded: a short file of nested aliases could fill the memory.
MAX_VALUES = 5_000_000
#: Maximum depth of nesting.  The parser in C has no limit, so its stack could overflow.
_MAX_DEPTH = 100
_TOO_DEEP = "The values are nested too deeply."
#: Maximum length of a value in a message, in characters.
_MAX_SHOWN = 80

#: Keys and indexes that lead from the root to a value.
Path = Sequence[str | int]


@dataclass(frozen=True, slots=True, order=True)
class FileFinding:
    """A mistake in a file: its line, counted from 1, and a sentence."""

    line: int
    text: str


class InvalidFile(Exception):
    """A file contains mistakes.

    Attributes:
        findings: The mistakes in the order of their lines.
    """

    def __init__(self, findings: Iterable[FileFinding]) -> None:
        self.findings = tuple(sorted(set(findings)))
        super().__init__("; ".join(f"line {finding.line}: {finding.text}" for finding in self.findings))


class YamlSource:
    """Parsed YAML.

    Attributes:
        value: The content as dictionaries, lists, strings, numbers, booleans and None.
    """

    def __init__(self, text: str) -> None:
        """Parse the text.

        Raises:
            InvalidFile: The text is not YAML, repeats a key, contains values without a JSON equivalent, contains
                itself, or is too large.
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
        except yaml.YAMLError as error:  # a character that YAML does not allow
            raise InvalidFile([FileFinding(1, f"This is not YAML: {' '.join(str(error).split())}.")]) from error
        if reader.findings:
            raise InvalidFile(reader.findings)

    def line(self, path: Path) -> int:
        """Return the line on which a value begins; if it is missing, the line of the innermost value around it."""
        node = self._top
        for step in path:
            inner = _member(node, step)
            if inner is None:
                break
            node = inner
        return 1 if node is None else _line(node)


class _ConvertedValue(NamedTuple):
    """The value of a node, the number of values in it with aliases expanded, and its levels of nesting."""

    value: Any
    size: int = 1
    height: int = 0


class _Reader:
    """A converter of nodes to values, which converts a node only once even if it has several aliases."""

    def __init__(self) -> None:
        self.findings: list[FileFinding] = []
        self._converted: dict[int, _ConvertedValue] = {}
        self._open: set[int] = set()
        self._merged: set[int] = set()
        self._merged_keys = 0

    def compose(self, text: str) -> yaml.Node | None:
        """Return the root of the node tree; None for an empty text."""
        self._loader = _Loader(text)
        try:
            node: yaml.Node | None = self._loader.get_single_node()
        finally:
            self._loader.dispose()
        return node

    def value(self, node: yaml.Node) -> Any:
        """Return the value of a node, and add its mistakes to ``findings``.

        Raises:
            InvalidFile: With its aliases expanded, the value is too large or nested too deeply.
        """
        return self._convert_once(node).value

    def _convert_once(self, node: yaml.Node) -> _ConvertedValue:
        if id(node) in self._open:
            self._report(node, "This value contains itself.")
            return _ConvertedValue(None)
        if id(node) not in self._converted:
            self._open.add(id(node))
            converted = self._converted[id(node)] = self._convert(node)
            self._open.remove(id(node))
            _check_size(node, converted.size)
            if converted.height > _MAX_DEPTH:
                raise InvalidFile([FileFinding(_line(node), _TOO_DEEP)])
        return self._converted[id(node)]

    def _convert(self, node: yaml.Node) -> _ConvertedValue:
        if isinstance(node, yaml.MappingNode) and node.tag == _MAPPING:
            self._merge(node)
            inner = {key.value: self._convert_once(value) for key, value in node.value}
            return _enclose({key: converted.value for key, converted in inner.items()}, inner.values())
        if isinstance(node, yaml.SequenceNode) and node.tag == _SEQUENCE:
            items = [self._convert_once(item) for item in node.value]
            return _enclose([converted.value for converted in items], items)
        if not isinstance(node, yaml.ScalarNode):
            self._report(node, f"Values of the type {node.tag} are not supported.")
            return _ConvertedValue(None)
        return _ConvertedValue(self._scalar(node))

    def _merge(self, node: yaml.MappingNode) -> None:
        """Replace each "<<" with the keys of its mappings, before the stated keys, which take precedence."""
        if id(node) in self._merged:
            return
        self._merged.add(id(node))
        self._check_keys(node)
        merged: dict[str, tuple[yaml.Node, yaml.Node]] = {}
        stated_entries = []
        for key, value in node.value:
            if key.tag == _MERGE:
                for source in self._objects(value):
                    self._merge(source)
                    merged = {entry[0].value: entry for entry in source.value} | merged
            elif isinstance(key, yaml.ScalarNode):
                stated_entries.append((key, value))
        self._merged_keys += len(merged)
        _check_size(node, self._merged_keys)
        node.value = [*merged.values(), *stated_entries]

    def _objects(self, node: yaml.Node) -> Iterable[yaml.MappingNode]:
        """Yield the mappings that a "<<" refers to; the first takes precedence."""
        for child in node.value if isinstance(node, yaml.SequenceNode) else [node]:
            if isinstance(child, yaml.MappingNode) and id(child) not in self._open:
                yield child
            else:
                self._report(node, "The value of << must be another mapping or a list of mappings.")

    def _check_keys(self, node: yaml.MappingNode) -> None:
        line_of: dict[str, int] = {}
        for key, _ in node.value:
            if key.tag == _MERGE:
                continue
            if not isinstance(key, yaml.ScalarNode):
                self._report(key, "A key must be a string.")
            elif key.value in line_of:
                self._report(key, f"The key {key.value!r} is repeated; it is also on line {line_of[key.value]}.")
            else:
                line_of[key.value] = _line(key)

    def _scalar(self, node: yaml.ScalarNode) -> Any:
        if node.tag == _INTEGER and not _DECIMAL.fullmatch(node.value):
            # 010 would be 8, and 1:30 would be 90
            self._report(node, f"{_abridge(node.value)} is not a decimal number.")
            return None
        try:
            value = self._loader.construct_object(node)
        except (ValueError, LookupError, AttributeError):  # an explicit tag does not fit the value
            value = math.nan
        if value is not None and not isinstance(value, str | bool | int | float):
            return node.value  # for example a date: its text is kept
        if isinstance(value, float) and not math.isfinite(value):
            self._report(node, f"{_abridge(node.value)} is not a number that can be stored.")
            return None
        return value

    def _report(self, node: yaml.Node, text: str) -> None:
        self.findings.append(FileFinding(_line(node), text))


def _enclose(value: Any, inner: Collection[_ConvertedValue]) -> _ConvertedValue:
    """Return a value with the size and height that follow from the values in it."""
    height = max((converted.height for converted in inner), default=0)
    return _ConvertedValue(value, 1 + sum(converted.size for converted in inner), 1 + height)


def _check_size(node: yaml.Node, size: int) -> None:
    if size > MAX_VALUES:
        raise InvalidFile(
            [FileFinding(_line(node), f"The file has more than {MAX_VALUES:,} values with its aliases expanded.")]
        )


def _abridge(text: str) -> str:
    return repr(text if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]}...")


def _check_depth(text: str) -> None:
    """Raise InvalidFile if values are nested too deeply."""
    depth = 0
    for event in yaml.parse(text, _Loader):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > _MAX_DEPTH:
            raise InvalidFile([FileFinding(event.start_mark.line + 1, _TOO_DEEP)])


def _line(node: yaml.Node) -> int:
    return int(node.start_mark.line) + 1


def _member(node: yaml.Node | None, step: str | int) -> yaml.Node | None:
    if isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
        item: yaml.Node = node.value[step]
        return item
    if isinstance(node, yaml.MappingNode):
        # If a key is both merged and stated, the stated one comes last and takes precedence.
        values = [value for key, value in node.value if getattr(key, "value", None) == step]
        return values[-1] if values else None
    return None


def _sentence(error: yaml.MarkedYAMLError) -> str:
    texts = [text for text in (error.problem, error.context) if text]
    return f"This is not YAML: {', '.join(texts)}."
