"""A log record is one line, whatever text it contains."""

from __future__ import annotations

import logging

import pytest

from placement.cmd import manage
from placement.log import OneLineRecord, plain


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("plain ☃", "plain ☃"),
        ("a\nb\r\tc", "a\\nb\\r\\tc"),
        ("\x1b[2J\x9b2J\x7f\0", "\\x1b[2J\\x9b2J\\x7f\\x00"),
        ("a\u2028b\u2029", "a\\u2028b\\u2029"),
        ("back\\slash\n", "back\\slash\\n"),
    ],
)
def test_control_characters_are_escaped(text, line):
    assert plain(text) == line


def test_a_message_is_one_line_and_a_traceback_has_only_its_own_lines():
    try:
        raise ValueError("a\x1b[2J")
    except ValueError as error:
        exc_info = (type(error), error, error.__traceback__)
    record = OneLineRecord("x", logging.ERROR, "x.py", 1, "said: %s", ("b\nc",), exc_info)
    lines = logging.Formatter().format(record).split("\n")
    assert lines[0] == "said: b\\nc"
    assert lines[1].startswith("Traceback")
    assert lines[-1] == "ValueError: a\\x1b[2J"


def test_logging_to_the_journal_without_its_library_is_reported(tmp_path, monkeypatch, in_process):
    """OpenStack-Ansible configures the journal, and installs the library."""
    monkeypatch.setattr("oslo_log.handlers.journal", None)
    (tmp_path / "placement.conf").write_text("[placement_database]\nconnection = sqlite://\n")
    result = in_process(manage, "--config-dir", str(tmp_path), "--use-journal", "db", "version")
    assert result.code == 1
    assert result.err.startswith("placement-manage: The log cannot be written: ")
    assert result.err.endswith("[DEFAULT]use_journal needs systemd-python.\n")
