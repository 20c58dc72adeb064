"""The application factory for WSGI servers that do not use ``placement.wsgi.api:application``."""

from __future__ import annotations

import contextlib
import sys
from wsgiref.types import WSGIApplication

from oslo_config import cfg
from oslo_log import log as oslo_log

from placement import conf as options
from placement import deploy, log
from placement.errors import StartError

LOG = oslo_log.getLogger(__name__)


class CannotStart(SystemExit):
    """An exit with the code that stops uWSGI; with any other code it would restart workers forever."""

    def __init__(self, sentence: str) -> None:
        super().__init__(sentence)
        self.code = 22


def init_application() -> WSGIApplication:
    """Return a new application, configured by files and environment variables (docs: configuration, entry-points).

    If it cannot start, print the reason on one line to stderr and end the process.
    """
    try:
        conf = options.load()
        log.set_up(conf, options.PROJECT)
        if conf.log_options:
            conf.log_opt_values(LOG, oslo_log.DEBUG)
        return deploy.loadapp(conf, threads=_threads())
    except (cfg.Error, StartError) as error:
        sentence = f"placement cannot start: {' '.join(str(error).split())}"
        sys.stderr.write(f"{sentence}\n")
        sys.stderr.flush()
        raise CannotStart(sentence) from None


def _threads() -> int | None:
    """Return the number of threads of this process that call the application; None if it is unknown."""
    with contextlib.suppress(ImportError):
        import uwsgi  # exists only inside uWSGI

        return int(uwsgi.opt.get("threads", 1))
    with contextlib.suppress(ImportError):
        import mod_wsgi  # other servers may also have it installed, without the attribute

        return getattr(mod_wsgi, "threads_per_process", None)
    return None
