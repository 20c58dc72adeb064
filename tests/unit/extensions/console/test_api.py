"""The routes of the console and their rules."""

from __future__ import annotations

from placement import routes
from placement.extensions.console.api import CONSOLE
from placement.extensions.console.handlers.asset import ASSETS
from tests import web

#: Pages without a rule: the open ones, and the one that checks the policy for a project.
WITHOUT_RULE = {"/assets/{name}", "/api", "/consumers"}
#: Pages that offer dry runs, which are sent to an endpoint with its own rule.
WITH_DRY_RUNS = {"/query", "/providers/{ident}"}


def test_all_pages_except_the_listed_ones_have_a_rule_and_only_static_facts_are_open():
    for path, methods in CONSOLE.routes.items():
        assert [*methods] == (["GET", "POST"] if path in WITH_DRY_RUNS else ["GET"])
        assert {endpoint.policy is None for endpoint in methods.values()} == {path in WITHOUT_RULE}
        assert len({endpoint.policy for endpoint in methods.values()}) == 1
    assert CONSOLE.open_paths == {"/api", *(f"/assets/{name}" for name in ASSETS)}
    assert CONSOLE.rules == ()


def test_a_browser_that_requests_the_root_is_redirected_to_the_console():
    answer = web.ask(web.mount(routes.PLACEMENT, CONSOLE), "GET", "/", {"accept": "text/html"})
    assert (answer.status_int, answer.headers["location"]) == (302, "http://localhost:80/console/")
