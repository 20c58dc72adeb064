"""Processes that write, one of which is killed, and processes that follow the events of all of them.

    python -m tests.db.event_crowd URL

Prints as JSON what each reader has read, as (position, kind, uuid, generation before, after), and how many events there
are.  Readers begin before the first write, ask for few events at a time, and end with the last event.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import random
import signal
import sys
import time
from typing import Any

import sqlalchemy as sa

from placement.db.database import opened
from placement.db.tables import events
from placement.objects import event
from tests.caller import NEW_CONSUMER
from tests.db.in_process import placement

READERS, WRITERS, ROUNDS = 10, 3, 6
#: The number of the writer that is killed; the others are those below.
VICTIM = WRITERS
HOSTS = [f"a0000000-0000-4000-8000-00000000000{number}" for number in range(3)]


def consumers_of(writer: int) -> list[str]:
    """Return the consumers of a writer."""
    return [f"c{writer}000000-0000-4000-8000-00000000000{one}" for one in range(3)]


def provider_of(writer: int) -> str:
    """Return the provider that a writer creates and deletes."""
    return f"b{writer}000000-0000-4000-8000-000000000001"


def crowd(url: str) -> dict[str, Any]:
    """Fork the processes, which make connections of their own."""
    fork = multiprocessing.get_context("fork")
    end, found = fork.Value("q", 0), fork.SimpleQueue()
    with opened(url) as database:
        service = placement(database)
        for host in HOSTS:
            service("POST", "/resource_providers", 39, {"uuid": host, "name": host})
            inventories = {"inventories": {"VCPU": {"total": 1000}}, "resource_provider_generation": 0}
            assert service("PUT", f"/resource_providers/{host}/inventories", 39, inventories).status == 200
    # No process is left behind if one of them has failed.
    readers = [fork.Process(target=_read, args=(url, number, end, found), daemon=True) for number in range(READERS)]
    writers = [fork.Process(target=_write, args=(url, number, ROUNDS), daemon=True) for number in range(WRITERS)]
    victim = fork.Process(target=_write, args=(url, VICTIM, 10**6), daemon=True)
    for each in (*readers, victim, *writers):
        each.start()
    with opened(url) as database:
        while not database.read(lambda db: db.execute(_OF_VICTIM).first()):
            if victim.exitcode is not None:
                sys.exit("the victim failed")
            time.sleep(0.02)
    os.kill(victim.pid or 0, signal.SIGKILL)
    for each in (*writers, victim):
        each.join()
    if any(each.exitcode for each in writers):
        sys.exit("a writer failed")
    with opened(url) as database:
        database.history.order()
        end.value, _ = database.read(event.newest)
    results: list[Any] = []
    while len(results) < READERS:
        if not found.empty():
            results.append(found.get())
        elif any(each.exitcode for each in readers):
            sys.exit("a reader failed")
        else:
            time.sleep(0.02)
    return {"end": end.value, "read": results}


_OF_VICTIM = sa.select(events.c.uuid).where(events.c.uuid.in_([*consumers_of(VICTIM), provider_of(VICTIM)])).limit(1)


def _write(url: str, number: int, rounds: int) -> None:
    """Claim, move, give back and claim again, and create and delete a provider; some of it is refused."""
    chance = random.Random(number)
    own = provider_of(number)
    with opened(url) as database:
        service = placement(database)
        for _ in range(rounds):
            for consumer in consumers_of(number):
                host, other = chance.sample(HOSTS, 2)
                path = f"/allocations/{consumer}"
                amount = {"resources": {"VCPU": chance.randint(1, 5)}}
                service("PUT", path, 39, {**NEW_CONSUMER, "allocations": {host: amount}})
                moved = {**NEW_CONSUMER, "allocations": {other: amount}, "consumer_generation": 1}
                service("PUT", path, 39, moved)
                if chance.random() < 0.7:
                    service("DELETE", path)
            service("POST", "/resource_providers", 39, {"uuid": own, "name": own})
            service("DELETE", f"/resource_providers/{own}")


def _read(url: str, number: int, end: Any, found: Any) -> None:
    """Follow from the beginning; each reader opens the database again in between, as one that was restarted."""
    read: list[Any] = []
    reached, mark = 0, ""
    while not end.value or reached < end.value:
        with opened(url) as database:
            service = placement(database)
            for _ in range(40):
                after = f"&after={mark}" if mark else ""
                answer = service("GET", f"/v1/events?limit={2 + number % 4 * 5}{after}")
                assert answer.status == 200, answer
                mark = answer.body["position"]
                reached = int(mark.partition("-")[0])
                for one in answer.body["events"]:
                    read.append((int(one["position"].partition("-")[0]), one["kind"], one["uuid"], *one["generation"]))
                if end.value and reached >= end.value:
                    break
                if not answer.body["events"]:
                    time.sleep(0.02)
    found.put(read)


if __name__ == "__main__":
    json.dump(crowd(sys.argv[1]), sys.stdout)
