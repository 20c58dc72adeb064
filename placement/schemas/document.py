"""The body and the query of a route: what the handlers see of the schemas."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from placement import errors
from placement.microversion import Version
from placement.schemas import check, violation
from placement.schemas.shape import Rendered, Shape

#: Parameters of which the first occurrence counts; of all others the last does (contract 1.13).
FIRST_COUNTS = frozenset({"limit", "group_policy"})


class _Compiled(NamedTuple):
    rendered: Rendered
    conform: check.Check


class _Document:
    """A shape, compiled once for each version it is asked for."""

    formats = check.LENIENT

    def __init__(self, shape: Shape) -> None:
        self.shape = shape
        self._compiled: dict[Version, _Compiled] = {}

    def render(self, version: Version) -> Rendered:
        """The JSON schema of this version."""
        return self.shape.render(version)

    def _conform(self, value: Any, version: Version, refusal: type[errors.BadRequest]) -> Any:
        compiled = self._compiled.get(version)
        if compiled is None:
            rendered = self.render(version)
            compiled = self._compiled[version] = _Compiled(rendered, check.compiled(rendered, self.formats))
        try:
            return compiled.conform(value)
        except check.Refused:
            raise refusal(reason=violation.explain(value, compiled.rendered, self.formats)) from None


class Body(_Document):
    """The JSON body of a request."""

    def validate(self, value: Any, version: Version) -> Any:
        """The value with whole floats made integers; raises InvalidBody, telling one violation (contract 1.12)."""
        return self._conform(value, version, errors.InvalidBody)


class Parameters:
    """The query of a request: each name with the value that counts, and all values for those who want them."""

    def __init__(self, pairs: Iterable[tuple[str, str]] = ()) -> None:
        self._pairs = tuple(pairs)
        self._counting: dict[str, str] = {}
        self._values: dict[str, list[str]] = {}
        for name, value in self._pairs:
            self._values.setdefault(name, []).append(value)
            if name not in FIRST_COUNTS or name not in self._counting:
                self._counting[name] = value

    def get(self, name: str, default: Any = None) -> Any:
        """The value that counts."""
        return self._counting.get(name, default)

    def all(self, name: str) -> list[str]:
        """Every value given, in order."""
        return self._values.get(name, [])

    def items(self) -> tuple[tuple[str, str], ...]:
        """All names and values as given."""
        return self._pairs

    def __contains__(self, name: object) -> bool:
        return name in self._counting

    def __iter__(self) -> Iterator[str]:
        return iter(self._counting)

    def __len__(self) -> int:
        return len(self._counting)


class Query(_Document):
    """The query string of a request; uuids in it are of the strict form with dashes."""

    formats = check.STRICT

    def validate(self, pairs: Iterable[tuple[str, str]], version: Version) -> Parameters:
        """The parameters; raises InvalidQuery.

        The last value of each name is looked at, and the first too where that is the one that counts.
        """
        parameters = Parameters(pairs)
        last = dict(parameters.items())
        self._conform(last, version, errors.InvalidQuery)
        counting = {name: parameters.get(name) for name in last}
        if counting != last:
            self._conform(counting, version, errors.InvalidQuery)
        return parameters
