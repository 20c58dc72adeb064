"""A recorder of the schemas of nova's responses, and of responses generated from them.

In an environment in which nova is installed (``pip install nova==34.0.0``), from the root of the repository::

    python tests/nova/record.py schemas

and in the environment of the tests, after that::

    python tests/nova/record.py replies

Both files are in the repository, so the tests do not need nova.  The generator draws every property that a schema
allows: optional properties are missing in some documents, and each alternative occurs in some.
"""

from __future__ import annotations

import base64
import importlib
import importlib.metadata
import json
import random
import sys
import uuid
from pathlib import Path
from typing import Any

DIRECTORY = Path(__file__).parent
SCHEMAS, REPLIES = DIRECTORY / "schemas.json", DIRECTORY / "replies.json"
#: The schemas of the responses of version 2.69: modules of nova, and names in them.
PUBLISHED = {
    "servers": ("servers", "detail_response_v269"),
    "server": ("servers", "show_response_v269"),
    "migrations": ("migrations", "index_response_v259"),
    "version": ("versions", "show_response"),
}
SERVERS, MIGRATIONS = 60, 20
SEED = 2690
_LETTERS = "abcdefghijklmnopqrstuvwxyzäé_-. 0123456789"


def schemas() -> dict[str, Any]:
    """Return the schemas of the installed nova, and its release."""
    schemas: dict[str, Any] = {"nova": importlib.metadata.version("nova")}
    for key, (module, name) in PUBLISHED.items():
        schemas[key] = getattr(importlib.import_module(f"nova.api.openstack.compute.schemas.{module}"), name)
    return schemas


def replies(recorded: dict[str, Any]) -> dict[str, Any]:
    """Return servers and migrations generated from the recorded schemas."""
    generator = Generator(SEED)
    server = recorded["servers"]["properties"]["servers"]["items"]
    migration = recorded["migrations"]["properties"]["migrations"]["items"]
    return {
        "servers": [generator.value(server) for _ in range(SERVERS)],
        "migrations": [generator.value(migration) for _ in range(MIGRATIONS)],
    }


class Generator:
    """A generator of values that a schema allows."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def value(self, schema: dict[str, Any]) -> Any:
        """Return a value of a schema, which may use only the keywords of nova's schemas."""
        if "const" in schema:
            return schema["const"]
        if "enum" in schema:
            return self._random.choice(schema["enum"])
        if "oneOf" in schema:
            common = {key: value for key, value in schema.items() if key != "oneOf"}
            return self.value({**common, **self._random.choice(schema["oneOf"])})
        kinds = schema["type"]
        kind = self._random.choice(kinds) if isinstance(kinds, list) else kinds
        return getattr(self, f"_{kind}")(schema)

    def _object(self, schema: dict[str, Any]) -> dict[str, Any]:
        required = schema.get("required", ())
        members = {
            name: self.value(property_schema)
            for name, property_schema in schema.get("properties", {}).items()
            if name in required or self._random.random() < 0.8
        }
        for pattern_schema in schema.get("patternProperties", {}).values():
            members |= {self._text(1): self.value(pattern_schema) for _ in range(self._random.randint(0, 3))}
        return members

    def _array(self, schema: dict[str, Any]) -> list[Any]:
        number = self._random.randint(schema.get("minItems", 0), min(schema.get("maxItems", 3), 3))
        return [self.value(schema["items"]) for _ in range(number)]

    def _string(self, schema: dict[str, Any]) -> str:
        if "format" in schema:
            return str(getattr(self, "_" + schema["format"].replace("-", "_"))())
        if "pattern" in schema:
            assert schema["pattern"] == "^[a-zA-Z0-9-]*$", schema
            return uuid.UUID(int=self._random.getrandbits(128)).hex
        return self._text(schema.get("minLength", 0))

    def _text(self, min_length: int) -> str:
        return "".join(self._random.choices(_LETTERS, k=self._random.randint(min_length, 12)))

    def _integer(self, _: dict[str, Any]) -> int:
        return self._random.choice([0, 1, 2, 20, 512, 1024, 4095, 65536])

    _number = _integer

    def _boolean(self, _: dict[str, Any]) -> bool:
        return self._random.random() < 0.5

    def _null(self, _: dict[str, Any]) -> None:
        return None

    def _uuid(self) -> str:
        return str(uuid.UUID(int=self._random.getrandbits(128), version=4))

    def _date_time(self) -> str:
        return f"20{self._random.randint(19, 26)}-0{self._random.randint(1, 9)}-1{self._random.randint(0, 9)}T01:02:03Z"

    def _ipv4(self) -> str:
        return f"192.0.2.{self._random.randint(1, 254)}"

    def _ipv6(self) -> str:
        return f"2001:db8::{self._random.randint(1, 9999)}"

    def _uri(self) -> str:
        return f"http://192.0.2.1/v2.1/{self._random.getrandbits(32)}"

    def _mac_address(self) -> str:
        return ":".join(f"{self._random.getrandbits(8):02x}" for _ in range(6))

    def _base64(self) -> str:
        return base64.b64encode(self._text(0).encode()).decode()


def main(kind: str) -> None:
    """Record the schemas or the responses."""
    path, document = (SCHEMAS, schemas()) if kind == "schemas" else (REPLIES, replies(json.loads(SCHEMAS.read_text())))
    path.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main(sys.argv[1])
