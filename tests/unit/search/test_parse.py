"""Parsing of query strings."""

from __future__ import annotations

import uuid
from urllib.parse import parse_qsl

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from placement import errors
from placement import microversion as mv
from placement.schemas.document import Parameters
from placement.search.query import parse
from placement.search.query.query import Group, NameCondition, ProviderFilter, SearchQuery
from tests.search.query import query_string
from tests.strategies import search_queries, worlds
from tests.world import World

A = "5d7e7ad0-8c8f-4b8e-9f5c-3f6f9d9ecb41"


def conditions(any_of: str = "", none_of: str = "") -> NameCondition:
    return NameCondition(tuple(frozenset(names.split()) for names in any_of.split(",") if names), frozenset(none_of))


def test_a_query_of_several_groups_is_parsed() -> None:
    text = (
        "resources_A=VCPU:2,MEMORY_MB:512&required_A=X,!Y&required_A=in:P,Q&resources=DISK_GB:10&member_of=!"
        f"{A}&in_tree_A={A}&group_policy=isolate&same_subtree=_A&root_required=R,!S&limit=7"
    )
    assert parse.search_query(Parameters(parse_qsl(text)), mv.LATEST) == SearchQuery(
        groups=(
            Group("_A", {"VCPU": 2, "MEMORY_MB": 512}, conditions("X,P Q", "Y"), in_tree=A),
            Group("", {"DISK_GB": 10}, aggregates=NameCondition(none_of=frozenset({A}))),
        ),
        isolate=True,
        same_subtrees=(frozenset({"_A"}),),
        root_traits=conditions("R", "S"),
        limit=7,
    )


def test_a_filter_of_providers_is_parsed() -> None:
    text = f"name=cn1&uuid={A}&resources=VCPU:2&required=X,!Y&member_of={A}&in_tree={A}"
    assert parse.provider_filter(Parameters(parse_qsl(text)), mv.LATEST) == ProviderFilter(
        name="cn1",
        uuid=A,
        group=Group("", {"VCPU": 2}, conditions("X", "Y"), NameCondition((frozenset({A}),)), A),
    )
    assert parse.provider_filter(Parameters(), mv.LATEST) == ProviderFilter()


def uuid_of(name: str) -> str:
    """Return the uuid of a named aggregate or provider, and a trait unchanged."""
    return name if name.startswith("T") else str(uuid.uuid5(uuid.NAMESPACE_DNS, name))


@given(data=st.data(), world=worlds())
def test_the_query_string_of_a_parsed_query_is_its_text(data: st.DataObject, world: World) -> None:
    """Groups without parameters are lost, because a query string cannot express them; names become uuids.

    Queries whose subtrees refer to such a group would be refused, and are not generated.
    """
    query = data.draw(search_queries(world))
    expressible = {group.suffix for group in query.groups if query_string(SearchQuery((group,)))}
    assume(all(suffixes <= expressible for suffixes in query.same_subtrees))
    pairs = parse_qsl(query_string(query, uuid_of))
    parsed = parse.search_query(Parameters(pairs), mv.LATEST)
    assert query_string(parsed) == query_string(query, uuid_of)
    assert parsed.demand_count <= query.demand_count
    assert parsed.resource_classes == query.resource_classes


def test_each_suffixed_group_and_each_unsuffixed_class_is_a_demand() -> None:
    groups = Group("", {"VCPU": 1, "DISK_GB": 1}), Group("_A", {"VCPU": 1, "VGPU": 1}), Group("_B")
    query = SearchQuery(groups)
    assert query.demand_count == 4
    assert query.resource_classes == {"VCPU", "DISK_GB", "VGPU"}


@pytest.mark.parametrize(
    ("text", "refusal"),
    [
        ("required=X&resources=bad", errors.MalformedResources),
        ("required=,&resources=bad", errors.InvalidQuery),
        ("same_subtree=&required=,&resources=bad", errors.UnsuffixedInSubtree),
        ("root_required=,&same_subtree=&required=,", errors.InvalidQuery),
        ("required_A=X", errors.NoResources),
        ("resources=VCPU:1&required_A=X,!X", errors.GroupOutsideSubtree),
        ("resources=VCPU:1&same_subtree=_A", errors.UnknownSuffixes),
        ("resources_A=VCPU:1&resources_B=VCPU:1&required=X,!X&same_subtree=_A", errors.GroupOutsideSubtree),
        ("resources_A=VCPU:1&resources_B=VCPU:1&required_A=X,!X", errors.ConflictingTraits),
        ("resources_A=VCPU:1&resources_B=VCPU:1", errors.NoGroupPolicy),
    ],
)
def test_the_first_mistake_is_reported(text: str, refusal: type[errors.Failure]) -> None:
    with pytest.raises(refusal):
        parse.search_query(Parameters(parse_qsl(text, keep_blank_values=True)), mv.LATEST)


@pytest.mark.parametrize(("minor", "nested"), [(28, False), (29, True)])
def test_one_candidate_may_use_several_providers_of_a_tree_since_1_29(minor: int, nested: bool) -> None:
    query = parse.search_query(Parameters([("resources", "VCPU:1")]), mv.Version(1, minor))
    assert query.nested is nested
