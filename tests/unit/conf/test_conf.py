"""Configuration files, environment variables, defaults, and the reports of invalid and unknown options."""

from __future__ import annotations

import os
import pathlib
import re
import subprocess
import sys

import pytest
from oslo_config import cfg

from placement import conf as options
from placement import extension, package
from tests.clock import PATIENCE


@pytest.fixture
def directory(tmp_path, monkeypatch):
    """Return a configuration directory, which the environment variable names."""
    monkeypatch.setenv(options.CONFIG_DIR_VARIABLE, str(tmp_path))
    return tmp_path


def write(directory, text):
    (directory / "placement.conf").write_text(text)


DATABASE = "[placement_database]\nconnection = sqlite://\n"


def test_the_file_in_the_named_directory_is_read(directory):
    write(directory, DATABASE + "[placement]\nallocation_conflict_retry_count = 3\n")
    conf = options.load()
    assert conf.placement_database.connection == "sqlite://"
    assert conf.placement.allocation_conflict_retry_count == 3


def test_the_environment_overrides_the_file(directory, monkeypatch):
    write(directory, DATABASE)
    monkeypatch.setenv("OS_PLACEMENT_DATABASE__CONNECTION", "mysql://h/d")
    assert options.load().placement_database.connection == "mysql://h/d"


def test_unset_options_have_their_defaults(directory):
    write(directory, DATABASE)
    conf = options.load()
    assert conf.api.auth_strategy == "keystone"
    assert conf.placement.incomplete_consumer_project_id == "00000000-0000-0000-0000-000000000000"
    assert conf.placement.incomplete_consumer_user_id == "00000000-0000-0000-0000-000000000000"
    assert conf.placement.allocation_conflict_retry_count == 10
    assert (conf.placement.index_verify_interval, conf.placement.lease_sweep_interval) == (600, 5)
    assert conf.placement.randomize_allocation_candidates is False
    database = conf.placement_database
    assert (database.connection_parameters, database.sqlite_synchronous) == ("", True)
    assert (database.mysql_sql_mode, database.connection_recycle_time) == ("TRADITIONAL", 3600)
    assert (database.max_pool_size, database.max_overflow, database.pool_timeout) == (None, None, None)
    assert (database.max_retries, database.retry_interval, database.connection_debug) == (10, 10, 0)
    assert (database.mysql_wsrep_sync_wait, database.sync_on_startup) == (7, False)
    assert (database.slave_connection, database.connection_trace) == (None, False)
    assert conf.log_options is True
    assert conf.tempdir is None
    assert conf.state_path == conf.pybasedir == str(pathlib.Path(options.__file__).parents[2])
    assert conf.api.http_basic_roles == ["admin", "service"]
    assert conf.oslo_middleware.http_basic_auth_user_file == "/etc/placement/htpasswd"
    assert (conf.api.max_request_body_size, conf.api.max_query_length) == (2**24, 28 * 2**10)
    assert (conf.placement.max_request_groups, conf.placement.max_allocations_per_request) == (256, 20000)
    assert conf.healthcheck.backends == []
    assert conf.oslo_policy.enforce_new_defaults is True
    assert conf.oslo_middleware.enable_proxy_headers_parsing is False
    assert conf.cors.allowed_origin is None
    assert conf.cors.allow_methods == ["GET", "PUT", "POST", "DELETE", "PATCH"]
    assert "OpenStack-API-Version" in conf.cors.allow_headers
    assert "OpenStack-API-Version" in conf.cors.expose_headers


def test_files_in_the_conf_d_directory_override_the_file_and_the_last_one_wins(directory, monkeypatch):
    write(directory, DATABASE + "[placement]\nallocation_conflict_retry_count = 3\nmax_allocation_candidates = 3\n")
    (directory / "placement.conf.d").mkdir()
    (directory / "placement.conf.d" / "10-a.conf").write_text("[placement]\nmax_allocation_candidates = 4\n")
    (directory / "placement.conf.d" / "20-b.conf").write_text("[placement]\nmax_allocation_candidates = 5\n")
    (directory / "placement.conf.d" / "30-c.other").write_text("[placement]\nmax_allocation_candidates = 6\n")
    conf = options.load()
    assert (conf.placement.allocation_conflict_retry_count, conf.placement.max_allocation_candidates) == (3, 5)
    monkeypatch.setenv("OS_PLACEMENT__MAX_ALLOCATION_CANDIDATES", "7")
    assert options.load().placement.max_allocation_candidates == 7


def test_without_a_named_directory_the_default_directories_are_read(tmp_path, monkeypatch):
    monkeypatch.delenv(options.CONFIG_DIR_VARIABLE, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".placement" / "placement.conf.d").mkdir(parents=True)
    write(tmp_path / ".placement", DATABASE)
    (tmp_path / ".placement" / "placement.conf.d" / "x.conf").write_text("[api]\nauth_strategy = noauth2\n")
    conf = options.load()
    assert (conf.placement_database.connection, conf.api.auth_strategy) == ("sqlite://", "noauth2")


def test_a_configuration_of_real_deployments_is_read_as_intended(directory):
    """The file has the keys of real deployments, including keys that this service does not define."""
    write(directory, (pathlib.Path(__file__).parent.parent / "deployed.conf").read_text())
    conf = options.load()
    assert (conf.debug, conf.log_file, conf.max_logfile_count) == (True, "/var/log/placement/placement-api.log", 7)
    assert conf.state_path == "/var/lib/placement"
    assert conf.api.auth_strategy == "keystone"
    assert conf.placement.max_allocation_candidates == -1
    assert conf.placement.allocation_candidates_generation_strategy == "depth-first"
    assert conf.placement.randomize_allocation_candidates is True
    assert conf.placement.allocation_conflict_retry_count == 4
    assert conf.placement.incomplete_consumer_user_id == "22222222-2222-2222-2222-222222222222"
    assert conf.workarounds.optimize_for_wide_provider_trees is True
    database = conf.placement_database
    assert database.connection.endswith("/placement?charset=utf8&ssl_ca=/etc/ssl/ca.pem&ssl_verify_cert=true")
    assert (database.connection_recycle_time, database.max_pool_size, database.max_overflow) == (10, 1, 50)
    assert (database.max_retries, database.retry_interval, database.pool_timeout) == (-1, 5, 20)
    assert (database.sqlite_synchronous, database.mysql_sql_mode) == (False, "STRICT_ALL_TABLES")
    assert database.mysql_wsrep_sync_wait == 1
    assert (database.connection_debug, database.connection_trace) == (50, True)
    assert conf.oslo_policy.enforce_new_defaults is False
    assert (conf.oslo_policy.policy_file, conf.oslo_policy.policy_dirs) == ("/etc/placement/policy.yaml", ["rules.d"])
    assert conf.oslo_middleware.enable_proxy_headers_parsing is True
    assert (conf.cors.allowed_origin, conf.cors.max_age) == (["https://a.example", "https://b.example"], 60)


@pytest.mark.parametrize(
    "text",
    [
        "[api]\nauth_strategy = nonsense\n",
        "[api]\nmax_request_body_size = 0\n",
        "[api]\nmax_query_length = 0\n",
        "[placement]\nmax_request_groups = 501\n",
        "[placement]\nmax_allocations_per_request = 0\n",
        "[placement]\nlease_sweep_interval = -1\n",
        "[placement_database]\nconnection_debug = 101\n",
    ],
)
def test_an_invalid_value_is_rejected_at_start(directory, text):
    write(directory, DATABASE + text)
    with pytest.raises(cfg.Error, match=text.split("\n")[1].split()[0]):
        options.load()


def test_auth_strategy_is_also_read_from_the_default_section(directory):
    write(directory, "[DEFAULT]\nauth_strategy = noauth2\n" + DATABASE)
    assert options.load().api.auth_strategy == "noauth2"


def test_a_missing_database_connection_is_an_error(directory):
    write(directory, "")
    with pytest.raises(cfg.Error, match=r"connection in group \[placement_database\]"):
        options.load()


def test_a_named_directory_without_a_file_is_an_error(directory, monkeypatch):
    monkeypatch.setenv("OS_PLACEMENT_DATABASE__CONNECTION", "sqlite://")
    with pytest.raises(cfg.ConfigFilesNotFoundError, match=r"placement\.conf"):
        options.load()


def test_two_configurations_in_one_process_do_not_mix(directory):
    write(directory, DATABASE + "[api]\nauth_strategy = noauth2\n[cors]\nallow_methods = GET\n")
    first = options.load()
    write(directory, DATABASE)
    second = options.load()
    assert first.api.auth_strategy == "noauth2"
    assert second.api.auth_strategy == "keystone"
    assert first.cors.allow_methods == ["GET"]
    assert second.cors.allow_methods == ["GET", "PUT", "POST", "DELETE", "PATCH"]


def test_every_option_is_listed_and_explained():
    groups = dict(options.list_opts())
    assert set(groups) == {
        None,
        "api",
        "extensions",
        "metrics",
        "placement",
        "placement_database",
        "workarounds",
        *(group for group, _ in extension.options_of(extension.installed_extensions().values())),
    }
    assert all(option.help for group in groups.values() for option in group)
    conf = cfg.ConfigOpts()
    options.register(conf)
    for group, opts in groups.items():
        for option in opts:
            assert option.name in (conf if group is None else conf[group])


def test_changes_of_listed_options_do_not_affect_the_service():
    before = {group: [option.default for option in group_options] for group, group_options in options.list_opts()}
    for _, group_options in options.list_opts():
        for option in group_options:
            option.default = "changed"
    assert {
        group: [option.default for option in group_options] for group, group_options in options.list_opts()
    } == before


# --- configuration errors, in one line ---


@pytest.fixture
def error_line(directory, capsys):
    """Return a function that loads an invalid configuration file and returns the message of the error."""

    def load(text):
        (directory / "placement.conf").write_bytes(text if isinstance(text, bytes) else text.encode())
        with pytest.raises(cfg.Error) as error:
            options.load()
        line = str(error.value)
        assert "LocationInfo" not in line
        assert capsys.readouterr().err == ""
        return " ".join(line.split())

    return load


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("[api]\nauth_strategy = nonsense\n", "[api]auth_strategy: Valid values are [keystone, http_basic, noauth2]"),
        ("[placement]\nmax_request_groups = many\n", "[placement]max_request_groups: invalid literal"),
        ("[DEFAULT]\ndebug = perhaps\n", "[DEFAULT]debug: Invalid Boolean value: perhaps"),
        ("[DEFAULT]\ndebug =\n", "[DEFAULT]debug: Invalid Boolean value: ''"),
        ("[metrics]\ndirectory = $nowhere\n", "[metrics]directory: no such option nowhere"),
        ("[DEFAULT]\nnonsense\n", "placement.conf"),
    ],
)
def test_an_invalid_value_is_reported_with_its_option_and_its_file(error_line, directory, text, sentence):
    line = error_line(DATABASE + text)
    assert sentence in line
    if text.startswith(("[api]", "[placement]")):
        assert line.endswith(f"(in {directory}/placement.conf)")


def test_a_file_that_is_not_utf_8_is_named(error_line, directory):
    assert (
        error_line(DATABASE.encode() + b"# \xe9\n")
        == f"{directory}/placement.conf is not UTF-8: invalid continuation byte"
    )
    (directory / "placement.conf.d").mkdir()
    (directory / "placement.conf.d" / "a.conf").write_bytes(b"\xff")
    assert error_line(DATABASE) == f"{directory}/placement.conf.d/a.conf is not UTF-8: invalid start byte"
    path = directory / "named"
    path.write_bytes(b"\xff")
    with pytest.raises(cfg.Error, match=r"named is not UTF-8"):
        options.load([f"--config-file={path}"])


def test_characters_outside_the_encoding_of_the_locale_are_reported_with_advice(directory):
    """A compiled uWSGI that is started without LANG has such a locale."""
    write(directory, DATABASE + "# \u00e9\n")
    environment = os.environ | {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}
    words = [sys.executable, "-c", "from placement import conf; conf.load()"]
    result = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=PATIENCE)
    assert result.stderr.splitlines()[-1] == (
        "oslo_config.cfg.Error: The configuration contains characters outside the locale's encoding, ascii: "
        "set LANG=C.UTF-8"
    )


def test_a_file_that_is_a_directory_is_named(directory):
    (directory / "placement.conf").mkdir()
    with pytest.raises(cfg.Error, match=r"placement\.conf cannot be read: Is a directory"):
        options.load()


def test_the_error_for_a_missing_connection_names_the_places_searched(error_line, directory, tmp_path, monkeypatch):
    assert error_line("").endswith(f"set it in {directory}/placement.conf or in $OS_PLACEMENT_DATABASE__CONNECTION")
    monkeypatch.delenv(options.CONFIG_DIR_VARIABLE)
    monkeypatch.setenv("HOME", str(tmp_path / "empty"))
    with pytest.raises(cfg.Error, match=r"no configuration file was found in .*/etc/placement"):
        options.load()


def test_the_finding_names_the_extra_that_installs_the_driver():
    for module, extra in (("MySQLdb", "mysqlclient"), ("pymysql", "mysql"), ("psycopg2", "postgresql")):
        line = options.connection_finding(ModuleNotFoundError(f"No module named '{module}'", name=module))
        assert package.install_command(extra) in line
    assert "extra" not in options.connection_finding(ModuleNotFoundError("No module named 'x'", name="x"))


# --- unknown options ---


def unknown_options(directory, text):
    write(directory, DATABASE + text)
    return [
        str(option).removeprefix(f"{directory}/placement.conf: ") for option in options.find_unknown(options.load())
    ]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (
            "[placement]\nmax_alocation_candidates = 5\n",
            "unknown option [placement]max_alocation_candidates; did you mean max_allocation_candidates?",
        ),
        ("[api]\nnonsense = 5\n", "unknown option [api]nonsense"),
        (
            "[api]\nhttp_basic_auth_user_file = /f\n",
            "unknown option [api]http_basic_auth_user_file; did you mean [oslo_middleware]http_basic_auth_user_file?",
        ),
        ("[DEFAULT]\nlogfiles = 5\n", "unknown option [DEFAULT]logfiles; did you mean log_file?"),
        ("[placementt]\nx = 5\n", "unknown section [placementt]; did you mean [placement]?"),
        ("[placementt]\n", "unknown section [placementt]; did you mean [placement]?"),
        ("[default]\ndebug = true\n", "unknown section [default]; did you mean [DEFAULT]?"),
        ("[oslo_polic]\nx = 5\n", "unknown section [oslo_polic]; did you mean [oslo_policy]?"),
        (
            "[placement]\nmax-request-groups = 5\n",
            "unknown option [placement]max-request-groups; did you mean max_request_groups?",
        ),
        (
            "[oslo_policy]\npolicy_fil = 5\n",
            "unknown option [oslo_policy]policy_fil; did you mean policy_file?",
        ),
    ],
)
def test_an_unknown_option_is_reported_with_the_nearest_name(directory, text, line):
    assert unknown_options(directory, text) == [line]


@pytest.mark.parametrize(
    "section", ["keystone_authtoken", "oslo_concurrency", "cache", "DEFAULT", "cors", "oslo_policy"]
)
def test_unknown_options_in_sections_of_libraries_are_not_reported(directory, section):
    assert unknown_options(directory, f"[{section}]\ntransport_url = 5\nlock_path = 5\n") == []


@pytest.mark.parametrize(
    "text", ["[api]\n", "[PLACEMENT]\nmax_request_groups = 5\n", "[DEFAULT]\nlog_level = 5\nlogdir = x\n"]
)
def test_sections_in_other_case_and_unlike_names_are_not_reported(directory, text):
    assert unknown_options(directory, text) == []


def test_misspelt_options_are_reported_in_the_order_of_the_files_read(directory):
    (directory / "placement.conf.d").mkdir()
    for name in ("e.conf", "b.conf", "README", "d.conf", "a.conf", "c.conf"):
        (directory / "placement.conf.d" / name).write_text(f"[api]\n{name[0]} = 1\n")
    lines = unknown_options(directory, "[api]\nfirst = 1\n")
    assert [re.search(r"\](\w+)$", line)[1] for line in lines] == ["first", *"abcde"]


def test_a_configuration_of_real_deployments_has_no_misspelt_options(directory):
    assert unknown_options(directory, (pathlib.Path(__file__).parent.parent / "deployed.conf").read_text()) == []


def test_a_misspelt_environment_variable_is_reported(directory, monkeypatch):
    monkeypatch.setenv("OS_PLACEMENT_DATABASE__CONNECTIO", "sqlite://")
    monkeypatch.setenv("OS_AUTH__URL", "of a client")
    assert unknown_options(directory, "") == [
        "$OS_PLACEMENT_DATABASE__CONNECTIO: unknown option [placement_database]connectio; did you mean connection?"
    ]
    monkeypatch.delenv("OS_PLACEMENT_DATABASE__CONNECTIO")
    monkeypatch.setenv("OS_PLACEMENT_DATABSE__CONNECTION", "sqlite://")
    monkeypatch.setenv("OS_DEFAULT__DEBUG", "true")
    assert unknown_options(directory, "") == [
        "$OS_PLACEMENT_DATABSE__CONNECTION: unknown section [placement_databse]; did you mean [placement_database]?"
    ]
