"""The extensions that a configuration enables, without any parts of the disabled ones."""

from __future__ import annotations

import tempfile
from importlib import metadata
from pathlib import Path

import pytest
from oslo_config import cfg

from placement import conf as options
from placement import extension
from placement.extension import Extension

WORD = [cfg.StrOpt("word", default="hello"), cfg.BoolOpt("enabled", default=False)]
NOUN = [cfg.StrOpt("noun", default="world")]


@pytest.fixture
def extensions(monkeypatch):
    """Replace the installed extensions with two; the second requires the first."""
    replacements = {
        "first": Extension(
            name="first", options={"first": WORD, "placement": NOUN}, cors={"expose_headers": ["X-First"]}
        ),
        "second": Extension(name="second", requires=("first",)),
    }
    monkeypatch.setattr(extension, "installed_extensions", lambda: replacements)
    return replacements


@pytest.fixture
def read_configuration(extensions, tmp_path):
    """Return a function that reads the configuration of one or several files, in order."""

    def read(*texts):
        arguments = []
        for number, text in enumerate(texts):
            directory = Path(tempfile.mkdtemp(suffix=".d", dir=tmp_path))
            (directory / "placement.conf").write_text(text)
            # In oslo.config a single file overrides a directory named before it.
            file = ["--config-file", str(directory / "placement.conf")]
            arguments += file if number else ["--config-dir", str(directory)]
        conf = cfg.ConfigOpts()
        options.register(conf)
        conf.set_default("connection", "sqlite://", group="placement_database")
        options.read(conf, arguments)
        return conf

    return read


def names(conf):
    return [enabled_extension.name for enabled_extension in extension.enabled(conf)]


def test_without_a_list_all_installed_extensions_are_enabled(read_configuration):
    conf = read_configuration("[first]\nword = hi\n")
    assert names(conf) == ["first", "second"]
    assert (conf.first.word, conf.placement.noun) == ("hi", "world")


@pytest.mark.parametrize("enabled", ["", "enabled ="])
def test_an_empty_list_enables_no_extension(read_configuration, enabled):
    conf = read_configuration(f"[extensions]\n{enabled}\n")
    assert names(conf) == ([] if enabled else ["first", "second"])


def test_options_of_a_disabled_extension_do_not_exist(read_configuration):
    conf = read_configuration("[extensions]\nenabled =\n[first]\nword = hi\n")
    assert "first" not in conf or "word" not in conf.first
    assert "noun" not in conf.placement
    assert conf.placement_database.connection == "sqlite://", "options set by code are kept"
    assert [str(option) for option in options.find_unknown(conf)] == []


def test_browsers_may_use_the_headers_of_enabled_extensions(read_configuration):
    assert [read_configuration(text).cors.expose_headers[-1] for text in ("", "[extensions]\nenabled =\n")] == [
        "X-First",
        "OpenStack-API-Version",
    ]


def test_the_last_configuration_file_determines_the_enabled_extensions(read_configuration):
    conf = read_configuration("[extensions]\nenabled =\n", "[extensions]\nenabled = first\n")
    assert names(conf) == ["first"]
    assert conf.first.word == "hello"


@pytest.mark.parametrize(
    ("enabled", "reason"),
    [("first,third", "not installed: third; installed: first, second"), ("second", "second needs first")],
)
def test_an_invalid_list_of_extensions_is_refused(read_configuration, enabled, reason):
    with pytest.raises(cfg.Error, match=reason):
        read_configuration(f"[extensions]\nenabled = {enabled}\n")


def test_an_api_with_an_enabling_option_is_served_only_if_it_is_true(read_configuration):
    conf = read_configuration("")
    silent = Extension(name="first", options={"first": WORD}, api=object)
    assert not silent.is_served(conf)
    conf.set_override("enabled", True, group="first")
    assert silent.is_served(conf)
    assert Extension(name="other", api=object).is_served(conf)
    assert not Extension(name="other").is_served(conf)


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("no_such_module:X", r"The extension wrong \(no_such_module:X\) cannot be loaded: .*no_such_module"),
        ("placement.routes:PLACEMENT", "is named placement, but its entry point wrong"),
    ],
)
def test_an_extension_that_cannot_be_loaded_is_named(monkeypatch, value, reason):
    entry_point = metadata.EntryPoint("wrong", value, extension.ENTRY_POINTS)
    monkeypatch.setattr(metadata, "entry_points", lambda **_: [entry_point])
    with pytest.raises(cfg.Error, match=reason):
        extension.installed_extensions.__wrapped__()
