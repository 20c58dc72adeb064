"""Generators of the actions of the model's clients: numbers that choose among existing objects, and values to write."""

from __future__ import annotations

from hypothesis import strategies as st

from tests.model.records import Inventory

CUSTOM_CLASSES = ("CUSTOM_A", "CUSTOM_B")
CLASSES = ("VCPU", "DISK_GB", *CUSTOM_CLASSES)
TRAITS = ("CUSTOM_T", "CUSTOM_U", "CUSTOM_V")
OWNERS = (("project1", "user1"), ("project1", "user2"), ("project2", "user1"))
NO_SUCH_CLASS = "CUSTOM_NO_SUCH"
CONSUMERS = 4

#: A choice among existing records; the last number, or any number if none exist, means one that does not exist.
WHICH = st.integers(0, 23)
NOT_THERE = 23

NUMBER = st.integers(0, 4)
CONSUMER = st.integers(0, CONSUMERS - 1)
#: The difference of a provider's sent generation from the true one, and the sent generation of a consumer.
OFF = st.sampled_from((0, 0, 0, 0, 0, 0, 0, 1, -1))
BELIEF = st.sampled_from(("right",) * 8 + ("null", "off"))
#: Provider, one of its classes, amount.
AMOUNTS = st.lists(
    st.tuples(WHICH, WHICH, st.sampled_from((1, 1, 1, 2, 2, 3, 4, 8))),
    min_size=1,
    max_size=3,
)
NOTHING = st.just([])
INVENTORY = st.builds(
    Inventory,
    total=st.sampled_from((8, 8, 6, 4, 2, 1)),
    reserved=st.sampled_from((0, 0, 0, 0, 1, 2, 5)),
    min_unit=st.sampled_from((1, 1, 1, 1, 1, 2)),
    max_unit=st.sampled_from((2**31 - 1, 2**31 - 1, 2**31 - 1, 4, 2)),
    step_size=st.sampled_from((1, 1, 1, 1, 1, 2)),
    allocation_ratio=st.sampled_from((1.0, 1.0, 1.0, 1.5, 0.5, 2.0, 0.25)),
)
INVENTORIES = st.dictionaries(st.sampled_from((*CLASSES, NO_SUCH_CLASS)), INVENTORY, max_size=2)


def minors(*numbers: int) -> st.SearchStrategy[int]:
    """Draw a version in which something changed."""
    return st.sampled_from(numbers)


def claims(min_size: int, max_size: int) -> st.SearchStrategy[list[tuple[int, list[tuple[int, int, int]], str]]]:
    """Draw consumers, each with its claim and the generation that it sends."""
    entry = st.tuples(CONSUMER, NOTHING | AMOUNTS, BELIEF)
    return st.lists(entry, min_size=min_size, max_size=max_size, unique_by=lambda claim: claim[0])
