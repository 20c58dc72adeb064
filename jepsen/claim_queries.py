"""Queries of POST /v1/claims in both notations, limited to the conditions that workloads use: amounts and trees."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl

_PARAMETER = re.compile(r"(resources|in_tree)([a-zA-Z0-9_-]{0,64})")


@dataclass(frozen=True, slots=True)
class Group:
    """A group of a query: amounts by class, and optionally a tree."""

    resources: Mapping[str, int]
    in_tree: str | None = None


def groups(query: Any) -> Mapping[str, Group] | None:
    """Return the groups of a query by suffix; None if it has other conditions or a group without amounts."""
    by_suffix = _groups_of_string(query) if isinstance(query, str) else _groups_of_object(query)
    if by_suffix is None or not all(
        group.keys() <= {"resources", "in_tree"} and group.get("resources") for group in by_suffix.values()
    ):
        return None
    return {suffix: Group(group["resources"], group.get("in_tree")) for suffix, group in by_suffix.items()}


def _groups_of_string(query: str) -> dict[str, dict[str, Any]] | None:
    by_suffix: dict[str, dict[str, Any]] = {}
    for name, value in parse_qsl(query):
        parameter = _PARAMETER.fullmatch(name)
        if (name, value) == ("group_policy", "none"):
            continue
        if parameter is None or parameter[1] in by_suffix.setdefault(parameter[2], {}):
            return None
        by_suffix[parameter[2]][parameter[1]] = value if parameter[1] == "in_tree" else _amounts(value)
    return by_suffix


def _amounts(text: str) -> dict[str, int]:
    return {name: int(amount) for name, _, amount in (piece.partition(":") for piece in text.split(","))}


def _groups_of_object(query: Mapping[str, Any]) -> Mapping[str, Mapping[str, Any]] | None:
    is_supported = query.keys() <= {"groups", "group_policy"} and query.get("group_policy", "none") == "none"
    return query["groups"] if is_supported else None


def content(request: Mapping[str, Any]) -> str | None:
    """Return a text that is equal for equal requests of POST /v1/claims (docs: v1-claims-repeated).

    None for a query with conditions that this module does not parse.
    """
    query_groups = groups(request["query"])
    if query_groups is None:
        return None
    group_contents = [
        [suffix, sorted(group.resources.items()), group.in_tree] for suffix, group in sorted(query_groups.items())
    ]
    owner = [request[name] for name in ("project_id", "user_id", "consumer_type")]
    options = [request.get("count", 1), request.get("keep", True), request.get("consumer_generation")]
    return json.dumps([group_contents, owner, options])
