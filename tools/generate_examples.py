"""Generate the examples of the OpenAPI documents (placement/extensions/v1/openapi/examples) from the pages of docs/api.

One test runs every example of a page, and another compares the files with newly generated ones.  To regenerate them,
together with the reference:

    python tools/generate_reference.py
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote

from placement import routes
from placement.extensions.v1.api import V1
from placement.http.api import Api
from tests.docs import examples

ROOT = Path(__file__).resolve().parents[1]
PAGES = ROOT / "docs/api"
EXAMPLES = ROOT / "placement/extensions/v1/openapi/examples"
#: The APIs that have an OpenAPI document, the one with the empty prefix last.
APIS = (V1, routes.PLACEMENT)


def render_files() -> dict[str, str]:
    """Return the text of each file by name: the successful examples of a page."""
    files = {}
    for page in sorted(PAGES.rglob("*.rst")):
        name = "-".join(page.relative_to(PAGES).with_suffix("").parts)
        parsed = examples.parse(page.read_text()).examples
        records = [
            record for number, example in enumerate(parsed) for record in records_of(f"{name}-{number}", example)
        ]
        if records:
            files[f"{name}.json"] = "[\n" + ",\n".join(map(json.dumps, records)) + "\n]\n"
    return files


def records_of(name: str, example: examples.Example) -> Iterator[dict[str, Any]]:
    """Yield the record of a successful example for the module ``openapi/examples.py``, or nothing."""
    request, reply = example.request, example.reply
    if reply is None or not reply.status.startswith("2"):
        return
    path, _, query = request.path.partition("?")
    match = find(path)
    if match is None:
        return
    api, route, values = match
    headers = {key.lower(): value for key, value in request.headers.items()}
    version = api.versioning.negotiate({"HTTP_OPENSTACK_API_VERSION": headers.get("openstack-api-version")})
    yield {
        "name": name,
        "api": api.name,
        "method": request.method,
        "route": route,
        "path": values,
        "query": parse_qsl(query, keep_blank_values=True),
        "body": json.loads(request.body) if request.body else None,
        "status": int(reply.status[:3]),
        "reply": json.loads(reply.body) if reply.body and examples.ANY not in reply.body else None,
        "version": str(version),
    }


def find(path: str) -> tuple[Api, str, dict[str, str]] | None:
    """Return the API, the route and the values of a path; None if no route matches."""
    for api in APIS:
        if path == api.prefix or path.startswith(f"{api.prefix}/"):
            below = path.removeprefix(api.prefix) or "/"
            for route in api.routes:
                pattern = re.sub(r"\\\{(\w+)\\\}", r"(?P<\1>[^/]+)", re.escape(route))
                if matched := re.fullmatch(pattern, below):
                    return api, route, {name: unquote(value) for name, value in matched.groupdict().items()}
    return None


def write() -> None:
    """Replace the files by newly generated files."""
    EXAMPLES.mkdir(exist_ok=True)
    texts = render_files()
    for path in EXAMPLES.glob("*.json"):
        if path.name not in texts:
            path.unlink()
    for name, text in texts.items():
        (EXAMPLES / name).write_text(text)
