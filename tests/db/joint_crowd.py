"""Requests of several threads of one process that wait for each other's transactions."""

from __future__ import annotations

import contextlib
import threading
import time
import uuid

import sqlalchemy as sa

from placement import signals
from placement.db.database import opened
from tests.clock import PATIENCE
from tests.db import watch
from tests.db.in_process import placement
from tests.load.soundness import flaws
from tests.load.storm import holding, new

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


class Crowd:
    """Requests of several threads of one process, of which all but the first wait while the first one has begun."""

    def __init__(self, database, combiner):
        self.database, self.ask = database, placement(database)
        #: What they wait in.
        self.combiner = combiner
        #: How many writes each transaction did that could do several, and why transactions were run again.
        self.joined, self.causes = [], []
        #: How many threads used the database while all but the first waited.
        self.admitted = 0

    def provider(self, total=100, **inventory):
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

    def together(self, *works):
        """Return what the works return; each runs in a thread, and the first begins to claim once all others wait.

        They wait in their order.
        """
        results = [None] * len(works)
        begun, others_wait = threading.Event(), threading.Event()

        def hold(_statement):
            if threading.current_thread() is threads[0] and not begun.is_set():
                begun.set()
                assert others_wait.wait(PATIENCE)

        def run(place):
            try:
                results[place] = works[place]()
            except BaseException as error:
                results[place] = error

        threads = [threading.Thread(target=run, args=(place,), daemon=True) for place in range(len(works))]
        with self.recorded(), watch.statements(self.database.engine, hold):
            threads[0].start()
            assert begun.wait(PATIENCE)
            for number, thread in enumerate(threads[1:], 1):
                thread.start()
                self._wait_for_queue(number)
            self.admitted = len(self.database.bulkhead._admitted)
            others_wait.set()
            for thread in threads:
                thread.join(PATIENCE)
        return results

    def _wait_for_queue(self, length):
        until = time.monotonic() + PATIENCE
        while len(self.combiner._queue._waiting) != length:
            assert time.monotonic() < until
            time.sleep(0.001)

    @contextlib.contextmanager
    def recorded(self):
        """Have ``joined`` and ``causes`` say what happens in the block, and nothing else."""
        self.joined, self.causes = [], []
        joined, causes = self.joined.append, self.causes.append
        signals.written_jointly.connect(joined)
        signals.retried.connect(causes)
        try:
            yield
        finally:
            signals.written_jointly.disconnect(joined)
            signals.retried.disconnect(causes)

    def claims(self, provider, *consumers):
        """Return the answers to claims of these consumers for one unit each."""
        return self.claim_each(*(([provider], consumer) for consumer in consumers))

    def claim_each(self, *claims):
        """Return the answers to claims; each is given by the resources and the consumer."""
        return self.together(*(lambda claim=claim: self.claim(*claim) for claim in claims))

    def state(self, provider):
        """Return the provider's generation, what its consumers hold, and the generations of these."""
        body = self.ask("GET", f"/resource_providers/{provider}/allocations").body
        held = {one: share["resources"]["VCPU"] for one, share in body["allocations"].items()}
        generations = {share["consumer_generation"] for share in body["allocations"].values()}
        return body["resource_provider_generation"], held, generations


@contextlib.contextmanager
def mixed_crowd(database):
    """A process on the database whose claims wait for each other, and none so long that it goes alone."""
    with opened(database.url) as own:
        joint = own._joint_writes
        joint._mixed._longest_wait = joint._alike._longest_wait = PATIENCE
        yield Crowd(own, joint._mixed)
    assert flaws(database) == {}


def statuses(answers):
    return [answer.status for answer in answers]


def count(database, table, *where):
    return database.read(lambda db: db.execute(sa.select(sa.func.count()).select_from(table).where(*where)).scalar())
