"""Checks of the configuration: options, the policy, and the service's own user."""

from __future__ import annotations

from collections.abc import Iterator

from oslo_config import cfg
from oslo_utils import fileutils

from placement import conf as options
from placement import package, policy
from placement.checks.check import NotMadeError, Subject
from placement.checks.finding import Finding, counted, error, warning
from placement.conf import spelling


def unknown_options(subject: Subject) -> Iterator[Finding]:
    """Find options that the service does not know."""
    if found := options.unknown(subject.conf):
        sentence = (
            counted(len(found), "option of the configuration is", "options of the configuration are")
            + " unknown, and without effect."
        )
        yield warning(sentence, tuple(map(str, found)), "Correct the names, or remove the lines.")


def policy_in_json(subject: Subject) -> Iterator[Finding]:
    """Find a policy file in the old format."""
    conf = subject.conf
    path = conf.find_file(conf.oslo_policy.policy_file)
    if path and _is_json(path):
        sentence = (
            f"The policy file {path} is in the JSON format, which is deprecated. Turn it into YAML with the "
            "oslopolicy-convert-json-to-yaml tool."
        )
        command = f"oslopolicy-convert-json-to-yaml --namespace placement --policy-file {path} --output-file <new file>"
        yield error(sentence, (path,), command)


def _is_json(path: str) -> bool:
    try:
        return bool(fileutils.is_json(path))
    except (OSError, UnicodeDecodeError):
        return False  # the check of the policy's mistakes finds it


def policy_mistakes(subject: Subject) -> Iterator[Finding]:
    """Find what is most likely a mistake in the policy files."""
    check = "oslopolicy-validator --namespace placement"
    try:
        found = policy.mistakes(subject.conf, subject.rules)
    except ValueError as reason:
        yield error("The policy files cannot be used: the service does not start.", (str(reason),), "Correct the file.")
        return
    refusing = tuple(mistake.sentence for mistake in found if mistake.refuses)
    if refusing:
        yield error("Rules of the policy cannot be parsed, and refuse every caller.", refusing, check)
    others = tuple(mistake.sentence for mistake in found if not mistake.refuses)
    if others:
        yield warning("The policy has what is most likely a mistake.", others, check)


def identity_service(subject: Subject) -> Iterator[Finding]:
    """Find why the Identity service does not accept the service's own user, if it validates tokens."""
    conf = subject.conf
    if conf.api.auth_strategy != "keystone":
        raise NotMadeError("[api]auth_strategy is not keystone.")
    try:
        from placement.middleware.keystone_check import find, is_configured
    except ImportError:
        if not _has_section(conf, "keystone_authtoken"):
            raise NotMadeError("[api]auth_strategy is keystone by default, and nothing configures it.") from None
        yield error("keystonemiddleware is missing.", (), package.install("keystone"))
        return
    if not is_configured(conf):
        raise NotMadeError("[keystone_authtoken] has no auth_type: the service does not start with it.")
    found = find(conf)
    if found is not None:
        make = warning if found.transient else error
        yield make(str(found), (), "Correct [keystone_authtoken], or the user in the Identity service.")


def _has_section(conf: cfg.ConfigOpts, name: str) -> bool:
    """Return whether a file or the environment has an option of a section that no module here has registered."""
    return any(section == name for _, section, _ in spelling.written(conf))
