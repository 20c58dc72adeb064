"""Terminal commands that reach the service with its authentication strategy."""

from __future__ import annotations

import pytest

from placement.extensions.console.views.commands import Access

URL = "http://placement:8778"
VERSION = "-H 'OpenStack-API-Version: placement 1.39'"


@pytest.mark.parametrize(
    ("strategy", "curl", "openstack"),
    [
        ("noauth2", f"-H 'X-Auth-Token: admin' {VERSION}", f"openstack --os-auth-type none --os-endpoint {URL}"),
        (
            "http_basic",
            f'-u "$OS_USERNAME:$OS_PASSWORD" {VERSION}',
            f"openstack --os-auth-type http_basic --os-endpoint {URL}",
        ),
        ("keystone", f'-H "X-Auth-Token: $(openstack token issue -f value -c id)" {VERSION}', "openstack"),
    ],
)
def test_a_command_has_the_credentials_of_the_strategy(strategy, curl, openstack):
    access = Access(URL, strategy)
    assert (access.curl, access.openstack, access.ask) == (curl, openstack, f"placement-ask --url {URL}")


def test_an_address_is_one_word_of_the_shell():
    access = Access("http://placement/a b", "noauth2")
    assert access.openstack == "openstack --os-auth-type none --os-endpoint 'http://placement/a b'"
    assert access.ask == "placement-ask --url 'http://placement/a b'"
