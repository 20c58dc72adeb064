"""Views of a snapshot on the pages."""

from __future__ import annotations

import pytest

from placement import microversion as mv
from placement.extensions.console.views import candidates, cloud, tree, units
from placement.extensions.console.views.level import ClassLevel
from placement.extensions.console.views.query_form import QueryForm, parse_text, without_blanks
from placement.extensions.v1 import query_text
from placement.schemas.document import Parameters
from placement.search.find import find
from placement.search.query import parse
from tests.world import Stock, World


@pytest.mark.parametrize(
    ("amounts", "used", "reserved", "percent"),
    [
        ((100, 0, 100, 50), 50.0, 0.0, 50),
        ((100, 20, 80, 40), 40.0, 20.0, 50),
        ((100, 20, 320, 320), 80.0, 20.0, 100),
        ((100, 20, 80, 100), 80.0, 0.0, 125),
        ((100, 100, 0, 0), 0.0, 100.0, 0),
        ((100, 100, 0, 5), 0.0, 0.0, 100),
        ((0, 0, 0, 0), 0.0, 0.0, 0),
        ((10, 20, 0, 0), 0.0, 100.0, 0),
        ((10, -5, 15, 15), 100.0, 0.0, 100),
    ],
)
def test_a_bar_never_exceeds_its_width(amounts, used, reserved, percent):
    level = ClassLevel("VCPU", *amounts)
    assert (level.used_width, level.reserved_width, level.percent) == (used, reserved, percent)
    assert level.used_width + level.over_width + level.reserved_width <= 100
    assert (level.over_width > 0) is level.is_over
    for amount in (1, 30, 1000):
        assert level.used_width + level.over_width + level.taken_width(amount) + level.reserved_width <= 100


def test_a_bar_shows_the_requested_amount_after_the_used_amount():
    level = ClassLevel("VCPU", 100, 20, 80, 40)
    assert [level.taken_width(amount) for amount in (20, 40, 100)] == [20.0, 40.0, 40.0]
    assert ClassLevel("VCPU", 100, 20, 80, 81).taken_width(20) == 0.0


def rack():
    """Return a snapshot of hosts with a usage of 0 %, 10 % ... 110 %, the last on its NUMA node."""
    world = World()
    for tenth in range(11):
        world.host(f"h{tenth:02}", VCPU=Stock(10, used=tenth))
    world.host("h11")
    world.host("h11-numa0", parent="h11", VCPU=Stock(10, used=11), traits=["COMPUTE_STATUS_DISABLED"])
    return world.snapshot()


def test_hosts_are_sorted_by_usage():
    levels = cloud.host_levels(rack(), "VCPU")
    assert [host.name for host, *_ in levels.fullest(3)] == ["h11", "h10", "h09"]
    assert [host.name for host, *_ in levels.emptiest(2)] == ["h00", "h01"]
    assert [level.percent for _, level, _ in levels.fullest(3)] == [110, 100, 90]
    assert [is_disabled for _, _, is_disabled in levels.emptiest(1)] == [False]


def test_disabled_hosts_are_listed_after_the_emptiest_enabled_hosts():
    world = World()
    world.host("closed", VCPU=Stock(10, used=0), traits=["COMPUTE_STATUS_DISABLED"])
    world.host("open", VCPU=Stock(10, used=9))
    hosts = cloud.host_levels(world.snapshot(), "VCPU").emptiest(2)
    assert [(host.name, is_disabled) for host, _, is_disabled in hosts] == [("open", False), ("closed", True)]


def row_of_racks():
    """Return a snapshot of hosts in two aggregates with traits of racks, and of one host in no aggregate."""
    world = World()
    world.host("h3", VCPU=1, aggregates=["a"], traits=["CUSTOM_RACK_2", "CUSTOM_ONE"])
    world.host("h2", VCPU=1, aggregates=["a", "b"], traits=["CUSTOM_RACK_1", "CUSTOM_RACK_2"])
    world.host("h1", VCPU=1, aggregates=["b"], traits=["CUSTOM_RACK_2"])
    world.host("h0", VCPU=1)
    return world.snapshot()


def test_hosts_are_grouped_by_aggregates_and_by_prefixes_of_distinct_traits():
    snapshot = row_of_racks()
    assert cloud.groupings(snapshot) == ["aggregate", "CUSTOM_RACK_"]
    by_rack = cloud.host_levels(snapshot, "VCPU", "CUSTOM_RACK_")
    assert [host.name for host in by_rack.hosts] == ["h2", "h1", "h3", "h0"]
    assert by_rack.groups == [("1", 1), ("2", 2), ("none", 1)]
    by_aggregate = cloud.host_levels(snapshot, "VCPU", "aggregate")
    assert [host.name for host in by_aggregate.hosts] == ["h2", "h3", "h1", "h0"]
    assert by_aggregate.groups == [("a", 2), ("b", 1), ("none", 1)]
    assert cloud.host_levels(snapshot, "VCPU").groups == [("", 4)]


def test_hosts_may_be_arranged_by_usage():
    levels = cloud.host_levels(rack(), "VCPU", cloud.FULLEST)
    assert [host.name for host in levels.hosts] == [f"h{tenth:02}" for tenth in reversed(range(12))]
    assert levels.groups == [("", 12)]
    assert levels.is_over == [True] + [False] * 11


def test_classes_are_sorted_by_pressure():
    levels = [ClassLevel("A", 10, 0, 10, 1), ClassLevel("B", 10, 0, 10, 11), ClassLevel("C", 0, 0, 0, 0)]
    assert [level.resource_class for level in cloud.by_pressure(levels)] == ["B", "A", "C"]


@pytest.mark.parametrize(
    ("amount", "resource_class", "expected"),
    [
        (2_859_008, "MEMORY_MB", "2.73 TiB memory"),
        (512, "MEMORY_MB", "512 MiB memory"),
        (500, "DISK_GB", "500 GiB disk"),
        (10_240, "DISK_GB", "10 TiB disk"),
        (12_500_000, "VCPU", "12 500 000 VCPU"),
        (2_500_000, "NET_BW_EGR_KILOBIT_PER_SEC", "2.50 Gbit/s NET_BW_EGR_KILOBIT_PER_SEC"),
        (-2048, "CUSTOM_MEMORY_MB", "-2 GiB CUSTOM_MEMORY_MB"),
        (0, "DISK_GB", "0 disk"),
    ],
)
def test_an_amount_is_shown_in_a_readable_unit(amount, resource_class, expected):
    assert units.amount_of(amount, resource_class).replace("\N{NARROW NO-BREAK SPACE}", " ") == expected


def test_a_tenth_includes_its_lower_end_and_a_full_host_is_not_over_committed():
    assert cloud.host_levels(rack(), "VCPU").histogram() == [1] * 9 + [2, 1]
    assert cloud.host_levels(rack(), "NOTHING").histogram() == [0] * 11


def test_providers_that_need_attention_are_counted_and_named():
    assert cloud.over_committed(rack(), 5) == cloud.Attention(
        1, [(cloud.ProviderName("h11-numa0", "h11-numa0"), "1 VCPU")]
    )
    assert cloud.disabled_in_use(rack(), 0) == cloud.Attention(1, [])


def test_examples_of_providers_that_need_attention_are_the_first_by_name():
    world = World()
    for name in ("b", "c", "a"):
        world.host(name, VCPU=Stock(1, used=1), traits=["COMPUTE_STATUS_DISABLED"])
    world.host("idle", VCPU=1, traits=["COMPUTE_STATUS_DISABLED"])
    examples = cloud.disabled_in_use(world.snapshot(), 2)
    assert (examples.count, [provider.name for provider, _ in examples.examples]) == (3, ["a", "b"])


def test_the_own_tree_of_a_candidate_comes_before_the_trees_of_sharing_providers():
    world = World()
    world.host("a-pool", DISK_GB=100, traits=["MISC_SHARES_VIA_AGGREGATE"], aggregates=["x"])
    world.host("host", VCPU=4, aggregates=["x"])
    query = parse.search_query(Parameters([("resources", "VCPU:1,DISK_GB:1")]), mv.LATEST)
    snapshot = world.snapshot()
    [card] = candidates.cards(snapshot, find(query, snapshot).candidates)
    assert [drawing.root.name for drawing in card.trees] == ["host", "a-pool"]


def test_the_sums_include_all_providers():
    [level] = cloud.totals(rack())
    assert level == ClassLevel("VCPU", 120, 0, 120, 66)


def chain(length):
    world = World()
    world.host("p0000")
    for number in range(1, length):
        world.host(f"p{number:04}", parent=f"p{number - 1:04}", VCPU=1)
    return world.snapshot()


def test_a_deep_tree_is_drawn_without_recursion():
    snapshot = chain(700)
    drawing = tree.draw(snapshot, snapshot.by_uuid["p0000"])
    assert [provider.depth for provider in drawing.providers] == list(range(tree.MAX_PROVIDERS))
    assert drawing.omitted == 700 - tree.MAX_PROVIDERS


def test_a_provider_in_a_large_tree_is_drawn_with_its_ancestors():
    snapshot = chain(700)
    drawing = tree.draw(snapshot, snapshot.by_uuid["p0600"], max_providers=100)
    assert [provider.name for provider in drawing.providers] == [f"p{number:04}" for number in range(601)]
    assert drawing.omitted == 99


def test_children_are_drawn_below_their_parent_in_the_order_of_their_ids():
    world = World()
    for name, parent in (("c", None), ("z", "c"), ("a", "c"), ("y", "a"), ("b", "a"), ("other", None)):
        world.host(name, parent=parent, VCPU=1)
    snapshot = world.snapshot()
    drawing = tree.draw(snapshot, snapshot.by_uuid["b"])
    assert [(provider.name, provider.depth) for provider in drawing.providers] == [
        ("c", 0), ("z", 1), ("a", 1), ("y", 2), ("b", 2)
    ]  # fmt: skip


TEXTS = [
    "resources=VCPU:1",
    "required=A,!B&required=in:C,D",
    "a=%26%3D%2B%25 &b=\u00e9",
    "resources_x-1=VCPU:1&limit=3",
]


@pytest.mark.parametrize("text", TEXTS)
def test_a_query_survives_its_text_and_its_form(text):
    pairs = parse_text(text)
    assert parse_text(query_text.text(pairs)) == pairs
    assert parse_text(QueryForm.from_parameters(pairs).text) == pairs


@pytest.mark.parametrize("text", ["a=1&b=2", "?a=1&b=2", "https://h/x?a=1&b=2", "a=1\n&b=2\r\n", "  a=1\n  &b=2"])
def test_a_query_may_be_pasted_in_many_forms(text):
    assert parse_text(text) == [("a", "1"), ("b", "2")]


def test_empty_fields_are_omitted():
    assert without_blanks([("a", " "), ("b", " x "), ("c", "")]) == [("b", "x")]


def test_the_spare_group_has_a_suffix_that_no_group_has():
    form = QueryForm.from_parameters([("resources1", "VCPU:1"), ("required3", "A"), ("resources_A", "VCPU:1")])
    assert [(group.suffix, group.is_spare) for group in form.groups] == [
        ("", False), ("1", False), ("3", False), ("_A", False), ("2", True)
    ]  # fmt: skip
