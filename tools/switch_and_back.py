#!/usr/bin/env python3
"""Switch a database from the original to this project and back, on private servers.

    python tools/switch_and_back.py --original 'COMMAND {port} {database}' [--databases mariadb] [--revision ID]

COMMAND must start the original in the foreground, even on an empty database, and end at SIGTERM; both fields are
substituted.  The original creates the tables, which are filled with rows that its race conditions can leave, and then
through its API.  All its responses are recorded.  This project then takes over the database, must return the same
responses, writes, and releases the database.  Finally, the original must return the same responses as this project.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import shlex
import signal
import subprocess
import sys
import time
import urllib.request
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import sqlalchemy as sa

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from tests import children, running, servers
from tests.db import openstack_database
from tests.db.schema_description import describe

ROOT = Path(__file__).resolve().parent.parent
COMPARE = [sys.executable, str(ROOT / "tools" / "compare_with_original.py")]
#: Paths of consumers that no list contains.
HIDDEN = [
    f"/allocations/{consumer}"
    for consumer in (openstack_database.GHOST, openstack_database.OWNERLESS, openstack_database.LOST)
]
MORE = [argument for path in HIDDEN for argument in ("--ask", path)]


@contextlib.contextmanager
def original_at(template: str, database: str) -> Iterator[str]:
    """Run the original on a database; yield its URL."""
    port = children.free_port()
    url = f"http://127.0.0.1:{port}"
    directory = children.run_directory()  # not the repository, whose package has the same name
    plain = database.replace("+psycopg", "+psycopg2")  # the driver of the original
    command = shlex.split(template.format(port=port, database=plain))
    log = directory / f"original-{port}.log"
    child = children.Child(command, log, signal.SIGTERM, cwd=directory)

    def responds() -> bool:
        with contextlib.suppress(OSError):
            return bool(urllib.request.urlopen(url + "/", timeout=5).status == 200)
        return False

    child.wait_until(responds)
    try:
        yield url
    finally:
        child.stop()


def manage(database: str, *options: str) -> None:
    """Run placement-manage."""
    conf = children.run_directory() / "manage.conf"
    conf.write_text(f"[placement_database]\nconnection = {database}\n")
    subprocess.run(
        [sys.executable, "-m", "placement.cmd.manage", "--config-file", str(conf), *options], cwd=ROOT, check=True
    )


def send(url: str, method: str, path: str, body: Any = None, version: str = "1.39") -> Any:
    """Send a request and return the parsed response.

    Raises:
        urllib.error.HTTPError: The response is an error.
    """
    headers = {"X-Auth-Token": "admin", "OpenStack-API-Version": f"placement {version}"}
    data = None if body is None else json.dumps(body).encode()
    headers |= {} if data is None else {"Content-Type": "application/json"}
    request = urllib.request.Request(url + path, data, headers, method=method)
    with urllib.request.urlopen(request, timeout=60) as response:
        content = response.read()
        return json.loads(content) if content else None


def use(url: str, tag: str) -> None:
    """Write through the API of a service as clients do: create, claim, move, release, rename and delete."""
    name = f"CUSTOM_{tag.upper()}"
    send(url, "PUT", f"/resource_classes/{name}")
    send(url, "PUT", f"/traits/{name}_TRAIT")
    aggregate = str(uuid.uuid4())
    nodes = []
    for number in range(6):
        root, child = (str(uuid.uuid4()) for _ in range(2))
        nodes.append((root, child))
        send(url, "POST", "/resource_providers", {"name": f"{tag}-{number}", "uuid": root})
        part = {"name": f"{tag}-{number}-a", "uuid": child, "parent_provider_uuid": root}
        send(url, "POST", "/resource_providers", part)
        amounts = {"VCPU": {"total": 16, "allocation_ratio": 4.0}, "MEMORY_MB": {"total": 9000, "reserved": 512}}
        _replace(url, root, "inventories", amounts)
        _replace(url, child, "inventories", {name: {"total": 4 + number, "max_unit": 2}})
        _replace(url, root, "traits", ["COMPUTE_NODE", f"{name}_TRAIT"][: number % 3])
        _replace(url, root, "aggregates", [aggregate][: number % 2])
    _claim(url, tag, name, nodes)
    send(url, "PUT", f"/resource_providers/{nodes[0][0]}", {"name": f"{tag}-renamed"})
    spare = str(uuid.uuid4())
    send(url, "POST", "/resource_providers", {"name": f"{tag}-spare", "uuid": spare})
    send(url, "DELETE", f"/resource_providers/{spare}")
    time.sleep(3)  # so that the newest dates do not count as "now" in only one of the recordings


def _replace(url: str, provider: str, field: str, value: Any) -> None:
    generation = send(url, "GET", f"/resource_providers/{provider}")["generation"]
    body = {"resource_provider_generation": generation, field: value}
    send(url, "PUT", f"/resource_providers/{provider}/{field}", body)


def _claim(url: str, tag: str, name: str, nodes: list[tuple[str, str]]) -> None:
    consumers = [str(uuid.uuid4()) for _ in range(12)]
    for number, consumer in enumerate(consumers):
        root, child = nodes[number % len(nodes)]
        allocations = {root: {"resources": {"VCPU": 2, "MEMORY_MB": 100 + number}}, child: {"resources": {name: 1}}}
        owner = {"project_id": f"{tag}-{number % 2}", "user_id": f"user-{number % 3}"}
        body = {"allocations": allocations, **owner, "consumer_generation": None}
        if number % 3 == 0:
            old = [
                {"resource_provider": {"uuid": provider}, "resources": allocation["resources"]}
                for provider, allocation in allocations.items()
            ]
            send(url, "PUT", f"/allocations/{consumer}", {"allocations": old}, version="1.7")
        elif number % 3 == 1:
            send(url, "PUT", f"/allocations/{consumer}", body, version="1.28")
        else:
            send(url, "PUT", f"/allocations/{consumer}", {**body, "consumer_type": "INSTANCE"})
    moved = send(url, "GET", f"/allocations/{consumers[1]}")
    target = {nodes[3][0]: {"resources": {"VCPU": 3}}}
    moved |= {"allocations": target, "consumer_type": "MIGRATION"}
    send(url, "POST", "/allocations", {consumers[1]: moved})
    send(url, "DELETE", f"/allocations/{consumers[0]}")


def rows(engine: sa.Engine) -> dict[str, list[Any]]:
    """Return all rows of the tables of the original, except its revision."""
    with engine.connect() as connection:
        by_table = {}
        for name in openstack_database.ROWS:
            table = sa.table(name)
            by_table[name] = sorted(map(repr, connection.execute(sa.select(sa.text("*")).select_from(table))))
        return by_table


def compare(before: str, after: str, versions: list[str]) -> int:
    """Compare the responses of two sources; return the exit code."""
    return subprocess.run([*COMPARE, "compare", before, after, *MORE, *versions]).returncode


def record(url: str, name: str, versions: list[str]) -> str:
    """Record all responses of a service; return the name of the file."""
    file = children.run_directory() / f"{name}.jsonl"
    file.unlink(missing_ok=True)
    subprocess.run([*COMPARE, "record", url, str(file), *MORE, *versions], check=True)
    return str(file)


def there_and_back(template: str, server: servers.Server, revision: str, versions: list[str]) -> int:
    """Run all steps on one server; return the number of failed comparisons."""
    database = server.create_database()
    engine = sa.create_engine(database, poolclass=sa.NullPool)
    failed = 0

    def step(name: str, failure: Any = False) -> None:
        nonlocal failed
        failed += bool(failure)
        print(f"{server.kind} {revision}: {name}{': FAILED' if failure else ''}", flush=True)

    with original_at(template, database):
        pass
    with engine.begin() as connection:
        # The original inserts its traits again, in addition to the traits of the rows.
        connection.execute(sa.text("DELETE FROM traits"))
        openstack_database.fill(connection)
        # The original hides a provider without a root; this project shows it as its own root.
        connection.execute(
            sa.text("UPDATE resource_providers SET root_provider_id = id WHERE root_provider_id IS NULL")
        )
        if revision == openstack_database.OLDER:
            openstack_database.downgrade(connection)
    original_tables = describe(engine)
    empty = server.create_database()
    ours = sa.create_engine(empty, poolclass=sa.NullPool)
    openstack_database.make(ours, revision)
    step(
        "tests/db/openstack_database.py creates the tables that the original creates", describe(ours) != original_tables
    )
    with original_at(template, database) as url:
        use(url, "before")
        before = record(url, "before", versions)
    tables, data = describe(engine), rows(engine)
    manage(database, "db", "sync")
    step("sync changes no row", rows(engine) != data)
    with running.uwsgi(database) as service:
        step("this project returns the same responses as the original", compare(before, service.url, versions))
        use(service.url, "ours")
        after = record(service.url, "after", versions)
    data = rows(engine)
    manage(database, "db", "release", "--revision", revision)
    step("release changes no row", rows(engine) != data)
    step("the tables are the tables of the original", describe(engine) != tables)
    with original_at(template, database) as url:
        step("the original returns the same responses as this project", compare(url, after, versions))
        use(url, "back")
        returned = record(url, "again", versions)
    manage(database, "db", "sync")
    with running.uwsgi(database) as service:
        step(
            "this project, used again, returns the same responses as the original",
            compare(returned, service.url, versions),
        )
    return failed


def main() -> int:
    """Run the command line and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--original", metavar="COMMAND", required=True)
    parser.add_argument("--databases", default="sqlite,mariadb,postgresql")
    parser.add_argument(
        "--revision", choices=(openstack_database.NEWEST, openstack_database.OLDER), default=openstack_database.NEWEST
    )
    parser.add_argument(
        "--versions", metavar="1.N,...", help="versions to compare (default: the versions that change a response)"
    )
    arguments = parser.parse_args()
    versions = ["--versions", arguments.versions] if arguments.versions else []
    children.begin_run()
    try:
        failures = (
            there_and_back(arguments.original, servers.shared(kind), arguments.revision, versions)
            for kind in arguments.databases.split(",")
        )
        return min(1, sum(failures))
    finally:
        children.end_run()


if __name__ == "__main__":
    sys.exit(main())
