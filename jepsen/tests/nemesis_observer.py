"""Observation of a nemesis by clients of the cluster."""

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

#: Clusters for tests of nemeses; short test runs start only one server.
SERVERS = ["mariadb", "postgresql"] if LONG else ["mariadb"]
KINDS = ["mariadb", "postgresql", "sqlite"]
#: Clients of each service.
_CLIENTS = 3
#: Duration of the harm in tests of nemeses, in seconds.
_HARM_SECONDS = 0.7


@dataclass(frozen=True, slots=True)
class Observation:
    """The writes before, during and after the harm.

    Attributes:
        detail: Details yielded by the nemesis.
        began: Start of the harm; times as in a history.
        in_effect: Time from which the harm was in effect.
        ending: Time at which the nemesis began to undo it.
        healed: Time at which it was undone.
    """

    operations: Sequence[Operation]
    detail: dict[str, Any]
    began: int
    in_effect: int
    ending: int
    healed: int

    @property
    def meanwhile(self) -> Sequence[Operation]:
        """The operations that overlap the harm."""
        return [
            operation
            for operation in self.operations
            if operation.began < self.healed and (operation.ended is None or operation.ended > self.began)
        ]

    @property
    def within(self) -> Sequence[Operation]:
        """The operations that began and ended while the harm was in effect."""
        return [
            operation
            for operation in self.meanwhile
            if operation.began > self.in_effect and operation.ended and operation.ended < self.ending
        ]

    @property
    def failures(self) -> Sequence[Operation]:
        """The operations during the harm that did not succeed."""
        return [operation for operation in self.meanwhile if not operation.succeeded]

    @property
    def delayed(self) -> Sequence[Operation]:
        """The operations that began before the end of the harm and got a response after it."""
        return [operation for operation in self.meanwhile if operation.began < self.ending < (operation.ended or 0)]

    def of(self, service: int) -> Observation:
        """Return the observations of one service."""
        calls = [operation for operation in self.operations if operation.service == service]
        return Observation(calls, self.detail, self.began, self.in_effect, self.ending, self.healed)


def observe(
    cluster: Cluster,
    nemesis: Nemesis,
    seed: int = 0,
    meanwhile: Callable[[], object] = lambda: None,
    answering: Callable[[dict[str, Any]], Collection[int]] = lambda _: (),
) -> Observation:
    """Let a nemesis harm a cluster during writes, and return once all services acknowledge writes again.

    Args:
        meanwhile: Called while the harm is in effect.
        answering: Returns the services that acknowledge writes during the harm, which lasts until they have done so;
            called with the nemesis's details.
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
                in_effect = recorder.now()
                meanwhile()
                _wait_for_writes(recorder, answering(detail))
                time.sleep(_HARM_SECONDS)
                ending = recorder.now()
            healed = recorder.now()
            _wait_for_writes(recorder, urls)
        finally:
            stopped.set()
    return Observation(recorder.operations, detail, began, in_effect, ending, healed)


def _write(client: Client, service: int) -> None:
    while not client.stopped.is_set():
        name = str(uuid.uuid4())
        created = client.call("POST", "/resource_providers", {"name": name, "uuid": name}, service=service)
        if not created.succeeded:
            client.stopped.wait(0.02)


def _wait_for_writes(recorder: Recorder, services: Collection[int]) -> None:
    """Wait until each service has acknowledged a write that begins from now on."""
    began, deadline = recorder.now(), time.monotonic() + PATIENCE
    while missing := {*services} - {
        operation.service for operation in recorder.operations.copy() if operation.succeeded and operation.began > began
    }:
        assert time.monotonic() < deadline, f"services {missing} do not acknowledge writes"
        time.sleep(0.02)
