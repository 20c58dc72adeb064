"""Policy rules, with both sets of defaults and with policy files (docs: policy)."""

from __future__ import annotations

import json
import re
import threading

import pytest
from oslo_config import cfg
from oslo_context.context import RequestContext
from oslo_policy import generator
from oslo_policy import policy as oslo_policy

from placement import conf as options
from placement import deploy, errors
from placement import policy as ours
from placement.policy import Policy
from placement.policy.rules import RULES
from tests import web

RESHAPE = "placement:reshaper:reshape"
USAGES = "placement:usages"
OPERATIONS = [rule.name for rule in RULES if rule.name.startswith("placement:")]
ORDINARY = [name for name in OPERATIONS if name not in (RESHAPE, USAGES)]


def caller(*roles, project_id="p", **attributes):
    return RequestContext(user_id="u", project_id=project_id, roles=list(roles), overwrite=False, **attributes)


def allows(policy, rule, context, target=None):
    try:
        policy.authorize(rule, context, target)
    except errors.Forbidden:
        return False
    return True


def policy_of(tmp_path, text, **overrides):
    path = tmp_path / "policy.yaml"
    path.write_text(text)
    return Policy(web.configuration(oslo_policy__policy_file=str(path), **overrides), RULES)


@pytest.fixture(scope="module")
def secure():
    return Policy(web.configuration(), RULES)


@pytest.fixture(scope="module")
def legacy():
    return Policy(web.configuration(oslo_policy__enforce_new_defaults=False), RULES)


@pytest.fixture(scope="module", params=["secure", "legacy"])
def either(request):
    return request.getfixturevalue(request.param)


@pytest.mark.parametrize("rule", ORDINARY)
def test_ordinary_operations_are_allowed_to_admin_and_service(either, rule):
    assert allows(either, rule, caller("admin"))
    assert allows(either, rule, caller("service"))
    assert not allows(either, rule, caller("reader", "member"))
    assert not allows(either, rule, caller())


@pytest.mark.parametrize("rule", OPERATIONS)
@pytest.mark.parametrize("scope", [{"system_scope": "all"}, {"domain_id": "d"}])
def test_a_token_without_a_project_is_refused_every_operation(either, rule, scope):
    with pytest.raises(errors.WrongScope) as raised:
        either.authorize(rule, caller("admin", "service", project_id=None, **scope))
    assert str(raised.value) == rule


def test_only_services_may_reshape_and_admins_by_the_legacy_defaults(secure, legacy):
    assert allows(secure, RESHAPE, caller("service"))
    assert allows(legacy, RESHAPE, caller("service"))
    assert not allows(secure, RESHAPE, caller("admin"))
    assert allows(legacy, RESHAPE, caller("admin"))
    assert not allows(legacy, RESHAPE, caller("reader"))


def test_a_reader_may_list_the_usages_of_its_own_project(either):
    assert allows(either, USAGES, caller("reader"), {"project_id": "p"})
    assert not allows(either, USAGES, caller("reader"), {"project_id": "q"})
    assert not allows(either, USAGES, caller("reader"), {"project_id": None})
    assert not allows(either, USAGES, caller("member"), {"project_id": "p"})
    assert allows(either, USAGES, caller("admin"), {"project_id": "q"})
    assert allows(either, USAGES, caller("service"), {"project_id": "q"})


def test_a_missing_target_is_not_a_project_named_none(either):
    """oslo.policy compares strings, and a missing value is the string "None"."""
    assert not allows(either, USAGES, caller("reader", project_id="None"), {"project_id": None})
    assert allows(either, USAGES, caller("reader", project_id="None"), {"project_id": "None"})


def test_a_caller_without_a_project_is_not_of_the_project_named_none(tmp_path):
    rule = "placement:v1:consumers:list"
    path = tmp_path / "policy.yaml"
    path.write_text(f'"{rule}": "role:reader and project_id:%(project_id)s"')
    rules = [oslo_policy.RuleDefault(rule, "role:admin")]
    policy = Policy(web.configuration(oslo_policy__policy_file=str(path)), rules)
    assert not allows(policy, rule, caller("reader", project_id=None), {"project_id": "None"})
    assert not allows(policy, rule, caller("reader", project_id=None))
    assert allows(policy, rule, caller("reader"), {"project_id": "p"})


def test_a_refusal_names_the_rule(secure):
    with pytest.raises(errors.PolicyForbids) as raised:
        secure.authorize(RESHAPE, caller("admin"))
    assert str(raised.value) == f"Policy does not allow {RESHAPE} to be performed."


def test_a_cached_verdict_is_for_one_caller_one_rule_and_one_target(secure):
    for _ in range(2):
        assert allows(secure, USAGES, caller("reader"), {"project_id": "p"})
        assert not allows(secure, USAGES, caller("reader", project_id="q"), {"project_id": "p"})
        assert not allows(secure, ORDINARY[0], caller("reader"), {"project_id": "p"})
        assert not allows(secure, USAGES, caller("reader"), {"project_id": "q"})


def test_a_policy_file_overrides_rules_by_name(tmp_path):
    policy = policy_of(tmp_path, f'"{RESHAPE}": "role:admin"\n"admin_or_service_api": "role:boss"\n')
    assert allows(policy, RESHAPE, caller("admin"))
    assert not allows(policy, RESHAPE, caller("service"))
    assert allows(policy, ORDINARY[0], caller("boss"))
    assert not allows(policy, ORDINARY[0], caller("admin"))


def test_a_changed_file_takes_effect_at_the_next_start(tmp_path):
    policy = policy_of(tmp_path, f'"{RESHAPE}": "role:boss"\n')
    later = policy_of(tmp_path, f'"{RESHAPE}": "role:admin"\n')
    assert allows(policy, RESHAPE, caller("boss"))
    assert not allows(policy, RESHAPE, caller("admin"))
    assert allows(later, RESHAPE, caller("admin"))


def test_verdicts_are_correct_when_the_cache_is_full(monkeypatch):
    monkeypatch.setattr(ours, "MAX_VERDICTS", 3)
    policy = Policy(web.configuration(), RULES)
    for _ in range(2):
        for number in range(5):
            assert allows(policy, ORDINARY[0], caller("admin", project_id=f"p{number}"))
            assert not allows(policy, ORDINARY[0], caller("reader", project_id=f"p{number}"))
    assert len(policy._verdicts) == 3


def test_a_verdict_with_a_long_key_is_not_cached():
    """Clients choose the roles and ids of some callers, so the length of a key is limited, too."""
    policy = Policy(web.configuration(), RULES)
    for _ in range(2):
        assert allows(policy, ORDINARY[0], caller("admin", project_id="p" * 3000))
    assert policy._verdicts == {}


def test_legacy_defaults_do_not_override_a_policy_file(tmp_path):
    policy = policy_of(tmp_path, '"service_api": "role:boss"\n', oslo_policy__enforce_new_defaults=False)
    assert allows(policy, RESHAPE, caller("boss"))
    assert not allows(policy, RESHAPE, caller("admin"))


def test_a_rule_may_refer_to_the_project_and_user_of_the_caller(tmp_path):
    policy = policy_of(tmp_path, '"placement:traits:list": "user_id:%(user_id)s and project_id:%(project_id)s"\n')
    assert allows(policy, "placement:traits:list", caller())


def test_two_policies_in_one_process_do_not_mix(secure, legacy):
    second_secure = Policy(web.configuration(), RULES)
    for _ in range(2):
        assert not allows(secure, RESHAPE, caller("admin"))
        assert allows(legacy, RESHAPE, caller("admin"))
        assert not allows(second_secure, RESHAPE, caller("admin"))


def test_concurrent_first_requests_see_all_rules():
    """Story 2005168: the first request loaded the rules, and the second saw half of them."""
    for _ in range(5):
        policy = Policy(web.configuration(), RULES)
        start = threading.Barrier(8)
        verdicts = []

        def first(policy=policy, start=start, verdicts=verdicts):
            start.wait()
            verdicts.append([allows(policy, rule, caller("admin")) for rule in reversed(ORDINARY)])

        threads = [threading.Thread(target=first) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert verdicts == [[True] * len(ORDINARY)] * 8


class AlternatingCheck(oslo_policy.Check):
    """A check that allows every second call."""

    calls = 0

    def __call__(self, *_):
        AlternatingCheck.calls += 1
        return AlternatingCheck.calls % 2 == 1


def test_the_verdict_of_a_custom_check_is_not_cached(tmp_path, monkeypatch):
    checks = oslo_policy._checks.registered_checks
    monkeypatch.setitem(checks, "alternating", AlternatingCheck)
    policy = policy_of(
        tmp_path, '"placement:traits:list": "alternating:x or (rule:nobody and role:b)"\n"nobody": "!"\n'
    )
    assert [allows(policy, "placement:traits:list", caller()) for _ in range(4)] == [True, False, True, False]


# --- invalid files ---


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("- role:admin\n", " must map names to rules, but is a list"),
        ("role:admin", " must map names to rules, but is a str"),
        ("x: [", " is not valid YAML: "),
        ("x: \0", " is not valid YAML: "),
        ("{[1]: x}", " is not valid YAML: "),
        pytest.param("[" * 5000, " is nested too deeply", id="deep"),
        (b"x: \xe9", " is not UTF-8: "),
        ("yes: role:admin", ": True is not the name of a rule"),
        ('"placement:usages":', ': the rule "placement:usages" is neither a string nor a list of strings'),
        ('"placement:usages": !', ': the rule "placement:usages" is neither'),
        ('"placement:usages": 5', ': the rule "placement:usages" is neither'),
        ('"placement:usages": {a: b}', ': the rule "placement:usages" is neither'),
        ('"placement:usages": [[[role:admin]]]', ': the rule "placement:usages" is neither'),
        ('"placement:usages": &x [*x]', ': the rule "placement:usages" is neither'),
        (None, " does not exist"),
    ],
)
@pytest.mark.parametrize("place", ["policy_file", "policy_dirs"])
def test_an_invalid_policy_file_prevents_the_start(tmp_path, place, text, sentence):
    path = tmp_path / "rules" / "policy.yaml"
    path.parent.mkdir()
    if text is not None:
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
    elif place == "policy_dirs":
        path, sentence = path.parent / "file", " is not a directory"
        path.touch()
    value = {"policy_file": path, "policy_dirs": path.parent if text else path}[place]
    configuration = tmp_path / "placement.conf"
    configuration.write_text(f"[oslo_policy]\n{place} = {value}\n")
    with pytest.raises(ValueError, match="^" + re.escape(f"{path}{sentence}")):
        Policy(web.configuration(config_files=[str(configuration)]), RULES)


def test_the_default_policy_file_may_be_missing(tmp_path):
    (tmp_path / "placement.conf").touch()
    assert allows(
        Policy(web.configuration(config_files=[str(tmp_path / "placement.conf")]), RULES), USAGES, caller("admin")
    )


def test_a_configured_policy_directory_that_does_not_exist_is_logged(tmp_path, caplog):
    (tmp_path / "placement.conf").write_text("[oslo_policy]\npolicy_dirs = nowhere.d\n")
    Policy(web.configuration(config_files=[str(tmp_path / "placement.conf")]), RULES)
    assert "[oslo_policy]policy_dirs: nowhere.d does not exist" in caplog.text


@pytest.mark.parametrize(
    "rule", ["role:a orr", "role:a or nonsense", "nonsense", "(role:a", "! or nonsense", ["role:a", "nonsense"]]
)
def test_a_rule_that_cannot_be_parsed_is_logged_with_its_file_and_allows_no_caller(tmp_path, caplog, rule):
    text = f'"{USAGES}": {json.dumps(rule)}\n"placement:traits:list": "! or role:b"\n'
    policy = policy_of(tmp_path, text)
    lines = [record.getMessage() for record in caplog.records if record.name == "placement.policy.files"]
    [line] = lines
    assert line.startswith(f'{tmp_path}/policy.yaml: the rule "{USAGES}" cannot be parsed')
    assert not [record for record in caplog.records if record.exc_info], "a traceback"
    assert line.endswith(f": {rule}")
    assert not allows(policy, USAGES, caller("admin", "b"))


@pytest.mark.parametrize("rule", ["!", "role:a or !", "not !", "role:wow!", '"!"', [["role:a", "!"]]])
def test_a_rule_that_can_be_parsed_is_not_logged(tmp_path, caplog, rule):
    policy_of(tmp_path, f'"{USAGES}": {json.dumps(rule)}\n')
    assert not [record for record in caplog.records if record.name == "placement.policy.files"]


@pytest.mark.parametrize("text", ['""', "[]"])
def test_an_empty_rule_is_logged(tmp_path, caplog, text):
    policy_of(tmp_path, f'"{USAGES}": {text}\n')
    assert f'the rule "{USAGES}" is empty and allows every caller' in caplog.text


def test_an_unknown_rule_is_logged(tmp_path, caplog):
    policy_of(tmp_path, '"placement:usage": "rule:mine"\n"mine": "role:mine"\n"yours": "role:yours"\n')
    lines = [record.getMessage().removeprefix(f"{tmp_path}/policy.yaml: ") for record in caplog.records]
    assert lines == [
        f'the service does not define the rule "placement:usage"; did you mean "{USAGES}"?',
        'the service does not define the rule "yours"',
    ]


def test_the_tools_get_all_rules():
    names = {rule.name for rule in deploy.list_rules()}
    assert {"admin_api", "service_api", "project_reader_api", RESHAPE, USAGES} <= names
    assert len(names) == len(deploy.list_rules())


def test_the_tools_get_an_enforcer(tmp_path, monkeypatch):
    (tmp_path / "placement.conf").write_text("[oslo_policy]\npolicy_file = other.yaml\n")
    (tmp_path / "other.yaml").write_text(f'"{USAGES}": "role:boss"\n')
    arguments = ["--namespace", "placement", "--output-file=x", f"--config-dir={tmp_path}"]
    monkeypatch.setattr(cfg, "CONF", cfg.ConfigOpts())
    monkeypatch.setattr("sys.argv", ["oslopolicy-policy-generator", *arguments])
    enforcer = deploy.get_enforcer()
    assert str(enforcer.rules[USAGES]) == "role:boss"
    assert set(OPERATIONS) <= set(enforcer.rules)


@pytest.mark.parametrize(("rule", "output"), [("role:boss", ""), ("role:a orr", "Failed to parse rule: role:a orr\n")])
def test_the_validator_reads_the_policy_file_next_to_the_configuration(rule, output, tmp_path, monkeypatch, capsys):
    """The validator opens the path in the option, and does not search for it as oslo.config does."""
    (tmp_path / "placement.conf").touch()
    (tmp_path / "policy.yaml").write_text(f'"{USAGES}": "{rule}"\n')
    monkeypatch.setenv(options.CONFIG_DIR_VARIABLE, str(tmp_path))
    monkeypatch.setattr(cfg, "CONF", cfg.ConfigOpts())
    monkeypatch.setattr("sys.argv", ["oslopolicy-validator", "--namespace", "placement"])
    monkeypatch.setattr(generator, "_get_enforcer", lambda _: deploy.get_enforcer())
    assert generator._validate_policy("placement") == bool(output)
    assert capsys.readouterr().out == output
