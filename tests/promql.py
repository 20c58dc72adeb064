"""A parser for the part of PromQL in the dashboard: the metrics that an expression reads, and its well-formedness.

expression = term {operator term}
term       = number | "(" expression ")" | call | selector
call       = function ["by" "(" labels ")"] "(" expression {"," expression} ")"
selector   = metric ["{" label operator string {"," label operator string} "}"] ["[" range "]"]
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from typing import NamedTuple

_TOKEN = re.compile(r'\s*(?:("(?:[^"\\]|\\.)*")|([a-zA-Z_][\w:]*)|(\d[\w.]*)|(=~|!~|!=|==|>=|<=|[-+*/%^<>=(){}\[\],]))')
#: Functions, and whether they take a range vector.
_FUNCTIONS = {
    **dict.fromkeys(("sum", "max", "min", "avg", "count", "topk", "histogram_quantile"), False),
    **dict.fromkeys(("rate", "increase"), True),
}
#: Functions that drop all labels except the named ones.
_AGGREGATIONS = {"sum", "max", "min", "avg", "count"}
_OPERATORS = {"+", "-", "*", "/", "%", ">", "<", ">=", "<=", "==", "!="}


class Malformed(ValueError):
    """The expression is invalid."""


class Read(NamedTuple):
    """A metric that an expression reads, the labels that it relies on, and the values that these must equal."""

    metric: str
    labels: frozenset[str]
    values: frozenset[tuple[str, str]]


def reads(expression: str, required: Collection[str] = ()) -> list[Read]:
    """Return the metrics that an expression reads.

    Args:
        required: The labels that its result must have.

    Raises:
        Malformed: The text does not match the grammar, or drops a label that is needed outside.
    """
    parser = _Parser(_tokens(expression))
    parser.expression(frozenset(required), ranged=False)
    if parser.rest:
        raise Malformed(f"{expression}: {parser.rest[0]} is left over")
    return parser.reads


def _tokens(text: str) -> list[str]:
    tokens, position = [], 0
    while text[position:].strip():
        token = _TOKEN.match(text, position)
        if token is None:
            raise Malformed(text[position:])
        tokens.append(token[0].strip())
        position = token.end()
    return tokens


class _Parser:
    def __init__(self, tokens: list[str]) -> None:
        self.rest = tokens
        self.reads: list[Read] = []

    def _next(self) -> str:
        if not self.rest:
            raise Malformed("the expression ends too early")
        return self.rest.pop(0)

    def _take(self, token: str) -> None:
        if (next_token := self._next()) != token:
            raise Malformed(f"{next_token} in place of {token}")

    def _follows(self, token: str) -> bool:
        return bool(self.rest) and self.rest[0] == token

    def expression(self, labels: frozenset[str], ranged: bool) -> None:
        """Parse an expression whose result must have these labels."""
        self._term(labels, ranged)
        while self.rest and self.rest[0] in _OPERATORS:
            self._next()
            self._term(labels, ranged)

    def _term(self, labels: frozenset[str], ranged: bool) -> None:
        token = self._next()
        if token == "(":
            self.expression(labels, ranged)
            self._take(")")
        elif token in _FUNCTIONS:
            self._call(token, labels)
        elif re.fullmatch("[a-zA-Z_].*", token):
            self._selector(token, labels, ranged)
        elif not token[0].isdigit():
            raise Malformed(token)

    def _call(self, function: str, labels: frozenset[str]) -> None:
        if self._follows("by"):
            if function not in _AGGREGATIONS:
                raise Malformed(f"{function} by")
            self._next()
            kept_labels = self._labels()
        else:
            kept_labels = frozenset()
        if function in _AGGREGATIONS:
            if not labels <= kept_labels:
                raise Malformed(f"{function} drops {', '.join(sorted(labels - kept_labels))}")
            labels = kept_labels
        if function == "histogram_quantile":
            labels |= {"le"}
        self._take("(")
        self.expression(labels, _FUNCTIONS[function])
        while self._follows(","):
            self._next()
            self.expression(labels, _FUNCTIONS[function])
        self._take(")")

    def _labels(self) -> frozenset[str]:
        self._take("(")
        labels = {self._next()}
        while self._follows(","):
            self._next()
            labels.add(self._next())
        self._take(")")
        return frozenset(labels)

    def _selector(self, metric: str, labels: frozenset[str], ranged: bool) -> None:
        matchers = [*self._matchers(metric)] if self._follows("{") else []
        if self._follows("["):
            self._next()
            if not re.fullmatch(r"\d+[smhd]", self._next()):
                raise Malformed(f"{metric} has an invalid range")
            self._take("]")
            if not ranged:
                raise Malformed(f"{metric} has a range where an instant is needed")
        elif ranged:
            raise Malformed(f"{metric} has no range")
        matched = labels | {label for label, _, _ in matchers}
        values = frozenset((label, value) for label, operator, value in matchers if operator == "=")
        self.reads.append(Read(metric, matched, values))

    def _matchers(self, metric: str) -> Iterator[tuple[str, str, str]]:
        """Yield label, operator and value of each matcher."""
        while self._next() != "}":
            label, operator, value = self._next(), self._next(), self._next()
            if operator not in ("=", "!=", "=~", "!~"):
                raise Malformed(f"{metric} has a matcher with the invalid operator {operator}")
            if not value.startswith('"'):
                raise Malformed(f"{metric} has a matcher whose value is not a string: {value}")
            if not self.rest or self.rest[0] not in (",", "}"):
                raise Malformed(f"{metric} has matchers that do not end with }}")
            yield label, operator, value.strip('"')
