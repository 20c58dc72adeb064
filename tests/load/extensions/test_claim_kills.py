"""Workers are killed during calls for several consumers: repeating a call returns the outcome of the first attempt.

Calls are repeated until they succeed, so that in the end each consumer is placed, moved or released exactly once.
"""

from __future__ import annotations

import itertools

from tests import running
from tests.load.extensions.claiming import Hosts, claiming, releasing, request, results
from tests.load.soundness import flaws
from tests.load.storm import Storm, new
from tests.load.test_kills import RunningClients
from tests.made import opened
from tests.patient import APPLICATION, OPTIONS
from tests.run_length import LONG

KILLS = 60 if LONG else 3
CONSUMERS = 6


class ClaimClients:
    """Clients whose calls always fit, and are repeated until they succeed."""

    def __init__(self, storm, hosts):
        self._storm, self._hosts = storm, hosts
        self.answers = {0: 0, 200: 0, 204: 0}
        #: The violations found.
        self.violations = []

    def run_client(self, seed, is_done):
        """Run a client, which claims for several consumers, moves them, and releases some."""
        for number in itertools.count(seed):
            if is_done():
                return
            consumers = [new() for _ in range(CONSUMERS)]
            at_once = number % 2 == 0
            requests = [request(self._hosts.query(), consumer) for consumer in consumers]
            self._repeat_until_answered(
                claiming(*requests, all_or_nothing=at_once), consumers if at_once else [], "claimed"
            )
            moves = [consumer | {"keep": False, "consumer_generation": 1} for consumer in requests]
            self._repeat_until_answered(claiming(*moves, all_or_nothing=at_once, strategy="random"), [], "moved")
            self._check(consumers, 1, 2)
            self._release(consumers[:-1])
            self._check(consumers[:-1], 0, None)
            self.answers[204] += 1

    def _repeat_until_answered(self, call, together, outcome):
        """Repeat the call until it succeeds; the consumers ``together`` must be placed together or not at all."""
        while (answer := self._ask(call)).status == 0:
            # A COMMIT of the killed worker may take effect between two reads; a partial write would remain partial.
            if all(len({self._amount_and_generation(consumer)[0] for consumer in together}) > 1 for _ in range(2)):
                self.violations.append(("partial write", together))
        outcomes = [*results([answer])]
        if {consumer["status"] for consumer in outcomes} != {200} or not {
            consumer["outcome"] for consumer in outcomes
        } <= {outcome, "held"}:
            self.violations.append((outcome, outcomes))

    def _release(self, consumers):
        while (answer := self._ask(releasing(consumers))).status == 0:
            pass
        if {*answer.body["released"], *answer.body["missing"]} != {*consumers}:
            self.violations.append(("released", answer))

    def _check(self, consumers, amount, generation):
        for consumer in consumers:
            if self._amount_and_generation(consumer) != (amount, generation):
                self.violations.append((consumer, amount, generation))

    def _amount_and_generation(self, consumer):
        """Return the amount that a consumer holds, and its generation."""
        while (answer := self._storm.ask("GET", f"/allocations/{consumer}")).status != 200:
            pass
        amounts = [sum(allocation["resources"].values()) for allocation in answer.body["allocations"].values()]
        return sum(amounts), answer.body.get("consumer_generation")

    def _ask(self, call):
        answer = self._storm.ask(*call)
        self.answers[answer.status] = self.answers.get(answer.status, 0) + 1
        return answer


def test_calls_repeated_after_the_kill_of_a_worker_take_effect_once(database_url):
    with running.uwsgi(database_url, 3, OPTIONS, module=APPLICATION, flags=()) as service:
        storm = Storm(service.url)
        claim_clients = ClaimClients(storm, Hosts(storm, *[10**6] * 8))
        with RunningClients(claim_clients) as clients:
            for number in itertools.count(1):
                clients.wait_for_successes(4)
                killed = service.kill_worker()
                service.wait_until(lambda killed=killed: killed not in service.workers)
                if number >= KILLS and claim_clients.answers[0]:  # at least one client was hit
                    break
            clients.wait_for_successes(4)
        assert claim_clients.violations == []
        assert {*claim_clients.answers} == {0, 200, 204}
    with opened(database_url) as database:
        assert flaws(database) == {}
