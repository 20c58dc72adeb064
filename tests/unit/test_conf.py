from __future__ import annotations

import pytest
from oslo_config import cfg

from placement import conf as options


@pytest.fixture
def directory(tmp_path, monkeypatch):
    """A configuration directory that the environment names."""
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


def test_the_environment_goes_before_the_file(directory, monkeypatch):
    write(directory, DATABASE)
    monkeypatch.setenv("OS_PLACEMENT_DATABASE__CONNECTION", "mysql://h/d")
    assert options.load().placement_database.connection == "mysql://h/d"


def test_defaults(directory):
    write(directory, DATABASE)
    conf = options.load()
    assert conf.api.auth_strategy == "keystone"
    assert conf.placement.incomplete_consumer_project_id == "00000000-0000-0000-0000-000000000000"
    assert conf.placement.incomplete_consumer_user_id == "00000000-0000-0000-0000-000000000000"
    assert conf.placement.allocation_conflict_retry_count == 10
    assert conf.placement.index_verify_interval == 600
    assert conf.placement.randomize_allocation_candidates is False
    database = conf.placement_database
    assert (database.connection_parameters, database.sqlite_synchronous) == ("", True)
    assert (database.mysql_sql_mode, database.connection_recycle_time) == ("TRADITIONAL", 3600)
    assert (database.max_pool_size, database.max_overflow, database.pool_timeout) == (None, None, None)
    assert (database.max_retries, database.retry_interval, database.connection_debug) == (10, 10, 0)
    assert database.sync_on_startup is False
    assert conf.log_options is True
    assert conf.oslo_policy.enforce_new_defaults is True
    assert conf.oslo_middleware.enable_proxy_headers_parsing is False
    assert conf.cors.allowed_origin is None
    assert conf.cors.allow_methods == ["GET", "PUT", "POST", "DELETE", "PATCH"]
    assert "OpenStack-API-Version" in conf.cors.allow_headers
    assert "OpenStack-API-Version" in conf.cors.expose_headers


def test_auth_strategy_is_also_read_where_it_was_of_old(directory):
    write(directory, "[DEFAULT]\nauth_strategy = noauth2\n" + DATABASE)
    assert options.load().api.auth_strategy == "noauth2"


def test_without_a_database_there_is_no_start(directory):
    write(directory, "")
    with pytest.raises(cfg.RequiredOptError, match=r"connection in group \[placement_database\]"):
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
    listed = dict(options.list_opts())
    assert set(listed) == {None, "api", "placement", "placement_database", "workarounds"}
    assert all(option.help for group in listed.values() for option in group)
    conf = cfg.ConfigOpts()
    options.register(conf)
    for group, opts in listed.items():
        for option in opts:
            assert option.name in (conf if group is None else conf[group])


def test_what_the_generator_does_to_an_option_is_not_done_to_ours():
    before = {group: [option.default for option in listed] for group, listed in options.list_opts()}
    for _, listed in options.list_opts():
        for option in listed:
            option.default = "spoiled"
    assert {group: [option.default for option in listed] for group, listed in options.list_opts()} == before
