"""A run: clients work on a cluster while nemeses harm it, one after the other; then the history is checked."""

from __future__ import annotations

import itertools
import random
import shutil
import tempfile
import threading
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeGuard

from jepsen import catalogue, final_state
from jepsen.calls import effects
from jepsen.client import Client, Recorder
from jepsen.clusters.cluster import Cluster
from jepsen.effect_types import ABSENT, EVERY, Effect, ProviderWrite
from jepsen.history import RUNNER, Event, History, Operation
from jepsen.nemeses.nemesis import Nemesis
from jepsen.violation import Violation
from jepsen.workloads.workload import Workload

#: Seconds within which a healed cluster must acknowledge writes; far above the limits of checker.recovery, which hold
#: on dedicated machines only.
RECOVERY = 120.0
#: Invariant violated by a cluster that cannot be used for another run.
RECOVERS = "recovery"
#: Consecutive writes that each service must acknowledge to count as recovered.
_CONSECUTIVE_WRITES = 3


@dataclass(frozen=True, slots=True)
class Plan:
    """The parameters of a run.

    Attributes:
        workloads: Names; their clients work at the same time.
        nemeses: Names; they take turns, starting with the first.
        seconds: Time for which clients work; the last nemesis may extend it.
        seed: Seed of all choices of the clients and the nemeses.
        peace: Seconds before each nemesis, and after the last one.
    """

    workloads: Sequence[str]
    nemeses: Sequence[str] = ()
    seconds: float = 60.0
    seed: int = 0
    peace: float = 3.0


@dataclass(frozen=True, slots=True)
class Result:
    """The outcome of a run.

    Attributes:
        path: File of the history; None if nothing is violated or undecided.
        undecided: Searches that reached their bound without a verdict.
    """

    history: History
    violations: Sequence[Violation]
    path: Path | None
    undecided: Sequence[Violation] = ()

    @property
    def recovered(self) -> bool:
        """Whether the cluster can be used for another run."""
        return all(violation.invariant != RECOVERS for violation in self.violations)


def run(cluster: Cluster, plan: Plan) -> Result:
    """Carry out the plan on a running cluster, and check the history.

    Exceptions of clients, nemeses and checks propagate; the state of the cluster is then undefined.
    """
    current_run = _Run(cluster, plan)
    try:
        violations = current_run.carry_out()
    except Exception as error:
        error.add_note(f"the history until then: {keep(current_run.history(), cluster)}")
        raise
    history = current_run.history()
    findings: list[Violation] = []
    for name, check in catalogue.checks().items():
        try:
            findings += check(history)
        except Exception as error:
            error.add_note(f"in the check {name!r} of the history {keep(history, cluster)}")
            raise
    violations += [violation for violation in findings if not violation.undecided]
    undecided = [violation for violation in findings if violation.undecided]
    return Result(history, violations, keep(history, cluster) if violations or undecided else None, undecided)


def keep(history: History, cluster: Cluster | None = None) -> Path:
    """Write the history to a new file that outlives the run, and the services' logs next to it; return its path."""
    prefix = f"history-{history.run['cluster']}-{history.run['seed']}-"
    with tempfile.NamedTemporaryFile(prefix=prefix, suffix=".jsonl", delete=False) as file:
        path = Path(file.name)
    history.write(path)
    for number, service in enumerate(cluster.services if cluster is not None else ()):
        shutil.copyfile(service.log, path.with_name(f"{path.stem}-service-{number}.log"))
    return path


@dataclass
class _Run:
    cluster: Cluster
    plan: Plan
    recorder: Recorder = field(default_factory=Recorder)
    final: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._workloads = [catalogue.workload(name)() for name in self.plan.workloads]
        self._stopped = threading.Event()
        # The schema of an older version lacks tables.
        readable = self.cluster.shows_state and self.cluster.tree is None
        #: Inconsistencies left by earlier runs on this cluster.
        self._flaws = final_state.inconsistencies(self.cluster.database_url) if readable else {}
        #: Newest number of each feed writer when the run begins; the same if an earlier run may have lost commits.
        self._numbers = final_state.newest_numbers(self.cluster.database_url) if readable else {}
        self._numbers_before_gaps = self._numbers if self.cluster.lost_tail else {}

    def carry_out(self) -> list[Violation]:
        """Run the workloads and the nemeses; return a violation if the cluster does not recover."""
        runner = self._client(RUNNER)
        for workload in self._workloads:
            workload.prepare(runner)
        with ThreadPoolExecutor(sum(workload.clients for workload in self._workloads)) as threads:
            futures = [*self._start_clients(threads)]
            try:
                self._run_nemeses()
            finally:
                self._stopped.set()
        for client in futures:
            client.result()
        if not self._recovers(runner):
            sentence = f"not every service acknowledges writes within {RECOVERY:.0f} s after the last nemesis"
            return [Violation(RECOVERS, sentence)]
        for workload in self._workloads:
            workload.finish(runner)
        self._read_all(runner)
        if self.cluster.shows_state:
            self.final = final_state.read(self.cluster.database_url, self.cluster.services)
        return []

    def history(self) -> History:
        """Return the history so far."""
        description = {
            "cluster": self.cluster.name,
            "workloads": [*self.plan.workloads],
            "nemeses": [*self.plan.nemeses],
            "seconds": self.plan.seconds,
            "seed": self.plan.seed,
            "flaws": self._flaws,
            "newest": self._numbers_before_gaps,
            "begun": self._numbers,
        }
        if not self.cluster.shows_state:
            description["skipped"] = "not checked: rows and indices at the end, because another implementation runs"
        for workload in self._workloads:
            description |= workload.describe()
        events = [event for event in self.recorder.events if catalogue.nemesis(event.nemesis).shows_past]
        checkable = (_without_stale_response(operation, events) for operation in self.recorder.operations)
        operations = sorted(
            (operation for operation in checkable if operation is not None), key=lambda operation: operation.number
        )
        return History(description, operations, [*self.recorder.events], self.final)

    def _client(self, process: int) -> Client:
        return Client(self.recorder, process, self.cluster.urls, self._stopped)

    # --- clients ---

    def _start_clients(self, threads: ThreadPoolExecutor) -> Iterator[Future[None]]:
        processes = itertools.count()
        for workload in self._workloads:
            for _ in range(workload.clients):
                process = next(processes)
                rng = random.Random(f"{self.plan.seed} {process}")
                yield threads.submit(self._work, workload, self._client(process), rng)

    def _work(self, workload: Workload, client: Client, rng: random.Random) -> None:
        try:
            workload.run(client, rng)
        finally:
            self._stopped.set()  # a client that fails before the end stops the others

    # --- nemeses ---

    def _run_nemeses(self) -> None:
        rng, end = random.Random(self.plan.seed), time.monotonic() + self.plan.seconds
        for number, name in enumerate(itertools.cycle(self.plan.nemeses)):
            # The first nemesis always takes its turn, even on a slow machine.
            if self._stopped.wait(self.plan.peace) or (number and time.monotonic() + self.plan.peace > end):
                break
            self._run_nemesis(catalogue.nemesis(name)(), rng)
        self._stopped.wait(end - time.monotonic())
        self.cluster.wait_until_complete()

    def _run_nemesis(self, nemesis: Nemesis, rng: random.Random) -> None:
        self.cluster.wait_until_complete()
        began = self.recorder.now()
        with nemesis.harm(self.cluster, rng) as detail:
            safe_from = {"all": None, "in flight": self.recorder.now(), "none": 0}[nemesis.loses]
            self._stopped.wait(nemesis.seconds)
        healed = self.recorder.now()
        event = Event(nemesis.name, began, healed, nemesis.loses_tail, detail, nemesis.aftermath, safe_from)
        self.recorder.record(replace(event, keeps_earlier=nemesis.keeps_earlier))
        self.cluster.lost_tail |= nemesis.loses_tail

    # --- the end ---

    def _recovers(self, client: Client) -> bool:
        """Whether each service acknowledges writes in time."""
        deadline = time.monotonic() + RECOVERY
        for service in range(len(self.cluster.urls)):
            acknowledged = 0
            while acknowledged < _CONSECUTIVE_WRITES:
                if time.monotonic() > deadline:
                    return False
                acknowledged = acknowledged + 1 if self._writes(client, service) else 0
        return True

    def _writes(self, client: Client, service: int) -> bool:
        name = str(uuid.uuid4())
        created = client.call("POST", "/resource_providers", {"name": name, "uuid": name}, service=service)
        if not created.succeeded:
            time.sleep(0.05)
            return False
        return client.call("DELETE", f"/resource_providers/{name}", service=service).succeeded

    def _read_all(self, client: Client) -> None:
        """Read each consumer and provider of the run, so that the history contains the final state."""
        operation_effects = [effect for operation in [*self.recorder.operations] for effect in effects(operation)]
        consumers = {effect.consumer for effect in operation_effects if hasattr(effect, "consumer")}
        providers = {effect.provider for effect in operation_effects if hasattr(effect, "provider")}
        for consumer in sorted(consumers - {EVERY}):
            client.read(f"/allocations/{consumer}", seconds=RECOVERY)
        for provider in sorted(providers - {EVERY}):
            client.read(f"/resource_providers/{provider}", seconds=RECOVERY)
        for provider in sorted({effect.provider for effect in operation_effects if _changes_contents(effect)}):
            for kind in ("inventories", "traits", "aggregates"):
                client.read(f"/resource_providers/{provider}/{kind}", seconds=RECOVERY)


def _changes_contents(effect: Effect) -> TypeGuard[ProviderWrite]:
    return isinstance(effect, ProviderWrite) and effect.expected is not ABSENT


def _without_stale_response(operation: Operation, events: Sequence[Event]) -> Operation | None:
    """Return the part of an operation that can be checked even if responses during these events are stale, if any."""
    if operation.ended is None or not any(_during(operation, event) for event in events):
        return operation
    if operation.method == "GET" or not operation.succeeded:
        return None
    # An acknowledged write is in effect, but a claim may only have read a consumer that held its place already.
    return (
        replace(operation, ended=None, status=0, reply=None) if operation.path.startswith("/v1/claims") else operation
    )


def _during(operation: Operation, event: Event) -> bool:
    return (
        operation.ended is not None
        and operation.ended > event.began
        and (event.healed is None or operation.began < event.healed)
    )
