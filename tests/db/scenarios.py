"""Requests with placeholders, and scenarios: preconditions, one request, and its changes.

In paths and bodies ``$host`` is a provider, ``$consumer`` a consumer, ``$aggregate`` an aggregate, and ``$node`` a node
(each may be the beginning of a name), and ``$RUN`` ends the names of classes and traits.  All are new for each run, so
that a scenario can be run repeatedly on one database.
"""

from __future__ import annotations

import json
import string
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

#: The key of changes that belong to no provider: names of classes and traits.
NO_PROVIDER = ""


@dataclass(frozen=True)
class Call:
    """A request with placeholders."""

    #: The method and the path.
    target: str
    body: Any = None
    #: The minor version; None for the newest.
    minor: int | None = 39


@dataclass(frozen=True)
class Write:
    """A request, and the requests that create its preconditions."""

    name: str
    before: tuple[Call, ...]
    call: Call
    #: The changes in the feed afterwards, by provider.
    changes: dict[str, str] = field(default_factory=dict)
    #: The response without faults.
    status: int = 204


class Names(dict[str, str]):
    """The names of one run; each is generated when it is first used."""

    def __missing__(self, name: str) -> str:
        self[name] = uuid.uuid4().hex.upper() if name == "RUN" else str(uuid.uuid4())
        return self[name]

    def fill(self, call: Call) -> tuple[str, str, int | None, Any]:
        """Return the method, path, minor version and body of the request with the names of this run."""
        method, path = self.fill_text(call.target).split()
        return method, path, call.minor, json.loads(self.fill_text(json.dumps(call.body)))

    def fill_text(self, text: str) -> str:
        """Return the text with the names of this run."""
        return string.Template(text).substitute(self)

    def hide(self, text: str) -> str:
        """Return the text with the names replaced by their placeholders."""
        for name, value in self.items():
            text = text.replace(value, f"${name}")
        return text

    def pages(self) -> Iterator[str]:
        """Yield the paths that show the state of these names from the index, which follows the feed."""
        for name in [*self]:
            if name != "RUN" and not name.startswith(("aggregate", "consumer")):
                yield f"/resource_providers?uuid={self[name]}"
                yield f"/allocation_candidates?in_tree={self[name]}&resources=VCPU:1"
            if name.startswith("node"):
                yield f"/allocation_candidates?in_tree={self[name]}&resources=CUSTOM_BM_{self['RUN']}:1"
