"""What the clients of a cluster see of one nemesis."""

from __future__ import annotations

import random
import threading
import time
import uuid
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from jepsen.client import Client, Recorder
from jepsen.clusters.cluster import Cluster
from jepsen.history import Operation
from jepsen.nemeses.nemesis import Nemesis
from tests.children import PATIENCE
from tests.run_length import LONG

#: Clusters for tests of a nemesis: in a short run only one of those with a server, which starts once.
SERVERS = ["mariadb", "postgresql"] if LONG else ["mariadb"]
KINDS = ["mariadb", "postgresql", "sqlite"]
#: Clients of each service.
_CLIENTS = 3
#: Seconds that a harm lasts in tests of nemeses.
_LASTS = 0.7


@dataclass(frozen=True, slots=True)
class Observed:
    """What became of calls that write, before, beside and after the harm.

    Attributes:
        detail: What the nemesis says about it.
        began: When the harm began; times as in a history.
        done: When it was in effect.
        ending: Until when it was.
        healed: When it was undone.
    """

    operations: Sequence[Operation]
    detail: dict[str, Any]
    began: int
    done: int
    ending: int
    healed: int

    @property
    def meanwhile(self) -> Sequence[Operation]:
        """The calls that began or ended beside the harm."""
        return [
            operation
            for operation in self.operations
            if operation.began < self.healed and (operation.ended is None or operation.ended > self.began)
        ]

    @property
    def within(self) -> Sequence[Operation]:
        """The calls that began and ended while the harm was in effect."""
        return [
            operation
            for operation in self.meanwhile
            if operation.began > self.done and operation.ended and operation.ended < self.ending
        ]

    @property
    def failed(self) -> Sequence[Operation]:
        """The calls beside the harm that did not succeed."""
        return [operation for operation in self.meanwhile if not operation.succeeded]

    @property
    def waited(self) -> Sequence[Operation]:
        """The calls that began before the end of the harm and were answered after it."""
        return [operation for operation in self.meanwhile if operation.began < self.ending < (operation.ended or 0)]

    def of(self, service: int) -> Observed:
        """Return what is seen of one service."""
        calls = [operation for operation in self.operations if operation.service == service]
        return Observed(calls, self.detail, self.began, self.done, self.ending, self.healed)


def observe(
    cluster: Cluster,
    nemesis: Nemesis,
    seed: int = 0,
    meanwhile: Callable[[], object] = lambda: None,
    answering: Callable[[dict[str, Any]], Collection[int]] = lambda _: (),
) -> Observed:
    """Let a nemesis harm a cluster beside clients that write, and return once all services answer writes again.

    Args:
        meanwhile: Called when the harm is in effect, which it is for some time more.
        answering: Returns the services that answer writes beside the harm, which lasts until they have done so; it is
            given the detail of the nemesis.
    """
    recorder, stopped = Recorder(), threading.Event()
    urls = range(len(cluster.urls))
    with ThreadPoolExecutor(_CLIENTS * len(urls)) as threads:
        try:
            for process in range(_CLIENTS * len(urls)):
                threads.submit(_write, Client(recorder, process, cluster.urls, stopped), process % len(urls))
            _wait_for_writes(recorder, urls)
            began = recorder.now()
            with nemesis.harm(cluster, random.Random(seed)) as detail:
                done = recorder.now()
                meanwhile()
                _wait_for_writes(recorder, answering(detail))
                time.sleep(_LASTS)
                ending = recorder.now()
            healed = recorder.now()
            _wait_for_writes(recorder, urls)
        finally:
            stopped.set()
    return Observed(recorder.operations, detail, began, done, ending, healed)


def _write(client: Client, service: int) -> None:
    while not client.stopped.is_set():
        name = str(uuid.uuid4())
        created = client.call("POST", "/resource_providers", {"name": name, "uuid": name}, service=service)
        if not created.succeeded:
            client.stopped.wait(0.02)


def _wait_for_writes(recorder: Recorder, services: Collection[int]) -> None:
    """Return once each service has acknowledged a write that begins from now on."""
    began, deadline = recorder.now(), time.monotonic() + PATIENCE
    while missing := {*services} - {
        operation.service for operation in recorder.operations.copy() if operation.succeeded and operation.began > began
    }:
        assert time.monotonic() < deadline, f"services {missing} do not answer writes"
        time.sleep(0.02)
