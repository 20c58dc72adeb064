"""/v1/explain (docs: v1-explain)"""

from __future__ import annotations

from typing import Any

from placement.extensions.v1.explain.explanation import Combination, Explanation, NearMiss, Relaxation, Step
from placement.extensions.v1.query_text import query_string
from placement.extensions.v1.schemas import search
from placement.extensions.v1.schemas.provider import reference, references
from placement.extensions.v1.schemas.replies import NAMED
from placement.index.snapshot import Snapshot
from placement.schemas import success
from placement.schemas.declarations import Array, Field, Object, OrNull, SchemaType, boolean, integer, nullable, string
from placement.schemas.document import Query

Document = dict[str, Any]

_TEXT, _NUMBER, _BOOLEAN = string(), integer(minimum=0), boolean()
_NAME = nullable(_TEXT)


def _object(**types: SchemaType) -> Object:
    """Return the type of an object in which all these fields are required."""
    return Object(*(Field(name, kind, required=True) for name, kind in types.items()))


_PROVIDERS = Array(NAMED)
_EXTENT = _object(providers=_NUMBER, trees=_NUMBER)
_AMOUNTS = _object(resource_class=_TEXT, amount=_NUMBER, blocked_by=Object(additional=_NUMBER), most=_NUMBER)
_STEP = _object(
    rule=_TEXT,
    parameter=_TEXT,
    group=_NAME,
    before=_EXTENT,
    after=_EXTENT,
    removed=_PROVIDERS,
    amounts=OrNull(_AMOUNTS),
)
_MISSING = _object(
    parameter=_TEXT,
    provider=OrNull(NAMED),
    needed=nullable(_NUMBER),
    available=nullable(_NUMBER),
    text=_TEXT,
)

SHOW = Query(search.object_of(search.parameters("The maximum number of candidates to count.")))
REPLIES = success.ok(
    _object(
        query=_TEXT,
        found=_NUMBER,
        limited=_BOOLEAN,
        complete=_BOOLEAN,
        summary=_TEXT,
        obstacle=OrNull(_object(rule=_TEXT, group=_NAME)),
        steps=Array(_STEP),
        combinations=Array(_object(rule=_TEXT, parameter=_TEXT, trees=_NUMBER, examples=_PROVIDERS)),
        near_misses=Array(_object(root=NAMED, missing=Array(_MISSING), query=_TEXT)),
        relaxations=Array(
            _object(kind=_TEXT, text=_TEXT, parameter=_TEXT, query=_TEXT, found=_NUMBER, limited=_BOOLEAN)
        ),
        mistakes=Array(_object(kind=_TEXT, text=_TEXT, suggestion=_NAME)),
    )
)


def document(explanation: Explanation) -> Document:
    """Return the document of an explanation."""
    snapshot, obstacle = explanation.snapshot, explanation.obstacle
    return {
        "query": query_string(explanation.query),
        "found": explanation.found,
        "limited": explanation.limited,
        "complete": explanation.complete,
        "summary": explanation.summary,
        "obstacle": None if obstacle is None else {"rule": obstacle[0], "group": obstacle[1]},
        "steps": [_step(step, snapshot) for step in explanation.steps],
        "combinations": [_combination(combination, snapshot) for combination in explanation.combinations],
        "near_misses": [_near_miss(near_miss, snapshot) for near_miss in explanation.near_misses],
        "relaxations": [_relaxation(relaxation) for relaxation in explanation.relaxations],
        "mistakes": [
            {"kind": mistake.kind, "text": mistake.text, "suggestion": mistake.suggestion}
            for mistake in explanation.mistakes
        ],
    }


def _step(step: Step, snapshot: Snapshot) -> Document:
    amounts = step.amounts
    return {
        "rule": step.rule,
        "parameter": step.parameter,
        "group": step.group,
        "before": step.before._asdict(),
        "after": step.after._asdict(),
        "removed": references(snapshot, step.removed),
        "amounts": None
        if amounts is None
        else {
            "resource_class": amounts.resource_class,
            "amount": amounts.amount,
            "blocked_by": dict(amounts.blocked_by),
            "most": amounts.most,
        },
    }


def _combination(combination: Combination, snapshot: Snapshot) -> Document:
    return {
        "rule": combination.rule,
        "parameter": combination.parameter,
        "trees": combination.trees,
        "examples": [reference(snapshot, slot) for slot in combination.examples],
    }


def _near_miss(near_miss: NearMiss, snapshot: Snapshot) -> Document:
    return {
        "root": reference(snapshot, near_miss.root),
        "missing": [
            {
                "parameter": missing.parameter,
                "provider": None if missing.provider is None else reference(snapshot, missing.provider),
                "needed": missing.needed,
                "available": missing.available,
                "text": missing.text,
            }
            for missing in near_miss.missing
        ],
        "query": query_string(near_miss.query),
    }


def _relaxation(relaxation: Relaxation) -> Document:
    return {
        "kind": relaxation.kind,
        "text": relaxation.text,
        "parameter": relaxation.parameter,
        "query": query_string(relaxation.query),
        "found": relaxation.found,
        "limited": relaxation.limited,
    }
