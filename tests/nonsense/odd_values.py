"""Names that exist in the service under test, unknown names, and values that have broken services of all kinds."""

from __future__ import annotations

import io
from typing import Any, NamedTuple

from tests.run_length import LONG

PROVIDERS = tuple(f"{number}0000000-aaaa-4aaa-8aaa-aaaaaaaaaaa{number}" for number in range(3))
CONSUMERS = tuple(f"{number}0000000-cccc-4ccc-8ccc-ccccccccccc{number}" for number in range(2))
AGGREGATE = "d0000000-dddd-4ddd-8ddd-dddddddddddd"
NOWHERE = "f0000000-ffff-4fff-8fff-ffffffffffff"
UUIDS = (*PROVIDERS, *CONSUMERS, AGGREGATE, NOWHERE)
CLASSES = ("VCPU", "DISK_GB", "CUSTOM_CLASS", "CUSTOM_SPARE")
TRAITS = ("HW_CPU_X86_AVX", "CUSTOM_TRAIT", "CUSTOM_SPARE_TRAIT")
NAMES = (*CLASSES, *TRAITS, "CUSTOM_NEW", "CUSTOM_" + "N" * 300, "vcpu")
#: The generations of the first provider and of the first consumer.
PROVIDER_GENERATION, CONSUMER_GENERATION = 5, 1

#: Texts; each line tests a kind of mistake.
TRAPS = (
    *("", " ", "\0", "VCPU\0", "\n", "VCPU\n", "a\r\nX-Evil: 1", "\x80", "\ufeff", "\u202e", "a\u0301", "\u0130"),
    *("\xe9", "\uff11", "\U0001f600", "VCPU\U0001f600", "\U0010ffff", "\U0001f600" * 300),
    *("%", "%2F", "%00", "..", "/", "a/b", ";", ":", "?#", "\\", "'", '"', "<b>", "{0}", "%s", "%(uuid)s", "_", "-"),
    *("null", "NaN", "0", "-1", "1e400", "9" * 30, "9" * 5000, "x" * 200, "x" * 201, "x" * 256, "x" * 9000),
    *(
        "CUSTOM_" + "N" * 248,
        "CUSTOM_" + "N" * 249,
        "vcpu",
        "-" * 36,
        PROVIDERS[0].replace("-", ""),
        PROVIDERS[0] + "\n",
    ),
)


def traps_for(number: int, step: int) -> tuple[str, ...]:
    """Return the texts for a place with this number: all in a long run, each ``step``-th in a short one.

    Places with neighbouring numbers get different texts.
    """
    return TRAPS if LONG else TRAPS[number % step :: step]


#: Bodies that are malformed, of a wrong type, deeply nested or huge.
MONSTERS = (
    *(b"", b" ", b"null", b"0", b'""', b"[]", b"{}", b"[", b"{", b'{"a"', b"nul", b"NaN", b"Infinity", b"-", b"1e999"),
    *(b"\x00", b"\xff", b"\xef\xbb\xbf{}", b'{"name": "\xe9"}', b"{} {}", b"{'name': 1}", '{"a": 1}'.encode("utf-16")),
    *(b'{"name": "\\ud800"}', b'{"name": "\\u0000"}', b'{"name": 1, "name": "x"}', b"1" * 5000, b'{"name": 1e999}'),
    *(b"[" * 100_000, b'{"a":' * 50_000, b"[" * 3000 + b"]" * 3000, b'{"a":' * 900 + b"1" + b"}" * 900),
    *(b'"' + b"x" * 300_000 + b'"', b"[" + b"0," * 50_000 + b"0]"),
)


class Sent(NamedTuple):
    """A request as sent, except that its path is not quoted."""

    method: str
    path: bytes
    query: bytes
    headers: dict[str, str]
    body: bytes

    @property
    def environ(self) -> dict[str, Any]:
        """Return the WSGI environment of the request."""
        environ = {
            "REQUEST_METHOD": _as_latin_1(self.method),
            "SCRIPT_NAME": "",
            "PATH_INFO": self.path.decode("latin-1"),
            "QUERY_STRING": self.query.decode("latin-1"),
            "SERVER_NAME": "placement",
            "SERVER_PORT": "80",
            "SERVER_PROTOCOL": "HTTP/1.1",
            "wsgi.url_scheme": "http",
            "wsgi.input": io.BytesIO(self.body),
            "wsgi.errors": io.StringIO(),
        }
        for header, value in self.headers.items():
            name = header.upper().replace("-", "_")
            environ[name if name.startswith("CONTENT_") else f"HTTP_{name}"] = _as_latin_1(value)
        return environ


def _as_latin_1(text: str) -> str:
    """Return the text in WSGI's form: a character for each byte."""
    return text if all(char <= "\xff" for char in text) else text.encode().decode("latin-1")


def usual_headers(body: bytes = b"", version: str = "1.39") -> dict[str, str]:
    """Return the headers of a client with all rights."""
    return {
        "Host": "placement",
        "X-Auth-Token": "admin",
        "X-Roles": "admin,service",
        "Content-Type": "application/json",
        "Content-Length": str(len(body)),
        "OpenStack-API-Version": f"placement {version}",
    }
