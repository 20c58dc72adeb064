"""Providers and consumers are changed only by the objects that handle generations, locks and the feed (docs/adr/0019).

The tests analyse the source, so they also find calls that no other test executes.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator
from pathlib import Path

import pytest

import placement
from placement import extension
from placement.db.schema.tables import metadata
from placement.objects.claims.claim_set import ClaimSet
from placement.objects.locked_provider import LockedProvider
from placement.objects.provider import ResourceProvider

#: One process runs these tests, and parses the package once.
pytestmark = pytest.mark.xdist_group("sources")

ROOT = Path(placement.__file__).parent
#: Methods for one part of a change, which the methods of locked providers and claim sets call.
PARTIAL_CHANGES = {
    "advance",
    "record_change",
    "touch",
    "pin",
    "check_generation",
    "advance_for_usage",
    "advance_locked",
    "lock_for_usage",
    "lock_as_read",
    "lock_named",
    "delete_created",
    "delete_new",
}
#: The modules of placement/objects that write.  All others are records, which can only be read.
WRITERS = {
    *("claims/allocation_rows", "claims/leases", "claims/release"),
    *("consumer", "locked_provider", "provider_rows", "resource_class", "trait", "tree"),
}
#: The doctor's fixes, if installed, which lock and record like the objects.
REPAIRS = {"extensions/doctor/repairs"} if "doctor" in extension.installed_extensions() else set()
#: The module that writes the records of claims, under the locks of their consumers.
RECORDS = {"extensions/v1/claims/claim_record"} if "v1" in extension.installed_extensions() else set()
#: The module that shifts the dates of the demonstration, and deletes present samples, before the service starts.
DEMO = {"extensions/loading/demo/past"} if "loading" in extension.installed_extensions() else set()
#: The modules of placement/db that write: generic statements, the feed, names, and upkeep.
DATABASE_WRITERS = {
    *("engine/compiled", "feed", "writes/expired_writers", "writes/names"),
    *("upkeep/online", "upkeep/standard", "upkeep/sweep"),
}


@functools.cache
def modules(below: str = "") -> dict[str, ast.Module]:
    """Return the syntax trees of the modules below a directory of the package, by path without the suffix."""
    paths = sorted((ROOT / below).rglob("*.py"))
    return {str(path.relative_to(ROOT).with_suffix("")): ast.parse(path.read_text()) for path in paths}


def calls(module: ast.Module) -> Iterator[tuple[str, str, list[ast.expr]]]:
    """Yield receiver, name and arguments of each call; the receiver of a function is empty."""
    for node in ast.walk(module):
        if isinstance(node, ast.Call):
            if isinstance(node.func, ast.Attribute):
                yield getattr(node.func.value, "id", ""), node.func.attr, node.args
            elif isinstance(node.func, ast.Name):
                yield "", node.func.id, node.args


def importers(of: str) -> set[str]:
    """Return the modules that import a module of the package, or a name from it."""
    importers = set()
    for path, module in modules().items():
        for node in ast.walk(module):
            if isinstance(node, ast.ImportFrom) and of in (f"{node.module}.{alias.name}" for alias in node.names):
                importers.add(path)
    return importers


def test_every_listed_partial_change_exists():
    defined = {
        node.name for module in modules().values() for node in ast.walk(module) if isinstance(node, ast.FunctionDef)
    }
    assert PARTIAL_CHANGES - defined == set()


def test_handlers_and_schemas_call_no_method_of_a_partial_change():
    # The class methods of LockedProvider and Consumer lock the rows.
    avoided = PARTIAL_CHANGES | {"LockedProvider", "Consumer"}
    partial_calls = {
        path: {name for _, name, _ in calls(module)} & avoided
        for path, module in modules().items()
        if {"handlers", "schemas"} & {*path.split("/")}
    }
    assert partial_calls
    assert {path: names for path, names in partial_calls.items() if names} == {}


def test_only_objects_and_the_database_record_in_the_feed():
    recording = {
        path
        for path, module in modules().items()
        for _, name, arguments in calls(module)
        if name == "record_change"
        and any(getattr(getattr(argument, "value", None), "id", "") == "feed" for argument in arguments)
    }
    assert recording == REPAIRS | {
        "db/writes/expired_writers",
        "db/upkeep/online",
        "db/upkeep/standard",
        *(f"objects/{name}" for name in WRITERS - {"consumer", "claims/leases", "claims/release"}),
    }


def test_only_the_listed_modules_write_to_tables_of_the_core():
    """A table that is not named counts as one of the core."""
    additions = extension.additions_of(extension.installed_extensions().values())
    extension_tables = {table.name for addition in additions for table in addition.tables}
    writing = {
        path
        for path, module in modules().items()
        for receiver, name, arguments in calls(module)
        if name == "CompiledInsert"
        or (receiver in ("sa", "dialects", *metadata.tables) and name in ("insert", "update", "delete", "upsert"))
        if not (arguments and getattr(arguments[0], "id", "") in extension_tables)
        if not path.startswith("db/migrations/")
    }
    assert writing == REPAIRS | RECORDS | DEMO | {f"objects/{name}" for name in WRITERS} | {
        f"db/{name}" for name in DATABASE_WRITERS
    }


def test_unchecked_writes_are_called_only_by_objects_that_check():
    assert importers("placement.objects.provider_rows") == REPAIRS | {
        *("objects/claims/claim_set", "objects/locked_provider", "objects/tree"),
    }
    assert importers("placement.objects.claims.allocation_rows") == {
        *("objects/claims/claim_set", "objects/claims/release"),
    }
    assert importers("placement.objects.tree") == {"objects/locked_provider"}
    assert importers("placement.objects.consumer.Consumer") == REPAIRS | {"objects/claims/claim_set"}


def test_a_provider_record_has_only_methods_that_read():
    methods = {name for name in vars(ResourceProvider) if not name.startswith("_")}
    fields = set(ResourceProvider.__dataclass_fields__)
    derived = {"tree_id", "modified"}
    reads = {"find", "get", "get_with", "ids", "of_ids", "by_uuid_or_name", "count", "newest_change", "changed_last"}
    assert methods - fields - derived == reads
    assert ResourceProvider.__dataclass_params__.frozen


def test_a_locked_provider_has_no_public_method_of_a_partial_change():
    assert not vars(LockedProvider).keys() & PARTIAL_CHANGES


def test_a_claim_set_has_no_public_method_of_a_single_step():
    public = {name for name in vars(ClaimSet) if not name.startswith("_")}
    assert public == {"place", "place_each"}
