"""/v1/claims (docs: v1-claims)"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from placement.extensions.v1.claims.result import ClaimResult, Place, Reason
from placement.extensions.v1.pick.strategy import Preference
from placement.extensions.v1.query_text import query_string
from placement.extensions.v1.schemas import search
from placement.objects.claims.holding import Holding
from placement.schemas import success
from placement.schemas.dates import precise
from placement.schemas.declarations import (
    IDENTIFIER,
    RESOURCE_CLASS_NAME,
    UUID,
    Array,
    Field,
    Object,
    OneOf,
    OrNull,
    PatternField,
    SchemaType,
    boolean,
    integer,
    nullable,
    string,
)
from placement.schemas.document import Body, Parameters, Query, parse_urlencoded
from placement.schemas.reply_types import AMOUNTS, by_uuid
from placement.version_history import OLDEST

Document = dict[str, Any]

#: Maximum number of seconds until a claim expires: ten years.
_MAX_EXPIRES_IN = 315_360_000
#: Maximum number of characters of a query text, the default limit of a URL.  A body of 16 MiB could contain millions of
#: parameters.
_MAX_QUERY = 28 * 1024

_TEXTS = Array(string(minLength=1))
_SUFFIX = "^([a-zA-Z0-9_-]{1,64})?$"
_SUFFIXES = "suffixes of up to 64 letters, digits, _ and -, or empty for the unsuffixed group"
_CLASS_NAMES = "resource classes, for example VCPU"
_GROUP = Object(
    Field("resources", Object(PatternField(RESOURCE_CLASS_NAME, integer(minimum=1)), names=_CLASS_NAMES)),
    Field("required", _TEXTS),
    Field("member_of", _TEXTS),
    Field("in_tree", IDENTIFIER),
    title="ClaimQueryGroup",
)
_QUERY_OBJECT = Object(
    Field("groups", Object(PatternField(_SUFFIX, _GROUP), min_properties=1, names=_SUFFIXES), required=True),
    Field("group_policy", string(enum=["none", "isolate"])),
    Field("same_subtree", Array(Array(string(), min_items=1))),
    Field("root_required", _TEXTS),
    title="ClaimQuery",
)
_QUERY_TEXT = string(
    maxLength=_MAX_QUERY,
    description=f"a text such as resources=VCPU:2&required=HW_CPU_X86_AVX2 of up to {_MAX_QUERY} characters",
)
_CONSUMER_TYPE = string(
    pattern=RESOURCE_CLASS_NAME,
    minLength=1,
    maxLength=255,
    description="1 to 255 capital letters, digits and _, for example INSTANCE",
)
_REQUEST = Object(
    Field("consumer", UUID, required=True),
    Field("consumer_type", _CONSUMER_TYPE, required=True),
    Field("project_id", IDENTIFIER, required=True),
    Field("user_id", IDENTIFIER, required=True),
    Field("query", OneOf((_QUERY_TEXT, _QUERY_OBJECT)), required=True),
    Field("count", integer(minimum=1, maximum=10_000)),
    Field("keep", boolean()),
    Field("consumer_generation", nullable(integer())),
    Field("dry_run", boolean()),
    title="ClaimRequest",
)
_STRATEGIES = [preference.value for preference in Preference]
_SPREAD_OVER = Object(Field("spread_over", IDENTIFIER, required=True), title="SpreadOver")
_STRATEGY = OneOf((string(enum=_STRATEGIES), _SPREAD_OVER))
EXPIRES_IN = Field("expires_in", nullable(integer(minimum=1, maximum=_MAX_EXPIRES_IN)))

CREATE = Body(
    Object(
        Field("requests", Array(_REQUEST, min_items=1), required=True),
        Field("strategy", _STRATEGY),
        Field("all_or_nothing", boolean()),
        EXPIRES_IN,
        Field("apart_from", Array(UUID)),
        Field("together_with", Array(UUID)),
    )
)

EXTEND = Body(Object(Field("expires_in", nullable(integer(minimum=1, maximum=_MAX_EXPIRES_IN)), required=True)))


def size(document: Document) -> int:
    """Return the size of a valid call: places, and consumers in ``apart_from`` and ``together_with``."""
    places: int = sum(request.get("count", 1) for request in document["requests"])
    return places + len(document.get("apart_from", ())) + len(document.get("together_with", ()))


_NUMBER = integer(minimum=0)
_ALLOCATIONS = by_uuid(
    Object(
        Field("name", nullable(string()), required=True),
        Field("resources", AMOUNTS, required=True),
        Field("generation", _NUMBER, required=True),
        Field("node", string()),
        title="ClaimAllocation",
    )
)
_MAPPINGS = Array(Object(PatternField(_SUFFIX, Array(string()))))
_DATE = nullable(string(format="date-time"))


def _object(**types: SchemaType) -> Object:
    """Return the type of an object in which all these fields are required."""
    return Object(*(Field(name, kind, required=True) for name, kind in types.items()))


_RESULT = Object(
    Field("consumer", string(), required=True),
    Field("status", integer(), required=True),
    Field("outcome", string(), required=True),
    Field("allocations", _ALLOCATIONS),
    Field("mappings", OrNull(_MAPPINGS)),
    Field("consumer_generation", _NUMBER),
    Field("expires_at", _DATE),
    Field("error", _object(code=string(), detail=string())),
    Field(
        "explanation",
        _object(
            summary=string(),
            obstacle=OrNull(_object(rule=string(), group=nullable(string()))),
            relaxations=Array(_object(text=string(), query=string(), found=_NUMBER)),
        ),
    ),
    title="ClaimResult",
)
RESULTS = _object(results=Array(_RESULT), claimed=_NUMBER)
CREATE_REPLIES = success.ok(RESULTS, dated=success.Dated.NEVER)
SHOW_REPLIES = success.ok(
    _object(
        consumer=string(),
        consumer_type=string(),
        project_id=nullable(string()),
        user_id=nullable(string()),
        consumer_generation=_NUMBER,
        allocations=_ALLOCATIONS,
        mappings=OrNull(_MAPPINGS),
        expires_at=_DATE,
    )
)


def results(claim_results: Sequence[ClaimResult]) -> Document:
    """Return the document of the results of a call."""
    return {
        "results": [_result(result) for result in claim_results],
        "claimed": sum(result.failure is None for result in claim_results),
    }


def document(holding: Holding) -> Document:
    """Return the document of a consumer's holding."""
    return {
        "consumer": holding.uuid,
        "consumer_type": holding.consumer_type,
        "project_id": holding.project,
        "user_id": holding.user,
        **_place(Place.of_holding(holding)),
    }


def _result(result: ClaimResult) -> Document:
    rendered: Document = {
        "consumer": result.consumer,
        "status": 200 if result.failure is None else 409,
        "outcome": result.outcome,
    }
    if result.place is not None:
        rendered |= _place(result.place)
    if result.failure is not None:
        rendered["error"] = {"code": result.failure.code, "detail": result.failure.sentence}
    if result.reason is not None:
        rendered["explanation"] = _explanation(result.reason)
    return rendered


def _place(place: Place) -> Document:
    rendered: Document = {
        "allocations": {
            uuid: {
                "name": place.provider_names[uuid],
                "resources": dict(amounts),
                "generation": place.provider_generations[uuid],
            }
            for uuid, amounts in place.resources.items()
        },
        "mappings": place.mappings,
    }
    if place.consumer_generation is not None:
        rendered |= {"consumer_generation": place.consumer_generation, "expires_at": precise(place.expires_at)}
    return rendered


def _explanation(reason: Reason) -> Document:
    obstacle = reason.obstacle
    return {
        "summary": reason.summary,
        "obstacle": None if obstacle is None else {"rule": obstacle[0], "group": obstacle[1]},
        "relaxations": [
            {"text": relaxation.text, "query": query_string(relaxation.query), "found": relaxation.found}
            for relaxation in reason.relaxations
        ],
    }


_PARAMETERS = Query(search.object_of(field for field in search.PARAMETERS if field.name != "limit"))


def query_parameters(text: str) -> Parameters:
    """Return the validated parameters of a query text.

    Raises:
        InvalidQuery: They do not conform to the schema of searches.
    """
    return _PARAMETERS.validate(query_pairs(text), OLDEST, strict=True)


def query_pairs(text: str) -> list[tuple[str, str]]:
    """Return the parameters of a query text, not validated.

    Raises:
        InvalidQuery: The percent-decoded text is not UTF-8, or contains NUL.
    """
    return parse_urlencoded(text.removeprefix("?").encode(), "utf-8", "query")
