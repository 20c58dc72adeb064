"""The stability of 1.x: each name of a release that others rely on still exists (docs: promises).

``kept_names.json`` contains the names of all releases so far.  Before a release, add the new ones:

    PYTHONPATH=. python tests/docs/test_kept_names.py

Only a new major release removes a name.
"""

from __future__ import annotations

import argparse
import importlib
import inspect
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import placement_client
import pytest
from prometheus_client import CollectorRegistry

from placement import conf as options
from placement import deploy, extension
from placement import microversion as mv
from placement.cmd import api, manage, metrics, serve, status
from placement.db.schema import tables
from placement.extensions.terminal import commands as ask
from placement.extensions.v1.api import V1
from placement.metrics.definitions import Metrics
from placement.version_history import OLDEST
from tests import apis
from tests.docs.blocks import PAGES

RECORD = Path(__file__).with_name("kept_names.json")


def option_names() -> Iterator[str]:
    for group, group_options in options.list_opts():
        yield from (f"[{group or 'DEFAULT'}]{option.name}" for option in group_options)


def routes() -> Iterator[str]:
    for served_api in apis.ALL:
        if not served_api.has_pages:
            yield from (
                f"{method} {served_api.prefix}{path}"
                for path, methods in served_api.routes.items()
                for method in methods
            )


def fields_of_v1() -> Iterator[str]:
    """Yield the parameters and the fields of bodies and responses: ``GET /consumers reply consumers[].uuid``."""
    for path, methods in V1.routes.items():
        for method, endpoint in methods.items():
            documents = [("query", endpoint.query), ("body", endpoint.body)]
            documents += [("reply", reply.document) for reply in endpoint.replies]
            for place, document in documents:
                if document and not path.startswith("/openapi"):
                    fields = _fields(document.render(OLDEST), "")
                    yield from (f"{method} {path} {place} {field.removeprefix('.')}" for field in fields)


def _fields(schema: Any, prefix: str) -> Iterator[str]:
    for name, inner in schema.get("properties", {}).items():
        yield f"{prefix}.{name}"
        yield from _fields(inner, f"{prefix}.{name}")
    for inner in schema.get("patternProperties", {}).values():
        yield from _fields(inner, f"{prefix}.*")
    if isinstance(items := schema.get("items"), dict):
        yield from _fields(items, f"{prefix}[]")
    for keyword in ("anyOf", "oneOf", "allOf"):
        for inner in schema.get(keyword, ()):
            yield from _fields(inner, prefix)


def codes() -> Iterator[str]:
    """Yield the codes of errors in the reference, which lists all of them (tests/unit/test_documents.py)."""
    table = PAGES["docs/api/protocol.rst"].partition("\nCodes\n")[2]
    yield from re.findall(r"^``(placement\.[\w.]+)``", table, re.MULTILINE)


def metric_names() -> Iterator[str]:
    registry = CollectorRegistry()
    Metrics(lambda: None, extension.installed_extensions().values(), registry)
    for metric in registry._collector_to_names:
        yield metric._name
        yield from (f"{metric._name} {label}" for label in metric._labelnames)


def command_words() -> Iterator[str]:
    """Yield commands and actions with each of their options: ``placement-manage db release --force``."""
    for program, parser in {
        "placement-manage": _parser_with_actions(manage._add_commands),
        "placement-status": _parser_with_actions(status._add_commands),
        "placement-serve": serve._parser(),
        "placement-metrics": metrics._parser(),
        "placement-api": api._parser(),
        "placement-ask": ask.parser(),
    }.items():
        yield from _words(program, parser)


def _parser_with_actions(add: Callable[[Any], None]) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser()
    add(parser.add_subparsers())
    return parser


def _words(prefix_words: str, parser: argparse.ArgumentParser) -> Iterator[str]:
    yield prefix_words
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, inner in action.choices.items():
                yield from _words(f"{prefix_words} {name}", inner)
        else:
            yield from (f"{prefix_words} {option}" for option in action.option_strings if option.startswith("--"))


def client_names() -> Iterator[str]:
    for name in placement_client.__all__:
        yield name
        for class_ in inspect.getmro(getattr(placement_client, name)):
            if class_.__module__.startswith("placement_client"):
                members = {*vars(class_), *inspect.get_annotations(class_)}
                yield from (f"{name}.{member}" for member in members if not member.startswith("_"))


def columns() -> Iterator[str]:
    yield from (f"{table.name}.{column.name}" for table in _tables() for column in table.columns)


def _tables() -> list[Any]:
    additions = extension.additions_of(extension.installed_extensions().values())
    return [*tables.CORE, *(table for addition in additions for table in addition.tables)]


def modules() -> Iterator[str]:
    """Yield the modules that extensions may rely on, with the documented names that each module defines."""
    table = PAGES["docs/whole-extension.rst"].partition(".. _extension-promises:")[2].partition("\nExtensions of")[0]
    module = ""
    for line in table.splitlines():
        if match := re.match(r"``(placement/[\w/]+\.py)`` ", line):
            module = match[1]
            yield module
        if module and re.match(r"``placement|  ", line):
            yield from (f"{module} {name}" for name in re.findall(r"``(\w+)``", line) if _has(module, name))


def _has(path: str, name: str) -> bool:
    """Whether a module, or a class in it, defines this name."""
    module = importlib.import_module(path.removesuffix(".py").replace("/", "."))
    owners = [module, *filter(inspect.isclass, vars(module).values())]
    return any(hasattr(owner, name) or name in inspect.get_annotations(owner) for owner in owners)


KINDS: dict[str, Callable[[], Iterator[str]]] = {
    "client": client_names,
    "columns": columns,
    "commands": command_words,
    "error codes": codes,
    "extensions": lambda: iter(extension.installed_extensions()),
    "fields of /v1": fields_of_v1,
    "metrics": metric_names,
    "microversions": lambda: (str(change.version) for change in mv.HISTORY),
    "modules for extensions": modules,
    "options": option_names,
    "policy rules": lambda: (rule.name for rule in deploy.list_rules()),
    "routes": routes,
}


def read_record() -> dict[str, list[str]]:
    return json.loads(RECORD.read_text())


@pytest.mark.parametrize("kind", KINDS)
def test_every_name_of_a_release_still_exists(kind):
    assert len(read_record()[kind]) > 5
    assert sorted({*read_record()[kind]} - {*KINDS[kind]()}) == []


def test_a_new_column_has_a_default_for_rows_of_the_previous_version():
    """Two versions serve one database during an upgrade."""
    old_columns = {*read_record()["columns"]}
    old_tables = {name.partition(".")[0] for name in old_columns}
    new = [column for table in _tables() if table.name in old_tables for column in table.columns]
    new = [column for column in new if f"{column.table.name}.{column.name}" not in old_columns]
    assert [str(column) for column in new if not column.nullable and column.server_default is None] == []


if __name__ == "__main__":
    record = read_record() if RECORD.exists() else {}
    record = {kind: sorted({*record.get(kind, ()), *names()}) for kind, names in KINDS.items()}
    RECORD.write_text(json.dumps(record, indent=1) + "\n")
