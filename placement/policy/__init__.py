"""The policy: a table of rules (docs: policy), which a policy file can override by name.

rules  the table of the Placement API; those of other APIs are theirs
files  the policy files, checked before they are used
"""

from __future__ import annotations

import argparse
import contextlib
import logging
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from oslo_config import cfg
from oslo_context.context import RequestContext
from oslo_policy import policy

from placement import conf as options
from placement import errors
from placement.policy import files

MOST_VERDICTS = 10_000
#: Characters of the key of a cached verdict: rule, caller and target.
_LONGEST_KEY = 2_000
_KIND = re.compile(r"([^\s()]+?):")  # the kind of a check: "role" in "role:admin"


def get_enforcer(rules: Sequence[policy.RuleDefault]) -> policy.Enforcer:
    """Return an enforcer with these rules, configured like the service's, for the oslopolicy tools.

    Arguments of their command line that are not their own are for the configuration, for example ``--config-file``.
    """
    tools = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    tools.add_argument("--namespace")
    tools.add_argument("--output-file")
    _, arguments = tools.parse_known_args(sys.argv[1:])
    conf = cfg.CONF  # oslopolicy-validator reads it too, and opens the policy file by the value of the option
    options.read(conf, arguments)
    enforcer = _enforcer(conf, rules)
    if found := conf.find_file(conf.oslo_policy.policy_file):
        conf.set_override("policy_file", found, group="oslo_policy")
    return enforcer


def _enforcer(conf: cfg.ConfigOpts, rules: Sequence[policy.RuleDefault]) -> policy.Enforcer:
    """Return an enforcer with all rules loaded."""
    enforcer = policy.Enforcer(conf)
    # All rules have a changed default: the warnings would fill the log at every start.
    enforcer.suppress_default_change_warnings = True
    enforcer.register_defaults(rules)
    with _without_tracebacks():
        enforcer.load_rules()
    return enforcer


@contextlib.contextmanager
def _without_tracebacks() -> Iterator[None]:
    """Keep oslo.policy from logging a traceback for a rule that it cannot parse, which ``files.report`` names."""
    log = logging.getLogger("oslo_policy._parser")
    was, log.disabled = log.disabled, True
    try:
        yield
    finally:
        log.disabled = was


def mistakes(conf: cfg.ConfigOpts, rules: Sequence[policy.RuleDefault]) -> list[files.PolicyMistake]:
    """Return what is most likely a mistake in the policy files; raises ValueError if one of them cannot be used."""
    written = files.read(conf)
    enforcer = _enforcer(conf, rules)
    return [*files.mistakes(written, enforcer.file_rules, enforcer.registered_rules)]


class Policy:
    """The rules in force.

    They are read once, at start: concurrent first requests never see rules that are half loaded, and no request checks
    whether a file has changed.  A changed policy file takes effect at the next start, like the configuration.

    Verdicts are cached if they depend only on the caller and the target.
    """

    def __init__(self, conf: cfg.ConfigOpts, rules: Sequence[policy.RuleDefault]) -> None:
        """Read the rules; raises ValueError, with a sentence, if a policy file cannot be used."""
        #: The rules that the service knows.
        self.rules = rules
        written = files.read(conf)
        self._enforcer = _enforcer(conf, rules)
        self._enforcer.use_conf = False
        files.report(files.mistakes(written, self._enforcer.file_rules, self._enforcer.registered_rules))
        self._cacheable = _self_contained(self._enforcer)
        self._verdicts: dict[str, type[errors.Forbidden] | None] = {}

    def authorize(self, rule: str, context: RequestContext, target: Mapping[str, Any] | None = None) -> None:
        """Raise Forbidden unless ``rule`` allows the caller to act on ``target``; None is the caller's own project.

        A field of the caller or the target that is None is left out, so that no rule can match it.
        """
        if target is None:
            target = {"project_id": context.project_id, "user_id": context.user_id}
        caller = dict(context.to_policy_values())
        key = f"{rule} {caller} {target}"
        try:
            refusal = self._verdicts[key]
        except KeyError:
            refusal = self._verdict(rule, caller, target)
            if self._cacheable and len(self._verdicts) < MOST_VERDICTS and len(key) <= _LONGEST_KEY:
                self._verdicts[key] = refusal
        if refusal is not None:
            raise refusal(rule=rule)

    def _verdict(self, rule: str, caller: dict[str, Any], target: Mapping[str, Any]) -> type[errors.Forbidden] | None:
        try:
            # oslo.policy compares texts: what is None would be that of a project named None.
            self._enforcer.authorize(rule, _present(target), _present(caller), do_raise=True)
        except policy.PolicyNotAuthorized:
            return errors.PolicyForbids
        except policy.InvalidScope:
            return errors.WrongScope
        return None


def _present(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def _self_contained(enforcer: policy.Enforcer) -> bool:
    """Whether no rule has a check that may change its verdict: one of a remote service, or of a plugin."""
    known = {"rule", "role", *RequestContext().to_policy_values()}
    return all(known.issuperset(_KIND.findall(str(check))) for check in enforcer.rules.values())
