"""How a WSGI server gets the application: ``placement.wsgi.api:application``, or the factory here."""

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
    """Ends the process with the exit code at which uWSGI gives up; at any other it starts workers again and again."""

    def __init__(self, sentence: str) -> None:
        super().__init__(sentence)
        self.code = 22


def init_application() -> WSGIApplication:
    """Return the application, configured by files and environment variables (docs: configuration, entry-points).

    Each call returns a new application.  If it cannot start, the process ends with one line on stderr.
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
    """Return how many threads of this process call the application; None if the web server does not report it."""
    with contextlib.suppress(ImportError):
        import uwsgi  # there inside uWSGI only

        return int(uwsgi.opt.get("threads", 1))
    with contextlib.suppress(ImportError):
        import mod_wsgi  # a package of this name may be there elsewhere

        return getattr(mod_wsgi, "threads_per_process", None)
    return None
