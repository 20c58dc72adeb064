"""A small service: routes of a test behind the real router, policy and layers, without a database."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, NamedTuple

import webob
from oslo_config import cfg
from oslo_context.context import RequestContext

from placement import conf as options
from placement import deploy, routes
from placement import microversion as mv
from placement.http.api import Api, Table
from placement.http.application import Application
from placement.http.environ import API, CONTEXT, REQUEST_ID
from placement.http.request import Request
from placement.http.service import Service
from placement.policy import Policy
from tests import children


class User(NamedTuple):
    """The caller identified by the authentication."""

    user_id: str | None
    project_id: str | None
    roles: list[str]
    system_scope: str | None


#: The database of services whose routes use none.
NO_DATABASE = SimpleNamespace(read=None)
REQUEST = "req-00000000-0000-4000-8000-000000000000"


def configuration(config_files: Sequence[str] = (), **overrides: Any) -> cfg.ConfigOpts:
    """Return a configuration: options by name, ``group__option=value``, which override files.

    By default it uses noauth2, and no worker sweeps leases, so that requests execute only their own statements.
    """
    conf = cfg.ConfigOpts()
    options.register(conf)
    values = {
        "api__auth_strategy": "noauth2",
        "placement_database__connection": "sqlite://",
        "placement__lease_sweep_interval": 0,
        **overrides,
    }
    if children.is_run():
        values.setdefault("placement__index_directory", str(children.run_directory() / "index"))
    for name, value in values.items():
        group, _, option = name.partition("__")
        conf.set_override(option, value, group=group)
    conf([], project=options.PROJECT, default_config_files=list(config_files), default_config_dirs=[])
    return conf


def application(table: Table, **overrides: Any) -> Application:
    """Return the innermost application, without layers; the test sets the caller and the version."""
    conf = configuration(**overrides)
    api = dataclasses.replace(routes.PLACEMENT, routes=table)
    return Application(api, Service(conf, NO_DATABASE, Policy(conf, api.rules), None, (api,)))


def service(table: Table, database: Any = NO_DATABASE, layers: deploy.Layers = deploy.LAYERS, **overrides: Any) -> Any:
    """Return the application with all its layers."""
    api = dataclasses.replace(routes.PLACEMENT, routes=table)
    return mount(api, conf=configuration(**overrides), database=database, layers=layers)


def mount(
    *apis: Api,
    conf: cfg.ConfigOpts | None = None,
    database: Any = NO_DATABASE,
    layers: deploy.Layers = deploy.LAYERS,
) -> Any:
    """Return the application of several APIs in the shared layers."""
    conf = conf or configuration()
    rules = {rule.name: rule for api in apis for rule in api.rules}
    policy = Policy(conf, [*rules.values()])
    return deploy.assemble(Service(conf, database, policy, None, apis), layers)


def ask(
    app: Any,
    method: str,
    path: str,
    headers: dict[str, str] | None = None,
    body: bytes | None = None,
    environ: dict[str, Any] | None = None,
) -> webob.Response:
    """Return the response to a request in the form that a server sends."""
    request = webob.Request.blank(path, method=method, headers=headers or {}, environ=environ)
    if body is not None:
        request.body = body
    return request.get_response(app)


def ask_inside(
    app: Any,
    method: str,
    path: str,
    headers: dict[str, str] | None = None,
    body: bytes | None = None,
    *,
    version: mv.Version = mv.LATEST,
    roles: str = "admin",
) -> webob.Response:
    """Return the response of the innermost layer to a request."""
    return ask(app, method, path, headers, body, inner_environ(version, roles))


def user(req: Request) -> User:
    """Return the caller of a request."""
    context = req.environ[CONTEXT]
    return User(context.user_id, context.project_id, [*context.roles], context.system_scope)


def inner_environ(version: mv.Version = mv.LATEST, roles: str = "admin") -> dict[str, Any]:
    """Return the state that the layers add to a request before the innermost one."""
    return {
        API: routes.PLACEMENT,
        REQUEST_ID: REQUEST,
        "HTTP_OPENSTACK_API_VERSION": f"placement {version}",
        CONTEXT: RequestContext(user_id="u", project_id="p", roles=roles.split(","), overwrite=False),
    }
