"""Generate the parts of the reference that follow from the code: docs/api/generated.

Routes with their versions and policy rules, the JSON schemas of bodies and queries, all errors, and the version
history.  A test compares the files with the output of this program.  To regenerate them, where the service is installed
from a checkout (``make samples`` does it, too):

    python tools/generate_reference.py
"""

from __future__ import annotations

import contextlib
import importlib
import json
import pkgutil
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import webob.exc

import placement
from placement import errors, routes
from placement import microversion as mv
from placement.http.failures import status_of

GENERATED = Path(__file__).resolve().parents[1] / "docs/api/generated"
VERSIONS = [change.version for change in mv.HISTORY]
HEAD = ".. Written by tools/generate_reference.py from the code: do not edit.\n\n"
PAGE = HEAD + ".. example-none: this page is generated\n\n"
#: The section that describes a path, or a method of it.
SECTIONS = {
    "/": "api-version-document",
    "/resource_classes": "api-resource-classes",
    "/resource_classes/{name}": "api-resource-classes",
    "GET /resource_providers": "api-list-providers",
    "POST /resource_providers": "api-create-provider",
    "GET /resource_providers/{uuid}": "api-show-provider",
    "PUT /resource_providers/{uuid}": "api-update-provider",
    "DELETE /resource_providers/{uuid}": "api-delete-provider",
    "/resource_providers/{uuid}/inventories": "api-inventories",
    "/resource_providers/{uuid}/inventories/{resource_class}": "api-inventories",
    "/resource_providers/{uuid}/usages": "api-provider-usages",
    "/resource_providers/{uuid}/aggregates": "api-aggregates",
    "/resource_providers/{uuid}/allocations": "api-provider-allocations",
    "/resource_providers/{uuid}/traits": "api-provider-traits",
    "POST /allocations": "api-create-allocations",
    "GET /allocations/{consumer_uuid}": "api-show-allocations",
    "PUT /allocations/{consumer_uuid}": "api-replace-allocations",
    "DELETE /allocations/{consumer_uuid}": "api-delete-allocations",
    "/allocation_candidates": "api-candidates",
    "/traits": "api-traits",
    "/traits/{name}": "api-traits",
    "/usages": "api-project-usages",
    "/reshaper": "api-reshaper",
}
#: Modules that are not imported: they declare no failures, and importing them has side effects.
NOT_IMPORTED = (
    "placement.tests",
    "placement.wsgi.api",
    "placement.db.migrations",
    "placement.testing",
    "placement.direct",
)

#: Packages of other APIs, whose failures are not Placement's.
OTHER_APIS: tuple[str, ...] = ()


def reference() -> dict[str, str]:
    """Return the text of each generated file by its name."""
    return {
        "routes.rst": PAGE + routes_page(),
        "schemas.rst": PAGE + schemas_page(),
        "errors.rst": PAGE + errors_page(),
        "versions.inc": HEAD + versions_table(),
    }


# --- routes ----------------------------------------------------------------------------------------------------------


def endpoints() -> Iterator[tuple[str, str, Any]]:
    """Yield path, method and endpoint of every route; a method can have several endpoints, by version."""
    for path, methods in routes.TABLE.items():
        for method, served in methods.items():
            for endpoint in served if isinstance(served, tuple) else (served,):
                yield path, method, endpoint


def routes_page() -> str:
    rows = [
        (
            f"``{method} {path}``",
            span(endpoint.since, endpoint.until),
            ", ".join(links(path, method, endpoint)),
            f"``{endpoint.policy}``" if endpoint.policy else "none",
        )
        for path, method, endpoint in endpoints()
    ]
    return (
        ".. _api-routes:\n\n"
        + title("Routes", "=")
        + "Each method of each path, the versions that have it, its description, the schemas of its query and its\n"
        "body, and the rule of :ref:`policy` that the caller must satisfy.\n\n"
        + table(("route", "versions", "see", "rule"), rows)
    )


def links(path: str, method: str, endpoint: Any) -> Iterator[str]:
    """Yield references to the section that describes a route, and to its schemas."""
    section = SECTIONS.get(path) or SECTIONS[f"{method} {path}"]
    yield f":ref:`section <{section}>`"
    for part in ("query", "body"):
        if getattr(endpoint, part) is not None:
            yield f":ref:`{part} <{label(method, path, part)}>`"


def span(since: mv.Version, until: mv.Version | None) -> str:
    """Return the range of versions from ``since`` to the last one before ``until``, in range_in_words."""
    if until is None:
        return f"from {since}" if since > mv.MINIMUM else "all"
    return f"{since} to {max(version for version in VERSIONS if version < until)}"


# --- schemas ---------------------------------------------------------------------------------------------------------


def schemas_page() -> str:
    parts = [
        title("Schemas", "="),
        "The JSON schema of each query and body.  A query is an object with the value of each parameter that counts\n"
        "(:ref:`api-query-strings`).\n\n",
    ]
    for path, method, endpoint in endpoints():
        for part in ("query", "body"):
            document = getattr(endpoint, part)
            if document is not None:
                parts += schema_section(path, method, part, endpoint, document)
    return "".join(parts)


def schema_section(path: str, method: str, part: str, endpoint: Any, document: Any) -> Iterator[str]:
    yield f".. _{label(method, path, part)}:\n\n" + title(f"{method} {path}: {part}", "-")
    versions = [v for v in VERSIONS if v >= endpoint.since and (endpoint.until is None or v < endpoint.until)]
    rendered = [(version, layout(document.render(version))) for version in versions]
    firsts = [0] + [index for index in range(1, len(versions)) if rendered[index][1] != rendered[index - 1][1]]
    for first, end in zip(firsts, [*firsts[1:], len(versions)], strict=True):
        held = range_in_words(versions[first], versions[end - 1])
        yield f"{held}:\n\n.. code-block:: json\n\n{indented(rendered[first][1])}\n\n"


def layout(value: Any, indent: int = 0) -> str:
    """Return JSON with each short object on one line, and other objects with a line for each member."""
    line = json.dumps(value)
    if not isinstance(value, dict) or len(line) + indent <= 80:
        return line
    inner = indent + 2
    members = [f"{' ' * inner}{json.dumps(name)}: {layout(member, inner)}" for name, member in value.items()]
    return "{\n" + ",\n".join(members) + f"\n{' ' * indent}}}"


def range_in_words(first: mv.Version, last: mv.Version) -> str:
    if last == mv.LATEST:
        return f"From version {first} on" if first > mv.MINIMUM else "All versions"
    return f"Versions {first} to {last}" if first != last else f"Version {first}"


def label(method: str, path: str, part: str) -> str:
    return f"schema-{method}-{re.sub(r'[^a-z]+', '-', path).strip('-')}-{part}".lower()


# --- errors ----------------------------------------------------------------------------------------------------------


def failures() -> list[type[errors.Failure]]:
    """Return every failure with its own sentence, of all modules."""
    for module in pkgutil.walk_packages(placement.__path__, "placement."):
        if not module.name.startswith(NOT_IMPORTED):
            with contextlib.suppress(ImportError):  # needs an extra that is not installed; these declare no failures
                importlib.import_module(module.name)
    kinds = [errors.Failure]
    for kind in kinds:
        modules = ((sub, sub.__module__) for sub in kind.__subclasses__())
        kinds.extend(sub for sub, name in modules if name.startswith("placement.") and not name.startswith(OTHER_APIS))
    own = (kind for kind in kinds[1:] if kind.template not in ("", errors.Failure.template))
    return sorted(own, key=lambda kind: kind.__name__)


def errors_page() -> str:
    by_status: dict[int, list[type[errors.Failure]]] = {}
    for kind in failures():
        by_status.setdefault(status_of(kind.__new__(kind)), []).append(kind)
    parts = [
        title("Errors", "="),
        "The messages of all errors by their status, with the code that they have from version 1.23 on and the\n"
        "name of the failure in the code.  ``<...>`` stands for a value.  Some routes put words in front of a\n"
        "message.\n\n",
    ]
    for status, kinds in sorted(by_status.items()):
        parts.append(title(f"{int(status)} {webob.exc.status_map[int(status)].title}", "-"))
        parts.append(".. list-table::\n   :header-rows: 1\n   :widths: 55 25 20\n\n")
        rows = [("message", "code", "failure")]
        rows += [(f"``{sentence(kind)}``", f"``{kind.code}``", f"``{kind.__name__}``") for kind in kinds]
        parts += ["   * - " + "\n     - ".join(row) + "\n" for row in rows]
        parts.append("\n")
    return "".join(parts)


def sentence(kind: type[errors.Failure]) -> str:
    return re.sub(r"%\((\w+)\)[sd]", r"<\1>", kind.template).strip()


# --- versions --------------------------------------------------------------------------------------------------------


def versions_table() -> str:
    return table(("version", "change"), [(str(change.version), change.sentence) for change in mv.HISTORY])


# --- reStructuredText ------------------------------------------------------------------------------------------------


def title(text: str, line: str) -> str:
    return f"{text}\n{line * len(text)}\n\n"


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a simple table, each row on one line."""
    lines = [tuple(header), *map(tuple, rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    rule = "  ".join("=" * width for width in widths)
    cells = ["  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines]
    return "\n".join([rule, cells[0], rule, *cells[1:], rule]) + "\n"


def indented(text: str) -> str:
    return "\n".join(f"   {line}" for line in text.splitlines())


if __name__ == "__main__":
    GENERATED.mkdir(exist_ok=True)
    for name, text in reference().items():
        (GENERATED / name).write_text(text)
