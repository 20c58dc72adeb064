"""Threads of one process that use its database concurrently, or wait for each other's transactions."""

from __future__ import annotations

import contextlib
import threading
import uuid
from collections import Counter
from collections.abc import Callable, Sequence

import sqlalchemy as sa

from placement import signals
from placement.http.environ import OUTCOME
from tests.children import until
from tests.clock import PATIENCE
from tests.db import sql_hooks
from tests.db.in_process import placement
from tests.load.soundness import flaws
from tests.load.storm import holding, new
from tests.made import opened


class Threads:
    """Threads that each run a function.

    Attributes:
        results: Values that the functions returned or raised; None for a running function.
    """

    def __init__(self, functions: Sequence[Callable[[], object]]) -> None:
        self.results: list[object] = [None] * len(functions)
        self._functions = functions
        self._threads = [
            threading.Thread(target=self._run, args=(number,), name=f"{number}", daemon=True)
            for number in range(len(functions))
        ]

    def _run(self, number: int) -> None:
        try:
            self.results[number] = self._functions[number]()
        except BaseException as error:
            self.results[number] = error

    def start(self, number: int) -> None:
        self._threads[number].start()

    def join(self) -> None:
        """Wait until the started threads have ended."""
        for thread in self._threads:
            if thread.ident is not None:
                thread.join()

    def number(self) -> int | None:
        """Return the number of the current thread; None for a thread of another object."""
        current = threading.current_thread()
        return self._threads.index(current) if current in self._threads else None


def together(functions: Sequence[Callable[[], object]], wait: Callable[[], object] | None = None) -> list[object]:
    """Run each function in its own thread, all starting at once; return their results or exceptions.

    Args:
        wait: Returns once all threads may begin; by default once all threads of this call are ready.
    """
    begin = wait or threading.Barrier(len(functions)).wait

    def begin_together(work: Callable[[], object]) -> object:
        begin()
        return work()

    threads = Threads([lambda work=work: begin_together(work) for work in functions])
    for number in range(len(functions)):
        threads.start(number)
    threads.join()
    return threads.results


class Crowd:
    """Threads of one process: the first holds a transaction open, and the others wait for it.

    Attributes:
        database: The database of the process.
        queue: The queue in which the threads wait.
        joined: The number of writes in each transaction that combines writes.
        causes: The causes of retries.
        admitted: The number of threads that used the database while the last ones waited.
        searches: The number of searches.
        optimistic: The number of requests to POST /v1/claims that claimed from a recent snapshot.
        outcomes: The number of claims in these requests by outcome.
        logged: The facts that each request added to its log line, by the number of the thread.
    """

    def __init__(self, database, queue):
        self.database, self.queue = database, queue
        # Which requests are combined depends on the threads, not on time.
        queue.max_wait, queue.gather_time = PATIENCE, 0
        self.admitted = 0
        #: The listeners run in the threads, and an addition takes several steps.
        self._counting = threading.Lock()
        self._reset()

    def _reset(self):
        self.joined, self.causes, self.logged = [], [], {}
        self.searches = self.optimistic = 0
        self.outcomes = Counter()

    def together(self, *functions):
        """Run each function in a thread; return their results or exceptions.

        The first thread stops at a statement until all others wait, in their order.
        """
        threads, first_waits, all_wait = Threads(functions), threading.Event(), threading.Event()
        line = self.queue.line

        def hold(_statement):
            if threads.number() == 0:
                first_waits.set()
                assert all_wait.wait(PATIENCE)

        with self.recording(), sql_hooks.statements(self.database.engine, hold):
            try:
                threads.start(0)
                until(first_waits.is_set)
                for number in range(1, len(functions)):
                    threads.start(number)
                    until(lambda: len(line.waiting) == number)  # noqa: B023
                self.admitted = len(self.database.bulkhead._admitted)
            finally:
                all_wait.set()
                threads.join()
        return threads.results

    @contextlib.contextmanager
    def recording(self):
        """Record the activity of the block in the attributes, which are reset first."""
        self._reset()
        listeners = {
            signals.written_jointly: self.joined.append,
            signals.retried: self.causes.append,
            signals.timing: self._note_timing,
            signals.claims_answered: self._note_outcome,
            signals.answered: self._note_answer,
        }
        for signal, listener in listeners.items():
            signal.connect(listener)
        try:
            yield
        finally:
            for signal, listener in listeners.items():
                signal.disconnect(listener)

    def _note_timing(self, name, _seconds):
        with self._counting:
            self.searches += name == "pick"
            self.optimistic += name == "joint"

    def _note_outcome(self, outcome, number):
        with self._counting:
            self.outcomes[outcome] += number

    def _note_answer(self, environ, _status, _seconds):
        self.logged[threading.current_thread().name] = environ.get(OUTCOME)


def statuses(answers):
    return [answer.status for answer in answers]


# --- claims of PUT /allocations --------------------------------------------------------------------------------------

#: A provider that does not exist.
UNKNOWN = str(uuid.UUID(int=7))
#: Invalid claims on a provider whose max_unit is 8, by the resources requested.
INVALID_CLAIMS = {
    "more than max_unit": lambda provider: {provider: {"VCPU": 9}},
    "an unknown class": lambda provider: {provider: {"CUSTOM_NEVER": 1}},
    "a class without inventory": lambda provider: {provider: {"VCPU": 1, "MEMORY_MB": 1}},
    "an unknown provider": lambda provider: {provider: {"VCPU": 1}, UNKNOWN: {"VCPU": 1}},
    "a consumer that exists": lambda provider: {provider: {"VCPU": 1}},
}


class ProviderCrowd(Crowd):
    """Claims of PUT /allocations that wait for each other."""

    def __init__(self, database):
        super().__init__(database, database.queue)
        self.ask = placement(database)

    def provider(self, total=100, **inventory):
        """Create a provider of VCPU, and return its uuid."""
        provider = new()
        assert self.ask("POST", "/resource_providers", 39, {"uuid": provider, "name": provider}).status == 200
        body = {"resource_provider_generation": 0, "inventories": {"VCPU": {"total": total, **inventory}}}
        assert self.ask("PUT", f"/resource_providers/{provider}/inventories", 39, body).status == 200
        # Create the names of the owner and the process's writer of the feed.
        assert self.claim([provider], consumer := new()).status == 204
        assert self.ask("DELETE", f"/allocations/{consumer}").status == 204
        return provider

    def claim(self, resources, consumer, **options):
        return self.put(consumer, holding(resources, **options))

    def put(self, consumer, body):
        return self.ask("PUT", f"/allocations/{consumer}", 39, body)

    def claims(self, provider, *consumers):
        """Claim one unit for each of these consumers, waiting for the first claim; return the responses."""
        return self.claim_each(*(([provider], consumer) for consumer in consumers))

    def claim_each(self, *claims):
        """Send claims, given as resources and consumer, that wait for the first one; return the responses."""
        return self.together(*(lambda claim=claim: self.claim(*claim) for claim in claims))

    def state(self, provider):
        """Return the provider's generation, its allocations, and the generations of its consumers."""
        body = self.ask("GET", f"/resource_providers/{provider}/allocations").body
        amounts = {holder: share["resources"]["VCPU"] for holder, share in body["allocations"].items()}
        generations = {share["consumer_generation"] for share in body["allocations"].values()}
        return body["resource_provider_generation"], amounts, generations


@contextlib.contextmanager
def provider_crowd(database):
    """Yield a crowd whose claims wait for each other without a time limit."""
    with opened(database.url) as process_database:
        yield ProviderCrowd(process_database)
    assert flaws(database) == {}


def count(database, table, *conditions):
    return database.read(
        lambda db: db.execute(sa.select(sa.func.count()).select_from(table).where(*conditions)).scalar()
    )
