"""/v1/capacity"""

from __future__ import annotations

from functools import cache
from itertools import islice
from typing import Any

from placement.extensions.v1.count.count import Count, Reason
from placement.extensions.v1.schemas import search
from placement.index.snapshot import Provider
from placement.schemas.declarations import UUID, Array, Field, Object, OrNull, boolean, integer, nullable, string
from placement.schemas.document import Query
from placement.schemas.success import ok

#: How many trees, and how many aggregates, are shown without ``limit``.
SHOWN = 1000

SHOW = Query(
    Object(
        *search.parameters("The most trees, and the most aggregates, that are shown."),
        Field("until", string(pattern="^[1-9][0-9]*$"), text="The number at which the count ends."),
        Field(
            "count",
            string(pattern="^([1-9][0-9]{0,3}|10000)$"),
            text="How often each placement needs what the query asks for, each time in another tree.",
        ),
    )
)

_COUNT = Field("count", integer(minimum=0), required=True)
_PROVIDER = Object(Field("uuid", UUID, required=True), Field("name", nullable(string()), required=True))
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
                    Field("provider", _PROVIDER, required=True),
                    _COUNT,
                    Field("limiting", Object(_RULE, _CLASS), required=True),
                )
            ),
            required=True,
        ),
        Field("aggregates", Array(Object(Field("uuid", string(), required=True), _COUNT)), required=True),
    )
)

_WHY: dict[Reason, str] = {
    "exact": "No way to place the request fits it more often.",
    "combinations": "Not all ways to place were tried. Other candidates in the same trees may leave room for more, "
    "but not for more than at_most.",
    "sharing": "Not all ways to place were tried. The trees use sharing providers; other candidates may leave room for "
    "more, but not for more than at_most.",
    "until": "The count ended at the number that was asked for. There may be more.",
    "operations": "The count was cut short: it would take more operations than a search may use. There may be more.",
    "memory": "The count was cut short: it would take more memory than a search may use. There may be more.",
    "amounts": "Amounts are larger than what is counted exactly. There may be more.",
}

#: What ends a count, where it is no resource class.
_RULES = {
    "group": "No provider that is left has room for all classes of a group.",
    "count": "Too few different trees have room for all copies.",
    "group_policy": "Too few providers are left for groups that need different ones.",
    "same_subtree": "No subtree that is left has room for all groups of same_subtree.",
    "required": "No provider with the required traits has room.",
    "member_of": "No provider with room is in the aggregates.",
    "in_tree": "The tree has no room.",
    "root_required": "No tree has a root with these traits.",
    "combination": "No tree has room for all groups at once.",
    "work_limit": "The combinations of a tree are too many to be searched.",
}


def document(counted: Count, limit: int) -> dict[str, Any]:
    """Return what the reply shows.

    Args:
        limit: The most trees, and the most aggregates, that are shown.
    """
    provider = counted.snapshot.provider
    roots = islice(zip(counted.roots, counted.counts, counted.endings, strict=True), limit)
    return {
        "count": counted.count,
        "at_most": counted.at_most,
        "exact": counted.exact,
        "limited": counted.reason == "until",
        "complete": counted.complete,
        "why": _WHY[counted.reason],
        "limiting": None if counted.ending is None else {**_rule(counted.ending), "text": _text(counted.ending)},
        "roots": [
            {"provider": _named(provider(root)), "count": count, "limiting": _rule(ending)}
            for root, count, ending in roots
        ],
        "aggregates": [{"uuid": uuid, "count": count} for uuid, count in counted.aggregates[:limit]],
    }


def _named(provider: Provider) -> dict[str, Any]:
    return {"uuid": provider.uuid, "name": provider.name}


@cache
def _rule(ending: str) -> dict[str, str | None]:
    rule, _, resource_class = ending.replace(" ", "_").partition(":")
    return {"rule": rule, "resource_class": resource_class or None}


def _text(ending: str) -> str:
    rule = _rule(ending)
    if rule["resource_class"] is not None:
        return f"No provider that is left has room for this much {rule['resource_class']}."
    return _RULES.get(str(rule["rule"]), f"No tree that is left meets {rule['rule']}.")
