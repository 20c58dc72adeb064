"""/v1/capacity"""

from __future__ import annotations

from functools import cache
from typing import Any

from placement.extensions.v1.count.count import Count, CountReason
from placement.extensions.v1.schemas import numeral, search
from placement.extensions.v1.schemas.provider import references
from placement.extensions.v1.schemas.replies import NAMED
from placement.schemas.declarations import Array, Field, Object, OrNull, boolean, integer, nullable, string
from placement.schemas.document import Query
from placement.schemas.success import ok

#: Number of trees, and of aggregates, shown by default.
DEFAULT_LIMIT = 1000

COUNT = Field("count", numeral.up_to(10_000), text="The copies per job, each in a different tree.")

SHOW = Query(
    search.object_of(
        (
            *search.parameters("The maximum number of trees, and of aggregates, to show."),
            Field("until", numeral.POSITIVE, text="The number at which the count stops."),
            COUNT,
        )
    )
)

_COUNT = Field("count", integer(minimum=0), required=True)
_RULE = Field("rule", string(), required=True)
_CLASS = Field("resource_class", nullable(string()), required=True)

REPLIES = ok(
    Object(
        _COUNT,
        Field("at_most", nullable(integer(minimum=0)), required=True),
        Field("exact", boolean(), required=True),
        Field("limited", boolean(), required=True),
        Field("complete", boolean(), required=True),
        Field("why", string(), required=True),
        Field("limiting", OrNull(Object(_RULE, _CLASS, Field("text", string(), required=True))), required=True),
        Field(
            "roots",
            Array(
                Object(
                    Field("provider", NAMED, required=True),
                    _COUNT,
                    Field("limiting", Object(_RULE, _CLASS), required=True),
                )
            ),
            required=True,
        ),
        Field("aggregates", Array(Object(Field("uuid", string(), required=True), _COUNT)), required=True),
    )
)

_WHY: dict[CountReason, str] = {
    "exact": "The request does not fit more often, however it is placed.",
    "combinations": "Not all combinations of providers were tried. The request may fit more often, but not more often "
    "than at_most.",
    "sharing": "Trees contend for sharing providers, and not all ways to divide them were tried. The request may fit "
    "more often, but not more often than at_most.",
    "until": "The count stopped at until. The request may fit more often.",
    "operations": "The count was cut short: it needs more operations than a search may use. "
    "The request may fit more often.",
    "memory": "The count was cut short: it needs more memory than a search may use. The request may fit more often.",
    "amounts": "Some amounts are too large for an exact count. The request may fit more often.",
}

#: Texts of the rules that limit a count, except resource classes.
_RULES = {
    "group": "No remaining provider has room for all classes of a group.",
    "count": "There is room for more copies, but in too few different trees.",
    "group_policy": "Too few providers remain for groups that need different ones.",
    "same_subtree": "No remaining subtree has room for all groups of same_subtree.",
    "required": "No provider with the required traits has room.",
    "member_of": "No provider with room is in the aggregates.",
    "in_tree": "The tree has no room.",
    "root_required": "No tree with room has a root that meets root_required, or the service avoids these trees.",
    "combination": "No tree has room for all groups at once.",
    "work_limit": "A tree has too many combinations to search.",
}


def document(result: Count, limit: int) -> dict[str, Any]:
    """Return the document of a count.

    Args:
        limit: The maximum number of trees, and of aggregates, to show.
    """
    providers = references(result.snapshot, result.roots[:limit])
    roots = zip(providers, result.counts[:limit], result.limiting_rules[:limit], strict=True)
    return {
        "count": result.count,
        "at_most": result.at_most,
        "exact": result.exact,
        "limited": result.reason == "until",
        "complete": result.complete,
        "why": _WHY[result.reason],
        "limiting": None
        if result.limiting_rule is None
        else {**_rule(result.limiting_rule), "text": _text(result.limiting_rule)},
        "roots": [{"provider": provider, "count": count, "limiting": _rule(rule)} for provider, count, rule in roots],
        "aggregates": [{"uuid": uuid, "count": count} for uuid, count in result.aggregates[:limit]],
    }


@cache
def _rule(limiting_rule: str) -> dict[str, str | None]:
    rule, _, resource_class = limiting_rule.replace(" ", "_").partition(":")
    return {"rule": rule, "resource_class": resource_class or None}


def _text(limiting_rule: str) -> str:
    rule = _rule(limiting_rule)
    if rule["resource_class"] is not None:
        return f"No remaining provider has room for this much {rule['resource_class']}."
    return _RULES.get(str(rule["rule"]), f"No remaining tree meets {rule['rule']}.")
