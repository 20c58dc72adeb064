"""A YAML text with the line of each value.  Duplicate keys, which YAML parsers ignore, are mistakes here."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import yaml

#: Written in C where the library has it, which is ten times as fast.
_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_MERGE = "tag:yaml.org,2002:merge"
_MAPPING = "tag:yaml.org,2002:map"
_SEQUENCE = "tag:yaml.org,2002:seq"

_INTEGER = "tag:yaml.org,2002:int"
_DECIMAL = re.compile(r"[-+]?(0|[1-9][0-9_]*)")

#: Values in a file.  Aliases of aliases, which are short, can stand for more than there is memory.
MOST_VALUES = 5_000_000
#: Values inside of each other.  The parser in C has no limit, and its stack overflows.
_DEEPEST = 100
_TOO_DEEP = "The values are nested too deeply."
#: Characters of a value in a message.
_LONGEST = 80

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
            InvalidFile: It is not YAML, repeats a key, has values that JSON does not have, contains itself, or is too
                large.
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


class _Made(NamedTuple):
    """The value of a node, with the number of values in it, aliases written out, and how deep they are."""

    value: Any
    size: int = 1
    height: int = 0


class _Reader:
    """Makes values of nodes; a node that several aliases refer to is made once."""

    def __init__(self) -> None:
        self.findings: list[FileFinding] = []
        self._made: dict[int, _Made] = {}
        self._open: set[int] = set()
        self._merged: set[int] = set()
        self._merged_keys = 0

    def compose(self, text: str) -> yaml.Node | None:
        """Return the tree of nodes, None for an empty text."""
        self._loader = _Loader(text)
        try:
            node: yaml.Node | None = self._loader.get_single_node()
        finally:
            self._loader.dispose()
        return node

    def value(self, node: yaml.Node) -> Any:
        """Return the value of a node, and add what is wrong in it to ``findings``.

        Raises:
            InvalidFile: The value is too large or too deep once its aliases are written out.
        """
        return self._of(node).value

    def _of(self, node: yaml.Node) -> _Made:
        if id(node) in self._open:
            self._report(node, "This value contains itself.")
            return _Made(None)
        if id(node) not in self._made:
            self._open.add(id(node))
            made = self._made[id(node)] = self._make(node)
            self._open.remove(id(node))
            _check_size(node, made.size)
            if made.height > _DEEPEST:
                raise InvalidFile([FileFinding(_line(node), _TOO_DEEP)])
        return self._made[id(node)]

    def _make(self, node: yaml.Node) -> _Made:
        if isinstance(node, yaml.MappingNode) and node.tag == _MAPPING:
            self._merge(node)
            inner = {key.value: self._of(value) for key, value in node.value}
            return _around({key: made.value for key, made in inner.items()}, inner.values())
        if isinstance(node, yaml.SequenceNode) and node.tag == _SEQUENCE:
            items = [self._of(item) for item in node.value]
            return _around([made.value for made in items], items)
        if not isinstance(node, yaml.ScalarNode):
            self._report(node, f"Values of the type {node.tag} are not possible here.")
            return _Made(None)
        return _Made(self._scalar(node))

    def _merge(self, node: yaml.MappingNode) -> None:
        """Replace each "<<" by the keys that it refers to, before those that are stated, which count."""
        if id(node) in self._merged:
            return
        self._merged.add(id(node))
        self._check_keys(node)
        merged: dict[str, tuple[yaml.Node, yaml.Node]] = {}
        stated = []
        for key, value in node.value:
            if key.tag == _MERGE:
                for other in self._objects(value):
                    self._merge(other)
                    merged = {entry[0].value: entry for entry in other.value} | merged
            elif isinstance(key, yaml.ScalarNode):
                stated.append((key, value))
        self._merged_keys += len(merged)
        _check_size(node, self._merged_keys)
        node.value = [*merged.values(), *stated]

    def _objects(self, node: yaml.Node) -> Iterable[yaml.MappingNode]:
        """Yield what a "<<" refers to: one object, or several, of which the first counts."""
        for each in node.value if isinstance(node, yaml.SequenceNode) else [node]:
            if isinstance(each, yaml.MappingNode) and id(each) not in self._open:
                yield each
            else:
                self._report(node, "The value of << has to be another object, or a list of such.")

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
        if node.tag == _INTEGER and not _DECIMAL.fullmatch(node.value):
            self._report(node, f"{_shown(node.value)} is no decimal number.")  # 010 would be 8, and 1:30 would be 90
            return None
        try:
            value = self._loader.construct_object(node)
        except (ValueError, LookupError, AttributeError):  # of a tag that the text states
            value = math.nan
        if value is not None and not isinstance(value, str | bool | int | float):
            return node.value  # a date, for example: the text is what was meant
        if isinstance(value, float) and not math.isfinite(value):
            self._report(node, f"{_shown(node.value)} is no number that can be stored.")
            return None
        return value

    def _report(self, node: yaml.Node, text: str) -> None:
        self.findings.append(FileFinding(_line(node), text))


def _around(value: Any, inner: Collection[_Made]) -> _Made:
    """Return what contains these values."""
    return _Made(value, 1 + sum(made.size for made in inner), 1 + max((made.height for made in inner), default=0))


def _check_size(node: yaml.Node, size: int) -> None:
    if size > MOST_VALUES:
        raise InvalidFile([FileFinding(_line(node), f"More than {MOST_VALUES:,} values, aliases written out.")])


def _shown(text: str) -> str:
    return repr(text if len(text) <= _LONGEST else f"{text[:_LONGEST]}...")


def _check_depth(text: str) -> None:
    """Raise InvalidFile if values are nested too deeply."""
    depth = 0
    for event in yaml.parse(text, _Loader):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > _DEEPEST:
            raise InvalidFile([FileFinding(event.start_mark.line + 1, _TOO_DEEP)])


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
