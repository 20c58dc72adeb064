"""Threads of one process that use its database at the same time, or wait for each other's transactions."""

from __future__ import annotations

import contextlib
import threading
import uuid
from collections import Counter
from collections.abc import Callable, Sequence

import sqlalchemy as sa

from placement import signals
from placement.http.environ import SEARCH
from tests.children import until
from tests.clock import PATIENCE
from tests.db import sql_hooks
from tests.db.in_process import placement
from tests.load.soundness import flaws
from tests.load.storm import holding, new
from tests.made import opened


class Threads:
    """Threads that run a function each.

    Attributes:
        results: What the functions have returned or raised; None for those that have not ended.
    """

    def __init__(self, works: Sequence[Callable[[], object]]) -> None:
        self.results: list[object] = [None] * len(works)
        self._works = works
        self._threads = [
            threading.Thread(target=self._run, args=(number,), name=f"{number}", daemon=True)
            for number in range(len(works))
        ]

    def _run(self, number: int) -> None:
        try:
            self.results[number] = self._works[number]()
        except BaseException as error:
            self.results[number] = error

    def start(self, number: int) -> None:
        self._threads[number].start()

    def join(self) -> None:
        """Wait for the end of those that have been started."""
        for thread in self._threads:
            if thread.ident is not None:
                thread.join()

    def number(self) -> int | None:
        """Return the number of the current thread; None for one that is not of these."""
        current = threading.current_thread()
        return self._threads.index(current) if current in self._threads else None


def together(works: Sequence[Callable[[], object]], wait: Callable[[], object] | None = None) -> list[object]:
    """Return what the functions return or raise; each runs in a thread of its own, and all begin at once.

    Args:
        wait: Returns once all threads may begin; the default is to wait for those of this call.
    """
    begin = wait or threading.Barrier(len(works)).wait

    def begin_together(work: Callable[[], object]) -> object:
        begin()
        return work()

    threads = Threads([lambda work=work: begin_together(work) for work in works])
    for number in range(len(works)):
        threads.start(number)
    threads.join()
    return threads.results


class Crowd:
    """Threads of one process: the first one holds a transaction open, and the others wait for it.

    Attributes:
        database: Of the process.
        queue: What the threads wait in.
        joined: How many writes each transaction did that could do several.
        causes: Why transactions were run again.
        admitted: How many threads used the database while the last ones waited.
        searches: The number of searches.
        optimistic: The number of calls of POST /v1/claims that claimed from a recent snapshot.
        outcomes: How requests of these calls ended, and how many did so.
        logged: What each call added to its line of the log, by the number of the thread.
    """

    def __init__(self, database, queue):
        self.database, self.queue = database, queue
        # So that it is the threads that say which of them are served together, and not the time.
        queue.longest_wait, queue.gathering = PATIENCE, 0
        self.admitted = 0
        #: The listeners run in the threads, and an addition takes several steps.
        self._counting = threading.Lock()
        self._forget()

    def _forget(self):
        self.joined, self.causes, self.logged = [], [], {}
        self.searches = self.optimistic = 0
        self.outcomes = Counter()

    def together(self, *works):
        """Return what the works return or raise.

        Each runs in a thread.  The first one stops at a statement until all others wait, which they do in their order.
        """
        threads, held, all_wait = Threads(works), threading.Event(), threading.Event()
        line = self.queue.line

        def hold(_statement):
            if threads.number() == 0:
                held.set()
                assert all_wait.wait(PATIENCE)

        with self.recorded(), sql_hooks.statements(self.database.engine, hold):
            try:
                threads.start(0)
                until(held.is_set)
                for number in range(1, len(works)):
                    threads.start(number)
                    until(lambda: len(line.waiting) == number)  # noqa: B023
                self.admitted = len(self.database.bulkhead._admitted)
            finally:
                all_wait.set()
                threads.join()
        return threads.results

    @contextlib.contextmanager
    def recorded(self):
        """Have the attributes say what happens in the block, and nothing else."""
        self._forget()
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
        self.logged[threading.current_thread().name] = environ.get(SEARCH)


def statuses(answers):
    return [answer.status for answer in answers]


# --- claims on providers that they name ------------------------------------------------------------------------------

#: A provider that does not exist.
UNKNOWN = str(uuid.UUID(int=7))
#: What may be wrong with a claim on a provider of which a consumer may have 8: the resources that it asks for.
WRONG = {
    "more than a consumer may have": lambda provider: {provider: {"VCPU": 9}},
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
        # The names of the owner have ids, and the process has a writer of the feed, from here on.
        assert self.claim([provider], before := new()).status == 204
        assert self.ask("DELETE", f"/allocations/{before}").status == 204
        return provider

    def claim(self, resources, consumer, **more):
        return self.put(consumer, holding(resources, **more))

    def put(self, consumer, body):
        return self.ask("PUT", f"/allocations/{consumer}", 39, body)

    def claims(self, provider, *consumers):
        """Return the answers to claims of these consumers for one unit each, which wait for the first one."""
        return self.claim_each(*(([provider], consumer) for consumer in consumers))

    def claim_each(self, *claims):
        """Return the answers to claims that wait for the first one; each is given by the resources and the consumer."""
        return self.together(*(lambda claim=claim: self.claim(*claim) for claim in claims))

    def state(self, provider):
        """Return the provider's generation, what its consumers hold, and the generations of these."""
        body = self.ask("GET", f"/resource_providers/{provider}/allocations").body
        held = {holder: share["resources"]["VCPU"] for holder, share in body["allocations"].items()}
        generations = {share["consumer_generation"] for share in body["allocations"].values()}
        return body["resource_provider_generation"], held, generations


@contextlib.contextmanager
def provider_crowd(database):
    """Provide claims on a database that wait for each other as long as it takes."""
    with opened(database.url) as own:
        yield ProviderCrowd(own)
    assert flaws(database) == {}


def count(database, table, *where):
    return database.read(lambda db: db.execute(sa.select(sa.func.count()).select_from(table).where(*where)).scalar())
