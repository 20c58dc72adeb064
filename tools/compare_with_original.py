#!/usr/bin/env python3
"""Compare the responses of two Placement services on the same data: all GETs, in each version that changes a response.

    compare_with_original.py record http://placement:8778 before.jsonl --token "$TOKEN"
    compare_with_original.py compare before.jsonl http://placement:8778 --token "$TOKEN"

Record the responses of a service before you replace it, and compare afterwards; or compare two running services by
their URLs.  The script only reads, is a single file, and needs only Python.  It derives the requests from the
responses: all providers, classes, traits, consumers, projects and users in them, and lists filtered by each object.
Undefined order, request ids and the time of the response are ignored.
"""

from __future__ import annotations

import argparse
import email.utils
import http.client
import itertools
import json
import sys
import time
import urllib.parse
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Protocol

#: The versions that change the response to some GET.
VERSIONS = (
    *("1.0", "1.1", "1.2", "1.3", "1.4", "1.6", "1.9", "1.10", "1.12", "1.14", "1.15", "1.17", "1.18", "1.19", "1.21"),
    *("1.22", "1.24", "1.25", "1.27", "1.28", "1.29", "1.31", "1.34", "1.38", "1.39"),
)
HEADERS = ("content-type", "openstack-api-version", "cache-control", "last-modified")
#: The status of requests that are not in a recording.
NOT_RECORDED = 0
#: Maximum age, in seconds, of a date that counts as "now".
MAX_NOW_AGE = 2

Request = tuple[str, str]
Response = dict[str, Any]


class Source(Protocol):
    """A source of responses: a service or a recording."""

    def ask(self, version: str, path: str) -> Response: ...


class Service:
    """A running service."""

    def __init__(self, url: str, token: str) -> None:
        parts = urllib.parse.urlsplit(url)
        kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        self._connection = kind(str(parts.hostname), parts.port, timeout=300)
        self._prefix = parts.path.rstrip("/")
        self._token = token

    def ask(self, version: str, path: str) -> Response:
        headers = {"X-Auth-Token": self._token, "OpenStack-API-Version": f"placement {version}"}
        for attempt in (1, 2):  # the server may have closed a kept connection
            try:
                self._connection.request("GET", self._prefix + path, headers={**headers, "Accept": "application/json"})
                response = self._connection.getresponse()
                return self._plain(response.status, dict(response.getheaders()), response.read())
            except (ConnectionError, http.client.BadStatusLine):
                self._connection.close()
                if attempt == 2:
                    raise
        raise AssertionError("unreachable")

    def _plain(self, status: int, headers: dict[str, str], content: bytes) -> Response:
        by_name = {name.lower(): value for name, value in headers.items()}
        compared_headers = {name: by_name[name] for name in HEADERS if name in by_name}
        if "last-modified" in compared_headers and _age(compared_headers["last-modified"]) <= MAX_NOW_AGE:
            compared_headers["last-modified"] = "now"
        text = content.decode()
        if self._prefix:
            text = text.replace(f'"{self._prefix}/', '"/')
        try:
            body = json.loads(text) if text else None
        except ValueError:
            body = text
        return {"status": status, "headers": compared_headers, "body": _canonical(body)}


class Recording:
    """The recorded responses of a service."""

    def __init__(self, path: Path) -> None:
        with path.open() as file:
            entries = [json.loads(line) for line in file]
        self._responses = {(entry["version"], entry["path"]): entry["answer"] for entry in entries}

    def ask(self, version: str, path: str) -> Response:
        return self._responses.get((version, path), {"status": NOT_RECORDED, "headers": {}, "body": None})


def _age(date: str) -> float:
    return abs(time.time() - email.utils.parsedate_to_datetime(date).timestamp())


def _canonical(value: Any) -> Any:
    """Return the value with sorted members and elements, and without request ids."""
    if isinstance(value, dict):
        return {name: _canonical(part) for name, part in sorted(value.items()) if name != "request_id"}
    if isinstance(value, list):
        return sorted(map(_canonical, value), key=lambda part: json.dumps(part, sort_keys=True))
    return value


class Responses:
    """An iterable of all requests to compare, with the responses of a source."""

    def __init__(self, source: Source, arguments: argparse.Namespace) -> None:
        self._source = source
        self._most = arguments.most
        self._more = arguments.ask
        self._versions = arguments.versions.split(",")

    def __iter__(self) -> Iterator[tuple[Request, Response]]:
        paths = dict(self._paths())
        for version, (path, since) in itertools.product(self._versions, paths.items()):
            if _number(version) >= since:
                yield (version, path), self._source.ask(version, path)

    def _paths(self) -> Iterator[tuple[str, int]]:
        """Yield each path with the first minor version that supports it."""
        first = self._source.ask("1.39", "/resource_providers")
        if first["status"] != 200:
            raise SystemExit(f"The service refuses access, so that nothing can be compared: {first}")
        providers = self._sample("/resource_providers", "resource_providers")
        classes = [entry["name"] for entry in self._sample("/resource_classes", "resource_classes")]
        traits = self._sample("/traits?associated=true", "traits")
        lists = {"/": 0, "/resource_providers": 0, "/resource_classes": 2, "/traits": 6, "/traits?associated=true": 6}
        yield from lists.items()
        yield "/traits?name=startswith:CUSTOM_", 6
        yield from ((f"/resource_classes/{name}", 2) for name in classes)
        yield from ((f"/traits/{name}", 6) for name in traits)
        class_names: dict[str, None] = {}
        aggregates: dict[str, None] = {}
        for provider in providers:
            provider_path = f"/resource_providers/{provider['uuid']}"
            inventories = self._body(f"{provider_path}/inventories").get("inventories", ())
            class_names |= dict.fromkeys(inventories)
            aggregates |= dict.fromkeys(self._body(f"{provider_path}/aggregates").get("aggregates", ()))
            yield from self._paths_of_provider(provider, provider_path, inventories)
        yield from self._paths_of_consumers([provider["uuid"] for provider in providers])
        yield from self._paths_of_lists(list(class_names), list(aggregates), traits)
        yield from ((path, 0) for path in self._more)

    @staticmethod
    def _paths_of_provider(
        provider: dict[str, Any], provider_path: str, inventories: Iterable[str]
    ) -> Iterator[tuple[str, int]]:
        parts = {"": 0, "/inventories": 0, "/usages": 0, "/allocations": 0, "/aggregates": 1, "/traits": 6}
        yield from ((provider_path + part, since) for part, since in parts.items())
        yield from ((f"{provider_path}/inventories/{name}", 0) for name in (*inventories, "CUSTOM_NOT_THERE"))
        yield _path("/resource_providers", uuid=provider["uuid"]), 0
        yield _path("/resource_providers", in_tree=provider["uuid"]), 14
        if provider["name"]:
            yield _path("/resource_providers", name=provider["name"]), 0

    def _paths_of_consumers(self, providers: list[str]) -> Iterator[tuple[str, int]]:
        allocation_lists = (
            self._body(f"/resource_providers/{uuid}/allocations").get("allocations", ()) for uuid in providers
        )
        owners: dict[tuple[str, str], None] = {}
        for consumer in self._select(list(dict.fromkeys(itertools.chain(*allocation_lists)))):
            yield f"/allocations/{consumer}", 0
            document = self._body(f"/allocations/{consumer}")
            owners |= {(document["project_id"], document["user_id"]): None} if "project_id" in document else {}
        for project, user in owners:
            usages_path = _path("/usages", project_id=project)
            yield from ((usages_path, 9), (_path("/usages", project_id=project, user_id=user), 9))
            for kind in (*self._body(usages_path).get("usages", ()), "all", "unknown"):
                yield _path("/usages", project_id=project, consumer_type=kind), 38
                yield _path("/usages", project_id=project, user_id=user, consumer_type=kind), 38

    @staticmethod
    def _paths_of_lists(classes: list[str], aggregates: list[str], traits: list[str]) -> Iterator[tuple[str, int]]:
        everywhere, candidates = "/resource_providers", "/allocation_candidates"
        for trait in traits:
            yield from ((_path(everywhere, required=trait), 18), (_path(everywhere, required=f"!{trait}"), 22))
        yield from ((_path(everywhere, member_of=aggregate), 3) for aggregate in aggregates)
        for name in classes:
            for amount in (f"{name}:1", f"{name}:8"):
                yield from ((_path(everywhere, resources=amount), 4), (_path(candidates, resources=amount), 10))
            unit = f"{name}:1"
            yield from ((_path(candidates, resources=unit, required=trait), 17) for trait in traits)
            yield from ((_path(candidates, resources=unit, member_of=aggregate), 21) for aggregate in aggregates)
        for first, second in itertools.pairwise(classes):
            yield _path(candidates, resources=f"{first}:1,{second}:1"), 10

    def _sample(self, path: str, key: str) -> list[Any]:
        return self._select(self._body(path).get(key, []))

    def _body(self, path: str) -> dict[str, Any]:
        response = self._source.ask("1.39", path)
        return response["body"] if response["status"] == 200 else {}

    def _select(self, elements: list[Any]) -> list[Any]:
        """Return all elements, or about ``most`` of them, evenly spaced."""
        step = -(-len(elements) // self._most) if self._most else 1
        return elements[:: step or 1]


def _number(version: str) -> int:
    return int(version.partition(".")[2])


def _path(place: str, **query: str) -> str:
    return f"{place}?{urllib.parse.urlencode(query)}"


def _source(named: str, token: str) -> Source:
    return Service(named, token) if named.startswith(("http://", "https://")) else Recording(Path(named))


def record(arguments: argparse.Namespace) -> int:
    """Record the responses of a service in a file."""
    responses = Responses(_source(arguments.service, arguments.token), arguments)
    with arguments.file.open("x") as file:
        try:
            for (version, path), response in _with_progress(responses):
                file.write(json.dumps({"version": version, "path": path, "answer": response}) + "\n")
        except BaseException:
            arguments.file.unlink()  # an incomplete file could be mistaken for a complete one
            raise
    return 0


def compare(arguments: argparse.Namespace) -> int:
    """Print the differences between two sources; return 1 if they differ.

    A 5xx of the first source only does not count as a difference.
    """
    responses = Responses(_source(arguments.before, arguments.token), arguments)
    other = _source(arguments.after, arguments.other_token or arguments.token)
    compared = differences = failures = 0
    for (version, path), response in _with_progress(responses):
        compared += 1
        second = other.ask(version, path)
        if response["status"] >= 500 and second["status"] < 500 and second["status"] != NOT_RECORDED:
            failures += 1
        elif second != response:
            differences += 1
            print(f"{version} GET {path}")
            for part in response:
                if response[part] != second[part]:
                    print(f"  {part}: {json.dumps(response[part])[: arguments.width]}")
                    print(f"  {' ' * len(part)}  {json.dumps(second[part])[: arguments.width]}")
    print(
        f"{compared} responses compared, {differences} differ, {failures} were errors (5xx) of the first service only"
    )
    return 1 if differences else 0


def _with_progress(responses: Iterable[tuple[Request, Response]]) -> Iterator[tuple[Request, Response]]:
    """Yield the same items, and print the progress every five seconds."""
    last = time.monotonic()
    for number, (request, response) in enumerate(responses, 1):
        yield request, response
        if time.monotonic() > last + 5:
            last = time.monotonic()
            print(f"{number} responses, at version {request[0]}", file=sys.stderr)


def _parse(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    shared = argparse.ArgumentParser(add_help=False)
    shared.add_argument("--token", default="admin", help="sent as X-Auth-Token (default: %(default)s)")
    shared.add_argument(
        "--most", type=int, default=0, metavar="N", help="request about N objects of each kind at most, evenly spaced"
    )
    shared.add_argument("--versions", default=",".join(VERSIONS), metavar="1.N,...", help="default: %(default)s")
    shared.add_argument("--ask", action="append", default=[], metavar="PATH", help="also request this path")
    record_parser = commands.add_parser("record", parents=[shared], help="record the responses of a service")
    record_parser.add_argument("service", help="the URL of the service")
    record_parser.add_argument("file", type=Path, help="the file to write; it must not exist")
    record_parser.set_defaults(action=record)
    compare_parser = commands.add_parser(
        "compare", parents=[shared], help="print the differences between two services; exit code 1 if they differ"
    )
    compare_parser.add_argument("before", help="the URL of a service, or a recorded file")
    compare_parser.add_argument("after", help="the URL of a service, or a recorded file")
    compare_parser.add_argument("--other-token", help="the token for the second service, if it differs")
    compare_parser.add_argument("--width", type=int, default=400, metavar="N", help="characters to show of a response")
    compare_parser.set_defaults(action=compare)
    return parser.parse_args(argv)


def main(argv: list[str] | None = None) -> int:
    """Run a command line and return the exit code."""
    arguments = _parse(argv)
    try:
        return int(arguments.action(arguments))
    except OSError as error:
        raise SystemExit(str(error)) from None


if __name__ == "__main__":
    sys.exit(main())
