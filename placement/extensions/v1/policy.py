"""The policy rules of the API below /v1 (docs: policy).

Answers name providers: they are for the callers that may list providers.  Those of the doctor name files and options of
the host: they are for administrators.
"""

from __future__ import annotations

from oslo_policy.policy import RuleDefault

from placement.policy.rules import ADMIN_OR_SERVICE, documented


def _rule(name: str, description: str, method: str, path: str, check: str = ADMIN_OR_SERVICE) -> RuleDefault:
    return documented(f"placement:v1:{name}", description, f"{method} /v1{path}", check=check)


RULES = [
    _rule("capacity:show", "Show how many times a request could be placed.", "GET", "/capacity"),
    _rule(
        "doctor", "Show what is wrong with configuration, database and data.", "GET", "/doctor", check="rule:admin_api"
    ),
    _rule("explain", "Explain which candidates a request has, or why it has none.", "GET", "/explain"),
    _rule("overview:show", "Show all providers as trees.", "GET", "/overview"),
    _rule("providers:show", "Show a provider, its tree, and who holds what in it.", "GET", "/providers/{provider}"),
    _rule("consumers:list", "List consumers with all that they hold.", "GET", "/consumers"),
    _rule("events:list", "Follow what was changed, in whose name.", "GET", "/events"),
    _rule("history:show", "Show what has happened to a provider, a node or a consumer.", "GET", "/history/{object}"),
    _rule("usage:show", "Show capacity and usage of all providers over time.", "GET", "/usage"),
    _rule("claims:create", "Find places for consumers and claim them.", "POST", "/claims"),
    _rule("claims:show", "Show what a consumer holds, and when that ends.", "GET", "/claims/{consumer}"),
    _rule("claims:extend", "Give what a consumer holds another end, or none.", "POST", "/claims/{consumer}/extend"),
    _rule("claims:delete", "Release all that several consumers hold.", "DELETE", "/claims"),
]
