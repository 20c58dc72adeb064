"""Why a value was refused, in the words and the layout of the jsonschema library, which clients match (contract 1.12).

Only refused requests come here, and they cost in proportion to what they sent: a keyword that the library judges in
quadratic time is replaced, violations are looked at up to a number, and what is told of long values is cut.  Of a value
that is too large for the library it judges only the part where ``place`` finds the fault.
"""

from __future__ import annotations

import functools
import itertools
import json
import pprint
import textwrap
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import jsonschema
from jsonschema import exceptions, validators

from placement.schemas import check, place
from placement.schemas.shape import Rendered

#: How many violations are looked at to choose the one to tell.
_CONSIDERED = 1_000
#: How many characters of the value are shown below the message, and how many the message itself has.
_SHOWN, _TOLD = 10_000, 5_000
#: The most parts, and the most characters in them, of a value that the library judges.
_PARTS, _CHARACTERS = 5_000, 100_000
_UNTOLD = "the value%s does not conform to the schema, and is too large or too deep to say more"

Violations = Iterator[jsonschema.ValidationError]


def explain(value: Any, schema: Rendered, formats: check.Formats) -> str:
    """One violation, the one nearest to the top of the value, with the schema it is against."""
    found = place.Place(value, schema) if _modest(value) else place.offending(value, schema, formats)
    untold = _UNTOLD % _cut(_subscripts(found.path))
    if not _modest(found.value):
        return untold
    checker = jsonschema.FormatChecker(formats=())
    for name, conforms in formats.items():
        checker.checks(name)(functools.partial(_conforms, conforms))
    try:
        violations = _Validator(found.schema, format_checker=checker).iter_errors(found.value)
        chosen = exceptions.best_match(itertools.islice(violations, _CONSIDERED))
        return untold if chosen is None else _layout(chosen, found)
    except (RecursionError, ValueError):  # neither the library nor repr() copes with every depth and every integer
        return untold


def _modest(value: Any) -> bool:
    """Whether the value is small enough to be judged by the library, and for what it says of it to be told."""
    waiting, parts, characters = [value], 0, 0
    while waiting:
        item = waiting.pop()
        parts += 1
        if isinstance(item, dict):
            waiting.extend(item)
            waiting.extend(item.values())
        elif isinstance(item, list):
            waiting.extend(item)
        elif isinstance(item, str):
            characters += len(item)
        if parts + len(waiting) > _PARTS or characters > _CHARACTERS:
            return False
    return True


def _conforms(conforms: Callable[[str], bool], value: Any) -> bool:
    return not isinstance(value, str) or conforms(value)


def _layout(error: jsonschema.ValidationError, found: place.Place) -> str:
    schema_path = _subscripts([*found.schema_path, *list(error.schema_path)[:-1]])
    instance_path = _cut(_subscripts([*found.path, *error.path]))
    return (
        f"{_cut(error.message)}\n\n"
        f"Failed validating {error.validator!r} in schema{schema_path}:\n{_indented(error.schema)}\n\n"
        f"On instance{instance_path}:\n{_indented(error.instance)}"
    )


def _cut(text: str) -> str:
    """The text without its middle, if it is long: what clients look for is at the beginning or at the end."""
    return text if len(text) <= _TOLD else f"{text[: _TOLD - _TOLD // 5]} ... {text[-_TOLD // 5 :]}"


def _subscripts(path: Iterable[Any]) -> str:
    return "".join(f"[{step!r}]" for step in path)


def _indented(value: Any) -> str:
    shown = repr(value)
    # pprint needs time for depth times length
    shown = pprint.pformat(value, width=72, sort_dicts=False) if len(shown) <= _SHOWN else shown[:_SHOWN] + "..."
    return textwrap.indent(shown, "    ")


def _pattern(_validator: Any, expression: str, instance: Any, _schema: Rendered) -> Violations:
    if isinstance(instance, str) and not check.pattern(expression).search(instance):
        yield jsonschema.ValidationError(f"{instance!r} does not match {expression!r}")


def _additional_properties(validator: Any, others: Any, instance: Any, schema: Rendered) -> Violations:
    if not isinstance(instance, dict):
        return
    patterns = schema.get("patternProperties", {})
    extras = [
        name
        for name in instance
        if name not in schema.get("properties", {})
        and not any(check.pattern(expression).search(name) for expression in patterns)
    ]
    if others is not False:
        for name in extras:
            yield from validator.descend(instance[name], others, path=name)
    elif extras:
        yield jsonschema.ValidationError(_unexpected(sorted(extras), sorted(patterns)))


def _unexpected(extras: list[str], patterns: list[str]) -> str:
    names = ", ".join(map(repr, extras))
    if patterns:
        verb = "does" if len(extras) == 1 else "do"
        return f"{names} {verb} not match any of the regexes: {', '.join(map(repr, patterns))}"
    verb = "was" if len(extras) == 1 else "were"
    return f"Additional properties are not allowed ({names} {verb} unexpected)"


def _unique_items(_validator: Any, _unique: bool, instance: Any, _schema: Rendered) -> Violations:
    if isinstance(instance, list) and len({_identity(item) for item in instance}) != len(instance):
        yield jsonschema.ValidationError(f"{instance!r} has non-unique elements")


def _identity(item: Any) -> Any:
    """Something hashable that is equal for equal items: 1 and 1.0 are, 1 and true are not."""
    if isinstance(item, (dict, list)):
        return json.dumps(item, sort_keys=True)
    return type(item) is bool, item


_Validator: Any = validators.extend(  # type: ignore[no-untyped-call]
    jsonschema.Draft7Validator,
    {
        "pattern": _pattern,
        "additionalProperties": _additional_properties,
        "uniqueItems": _unique_items,
    },
    type_checker=jsonschema.Draft7Validator.TYPE_CHECKER.redefine_many(
        {
            "integer": lambda _, value: check.is_integer(value),
            "number": lambda _, value: check.is_number(value),
        }
    ),
)
