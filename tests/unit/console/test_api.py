"""The routes of the console: who may ask for what."""

from __future__ import annotations

from placement.console.api import CONSOLE
from placement.console.handlers.asset import ASSETS

#: Pages without a rule: those that are open, and the one that asks the policy about a project.
WITHOUT_RULE = {"/assets/{name}", "/api", "/consumers"}


def test_every_page_has_a_rule_of_the_api_and_only_static_facts_are_open():
    for path, methods in CONSOLE.routes.items():
        assert methods.keys() == {"GET"}
        assert (methods["GET"].policy is None) == (path in WITHOUT_RULE)
    assert CONSOLE.open_paths == {"/api", *(f"/assets/{name}" for name in ASSETS)}
    assert CONSOLE.rules == ()
