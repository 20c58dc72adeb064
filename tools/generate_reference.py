"""Generate the parts of the reference that are derived from the code: docs/api/generated.

For each API: the routes with versions and policy rules, the JSON schemas of bodies and queries, all errors, and the
version history, if any; and the schema of the files that ``placement-manage load`` reads.  A test compares the files
with newly generated ones.  To regenerate them in a checkout (or use ``make samples``):

    python tools/generate_reference.py
"""

from __future__ import annotations

import contextlib
import importlib
import json
import pkgutil
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import webob.exc

import placement
from placement import errors, routes
from placement import microversion as mv
from placement.extensions.baremetal import versions as baremetal_versions
from placement.extensions.baremetal.api import BAREMETAL
from placement.extensions.loading import schema as loading_schema
from placement.extensions.v1.api import V1
from placement.http.api import Api
from placement.http.failures import status_of
from placement.version_history import OLDEST, History, Version

GENERATED = Path(__file__).resolve().parents[1] / "docs/api/generated"
HEAD = ".. Written by tools/generate_reference.py from the code: do not edit.\n\n"
PAGE = HEAD + ".. example-none: this page is generated\n\n"
#: The labels of the sections that describe a path, or a method and path, of Placement.
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
#: Modules not imported: they declare no failures, and their import has side effects.
NOT_IMPORTED = (
    "placement.tests",
    "placement.wsgi.api",
    "placement.db.migrations",
    "placement.testing",
    "placement.direct",
    "placement.extensions.terminal.openstack",
)


@dataclass(frozen=True)
class Documented:
    """An API with the settings of its pages.

    Attributes:
        api: The API.
        history: Its versions; None for an API without versions.
        prefix: The prefix of file names and labels; empty for Placement.
        package: The package with the failures of this API alone; None for the failures outside such packages.
        codes: Whether its errors have codes.
        sections: The label of the section by path, or by method and path; None to show the handler's docstring.
    """

    api: Api
    history: History | None
    prefix: str = ""
    package: str | None = None
    codes: bool = True
    sections: Mapping[str, str] | None = None

    def files(self) -> dict[str, str]:
        """Return the text of each generated file by its name."""
        files = {
            f"{self.prefix}routes.rst": PAGE + self.routes_page(),
            f"{self.prefix}schemas.rst": PAGE + self.schemas_page(),
            f"{self.prefix}errors.rst": PAGE + self.errors_page(),
        }
        if self.history is not None and self.sections is None:  # otherwise docs/api/versions.rst describes them
            files[f"{self.prefix}versions.inc"] = HEAD + versions_table(self.history)
        return files

    # --- routes ---

    def endpoints(self) -> Iterator[tuple[str, str, Any]]:
        """Yield path, method and endpoint of every route; a method can have several endpoints for versions."""
        for path, methods in self.api.routes.items():
            for method, served in methods.items():
                for endpoint in served if isinstance(served, tuple) else (served,):
                    yield path, method, endpoint

    def routes_page(self) -> str:
        rows = [
            (
                f"``{method} {path}``",
                *([self.span(self.history, endpoint.since, endpoint.until)] if self.history else []),
                ", ".join(self.links(path, method, endpoint)),
                f"``{endpoint.policy}``" if endpoint.policy else "none",
            )
            for path, method, endpoint in self.endpoints()
        ]
        below = f"  The paths are below ``{self.api.prefix}``." if self.api.prefix else ""
        versions = "its versions, " if self.history else ""
        return (
            f".. _{self.prefix or 'api-'}routes:\n\n"
            + title("Routes", "=")
            + f"Each method of each path, with {versions}its description, the schemas of its query and body,\n"
            f"and the rule of :ref:`policy` that the caller must satisfy.{below}\n\n"
            + table(("route", *(["versions"] if self.history else []), "see", "rule"), rows)
        )

    def links(self, path: str, method: str, endpoint: Any) -> Iterator[str]:
        """Yield the description of a route, and references to its schemas."""
        if self.sections is None:
            yield str(endpoint.handler.__doc__).partition("\n")[0].rstrip(".")
        else:
            yield f":ref:`section <{self.sections.get(path) or self.sections[f'{method} {path}']}>`"
        for part in ("query", "body"):
            if getattr(endpoint, part) is not None:
                yield f":ref:`{part} <{self.label(method, path, part)}>`"

    def span(self, history: History, since: Version, until: Version | None) -> str:
        """Return the range of versions from ``since`` to the last one before ``until``, in words."""
        if until is None:
            return f"from {since}" if since > history.minimum else "all"
        return f"{max(since, history.minimum)} to {max(version for version in self.versions() if version < until)}"

    # --- schemas ---

    def schemas_page(self) -> str:
        parts = [
            title("Schemas", "="),
            "The JSON schema of each query and body.  A query is validated as an object of its parameters, each with\n"
            "the value that takes effect (:ref:`api-query-strings`).\n\n",
        ]
        for path, method, endpoint in self.endpoints():
            for part in ("query", "body"):
                document = getattr(endpoint, part)
                if document is not None:
                    parts += self.schema_section(path, method, part, endpoint, document)
        return "".join(parts)

    def schema_section(self, path: str, method: str, part: str, endpoint: Any, document: Any) -> Iterator[str]:
        yield f".. _{self.label(method, path, part)}:\n\n" + title(f"{method} {path}: {part}", "-")
        if self.history is None:
            yield f".. code-block:: json\n\n{indent_text(layout(document.render(OLDEST)))}\n\n"
            return
        versions = [
            v for v in self.versions() if v >= endpoint.since and (endpoint.until is None or v < endpoint.until)
        ]
        rendered = [(version, layout(document.render(version))) for version in versions]
        firsts = [0] + [index for index in range(1, len(versions)) if rendered[index][1] != rendered[index - 1][1]]
        for first, end in zip(firsts, [*firsts[1:], len(versions)], strict=True):
            span = range_in_words(self.history, versions[first], self.last_before(versions, end))
            yield f"{span}:\n\n.. code-block:: json\n\n{indent_text(rendered[first][1])}\n\n"

    def last_before(self, versions: Sequence[Version], end: int) -> Version:
        """Return the last version before the one at index ``end``, which may be absent from the history."""
        if end == len(versions):
            return versions[-1]
        return Version(versions[end].major, versions[end].minor - 1)

    def label(self, method: str, path: str, part: str) -> str:
        return f"{self.prefix}schema-{method}-{re.sub(r'[^a-z]+', '-', path).strip('-')}-{part}".lower()

    # --- errors ---

    def errors_page(self) -> str:
        by_status: dict[int, list[type[errors.Failure]]] = {}
        for kind in self.failures():
            by_status.setdefault(status_of(kind.__new__(kind)), []).append(kind)
        parts = [title("Errors", "="), self.about_errors()]
        for status, kinds in sorted(by_status.items()):
            parts.append(title(f"{int(status)} {webob.exc.status_map[int(status)].title}", "-"))
            columns = self.columns()
            widths = "55 25 20" if "code" in columns else "70 30"
            parts.append(f".. list-table::\n   :header-rows: 1\n   :widths: {widths}\n\n")
            rows = [tuple(columns), *(tuple(show(kind) for show in columns.values()) for kind in kinds)]
            parts += ["   * - " + "\n     - ".join(row) + "\n" for row in rows]
            parts.append("\n")
        return "".join(parts)

    def about_errors(self) -> str:
        if self.package:
            code = ", the error code" if self.codes else ""
            return (
                f"The errors that only this API returns, by status: the message{code} and the name of the failure in\n"
                "the source code.  ``<...>`` stands for a value.  :doc:`errors` lists the errors of all APIs, such as\n"
                "401.\n\n"
            )
        return (
            "All errors by status: the message, the error code (from version 1.23), and the name of the failure in\n"
            "the source code.  ``<...>`` stands for a value.  Some routes prefix a message with further words.\n\n"
        )

    def columns(self) -> dict[str, Callable[[type[errors.Failure]], str]]:
        """Return the functions that render a failure's cells, by column header."""
        message = {"message": lambda kind: f"``{sentence(kind)}``"}
        code = {"code": lambda kind: f"``{kind.code}``"}
        return message | (code if self.codes else {}) | {"failure": lambda kind: f"``{kind.__name__}``"}

    def failures(self) -> list[type[errors.Failure]]:
        """Return the failures of the API that have their own message."""
        packages = tuple(other.package for other in APIS if other.package and other is not self)
        return [
            kind
            for kind in all_failures()
            if kind.__module__.startswith(self.package or "placement.") and not kind.__module__.startswith(packages)
        ]

    # --- versions ---

    def versions(self) -> list[Version]:
        return [change.version for change in self.history or ()]


PLACEMENT = Documented(routes.PLACEMENT, mv.HISTORY, sections=SECTIONS)
APIS = (
    PLACEMENT,
    Documented(BAREMETAL, baremetal_versions.HISTORY, "baremetal-", "placement.extensions.baremetal.", codes=False),
    Documented(V1, None, "v1-", "placement.extensions.v1."),
)


def reference() -> dict[str, str]:
    """Return the texts of all generated files by name."""
    files = {name: text for documented in APIS for name, text in documented.files().items()}
    return files | {"load.schema.json": json.dumps(loading_schema.SCHEMA, indent=2) + "\n"}


def all_failures() -> list[type[errors.Failure]]:
    """Return all failures that have their own message, from all modules."""
    for module in pkgutil.walk_packages(placement.__path__, "placement."):
        if not module.name.startswith(NOT_IMPORTED):
            with contextlib.suppress(ImportError):  # the extra is not installed; such modules declare no failures
                importlib.import_module(module.name)
    kinds: list[type[errors.Failure]] = [errors.Failure]
    for kind in kinds:
        kinds.extend(sub for sub in kind.__subclasses__() if sub.__module__.startswith("placement."))
    specific = (kind for kind in dict.fromkeys(kinds[1:]) if kind.template not in ("", errors.Failure.template))
    return sorted(specific, key=lambda kind: kind.__name__)


# --- versions ---------------------------------------------------------------------------------------------------------


def range_in_words(history: History, first: Version, last: Version) -> str:
    if last == history.latest:
        return f"From version {first} on" if first > history.minimum else "All versions"
    return f"Versions {first} to {last}" if first != last else f"Version {first}"


def versions_table(history: History) -> str:
    return table(("version", "change"), [(str(change.version), change.sentence) for change in history])


# --- text ------------------------------------------------------------------------------------------------------------


def layout(value: Any, indent: int = 0) -> str:
    """Return JSON with short objects on one line, and other objects with one member per line."""
    line = json.dumps(value)
    if not isinstance(value, dict) or len(line) + indent <= 80:
        return line
    inner = indent + 2
    members = [f"{' ' * inner}{json.dumps(name)}: {layout(member, inner)}" for name, member in value.items()]
    return "{\n" + ",\n".join(members) + f"\n{' ' * indent}}}"


def sentence(kind: type[errors.Failure]) -> str:
    return re.sub(r"%\((\w+)\)[sd]", r"<\1>", kind.template).strip()


# --- reStructuredText ------------------------------------------------------------------------------------------------


def title(text: str, line: str) -> str:
    return f"{text}\n{line * len(text)}\n\n"


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a simple table with one line per row."""
    lines = [tuple(header), *map(tuple, rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    rule = "  ".join("=" * width for width in widths)
    cells = ["  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines]
    return "\n".join([rule, cells[0], rule, *cells[1:], rule]) + "\n"


def indent_text(text: str) -> str:
    return "\n".join(f"   {line}" for line in text.splitlines())


if __name__ == "__main__":
    GENERATED.mkdir(exist_ok=True)
    for name, text in reference().items():
        (GENERATED / name).write_text(text)
    sys.path.insert(0, str(GENERATED.parents[2]))  # for tests.docs.examples
    from tools import generate_examples

    generate_examples.write()
