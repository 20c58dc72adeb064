"""The sentence about an invalid value, in the wording and layout of the jsonschema library (docs: api-bodies).

Clients match these sentences.  Only refused requests compute them, in time linear in the size of the value: a keyword
that the library validates in quadratic time is replaced, the number of validation errors to choose from is limited, and
long values are cut.  If a value is too large for the library, the sentence is about the part in which jsonschema-rs
finds its first error.
"""

from __future__ import annotations

import functools
import itertools
import json
import pprint
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import jsonschema
from jsonschema import exceptions, validators

from placement.errors import Violation
from placement.schemas.declarations import JSONSchema
from placement.schemas.validator import Formats, Validator, pattern
from placement.schemas.violation import unexplained_violation, violation

#: Maximum number of validation errors from which the one to explain is chosen.
_MAX_ERRORS = 1_000
#: Characters shown of a value below the sentence, and of the sentence.
_MAX_SHOWN, _MAX_SENTENCE = 10_000, 5_000
#: Maximum size of a value that the library explains: its lists, objects, names and scalars, and their characters.
_MAX_VALUES, _MAX_CHARACTERS = 5_000, 100_000
_UNEXPLAINED = "the value%s does not conform to the schema, and is too large or too deep to say more"

ValidationErrors = Iterator[jsonschema.ValidationError]


class _Part(NamedTuple):
    """A part of a value with its schema, and the paths of both from the top."""

    value: Any
    schema: JSONSchema
    path: tuple[Any, ...] = ()
    schema_path: tuple[Any, ...] = ()


class RefusedValue(NamedTuple):
    """The explanation of an invalid value: a sentence with the schema, as by the jsonschema library, and one line."""

    sentence: str
    violation: Violation


def explain(value: Any, validator: Validator) -> RefusedValue:
    """Return the explanation of one validation error: the one nearest to the top of the value."""
    part = _Part(value, validator.schema) if _is_explainable(value) else _invalid_part(value, validator)
    try:
        if chosen := _error_to_explain(part, validator.formats):
            return RefusedValue(_layout(chosen, part), violation(chosen, part.path))
    except (RecursionError, ValueError):  # the library and repr() do not support all depths and integers
        pass
    return RefusedValue(_UNEXPLAINED % _cut(_subscripts(part.path)), unexplained_violation(part.path, part.schema))


def _error_to_explain(part: _Part, formats: Formats) -> jsonschema.ValidationError | None:
    """Return the validation error to explain; None if the part is too large for the library."""
    if not _is_explainable(part.value):
        return None
    checker = jsonschema.FormatChecker(formats=())
    for name, has_format in formats.items():
        checker.checks(name)(functools.partial(_conforms, has_format))
    validation_errors = _Validator(part.schema, format_checker=checker).iter_errors(part.value)
    chosen: jsonschema.ValidationError | None = exceptions.best_match(itertools.islice(validation_errors, _MAX_ERRORS))
    return chosen


def _invalid_part(value: Any, validator: Validator) -> _Part:
    """Return the part with the first error; an object with missing or additional properties precedes its parts.

    Each level of the value corresponds to one or two keywords of the schema: ``items``, or ``properties`` and a name.
    """
    part = _Part(value, validator.schema)
    path, schema_path = validator.first_error(value)
    keywords = iter(schema_path)
    for key in path:
        if _has_wrong_names(part):
            break
        steps = [next(keywords)]
        schema = part.schema[steps[0]]
        if steps[0] in ("properties", "patternProperties"):
            steps.append(next(keywords))
            schema = schema[steps[1]]
        part = _Part(part.value[key], schema, (*part.path, key), (*part.schema_path, *steps))
    return part


def _has_wrong_names(part: _Part) -> bool:
    """Whether properties are missing, too few or additional."""
    value, schema = part.value, part.schema
    return isinstance(value, dict) and (
        len(value) < schema.get("minProperties", 0)
        or any(name not in value for name in schema.get("required", ()))
        or (schema.get("additionalProperties") is False and bool(_extras(value, schema)))
    )


def _is_explainable(value: Any) -> bool:
    """Whether the value is small enough for the library and for the sentence."""
    waiting, values, characters = [value], 0, 0
    while waiting:
        item = waiting.pop()
        values += 1
        if isinstance(item, dict):
            waiting.extend(item)
            waiting.extend(item.values())
        elif isinstance(item, list):
            waiting.extend(item)
        elif isinstance(item, str):
            characters += len(item)
        if values + len(waiting) > _MAX_VALUES or characters > _MAX_CHARACTERS:
            return False
    return True


def _conforms(has_format: Callable[[str], bool], value: Any) -> bool:
    return not isinstance(value, str) or has_format(value)


# --- layout ----------------------------------------------------------------------------------------------------------


def _layout(error: jsonschema.ValidationError, part: _Part) -> str:
    schema_path = _subscripts([*part.schema_path, *list(error.schema_path)[:-1]])
    instance_path = _cut(_subscripts([*part.path, *error.path]))
    return (
        f"{_cut(error.message)}\n\n"
        f"Failed validating {error.validator!r} in schema{schema_path}:\n{_indent(error.schema)}\n\n"
        f"On instance{instance_path}:\n{_indent(error.instance)}"
    )


def _cut(text: str) -> str:
    """Return the text, without its middle if it is long: clients match its beginning or its end."""
    return text if len(text) <= _MAX_SENTENCE else f"{text[: _MAX_SENTENCE * 4 // 5]} ... {text[-_MAX_SENTENCE // 5 :]}"


def _subscripts(path: Iterable[Any]) -> str:
    return "".join(f"[{step!r}]" for step in path)


def _indent(value: Any) -> str:
    text = repr(value)
    # The time of pprint is proportional to depth times length.
    text = pprint.pformat(value, width=72, sort_dicts=False) if len(text) <= _MAX_SHOWN else text[:_MAX_SHOWN] + "..."
    return textwrap.indent(text, "    ")


# --- keywords and types that differ from the library's ---------------------------------------------------------------


def _pattern(_validator: Any, expression: str, instance: Any, _schema: JSONSchema) -> ValidationErrors:
    if isinstance(instance, str) and not pattern(expression).search(instance):
        yield jsonschema.ValidationError(f"{instance!r} does not match {expression!r}")


def _additional_properties(validator: Any, rule: Any, instance: Any, schema: JSONSchema) -> ValidationErrors:
    if not isinstance(instance, dict):
        return
    extras = _extras(instance, schema)
    if rule is not False:
        for name in extras:
            yield from validator.descend(instance[name], rule, path=name)
    elif extras:
        yield jsonschema.ValidationError(
            _additional_message(sorted(extras), sorted(schema.get("patternProperties", ())))
        )


def _extras(instance: dict[str, Any], schema: JSONSchema) -> list[str]:
    """Return the names of additional properties."""
    expressions = [pattern(expression) for expression in schema.get("patternProperties", ())]
    return [
        name
        for name in instance
        if name not in schema.get("properties", ()) and not any(expression.search(name) for expression in expressions)
    ]


def _additional_message(extras: list[str], expressions: list[str]) -> str:
    names = ", ".join(map(repr, extras))
    if expressions:
        verb = "does" if len(extras) == 1 else "do"
        return f"{names} {verb} not match any of the regexes: {', '.join(map(repr, expressions))}"
    verb = "was" if len(extras) == 1 else "were"
    return f"Additional properties are not allowed ({names} {verb} unexpected)"


def _unique_items(_validator: Any, _unique: bool, instance: Any, _schema: JSONSchema) -> ValidationErrors:
    if isinstance(instance, list) and len({_identity(item) for item in instance}) != len(instance):
        yield jsonschema.ValidationError(f"{instance!r} has non-unique elements")


def _identity(item: Any) -> Any:
    """Return a hashable value that is equal for equal items: 1 and 1.0 are equal, 1 and true are not."""
    if isinstance(item, (dict, list)):
        return json.dumps(item, sort_keys=True)
    return type(item) is bool, item


def _is_integer(_checker: Any, value: Any) -> bool:
    """Whether this is a whole number; a boolean is not."""
    return type(value) is int or (type(value) is float and value.is_integer())


def _is_number(_checker: Any, value: Any) -> bool:
    """Whether this is a number in the range of a double; not a boolean, an infinity or NaN."""
    return type(value) in (int, float) and -sys.float_info.max <= value <= sys.float_info.max


_Validator: Any = validators.extend(  # type: ignore[no-untyped-call]
    jsonschema.Draft7Validator,
    {
        "pattern": _pattern,
        "additionalProperties": _additional_properties,
        "uniqueItems": _unique_items,
    },
    type_checker=jsonschema.Draft7Validator.TYPE_CHECKER.redefine_many({"integer": _is_integer, "number": _is_number}),
)
