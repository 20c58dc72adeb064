"""The log: set up as the configuration says, one line a message, without control characters.

What clients send is part of many messages.  It must not look like a line of its own, or be a command to a terminal.
"""

from __future__ import annotations

import logging
import re

from oslo_config import cfg
from oslo_log import log as oslo_log

#: What moves the cursor or ends a line: the control characters of ASCII and Latin-1, and the separators of Unicode.
_CONTROL = re.compile("[\0-\x1f\x7f-\x9f\u2028\u2029]")


def plain(text: str) -> str:
    r"""The text with its control characters as Python writes them: ``\n``, ``\x1b``."""
    if text.isprintable():  # which is by far the fastest to ask
        return text
    return _CONTROL.sub(lambda found: repr(found[0])[1:-1], text)


class Record(logging.LogRecord):
    """A record whose message is one line, of any logger and with any arguments; a traceback is several."""

    @property
    def exc_text(self) -> str | None:
        """The traceback, as the formatter has written it."""
        return self._exc_text

    @exc_text.setter
    def exc_text(self, text: str | None) -> None:
        self._exc_text = text and "\n".join(map(plain, text.split("\n")))

    def getMessage(self) -> str:  # noqa: N802
        """The message for all formatters."""
        return plain(super().getMessage())


def set_up(conf: cfg.ConfigOpts, project: str) -> None:
    """Write the log where and as the configuration says; raises ``cfg.Error`` if that is not possible."""
    try:
        logging.setLogRecordFactory(Record)
        oslo_log.setup(conf, project)
    except oslo_log.LogConfigError as error:
        raise cfg.Error(str(error)) from None
    except OSError as error:
        raise cfg.Error(f"The log cannot be written: {error}") from None
