"""Findings of the doctor in a configuration, each planted in files (docs: doctor)."""

from __future__ import annotations

import importlib
import os
import sys

import pytest
from oslo_config import cfg

from placement import conf as options
from placement import deploy, package
from placement.checks.check import Subject
from placement.checks.finding import Severity
from placement.extensions.doctor import checks
from placement.extensions.doctor.examination import examine
from tests import children
from tests.db.extensions.doctor.findings import plants

SECRET = "[placement_database]\nconnection = mysql+pymysql://placement:secret@db/placement\n"
OPEN = "[placement_database]\nconnection = sqlite://\n"
NOAUTH = "[api]\nauth_strategy = noauth2\n"


@pytest.fixture
def configure(tmp_path):
    """Return a function that writes a configuration file and returns the configuration that the service reads."""

    def write(text, mode=0o600, name="placement.conf"):
        path = tmp_path / name
        path.write_text(text)
        path.chmod(mode)
        conf = cfg.ConfigOpts()
        options.register(conf)
        conf(["--config-file", str(path)], project=options.PROJECT, default_config_dirs=[])
        return conf

    return write


def result_of(name, conf):
    """Return the result of a check."""
    (result,) = examine(Subject(conf, None, deploy.list_rules()), checks.CHECKS, [name]).results
    return result


def findings(name, conf):
    return list(result_of(name, conf).findings)


CONFIGURATION = [check.name for check in checks.CHECKS if check.about == checks.CONFIGURATION]


@pytest.mark.parametrize("name", CONFIGURATION)
def test_a_correct_configuration_has_no_finding(configure, name):
    assert findings(name, configure(SECRET + NOAUTH)) == []


@plants("options", Severity.WARNING)
def test_unknown_options_are_found(configure):
    [finding] = findings("options", configure(OPEN + "[placement]\nmax_request_group = 7\n[api]\nnonsense = 1\n"))
    assert finding.severity is Severity.WARNING
    first, second = finding.where
    assert first.endswith("unknown option [placement]max_request_group; did you mean max_request_groups?")
    assert second.endswith("unknown option [api]nonsense")


@pytest.mark.parametrize(
    ("text", "severity", "words"),
    [
        ('"placement:traits:lst": "role:admin"', Severity.WARNING, 'did you mean "placement:traits:list"?'),
        ('"placement:traits:list": ""', Severity.WARNING, "allows every caller"),
        ('"placement:traits:list": "role:admin and or role:reader"', Severity.ERROR, "refuse every caller"),
        ("- a\n- b\n", Severity.ERROR, "must map names to rules"),
        ("a: [", Severity.ERROR, "is not valid YAML"),
    ],
)
@plants("policy", Severity.WARNING, Severity.ERROR)
def test_mistakes_in_the_policy_are_found(configure, tmp_path, text, severity, words):
    (tmp_path / "policy.yaml").write_text(text)
    [finding] = findings("policy", configure(OPEN + f"[oslo_policy]\npolicy_file = {tmp_path}/policy.yaml\n"))
    assert finding.severity is severity
    assert words in finding.where[0]


@plants("policy_format", Severity.ERROR)
def test_a_policy_in_json_is_found(configure, tmp_path):
    (tmp_path / "policy.yaml").write_text('{"placement:traits:list": "role:admin"}')
    conf = configure(OPEN + f"[oslo_policy]\npolicy_file = {tmp_path}/policy.yaml\n")
    assert findings("policy", conf) == []
    [finding] = findings("policy_format", conf)
    assert (finding.severity, finding.where) == (Severity.ERROR, (f"{tmp_path}/policy.yaml",))


@plants("keystone", Severity.WARNING)
def test_an_identity_service_that_does_not_answer_is_found(configure):
    port = children.free_port()
    authtoken = (
        f"[keystone_authtoken]\nauth_type = password\nauth_url = http://127.0.0.1:{port}\nusername = placement\n"
    )
    [finding] = findings("keystone", configure(OPEN + "[api]\nauth_strategy = keystone\n" + authtoken))
    assert finding.severity is Severity.WARNING, "the problem may be temporary"
    assert "The Identity service does not respond." in finding.what


@pytest.mark.parametrize("mistake", ["auth_url = http://[::1\n", "cafile = /nonexistent/ca.pem\n"])
@plants("keystone", Severity.ERROR)
def test_a_login_that_cannot_be_attempted_is_found(configure, mistake):
    authtoken = "[keystone_authtoken]\nauth_type = password\nusername = placement\npassword = hidden\n"
    if "auth_url" not in mistake:
        authtoken += "auth_url = https://127.0.0.1:9/v3\n"
    [finding] = findings("keystone", configure(OPEN + "[api]\nauth_strategy = keystone\n" + authtoken + mistake))
    assert finding.severity is Severity.ERROR
    assert "cannot be queried" in finding.what
    assert "hidden" not in finding.what


def test_the_identity_service_is_contacted_only_if_it_is_used(configure):
    assert result_of("keystone", configure(OPEN + NOAUTH)).not_made == "[api]auth_strategy is not keystone."


def test_an_unconfigured_service_needs_no_middleware(configure, monkeypatch):
    """Only the database is configured, in the environment, as by ``make serve``."""
    monkeypatch.setitem(sys.modules, "placement.middleware.keystone_check", None)
    subject = configure(OPEN + "[api]\nauth_strategy = keystone\n")
    assert "[keystone_authtoken] is not configured" in result_of("keystone", subject).not_made
    [finding] = findings("keystone", configure(OPEN + "[keystone_authtoken]\nauth_type = password\n"))
    assert finding.fix == package.install_command("keystone")


class TestMetrics:
    def test_a_directory_that_can_be_created_causes_no_finding(self, configure, tmp_path):
        directory = tmp_path / "run" / "metrics"
        assert findings("metrics_directory", configure(OPEN + f"[metrics]\ndirectory = {directory}\n")) == []
        assert not directory.exists(), "the doctor does not create it: it would belong to another user"
        directory.mkdir(parents=True)
        assert findings("metrics_directory", configure(OPEN + f"[metrics]\ndirectory = {directory}\n")) == []

    @plants("metrics_directory", Severity.ERROR)
    def test_a_file_in_place_of_the_directory_is_found(self, configure, tmp_path):
        (tmp_path / "metrics").write_text("")
        [finding] = findings("metrics_directory", configure(OPEN + f"[metrics]\ndirectory = {tmp_path}/metrics\n"))
        assert (finding.severity, finding.where) == (Severity.ERROR, (f"{tmp_path}/metrics",))
        [finding] = findings(
            "metrics_directory", configure(OPEN + f"[metrics]\ndirectory = {tmp_path}/metrics/below\n")
        )
        assert finding.what == "The metrics directory does not exist and cannot be created."

    @pytest.mark.parametrize("below", ["", "/below"])
    def test_an_unwritable_directory_is_found(self, configure, tmp_path_factory, below):
        importlib.import_module("prometheus_client")  # the other user may be unable to read it
        directory = tmp_path_factory.mktemp("metrics")
        directory.chmod(0o555)
        above = [parent for parent in directory.parents if parent.is_relative_to(tmp_path_factory.getbasetemp().parent)]
        modes = {parent: parent.stat().st_mode for parent in above}
        conf = configure(OPEN + f"[metrics]\ndirectory = {directory}{below}\n")
        for parent in above:
            parent.chmod(0o755)
        is_root = os.geteuid() == 0  # root may write everywhere
        try:
            if is_root:
                os.seteuid(65534)
            [finding] = findings("metrics_directory", conf)
        finally:
            if is_root:
                os.seteuid(0)
            for parent, mode in modes.items():
                parent.chmod(mode)
        assert (finding.severity, finding.where) == (Severity.ERROR, (f"{directory}{below}",))

    @plants("metrics_directory", Severity.WARNING)
    def test_a_directory_that_every_user_may_change_is_found(self, configure, tmp_path):
        (tmp_path / "metrics").mkdir()
        (tmp_path / "metrics").chmod(0o777)
        [finding] = findings("metrics_directory", configure(OPEN + f"[metrics]\ndirectory = {tmp_path}/metrics\n"))
        assert (finding.severity, finding.fix) == (Severity.WARNING, f"chmod o-w {tmp_path}/metrics")


@pytest.mark.parametrize(
    "text",
    [
        SECRET,
        OPEN + "slave_connection = mysql://placement:secret@db/placement\n",
        OPEN + "connection_parameters = password=secret\n",
        OPEN.replace("sqlite://", "postgresql://db/placement?password=secret"),
        OPEN + "[keystone_authtoken]\npassword = secret\n",
        OPEN + "[keystone_authtoken]\nmemcache_secret_key = secret\n",
        OPEN + "[somewhere]\napplication_credential_secret = secret\n",
    ],
)
@plants("secrets", Severity.ERROR)
def test_secrets_that_other_users_may_read_are_found(configure, tmp_path, text):
    assert findings("secrets", configure(text, 0o640)) == [], "the group may be the service's"
    [finding] = findings("secrets", configure(text, 0o644))
    path = f"{tmp_path}/placement.conf"
    assert (finding.severity, finding.where, finding.fix) == (Severity.ERROR, (path,), f"chmod o-rwx {path}")
    assert "secret" not in finding.what


@pytest.mark.parametrize("text", [OPEN, OPEN.replace("sqlite://", "postgresql://placement@db/placement")])
def test_a_file_without_secrets_may_be_read(configure, text):
    assert findings("secrets", configure(text + "[keystone_authtoken]\nusername = placement\n", 0o644)) == []


def test_the_password_file_is_a_secret(configure, tmp_path):
    users = tmp_path / "htpasswd"
    users.write_text("admin:$2b$04$x\n")
    users.chmod(0o604)
    strategy = "[api]\nauth_strategy = {}\n[oslo_middleware]\nhttp_basic_auth_user_file = " + str(users) + "\n"
    [finding] = findings("secrets", configure(OPEN + strategy.format("http_basic")))
    assert finding.where == (str(users),)
    assert findings("secrets", configure(OPEN + strategy.format("noauth2"))) == []


def test_files_that_other_users_may_change_are_found(configure, tmp_path):
    [finding] = findings("secrets", configure(OPEN, 0o602))
    assert finding.where == (f"{tmp_path}/placement.conf",)
    policy = tmp_path / "policy.yaml"
    policy.write_text('"placement:traits:list": "role:admin"\n')
    policy.chmod(0o646)
    [finding] = findings("secrets", configure(OPEN + f"[oslo_policy]\npolicy_file = {policy}\n"))
    assert finding.where == (str(policy),)
