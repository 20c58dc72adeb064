"""Policy rules of the v1 API (docs: policy).

Responses name providers, so the rules admit only callers that may list providers.  The doctor's findings name files and
options of the host, so their rule admits only administrators.
"""

from __future__ import annotations

from oslo_policy.policy import RuleDefault

from placement.policy.rules import ADMIN_OR_SERVICE, documented_rule


def _rule(name: str, description: str, method: str, path: str, check: str = ADMIN_OR_SERVICE) -> RuleDefault:
    return documented_rule(f"placement:v1:{name}", description, f"{method} /v1{path}", check=check)


RULES = [
    _rule("capacity:show", "Show the number of times that a request could be placed.", "GET", "/capacity"),
    _rule(
        "doctor", "Show the findings about configuration, database and data.", "GET", "/doctor", check="rule:admin_api"
    ),
    _rule("explain", "Explain the candidates of a request, or the lack of candidates.", "GET", "/explain"),
    _rule("overview:show", "Show all providers as trees.", "GET", "/overview"),
    _rule(
        "providers:show",
        "Show a provider, its tree, and the consumers with allocations in it.",
        "GET",
        "/providers/{provider}",
    ),
    _rule("consumers:list", "List consumers with their allocations.", "GET", "/consumers"),
    _rule("events:list", "List and follow changes, with the user who made each change.", "GET", "/events"),
    _rule("history:show", "Show the changes of a provider, a node or a consumer.", "GET", "/history/{object}"),
    _rule("usage:show", "Show capacity and usage of all providers over time.", "GET", "/usage"),
    _rule("claims:create", "Find places for consumers and claim them.", "POST", "/claims"),
    _rule("claims:show", "Show the claim of a consumer and its expiry.", "GET", "/claims/{consumer}"),
    _rule("claims:extend", "Set or clear the expiry of a claim.", "POST", "/claims/{consumer}/extend"),
    _rule("claims:delete", "Release the claims of several consumers.", "DELETE", "/claims"),
]
