"""The query of a claim: a query string of /allocation_candidates, or an object with the same parameters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from placement.extensions.v1 import query_text as write
from placement.extensions.v1.schemas import search
from placement.http import urlencoded
from placement.schemas.declarations import Object
from placement.schemas.document import Parameters, Query
from placement.version_history import OLDEST

_PARAMETERS = Query(Object(*(field for field in search.PARAMETERS if field.name != "limit")), repeated=search.REPEATED)


def parameters(given: str | Mapping[str, Any]) -> Parameters:
    """Return the parameters of a query, in either form.

    Raises:
        InvalidQuery: They do not conform to the schema of the query.
    """
    if isinstance(given, str):
        pairs = urlencoded.pairs(given.removeprefix("?").encode(), "utf-8", "query")
    else:
        pairs = [*_pairs(given)]
    return _PARAMETERS.validate(pairs, OLDEST)


def _pairs(given: Mapping[str, Any]) -> Iterator[write.Pair]:
    """Yield the parameters of an object; each string of a list is one value of its parameter."""
    for suffix, group in given["groups"].items():
        if resources := group.get("resources"):
            yield write.resources(suffix, ((name, int(amount)) for name, amount in resources.items()))
        for name in ("required", "member_of"):
            for value in group.get(name, ()):
                yield f"{name}{suffix}", value
        if "in_tree" in group:
            yield f"in_tree{suffix}", group["in_tree"]
    if "group_policy" in given:
        yield "group_policy", given["group_policy"]
    for suffixes in given.get("same_subtree", ()):
        yield "same_subtree", ",".join(suffixes)
    if traits := given.get("root_required"):
        yield "root_required", ",".join(traits)
