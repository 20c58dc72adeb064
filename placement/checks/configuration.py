"""Checks of the configuration: options, policy, and the service's own user."""

from __future__ import annotations

from collections.abc import Iterator

from oslo_config import cfg
from oslo_utils import fileutils

from placement import conf as options
from placement import package, policy
from placement.checks.check import NotMadeError, Subject
from placement.checks.finding import Finding, count_phrase, error, warning
from placement.conf import spelling


def unknown_options(subject: Subject) -> Iterator[Finding]:
    """Find options that the service does not define."""
    if unknown := options.find_unknown(subject.conf):
        sentence = (
            count_phrase(len(unknown), "option of the configuration is", "options of the configuration are")
            + " unknown and have no effect."
        )
        yield warning(sentence, tuple(map(str, unknown)), "Correct the names, or remove the lines.")


def policy_in_json(subject: Subject) -> Iterator[Finding]:
    """Find a policy file in the deprecated JSON format."""
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
        return False  # policy_mistakes reports it


def policy_mistakes(subject: Subject) -> Iterator[Finding]:
    """Find likely mistakes in the policy files."""
    command = "oslopolicy-validator --namespace placement"
    try:
        mistakes = policy.find_mistakes(subject.conf, subject.rules)
    except ValueError as reason:
        yield error("The policy files cannot be used: the service does not start.", (str(reason),), "Correct the file.")
        return
    refusing = tuple(mistake.sentence for mistake in mistakes if mistake.refuses)
    if refusing:
        yield error("Rules of the policy cannot be parsed, and refuse every caller.", refusing, command)
    probable = tuple(mistake.sentence for mistake in mistakes if not mistake.refuses)
    if probable:
        yield warning("The policy probably contains mistakes.", probable, command)


def identity_service(subject: Subject) -> Iterator[Finding]:
    """Find reasons why the Identity service does not accept the service's own user."""
    conf = subject.conf
    if conf.api.auth_strategy != "keystone":
        raise NotMadeError("[api]auth_strategy is not keystone.")
    try:
        from placement.middleware.keystone_check import find_problem, is_configured
    except ImportError:
        if not _has_section(conf, "keystone_authtoken"):
            raise NotMadeError(
                "[api]auth_strategy is keystone by default, and [keystone_authtoken] is not configured."
            ) from None
        yield error("keystonemiddleware is not installed.", (), package.install_command("keystone"))
        return
    if not is_configured(conf):
        raise NotMadeError("[keystone_authtoken] has no auth_type: the service does not start with it.")
    finding = find_problem(conf)
    if finding is not None:
        make = warning if finding.transient else error
        yield make(str(finding), (), "Correct [keystone_authtoken], or the user in the Identity service.")


def _has_section(conf: cfg.ConfigOpts, name: str) -> bool:
    """Whether a file or the environment sets an option of a section, even if its options are not registered."""
    return any(section == name for _, section, _ in spelling.written_options(conf))
