"""Logging with one line per message and without control characters.

Many messages contain text from clients, which must not forge log lines or send commands to a terminal (log injection,
CWE-117).
"""

from __future__ import annotations

import logging
import re

from oslo_config import cfg
from oslo_log import log as oslo_log

#: The control characters of ASCII and Latin-1, and the line and paragraph separators of Unicode.
_CONTROL = re.compile("[\0-\x1f\x7f-\x9f\u2028\u2029]")


def plain(text: str) -> str:
    r"""Return the text with its control characters escaped as in Python: ``\n``, ``\x1b``."""
    if text.isprintable():  # the usual case, and a fast test
        return text
    return _CONTROL.sub(lambda match: repr(match[0])[1:-1], text)


class OneLineRecord(logging.LogRecord):
    """A log record whose message is a single line; a traceback may have several."""

    @property
    def exc_text(self) -> str | None:
        """The formatted traceback, escaped line by line."""
        return self._exc_text

    @exc_text.setter
    def exc_text(self, text: str | None) -> None:
        self._exc_text = text and "\n".join(map(plain, text.split("\n")))

    def getMessage(self) -> str:  # noqa: N802
        """Return the message, escaped."""
        return plain(super().getMessage())


def set_up(conf: cfg.ConfigOpts, project: str) -> None:
    """Configure logging; raise ``cfg.Error`` if the log cannot be written."""
    try:
        logging.setLogRecordFactory(OneLineRecord)
        # Alembic logs its plugins at every start.
        conf.set_default("default_log_levels", [*conf.default_log_levels, "alembic.runtime.plugins=WARN"])
        oslo_log.setup(conf, project)
    except oslo_log.LogConfigError as error:
        raise cfg.Error(str(error)) from None
    except RuntimeError as error:  # the library of a handler is missing
        raise cfg.Error(f"The log cannot be written: {error}. [DEFAULT]use_journal needs systemd-python.") from None
    except OSError as error:
        raise cfg.Error(f"The log cannot be written: {error}") from None
