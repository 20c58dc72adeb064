"""Parsing the query string of a query returns an equal query."""

from __future__ import annotations

import uuid
from dataclasses import replace
from urllib.parse import parse_qsl

from hypothesis import assume, given
from hypothesis import strategies as st

from placement import microversion as mv
from placement.extensions.v1.query_text import group_pairs, query_string
from placement.schemas.document import Parameters
from placement.search.query import parse
from placement.search.query.query import Group, NameCondition, SearchQuery
from tests.strategies import examples, search_queries, worlds


def with_uuids(query: SearchQuery) -> SearchQuery:
    """Return the query with uuids instead of the names of aggregates and providers."""

    def by_uuid(name: str) -> str:
        return str(uuid.uuid5(uuid.NAMESPACE_DNS, name))

    def aggregates(condition: NameCondition) -> NameCondition:
        any_of = tuple(frozenset(map(by_uuid, names)) for names in condition.any_of)
        return NameCondition(any_of, frozenset(map(by_uuid, condition.none_of)))

    def group(old: Group) -> Group:
        in_tree = None if old.in_tree is None else by_uuid(old.in_tree)
        return replace(old, aggregates=aggregates(old.aggregates), in_tree=in_tree)

    return replace(query, groups=tuple(map(group, query.groups)), nested=True)


def without_order(query: SearchQuery) -> object:
    """Return the query without the order of required traits, which a query string need not preserve."""
    groups = [
        (
            replace(group, traits=NameCondition(), resources={}),
            frozenset(group.resources.items()),
            names_without_order(group),
        )
        for group in query.groups
    ]
    return (
        groups,
        query.isolate,
        set(query.same_subtrees),
        set(query.root_traits.any_of),
        query.root_traits.none_of,
        query.limit,
    )


def names_without_order(group: Group) -> object:
    return frozenset(group.traits.any_of), group.traits.none_of


@examples(300)
@given(data=st.data(), limit=st.none() | st.integers(1, 5))
def test_parsing_a_query_string_returns_the_query_that_was_written(data: st.DataObject, limit: int | None) -> None:
    query = replace(with_uuids(data.draw(search_queries(data.draw(worlds())))), limit=limit)
    # A group without conditions cannot be written.
    assume(all([*group_pairs(group)] for group in query.groups))
    text = query_string(query)
    parsed = parse.search_query(Parameters(parse_qsl(text)), mv.LATEST)
    assert without_order(parsed) == without_order(query)
    assert query_string(parsed) == text


def test_a_query_string_has_a_parameter_for_each_condition() -> None:
    group = Group(
        "_NIC",
        {"SRIOV_NET_VF": 2, "VCPU": 1},
        NameCondition((frozenset({"A"}), frozenset({"B", "C"})), frozenset({"D"})),
        NameCondition((frozenset({"x"}),), frozenset({"y", "z"})),
        in_tree="t",
    )
    query = SearchQuery((group,), isolate=True, root_traits=NameCondition((), frozenset({"R"})), limit=3)
    assert query_string(query) == (
        "resources_NIC=SRIOV_NET_VF:2,VCPU:1&required_NIC=A,!D&required_NIC=in:B,C&member_of_NIC=x"
        "&member_of_NIC=!in:y,z&in_tree_NIC=t&group_policy=isolate&root_required=!R&limit=3"
    )
