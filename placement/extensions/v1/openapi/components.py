"""Named schemas and responses of a document; client generators use the names for classes."""

from __future__ import annotations

from placement.extensions.v1.openapi.portable import make_portable
from placement.schemas.declarations import JSONSchema


class Components:
    """The named schemas and responses of one document."""

    def __init__(self) -> None:
        self._kinds: dict[str, dict[str, JSONSchema]] = {"responses": {}, "schemas": {}}

    def render(self) -> dict[str, dict[str, JSONSchema]]:
        """Return the components by kind and name."""
        return {kind: dict(sorted(parts.items())) for kind, parts in self._kinds.items()}

    def add_schema(self, name: str, schema: JSONSchema) -> JSONSchema:
        """Add a schema, and return a reference to it.

        Raises:
            ValueError: Another schema has the name.
        """
        return self._add("schemas", name, make_portable(schema))

    def add_response(self, name: str, response: JSONSchema) -> JSONSchema:
        """Add a response, and return a reference to it.

        Raises:
            ValueError: Another response has the name.
        """
        return self._add("responses", name, response)

    def _add(self, kind: str, name: str, part: JSONSchema) -> JSONSchema:
        if self._kinds[kind].setdefault(name, part) != part:
            raise ValueError(f"Two {kind} have the name {name}.")
        return {"$ref": f"#/components/{kind}/{name}"}
