"""Check ``trees``: reads of trees with and without writes that explain them."""

from __future__ import annotations

import pytest

from jepsen.checker.trees import trees
from jepsen.tests.handwritten_histories import call, loss, violations


def create(began, ended, uuid, parent=None):
    body = {"name": uuid, "uuid": uuid, "parent_provider_uuid": parent}
    return call(began, ended, "POST", "/resource_providers", body)


def move(began, ended, uuid, parent, status=200):
    body = {"name": uuid, "parent_provider_uuid": parent}
    return call(began, ended, "PUT", f"/resource_providers/{uuid}", body, status=status)


def delete(began, ended, uuid):
    return call(began, ended, "DELETE", f"/resource_providers/{uuid}", status=204)


def read(began, ended, query, **members):
    """Return a read of providers.

    Args:
        members: Pairs of parent and root, by uuid.
    """
    entries = [
        {"uuid": uuid, "parent_provider_uuid": parent, "root_provider_uuid": root}
        for uuid, (parent, root) in members.items()
    ]
    return call(began, ended, "GET", f"/resource_providers{query}", reply={"resource_providers": entries})


def overview(began, ended, root, **members):
    providers = [
        {"uuid": uuid, "parent": parent and {"uuid": parent, "name": parent}, "root": {"uuid": top, "name": top}}
        for uuid, (parent, top) in members.items()
    ]
    return call(began, ended, "GET", f"/v1/overview?root={root}", reply={"providers": providers, "next": None})


A, B, C = (None, "a"), ("a", "a"), ("b", "a")
CREATED = [create(1, 2, "a"), create(3, 4, "b", "a"), create(5, 6, "c", "b"), create(7, 8, "x")]


@pytest.mark.parametrize("show", [read, overview])
def test_written_trees_violate_nothing(show):
    def tree(began, ended, named, **members):
        return show(began, ended, f"?in_tree={named}" if show is read else named, **members)

    assert not violations(
        trees,
        *(*CREATED, tree(9, 10, "c", a=A, b=B, c=C), tree(9, 10, "x", x=(None, "x"))),
        *(create(11, 20, "d", "a"), tree(12, 13, "a", a=A, b=B, c=C), tree(14, 15, "a", a=A, b=B, c=C, d=B)),
        *(move(21, 22, "b", "x"), tree(23, 24, "a", a=A, d=B)),
        tree(23, 24, "c", x=(None, "x"), b=("x", "x"), c=("b", "x")),
        *(
            move(25, 26, "x", "c", status=400),
            delete(27, None, "d"),
            tree(28, 29, "a", a=A),
            tree(30, 31, "a", a=A, d=B),
        ),
        read(32, 33, "", a=A, x=(None, "x"), b=("x", "x"), c=("b", "x")),
    )


@pytest.mark.parametrize(
    ("invariant", "operation"),
    [
        ("trees without cycles, with correct roots", read(9, 10, "?in_tree=a", a=("c", "a"), b=B, c=C)),
        ("trees without cycles, with correct roots", read(9, 10, "", a=A, b=("a", "x"))),
        ("trees without cycles, with correct roots", read(9, 10, "?in_tree=a", a=A, b=B, c=("b", "b"))),
        ("trees without cycles, with correct roots", read(9, 10, "", b=B, c=("b", "x"))),
        ("a read shows one tree", read(9, 10, "?in_tree=c", a=A, b=B)),
        ("a read shows one tree", read(9, 10, "?in_tree=a", a=A, b=B, c=C, x=(None, "x"))),
        ("a read shows one tree", read(9, 10, "?in_tree=c", b=B, c=C)),
        ("parents as written", read(9, 10, "?in_tree=a", a=A, b=B, c=("a", "a"))),
        ("acknowledged children included", read(9, 10, "?in_tree=a", a=A, b=B)),
        ("acknowledged children included", overview(9, 10, "a", a=A, b=B)),
    ],
)
def test_unwritten_trees_are_violations(invariant, operation):
    assert invariant in violations(trees, *CREATED, operation)


def test_each_rule_finds_errors_that_the_others_do_not_find():
    assert violations(trees, *CREATED, read(9, 10, "", b=B, c=("b", "x"))) == {
        "trees without cycles, with correct roots"
    }
    assert violations(trees, *CREATED, read(9, 10, "?in_tree=a", a=A, b=B)) == {"acknowledged children included"}
    assert violations(trees, *CREATED, read(9, 10, "", a=A, c=("a", "a"))) == {"parents as written"}
    assert violations(trees, create(7, 8, "x"), read(9, 10, "?in_tree=y", x=(None, "x"))) == {"a read shows one tree"}


def test_a_provider_that_was_deleted_is_not_shown():
    operations = [*CREATED, delete(9, 10, "c")]
    assert not violations(trees, *operations, read(11, 12, "?in_tree=a", a=A, b=B))
    assert violations(trees, *operations, read(11, 12, "?in_tree=a", a=A, b=B, c=C)) == {"parents as written"}


def test_a_creation_may_be_lost_with_the_last_commits():
    read_of_tree = read(20, 21, "?in_tree=a", a=A, b=B)
    assert not violations(trees, *CREATED, read_of_tree, events=[loss(9, 10)])
    assert violations(trees, *CREATED, create(11, 12, "d", "a"), read_of_tree, events=[loss(9, 10)]) == {
        "acknowledged children included"
    }


def test_the_final_rows_are_trees():
    rows = [[1, "a", 0, None, 1], [2, "b", 0, 1, 1]]
    assert not violations(trees, final={"providers": rows})
    wrong = {"providers": [[1, "a", 0, None, 1], [2, "b", 0, 1, 2]]}
    assert violations(trees, final=wrong) == {"trees without cycles, with correct roots"}
