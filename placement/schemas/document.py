"""Bodies and queries: the declarations of endpoints, and the values that handlers receive."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any
from urllib.parse import parse_qsl

from placement import errors
from placement.microversion import Version
from placement.schemas import validator
from placement.schemas.declarations import Field, JSONSchema, Object, SchemaType
from placement.schemas.explanation import explain
from placement.schemas.validator import Validator

#: Parameters whose first value counts; of all other parameters, the last value counts (docs: api-query-strings).
FIRST_COUNTS = frozenset({"limit", "group_policy"})


class _Document:
    """A type of values with a validator for each version, compiled at its first use."""

    formats = validator.LENIENT

    def __init__(self, schema_type: SchemaType) -> None:
        self._type = schema_type
        self._validators: dict[Version, Validator] = {}

    def render(self, version: Version) -> JSONSchema:
        """Return the JSON schema of this version."""
        return self._type.render(version)

    def _validate(self, value: Any, version: Version, failure: type[errors.InvalidDocument]) -> Any:
        compiled = self._validators.get(version)
        if compiled is None:
            compiled = self._validators[version] = Validator(self.render(version), self.formats)
        if not compiled.is_valid(value):
            raise failure(*explain(value, compiled))
        return compiled.with_integers(value)


class Body(_Document):
    """The JSON body of a request."""

    def validate(self, value: Any, version: Version) -> Any:
        """Return the value after validation, with whole floats converted in place to the integers of the schema.

        Raises:
            InvalidBody: The value is invalid; the sentence describes one validation error (docs: api-bodies).
        """
        return self._validate(value, version, errors.InvalidBody)


def parse_urlencoded(content: bytes, encoding: str, part: str) -> list[tuple[str, str]]:
    """Return the names and values of a query string, or of a body in the same format, in order.

    Args:
        encoding: The encoding of unescaped characters; escaped ones are UTF-8.
        part: The noun in the failure for the invalid text, such as "parameter".

    Raises:
        InvalidQuery: A name or a value is not in the encoding, or contains NUL.
    """
    try:
        pairs = parse_qsl(content.decode(encoding), keep_blank_values=True, errors="strict")
    except UnicodeError as error:
        raise errors.InvalidQuery(error, errors.Violation(part, "is not UTF-8", "text in UTF-8")) from None
    if b"\0" in content or b"%00" in content:
        raise errors.InvalidQuery(f"NUL in a {part}", errors.Violation(part, "contains NUL", "text without NUL"))
    return pairs


class Parameters:
    """The parameters of a request: for each name, all its values and the value that counts."""

    def __init__(self, pairs: Iterable[tuple[str, str]] = ()) -> None:
        self._pairs = tuple(pairs)
        self._counting: dict[str, str] = {}
        self._values: dict[str, list[str]] = {}
        for name, value in self._pairs:
            self._values.setdefault(name, []).append(value)
            if name not in FIRST_COUNTS or name not in self._counting:
                self._counting[name] = value

    def get(self, name: str, default: Any = None) -> Any:
        """Return the value that counts."""
        return self._counting.get(name, default)

    def all(self, name: str) -> list[str]:
        """Return every value of the name, in order."""
        return self._values.get(name, [])

    def items(self) -> tuple[tuple[str, str], ...]:
        """Return all names and values, in order, including repeated names."""
        return self._pairs

    def __contains__(self, name: object) -> bool:
        return name in self._counting

    def __iter__(self) -> Iterator[str]:
        return iter(self._counting)


class Query(_Document):
    """The query string of a request.

    Args:
        schema_type: The parameters, as an object of the values that count.
        formats: The accepted formats of uuids.
    """

    def __init__(self, schema_type: Object, *, formats: validator.Formats = validator.STRICT) -> None:
        super().__init__(schema_type)
        self.formats = formats
        self._fields = schema_type.fields

    def fields(self, version: Version) -> dict[str, Field]:
        """Return the parameters of this version, by name."""
        return {field.name: field for field in self._fields if field.exists_at(version)}

    def validate(self, pairs: Iterable[tuple[str, str]], version: Version, *, strict: bool = False) -> Parameters:
        """Return the parameters.

        The last value of each name is validated, and so is the first value if it is the one that counts.

        Args:
            pairs: Names and values, in order.
            version: The version of the request.
            strict: Whether to validate every value, and refuse repeated parameters that take one value.

        Raises:
            InvalidQuery: A value is invalid; the sentence describes one validation error.
        """
        parameters = Parameters(pairs)
        last = dict(parameters.items())
        self._validate(last, version, errors.InvalidQuery)
        counting = {name: parameters.get(name) for name in last}
        if counting != last:
            self._validate(counting, version, errors.InvalidQuery)
        if strict and len(last) < len(parameters.items()):
            self._check_repeated(parameters, version)
        return parameters

    def _check_repeated(self, parameters: Parameters, version: Version) -> None:
        repeatable = [field for field in self._fields if field.repeated_since and field.repeated_since <= version]
        for name in parameters:
            values = parameters.all(name)
            if len(values) > 1 and not any(field.covers(name) for field in repeatable):
                violation = errors.Violation(name, f"is given {len(values)} times", "one value")
                raise errors.InvalidQuery(violation, violation)
            for value in values[:-1]:
                self._validate({**dict(parameters.items()), name: value}, version, errors.InvalidQuery)
