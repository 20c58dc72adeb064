"""The first unknown name of a query is reported: first of the root, then of each group, classes before traits."""

from __future__ import annotations

import pytest

from placement import errors
from placement.db.database import Database
from placement.search.query import existence
from placement.search.query.query import Group, NameCondition, ProviderFilter, SearchQuery
from tests.world import World

KNOWN, UNUSED = "CUSTOM_IN_USE", "HW_CPU_X86_AVX2"


def condition(*traits: str) -> NameCondition:
    """Return a condition on some traits; the last one is forbidden."""
    return NameCondition(tuple(frozenset({trait}) for trait in traits[:-1]), frozenset(traits[-1:]))


def world() -> World:
    world = World()
    world.host("cn1", VCPU=1, traits=[KNOWN])
    return world


@pytest.mark.parametrize(
    ("root", "groups", "sentence"),
    [
        ((), [("VCPU", (KNOWN, UNUSED))], None),
        ((KNOWN, UNUSED), [("VCPU", ())], None),
        (("B", "A"), [("NONE", ("C",))], "No such trait(s): A, B."),
        ((UNUSED,), [("NONE", ("C",))], "Invalid resource class in resources parameter: No such resource class NONE."),
        ((), [("VCPU", (UNUSED, "D", "C")), ("NONE", ())], "No such trait(s): C, D."),
        ((), [("VCPU", ()), ("VCPU", ("E",))], "No such trait(s): E."),
    ],
)
def test_the_first_unknown_name_of_a_query_is_reported(
    database: Database, root: tuple[str, ...], groups: list[tuple[str, tuple[str, ...]]], sentence: str | None
) -> None:
    query_groups = tuple(
        Group(f"_{number}", {class_: 1}, condition(*traits)) for number, (class_, traits) in enumerate(groups)
    )
    query = SearchQuery(query_groups, root_traits=condition(*root))
    if sentence is None:
        existence.check(query, world().snapshot(), database)
        return
    with pytest.raises(errors.BadRequest) as raised:
        existence.check(query, world().snapshot(), database)
    assert str(raised.value) == sentence


def test_the_first_unknown_name_of_a_filter_is_reported(database: Database) -> None:
    snapshot = world().snapshot()
    existence.check_filter(ProviderFilter(group=Group("", {"VCPU": 1}, condition(KNOWN, UNUSED))), snapshot, database)
    for group, sentence in (
        (
            Group("", {"NONE": 1}, condition("A")),
            "Invalid resource class in resources parameter: No such resource class",
        ),
        (Group("", {"VCPU": 1}, condition("A")), 'Invalid trait(s) in "required" parameter: No such trait(s): A.'),
    ):
        with pytest.raises(errors.BadRequest) as raised:
            existence.check_filter(ProviderFilter(group=group), snapshot, database)
        assert str(raised.value).startswith(sentence)
