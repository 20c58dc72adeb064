"""Hypothesis generators of bodies: values that conform to a schema, values that nearly do, and any JSON value."""

from __future__ import annotations

import copy

from hypothesis import strategies as st

from placement.schemas.validator import pattern

#: No newline: in the regular expressions of the jsonschema library ``$`` matches before one, in ours it does not.
_CHARACTERS = st.characters(codec="utf-8", exclude_characters="\n")
_TEXT = st.text(_CHARACTERS, max_size=8)
_SCALARS = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | _TEXT | st.just(8.0)
)


def json_values():
    """Draw any JSON value."""
    return st.recursive(
        _SCALARS,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_TEXT, inner, max_size=3),
        max_leaves=8,
    )


def conforming(schema):
    """Draw values that conform to a rendered schema."""
    if not schema:
        return json_values()
    if "anyOf" in schema:
        return st.one_of(*map(conforming, schema["anyOf"]))
    types = schema["type"]
    if isinstance(types, list):
        return st.none() | conforming({**schema, "type": types[0]})
    return _GENERATORS[types](schema)


def _strings(schema):
    if "format" in schema:
        return st.uuids().flatmap(lambda uuid: st.sampled_from([str(uuid), str(uuid).upper(), uuid.hex]))
    if "pattern" in schema:
        return _matching(schema["pattern"])
    return st.text(_CHARACTERS, min_size=schema.get("minLength", 0), max_size=12)


def _matching(expression):
    return st.from_regex(pattern(expression)).filter(lambda text: "\n" not in text and len(text) <= 255)


def _integers(schema):
    whole = st.integers(schema.get("minimum"), schema.get("maximum"))
    return whole | st.integers(schema.get("minimum", 0), 2**31 - 1).map(float)


def _numbers(schema):
    return st.floats(max_value=schema.get("maximum"), allow_nan=False, allow_infinity=False) | st.integers(-9, 9)


def _arrays(schema):
    unique = repr if schema.get("uniqueItems") else None
    return st.lists(conforming(schema["items"]), min_size=schema.get("minItems", 0), max_size=3, unique_by=unique)


def _objects(schema):
    properties = {name: conforming(inner) for name, inner in schema.get("properties", {}).items()}
    mandatory = {name: properties.pop(name) for name in schema.get("required", ())}
    matching = [
        st.dictionaries(_matching(expression), conforming(inner), min_size=schema.get("minProperties", 0), max_size=2)
        for expression, inner in schema.get("patternProperties", {}).items()
    ]
    parts = st.tuples(*matching, st.fixed_dictionaries(mandatory, optional=properties))
    return parts.map(lambda parts: {name: value for part in parts for name, value in part.items()})


_GENERATORS = {"string": _strings, "integer": _integers, "number": _numbers, "array": _arrays, "object": _objects}
_GENERATORS |= {"boolean": lambda _schema: st.booleans(), "null": lambda _schema: st.none()}


@st.composite
def nearly(draw, values):
    """Draw a value with up to two parts replaced, added or removed."""
    value = copy.deepcopy(draw(values))
    for _ in range(draw(st.integers(0, 2))):
        value = _mangle(draw, value)
    return value


def _mangle(draw, value):
    if not isinstance(value, dict | list) or not value or draw(st.integers(0, 4)) == 0:
        return draw(json_values())
    keys = list(value) if isinstance(value, dict) else list(range(len(value)))
    key = draw(st.sampled_from(keys))
    change = draw(st.sampled_from(["inside", "inside", "remove", "add"]))
    if change == "inside":
        value[key] = _mangle(draw, value[key])
    elif change == "remove":
        del value[key]
    elif isinstance(value, dict):
        value[draw(_TEXT)] = draw(json_values())
    else:
        value.append(draw(st.sampled_from(value) | json_values()))
    return value
