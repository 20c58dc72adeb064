"""The routes of nodes: versions, bodies, queries and states beyond the gabbits, and the state in Placement."""

from __future__ import annotations

import uuid

import pytest

from tests.caller import NEW_CONSUMER
from tests.db import sql_hooks
from tests.db.extensions.bare_metal import DATE, ME, NODE, YOU
from tests.db.in_process import placement

DRIVER = "fake-hardware"


@pytest.fixture
def placement_api(database):
    """Return a function that sends requests to the Placement API on the same database."""
    return placement(database)


def create(client, name="n0", **body):
    answer = client("POST", "/nodes", {"driver": DRIVER, "name": name, "resource_class": "bm", **body})
    assert answer.status == 201, answer
    return answer.body


def ready(client, name="n0", **body):
    """Create an available node."""
    node = create(client, name, **body)
    provision(client, node, "manage", "provide")
    assert client("PUT", f"/nodes/{name}/states/power", {"target": "power on"}).status == 202
    return client("GET", f"/nodes/{name}").body


def provision(client, node, *targets):
    for target in targets:
        answer = client("PUT", f"/nodes/{node['uuid']}/states/provision", {"target": target})
        assert answer.status == 202, answer


def patch(client, path="/nodes/n0", **values):
    """Send a patch that sets these values; None removes a value."""
    return client("PATCH", path, [operation(name, value) for name, value in values.items()])


def operation(name, value):
    path = f"/{name}"
    return {"op": "remove", "path": path} if value is None else {"op": "add", "path": path, "value": value}


def maintain(client, name="n0"):
    assert client("PUT", f"/nodes/{name}/maintenance", {"reason": "broken"}).status == 202


def sentence(answer):
    return answer.body["faultstring"]


# --- the document ----------------------------------------------------------------------------------------------------

#: Fields of version 1.1.
FIRST = {
    *("chassis_uuid", "console_enabled", "created_at", "driver", "driver_info", "extra", "instance_info"),
    *("instance_uuid", "last_error", "links", "maintenance", "maintenance_reason", "power_state", "properties"),
    *("provision_state", "provision_updated_at", "reservation", "target_power_state", "target_provision_state"),
    *("updated_at", "uuid"),
}
#: Fields that each version adds to the document, as in Ironic, except links to routes that do not exist here.
ADDED = {
    3: {"driver_internal_info"},
    5: {"name"},
    6: {"inspection_finished_at", "inspection_started_at"},
    7: {"clean_step"},
    12: {"raid_config", "target_raid_config"},
    14: {"states"},
    20: {"network_interface"},
    21: {"resource_class"},
    31: {
        *("boot_interface", "console_interface", "deploy_interface", "inspect_interface", "management_interface"),
        *("power_interface", "raid_interface", "vendor_interface"),
    },
    33: {"storage_interface"},
    37: {"traits"},
    38: {"rescue_interface"},
    40: {"bios_interface"},
    42: {"fault"},
    44: {"deploy_step"},
    46: {"conductor_group"},
    47: {"automated_clean"},
    48: {"protected", "protected_reason"},
    49: {"conductor"},
    50: {"owner"},
    51: {"description"},
    52: {"allocation_uuid"},
    61: {"retired", "retired_reason"},
    65: {"lessee"},
    66: {"network_data"},
    75: {"boot_mode", "secure_boot"},
    82: {"shard"},
    83: {"parent_node"},
    86: {"firmware_interface"},
    87: {"service_step"},
    95: {"disable_power_off"},
    104: {"instance_name"},
    109: {"health"},
}


def test_each_version_shows_its_fields(client):
    node = create(client)
    expected = set(FIRST)
    for minor in range(1, 116):
        expected |= ADDED.get(minor, set())
        version = f"1.{minor}"
        document = client("GET", f"/nodes/{node['uuid']}", version=version).body
        assert document.keys() == expected
        (detail,) = client("GET", "/nodes/detail", version=version).body["nodes"]
        assert detail == document
        (short,) = client("GET", "/nodes", version=version).body["nodes"]
        names = {"instance_uuid", "links", "maintenance", "power_state", "provision_state", "uuid"}
        assert short.keys() == (names | {"name"} if minor >= 5 else names)


def test_secrets_are_masked(client):
    info = {"ipmi_password": "s", "username": "u", "deep": {"password": "z"}}
    create(client, driver_info=info, instance_info={"configdrive": "c", "image_url": "http://u:p@host/i", "a": 1})
    for document in (client("GET", "/nodes/n0").body, client("GET", "/nodes/detail").body["nodes"][0]):
        assert document["driver_info"] == {"ipmi_password": "******", "username": "u", "deep": {"password": "******"}}
        assert document["instance_info"] == {"configdrive": "******", "image_url": "******", "a": 1}
    assert patch(client, **{"driver_info/x": 1}).body["driver_info"]["x"] == 1


@pytest.mark.parametrize(
    "name",
    [
        *("snmp_community", "snmp_community_read", "snmp_community_write", "snmp_auth_key", "snmp_priv_key"),
        *("ssh_key_contents", "ssh_private_key", "ipmi_hex_kg_key", "agent_secret_token", "irmc_snmp_priv_password"),
    ],
)
def test_secrets_other_than_passwords_are_masked(client, name):
    plain = {"snmp_version": "3", "snmp_user": "u", "ssh_key_filename": "/f", "redfish_verify_ca": True}
    info = {name: "s3cret", **plain, "l": [{name: "s3cret", "password": "s3cret"}], "d": {name: {"a": "s3cret"}}}
    create(client, driver_info=info)
    hidden = {name: "******", **plain, "l": [{name: "******", "password": "******"}], "d": {name: "******"}}
    assert client("GET", "/nodes/n0").body["driver_info"] == hidden
    assert "s3cret" not in str(client("GET", "/nodes/detail").body)


# --- POST ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "body",
    [
        {"driver": None},
        {"driver": 5},
        {"power_state": "power on"},
        {"allocation_uuid": NODE},
        {"protected": True},
        {"maintenance_reason": "x"},
        {"links": []},
        {"name": "a/b"},
        {"name": "\u00e4"},
        {"name": ""},
        {"name": 5},
        {"name": NODE},
        {"name": "x" * 256},
        {"instance_uuid": "x"},
        {"instance_uuid": ""},
        {"maintenance": "x"},
        {"maintenance": None},
        {"extra": 3},
        {"extra": {"a": 2**64}},
        {"owner": 5},
        {"owner": "x" * 256},
        {"description": "x" * 4097},
        {"chassis_uuid": NODE},
        {"parent_node": "nope"},
        {"automated_clean": "x"},
    ],
)
def test_an_invalid_node_is_not_created(client, body):
    answer = client("POST", "/nodes", {"driver": DRIVER, **body})
    assert answer.status == 400, answer
    assert client("GET", "/nodes").body["nodes"] == []


@pytest.mark.parametrize("raw", [b"", b"3", b"null"])
def test_a_body_that_is_not_an_object_is_refused(client, raw):
    assert client("POST", "/nodes", raw=raw).status == 400


@pytest.mark.parametrize(
    ("name", "since"), [("name", 5), ("resource_class", 21), ("owner", 50), ("lessee", 65), ("parent_node", 83)]
)
def test_a_field_before_its_version_is_not_acceptable(client, name, since):
    create(client, "other")
    earlier_version = f"1.{since - 1}"
    assert client("POST", "/nodes", {"driver": DRIVER, name: "other"}, version=earlier_version).status == 406
    other = client("GET", "/nodes/other").body["uuid"]
    assert client("PATCH", f"/nodes/{other}", [operation(name, "x")], version=earlier_version).status == 406
    assert client("GET", f"/nodes?fields={name}", version=earlier_version).status == 406
    assert client("GET", f"/nodes/{other}?fields={name}", version=earlier_version).status == 406
    assert client("GET", f"/nodes?sort_key={name}", version=earlier_version).status == 406


def test_words_for_true_and_false_are_accepted(client):
    assert create(client, maintenance="yes", retired="True")["maintenance"] is True
    node = create(client, "n1", automated_clean="off", disable_power_off=True)
    assert (node["automated_clean"], node["disable_power_off"], node["retired"]) == (False, True, False)


def test_a_new_node_may_be_in_use(client, placement_api):
    node = create(client, instance_uuid=ME)
    assert node["instance_uuid"] == ME
    assert placement_api("GET", f"/allocations/{ME}", 39).body["allocations"].keys() == {node["uuid"]}
    answer = client("POST", "/nodes", {"driver": DRIVER, "name": "n1", "instance_uuid": ME})
    assert answer.status == 409
    assert ME in sentence(answer)
    assert client("GET", "/nodes/n1").status == 404


# --- lists -----------------------------------------------------------------------------------------------------------


def names(client, query, path="/nodes", **options):
    answer = client("GET", f"{path}?{query}", **options)
    assert answer.status == 200, answer
    fields = "name" if "fields" in query else None
    return [node[fields or "name"] for node in answer.body["nodes"]]


@pytest.fixture
def client_with_nodes(client):
    create(client, "a", owner="o", shard="s1", description="Big thing")
    ready(client, "b", lessee="o", resource_class="other", conductor_group="G")
    create(client, "c", maintenance=True, parent_node="a", instance_name="web")
    create(client, "d", instance_uuid=ME, retired=True, description="100%", owner="p")
    return client


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("", "abd"),
        ("include_children=False", "abd"),
        ("resource_class=", ""),
        ("resource_class=BM", ""),
        ("provision_state=cleaning", ""),
        ("maintenance=True&include_children=1", "c"),
        ("maintenance=no", "abd"),
        (f"instance_uuid={ME}&associated=False", ""),
        (f"instance_uuid={ME.replace('-', '')}&resource_class=bm", "d"),
        (f"instance_uuid={YOU}", ""),
        ("project=o", "ab"),
        ("shard=s1,s2", "a"),
        ("shard=s2", ""),
        ("sharded=True", "a"),
        ("sharded=False", "bd"),
        ("description_contains=THING", "a"),
        ("description_contains=%25", "d"),
        ("description_contains=_", ""),
        ("conductor_group=g", "b"),
        ("conductor_group=", "ad"),
        ("conductor=x", ""),
        ("fault=power%20failure", ""),
        ("instance_name=web&include_children=yes", "c"),
        ("sort_key=owner", "bad"),
        ("sort_key=owner&sort_dir=desc", "dab"),
        ("sort_key=instance_uuid&sort_dir=desc", "dba"),
        ("sort_key=description&sort_dir=desc", "adb"),
        ("limit=5000", "abd"),
        ("fields=name,,uuid&fields=traits", "abd"),
    ],
)
def test_a_list_contains_the_matching_nodes(client_with_nodes, query, expected):
    assert "".join(names(client_with_nodes, query)) == expected


def test_a_parent_may_be_given_by_its_name(client_with_nodes):
    parent = client_with_nodes("GET", "/nodes/a").body["uuid"]
    assert client_with_nodes("GET", "/nodes/c?fields=parent_node").body["parent_node"] == parent


@pytest.mark.parametrize(
    "query",
    [
        *(
            "?limit=x",
            "?sort_key=links",
            "?sort_key=allocation_uuid",
            "?sort_key=details",
            "?detail=x",
            "?maintenance=",
        ),
        *("?provision_state=", "?include_children=x", "?name=a", "?uuid=x", "?limit=1&limit=2", "?power_state=x"),
        *(f"?chassis_uuid={NODE}", "/detail?detail=True"),
    ],
)
def test_an_invalid_query_of_nodes_is_refused(client, query):
    assert client("GET", f"/nodes{query}").status == 400


@pytest.mark.parametrize(
    ("query", "since"),
    [
        *(("resource_class=bm", 21), ("owner=o", 50), ("fault=x", 42), ("driver=x", 16), ("provision_state=enroll", 9)),
        *(("conductor_group=", 46), ("conductor=x", 49), ("lessee=x", 65), ("shard=x", 82), ("parent_node=x", 83)),
        *(("include_children=True", 83), ("instance_name=x", 104), ("fields=uuid", 8), ("sharded=True", 82)),
    ],
)
def test_filters_before_their_versions_are_not_acceptable(client, query, since):
    assert client("GET", f"/nodes?{query}", version=f"1.{since - 1}").status == 406
    is_valid_value = query != "fault=x"  # the only filter with a fixed set of values
    assert client("GET", f"/nodes?{query}", version=f"1.{since}").status == (200 if is_valid_value else 400)


@pytest.mark.parametrize(
    "order", ["", "&sort_key=owner", "&sort_key=owner&sort_dir=desc", "&sort_key=name&sort_dir=desc"]
)
@pytest.mark.parametrize("path", ["/nodes", "/nodes/detail"])
def test_pages_repeat_the_filters_and_end(client_with_nodes, path, order):
    create(client_with_nodes, "e")
    create(client_with_nodes, "f", resource_class="zzz")
    all_names = names(client_with_nodes, f"resource_class=bm{order}", path)
    assert sorted(all_names) == ["a", "d", "e"]
    url, paged_names = f"{path}?resource_class=bm&limit=1{order}", []
    while url:
        page = client_with_nodes("GET", url).body
        paged_names += [node["name"] for node in page["nodes"]]
        assert len(page["nodes"]) <= 1
        url = page.get("next", "").removeprefix("http://metal/baremetal/v1")
    assert paged_names == all_names


def test_the_next_page_shows_the_same_fields(client_with_nodes):
    page = client_with_nodes("GET", "/nodes?fields=name&limit=1").body
    assert page["nodes"][0].keys() == {"name", "links"}
    url = page["next"].removeprefix("http://metal/baremetal/v1")
    assert client_with_nodes("GET", url).body["nodes"][0].keys() == {"name", "links"}


def test_a_list_takes_one_statement_and_another_for_traits(client_with_nodes, database):
    for query, limit in (("", 1), ("?fields=uuid,name,owner,extra", 1), ("?fields=name,traits", 2), ("?detail=1", 2)):
        seen = []
        with sql_hooks.statements(database.reading_engine, seen.append):
            assert client_with_nodes("GET", f"/nodes{query}").status == 200
        assert 1 <= len(seen) <= limit, seen


# --- one node --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "path"),
    [
        *(("GET", ""), ("PATCH", ""), ("DELETE", ""), ("GET", "/states"), ("GET", "/validate"), ("GET", "/traits")),
        *(("PUT", "/traits"), ("DELETE", "/traits"), ("PUT", "/traits/CUSTOM_A"), ("DELETE", "/traits/CUSTOM_A")),
        *(("PUT", "/maintenance"), ("DELETE", "/maintenance"), ("PUT", "/states/power"), ("PUT", "/states/provision")),
    ],
)
def test_illegal_names_and_unknown_parameters_are_refused(client, method, path):
    bodies = {
        "/traits": {"traits": []},
        "/states/power": {"target": "power on"},
        "/states/provision": {"target": "manage"},
    }
    body = [] if method == "PATCH" else bodies.get(path) if method == "PUT" else None
    assert client(method, f"/nodes/a b{path}", body).status == 400
    create(client)
    assert client(method, f"/nodes/n0{path}?bogus=1", body).status == 400


@pytest.mark.parametrize(
    ("query", "expected"),
    [("fields=", set()), ("fields=name,traits&fields=uuid", {"name", "traits", "uuid"})],
)
def test_the_fields_of_a_node_can_be_selected(client, query, expected):
    create(client)
    assert client("GET", f"/nodes/n0?{query}").body.keys() == expected | {"links"}
    assert client("GET", "/nodes/n1?fields=bogus").status == 404


def test_uuids_are_stored_and_found_in_one_form(client):
    node = create(client, uuid=NODE.upper().replace("-", ""))
    assert node["uuid"] == NODE
    assert client("GET", f"/nodes/{NODE.upper()}").body == node
    assert node["states"][0]["href"] == f"http://metal/baremetal/v1/nodes/{NODE}/states"
    assert patch(client, instance_uuid=ME.upper()).body["instance_uuid"] == ME


def test_names_may_contain_every_legal_character(client):
    name = "a.b_c-d~E9"
    create(client, name)
    assert client("GET", f"/nodes/{name}").body["name"] == name
    assert client("PUT", f"/nodes/{name}/traits/CUSTOM_A").status == 204


# --- PATCH -----------------------------------------------------------------------------------------------------------


def test_a_patch_can_change_members_and_whole_objects(client):
    create(client, extra={"x": 1})
    changed = patch(client, **{"extra/a~1b": [1], "properties": {"x": 1.5}}).body
    assert (changed["extra"], changed["properties"]) == ({"x": 1, "a/b": [1]}, {"x": 1.5})
    assert patch(client, extra=None).body["extra"] == {}


def test_a_patch_distinguishes_one_from_true(client):
    create(client, extra={"a": 1})
    assert patch(client, **{"extra/a": True}).body["extra"]["a"] is True
    assert client("GET", "/nodes/n0").body["extra"]["a"] is True


def test_a_patch_without_effect_leaves_the_date(client):
    create(client, extra={"a": 1})
    for operations in ([], [operation("extra/a", 1)], [operation("owner", None)], [operation("maintenance", False)]):
        answer = client("PATCH", "/nodes/n0", operations)
        assert answer.status == 200
        assert answer.body["updated_at"] is None
    assert patch(client, **{"extra/a": 2}).body["updated_at"] is not None


@pytest.mark.parametrize(
    "field",
    [
        *("created_at", "links", "fault"),
        *("target_power_state", "last_error", "driver_internal_info", "reservation", "conductor", "health", "states"),
        *("maintenance_reason", "provision_updated_at", "id", "console_enabled"),
    ],
)
def test_a_read_only_field_cannot_be_changed(client, field):
    create(client)
    answer = patch(client, **{field: "x"})
    assert answer.status == 400
    assert "instance_uuid, lessee, maintenance, management_interface, name" in sentence(answer)


@pytest.mark.parametrize(
    "operations",
    [
        3,
        [3],
        [{"op": "add"}],
        [{"path": "/extra"}],
        [{"op": "test", "path": "/extra", "value": {}}],
        [{"op": "move", "from": "/extra", "path": "/properties"}],
        [{"op": "add", "path": "/extra/x"}],
        [{"op": "add", "path": "extra", "value": {}}],
        [{"op": "add", "path": "", "value": {}}],
        [{"op": "add", "path": "/extra/a/b", "value": 1}],
        [{"op": "replace", "path": "/extra/zz", "value": 1}],
        [{"op": "add", "path": "/owner/x", "value": 1}],
        [operation("extra", 3)],
        [operation("name", 5)],
        [{"op": "add", "path": "/name", "value": None}],
        [{"op": "add", "path": "/maintenance", "value": None}],
        [operation("owner", 5)],
        [operation("resource_class", "x" * 81)],
        [operation("description", 5)],
        [operation("description", "x" * 4097)],
        [operation("maintenance", "x")],
        [operation("parent_node", "n0")],
        [operation("instance_uuid", "x")],
        [operation("protected_reason", "x")],
        [operation("owner", "changed"), operation("bogus", 1)],
    ],
)
def test_an_invalid_patch_is_refused(client, operations):
    before = create(client)
    assert client("PATCH", "/nodes/n0", operations).status == 400
    assert client("GET", "/nodes/n0").body == before


@pytest.mark.every_database
@pytest.mark.parametrize("provider", ["unchanged", "without inventory", "deleted"])
def test_a_refused_patch_leaves_no_class_and_no_event(client, placement_api, provider):
    """Nor does it restore the parts of the provider that a Placement client deleted."""
    create(client, "taken")
    node = create(client)["uuid"]
    if provider != "unchanged":
        path = f"/resource_providers/{node}"
        assert placement_api("DELETE", path if provider == "deleted" else f"{path}/inventories", 39).status == 204

    def state():
        answers = [
            placement_api("GET", "/resource_classes", 39),
            placement_api("GET", f"/resource_providers?uuid={node}", 39),
            placement_api("GET", "/v1/events"),
        ]
        assert [answer.status for answer in answers] == [200, 200, 200]
        return [answer.body for answer in answers]

    before = state()
    for changed in ({"resource_class": "other"}, {}):
        refused = patch(client, instance_uuid=str(uuid.uuid4()), name="taken", **changed)
        assert refused.status == 409
        assert "taken" in sentence(refused)
        assert state() == before
    granted = patch(client, instance_uuid=str(uuid.uuid4()), resource_class="other")
    assert granted.status == 200, granted
    assert placement_api("GET", f"/resource_providers/{node}/inventories", 39).body["inventories"].keys() == {
        "CUSTOM_OTHER"
    }


def test_a_protected_node_is_neither_undeployed_nor_deleted(client):
    node = ready(client)
    assert patch(client, protected=True).status == 409
    provision(client, node, "active")
    assert patch(client, protected=True, protected_reason="mine").body["protected_reason"] == "mine"
    assert client("PUT", "/nodes/n0/states/provision", {"target": "deleted"}).status == 403
    maintain(client)
    assert client("DELETE", "/nodes/n0").status == 403
    assert patch(client, protected=False).body["protected_reason"] is None
    assert client("DELETE", "/nodes/n0").status == 204


def test_a_retired_node_is_not_provided(client):
    node = ready(client)
    assert patch(client, retired=True).status == 409
    provision(client, node, "manage")
    assert patch(client, retired=True).body["retired"] is True
    assert client("PUT", "/nodes/n0/states/provision", {"target": "provide"}).status == 400


def test_a_node_that_is_no_longer_retired_has_no_reason(client):
    create(client, retired=True, retired_reason="old")
    document = patch(client, retired=False, retired_reason="older").body
    assert (document["retired"], document["retired_reason"]) == (False, None)
    patch(client, retired=True, retired_reason="old")
    client("PATCH", "/nodes/n0", [{"op": "remove", "path": "/retired"}])
    assert client("GET", "/nodes/n0").body["retired_reason"] is None
    patch(client, retired=True, retired_reason="old")
    assert patch(client, description="x").body["retired_reason"] == "old"


@pytest.mark.every_database
def test_the_instance_name_is_the_display_name_of_nova_until_it_is_set(client):
    def displayed_name():
        node = client("GET", "/nodes/n0").body
        [listed] = client("GET", "/nodes?fields=instance_name").body["nodes"]
        assert listed["instance_name"] == node["instance_name"]
        if node["instance_name"]:
            assert names(client, f"instance_name={node['instance_name']}") == ["n0"]
        return node["instance_name"]

    create(client, instance_info={"display_name": "web1"})
    assert displayed_name() == "web1"
    patch(client, **{"instance_info/display_name": "web2"})
    assert displayed_name() == "web2"
    patch(client, instance_name="mine")
    patch(client, **{"instance_info/display_name": "web3"})
    assert displayed_name() == "mine"
    assert names(client, "instance_name=web3") == []
    client("PATCH", "/nodes/n0", [{"op": "remove", "path": "/instance_name"}])
    assert displayed_name() == "web3"
    patch(client, instance_info={"display_name": 5})
    assert displayed_name() is None
    patch(client, instance_info={})
    assert displayed_name() is None


# --- states ----------------------------------------------------------------------------------------------------------

VERBS = ("manage", "provide", "active", "deploy", "deleted", "undeploy", "rebuild", "adopt", "inspect")
POSSIBLE = {
    "enroll": {"manage": "manageable"},
    "manageable": {"provide": "available", "adopt": "active", "inspect": "manageable"},
    "available": {"manage": "manageable", "active": "active", "deploy": "active"},
    "active": {"deleted": "available", "undeploy": "available", "rebuild": "active"},
}


@pytest.mark.parametrize("state", POSSIBLE)
def test_each_state_allows_its_verbs(client, state):
    for verb in (*VERBS, "bogus", "available", None):
        node = client.node(provision_state=state)
        answer = client("PUT", f"/nodes/{node}/states/provision", {"target": verb})
        becomes = POSSIBLE[state].get(verb)
        document = client("GET", f"/nodes/{node}").body
        assert (answer.status, document["provision_state"]) == ((202, becomes) if becomes else (400, state))
        assert document["target_provision_state"] is None
        if becomes:
            assert answer.body is None
            assert answer.headers["location"].endswith(f"/v1/nodes/{node}/states")
        else:
            assert state in sentence(answer)


@pytest.mark.parametrize("body", [[], {"target": 5}, {"target": "manage", "bogus": 1}])
def test_an_invalid_body_for_the_provision_state_is_refused(client, body):
    create(client)
    assert client("PUT", "/nodes/n0/states/provision", body).status == 400


@pytest.mark.parametrize(("target", "state"), [("soft rebooting", "power on"), ("soft power off", "power off")])
def test_soft_targets_change_the_power_state(client, target, state):
    create(client)
    answer = client("PUT", "/nodes/n0/states/power", {"target": target, "timeout": 5})
    assert (answer.status, answer.body) == (202, None)
    assert client("GET", "/nodes/n0/states").body["power_state"] == state


@pytest.mark.parametrize(
    "body",
    [
        *({"target": None}, {"target": 5}, {"target": "power on", "timeout": 0}),
        *({"target": "power on", "timeout": "x"}, {"target": "power on", "bogus": 1}),
    ],
)
def test_an_invalid_body_for_the_power_state_is_refused(client, body):
    create(client)
    assert client("PUT", "/nodes/n0/states/power", body).status == 400
    assert client("GET", "/nodes/n0").body["power_state"] is None


def test_the_states_and_the_validation_of_a_node_are_shown(client):
    create(client)
    assert client("GET", "/nodes/n0/states").body == {
        "console_enabled": False,
        "last_error": None,
        "power_state": None,
        "provision_state": "enroll",
        "target_power_state": None,
        "target_provision_state": None,
        "provision_updated_at": None,
        "raid_config": {},
        "target_raid_config": {},
        "boot_mode": None,
        "secure_boot": None,
    }
    results = client("GET", "/nodes/n0/validate").body
    assert len(results) == 12
    assert all(result == {"result": True} for result in results.values())
    patch(client, instance_info={"traits": ["CUSTOM_Z"]})
    result = client("GET", "/nodes/n0/validate").body["deploy"]
    assert result["result"] is False
    assert "CUSTOM_Z" in result["reason"]


def test_the_date_of_a_state_is_the_date_of_its_change(client):
    node = create(client)
    assert node["provision_updated_at"] is None
    provision(client, node, "manage")
    first = client("GET", "/nodes/n0/states").body["provision_updated_at"]
    assert DATE.fullmatch(first)
    assert client("PUT", "/nodes/n0/states/power", {"target": "power on"}).status == 202
    assert client("GET", "/nodes/n0/states").body["provision_updated_at"] == first
    provision(client, node, "provide")
    assert client("GET", "/nodes/n0/states").body["provision_updated_at"] > first


def test_the_reason_of_maintenance_is_stored_and_removed(client):
    create(client)
    assert client("PUT", "/nodes/n0/maintenance?reason=why").status == 202
    assert patch(client, maintenance=True).body["maintenance_reason"] == "why"
    assert client("PUT", "/nodes/n0/maintenance?reason=why", {"reason": "because"}).status == 202
    assert client("GET", "/nodes/n0").body["maintenance_reason"] == "because"
    for body in ({"reason": 5}, {"bogus": 1}):
        assert client("PUT", "/nodes/n0/maintenance", body).status == 400
    maintain(client)
    assert patch(client, maintenance=False).body["maintenance_reason"] is None


@pytest.mark.parametrize("by_patch", [False, True])
def test_a_fault_ends_with_maintenance(client, by_patch):
    details = {"fault": "power failure", "maintenance_reason": "no answer"}
    client.node("n0", maintenance=True, details=details)
    client.node("n1")
    assert names(client, "fault=power%20failure") == ["n0"]
    assert names(client, "fault=clean%20failure") == []
    if by_patch:
        assert patch(client, maintenance=False).status == 200
    else:
        assert client("DELETE", "/nodes/n0/maintenance").status == 202
    document = client("GET", "/nodes/n0").body
    assert (document["maintenance"], document["fault"], document["maintenance_reason"]) == (False, None, None)
    assert names(client, "fault=power%20failure") == []


def test_the_next_verb_clears_a_failure(client):
    """Imported nodes may have failures."""
    failed = {"provision_state": "clean failed", "target_provision_state": "available"}
    node = client.node(**failed, target_power_state="power off", details={"last_error": "disk"})
    assert client("PUT", f"/nodes/{node}/states/provision", {"target": "manage"}).status == 202
    assert client("PUT", f"/nodes/{node}/states/power", {"target": "power on"}).status == 202
    document = client("GET", f"/nodes/{node}/states").body
    assert (document["provision_state"], document["target_provision_state"]) == ("manageable", None)
    assert (document["power_state"], document["target_power_state"], document["last_error"]) == ("power on", None, None)


@pytest.mark.parametrize(
    ("columns", "status"), [({}, 202), ({"maintenance": True}, 400), ({"details": {"protected": True}}, 403)]
)
def test_only_nodes_in_use_are_rebuilt(client, columns, status):
    node = client.node(provision_state="active", **columns)
    assert client("PUT", f"/nodes/{node}/states/provision", {"target": "rebuild"}).status == status


def test_a_node_in_maintenance_is_not_deployed(client):
    ready(client)
    maintain(client)
    assert client("PUT", "/nodes/n0/states/provision", {"target": "active"}).status == 400


# --- traits ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "body"),
    [
        *((f"/CUSTOM_{'A' * 249}", None), ("/CUSTOM_B", {"traits": []})),
        *(("", {"traits": [5]}), ("", ["CUSTOM_A"]), ("", {"traits": [], "bogus": 1})),
    ],
)
def test_invalid_traits_are_refused(client, path, body):
    create(client)
    assert client("PUT", f"/nodes/n0/traits{path}", body).status == 400
    assert client("GET", "/nodes/n0/traits").body == {"traits": []}


def test_a_repeated_trait_is_stored_once(client):
    create(client)
    assert client("PUT", "/nodes/n0/traits", {"traits": ["CUSTOM_B", "CUSTOM_A", "CUSTOM_A"]}).status == 204
    assert client("GET", "/nodes/n0/traits").body == {"traits": ["CUSTOM_A", "CUSTOM_B"]}
    assert client("DELETE", "/nodes/n0/traits/x").status == 404


def test_a_node_with_more_than_fifty_traits_of_a_placement_client_can_lose_some(client, placement_api):
    provider = f"/resource_providers/{create(client)['uuid']}"
    names = [f"CUSTOM_{number}" for number in range(60)]
    for name in names:
        assert placement_api("PUT", f"/traits/{name}", 39).status in (201, 204)
    generation = placement_api("GET", provider, 39).body["generation"]
    body = {"traits": names, "resource_provider_generation": generation}
    assert placement_api("PUT", f"{provider}/traits", 39, body).status == 200
    assert client("PUT", "/nodes/n0/traits/CUSTOM_7").status == 204
    assert client("PUT", "/nodes/n0/traits/CUSTOM_B").status == 400
    assert client("DELETE", "/nodes/n0/traits/CUSTOM_7").status == 204
    assert client("PUT", "/nodes/n0/traits", {"traits": names[10:]}).status == 204
    assert len(client("GET", "/nodes/n0/traits").body["traits"]) == 50


# --- holders ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def allocated_node(client):
    """Create a node with an allocation named "mine"."""
    ready(client)
    client.create_allocation(name="mine", candidate_nodes=["n0"])
    node = client("GET", "/nodes/n0").body
    assert node["allocation_uuid"] == node["instance_uuid"] is not None
    return node


def holder(client):
    node = client("GET", "/nodes/n0").body
    return node["instance_uuid"], node["allocation_uuid"]


def test_an_active_node_without_an_allocation_may_lose_its_instance(client):
    node = ready(client)
    patch(client, instance_uuid=ME)
    provision(client, node, "active")
    assert patch(client, instance_uuid=None).status == 200
    assert holder(client) == (None, None)


def test_an_instance_assigned_by_hand_gets_the_owner_of_the_node_as_its_project(client, placement_api):
    create(client, owner="before")
    patch(client, owner="tenant", instance_uuid=ME)
    assert placement_api("GET", f"/allocations/{ME}", 39).body["project_id"] == "tenant"


def test_an_ended_record_does_not_come_back_with_a_node_that_is_created_again(client, placement_api, allocated_node):
    consumer = allocated_node["instance_uuid"]
    assert placement_api("DELETE", f"/allocations/{consumer}", 39).status == 204
    assert client("DELETE", "/nodes/n0").status == 204
    node = create(client, uuid=allocated_node["uuid"], instance_uuid=consumer)
    assert (node["instance_uuid"], node["allocation_uuid"]) == (consumer, None)
    assert client("GET", "/allocations/mine").status == 404


MEMBER = {"HTTP_X_AUTH_TOKEN": "user:tenant", "HTTP_X_ROLES": "member,reader"}


def test_a_member_cannot_use_a_consumer_of_another_project(client, placement_api, allocated_node):
    """This holds for PATCH and for a backfill; the consumer's record is not deleted either."""
    consumer, other = allocated_node["instance_uuid"], str(uuid.uuid4())
    body = {"uuid": other, "name": "cn"}
    assert placement_api("POST", "/resource_providers", 39, body).status == 200
    stock = {"resource_provider_generation": 0, "inventories": {"VCPU": {"total": 4}}}
    assert placement_api("PUT", f"/resource_providers/{other}/inventories", 39, stock).status == 200
    owner = placement_api("GET", f"/allocations/{consumer}", 39).body
    del owner["allocations"]
    elsewhere = {**owner, "project_id": "victim", "allocations": {other: {"resources": {"VCPU": 1}}}}
    assert placement_api("PUT", f"/allocations/{consumer}", 39, elsewhere).status == 204
    before = placement_api("GET", f"/allocations/{consumer}", 39).body
    create(client, "n1", owner="tenant")
    operations = [operation("instance_uuid", consumer)]
    answer = client("PATCH", "/nodes/n1", operations, headers=MEMBER)
    assert (answer.status, consumer in sentence(answer)) == (409, True)
    client.change(client("GET", "/nodes/n1").body["uuid"], provision_state="active")
    answer = client("POST", "/allocations", {"node": "n1", "uuid": consumer}, headers=MEMBER)
    assert (answer.status, consumer in sentence(answer)) == (409, True)
    assert placement_api("GET", f"/allocations/{consumer}", 39).body == before
    # The consumer claims the node again, and its record is active again.
    returned = {**before, "allocations": {allocated_node["uuid"]: {"resources": {"CUSTOM_BM": 1}}}}
    assert placement_api("PUT", f"/allocations/{consumer}", 39, returned).status == 204
    assert holder(client) == (consumer, consumer)


def test_administrators_use_consumers_of_any_project(client, placement_api):
    create(client, "n1", owner="tenant")
    patch(client, "/nodes/n1", instance_uuid=ME)
    assert patch(client, "/nodes/n1", owner="other").status == 200
    assert patch(client, "/nodes/n1", resource_class="other", instance_uuid=ME).status == 200
    assert placement_api("GET", f"/allocations/{ME}", 39).body["project_id"] == "tenant"


def test_class_and_instance_change_together_for_every_holder(client, placement_api):
    node = ready(client)["uuid"]
    assert patch(client, instance_uuid=ME).status == 200
    assert patch(client, resource_class="second", instance_uuid=YOU).status == 409
    assert client("GET", "/nodes/n0").body["resource_class"] == "bm"
    assert patch(client, resource_class="second", instance_uuid=ME).status == 200
    assert placement_api("GET", f"/allocations/{ME}", 39).body["allocations"][node]["resources"] == {"CUSTOM_SECOND": 1}
    assert patch(client, resource_class="third", instance_uuid=None).body["instance_uuid"] is None
    assert placement_api("GET", f"/resource_providers/{node}/inventories", 39).body["inventories"].keys() == {
        "CUSTOM_THIRD"
    }
    assert placement_api("GET", f"/allocations/{ME}", 39).body["allocations"] == {}


def test_class_and_instance_change_together(client, placement_api):
    node = ready(client)["uuid"]
    answer = patch(client, resource_class="other", instance_uuid=ME, owner="me", description="both")
    assert answer.status == 200
    assert answer.body == client("GET", "/nodes/n0").body
    assert placement_api("GET", f"/allocations/{ME}", 39).body["allocations"][node]["resources"] == {"CUSTOM_OTHER": 1}


def test_the_provider_of_a_placement_client_is_adopted(client, placement_api):
    body = {"uuid": NODE, "name": NODE}
    assert placement_api("POST", "/resource_providers", 39, body).status == 200
    assert create(client, uuid=NODE)["uuid"] == NODE
    assert placement_api("GET", f"/resource_providers/{NODE}/inventories", 39).body["inventories"].keys() == {
        "CUSTOM_BM"
    }


def test_the_holder_of_an_adopted_provider_is_the_instance_of_the_node(client, placement_api):
    assert placement_api("POST", "/resource_providers", 39, {"uuid": NODE, "name": NODE}).status == 200
    stock = {"resource_provider_generation": 0, "inventories": {"VCPU": {"total": 4}}}
    assert placement_api("PUT", f"/resource_providers/{NODE}/inventories", 39, stock).status == 200
    body = {"allocations": {NODE: {"resources": {"VCPU": 1}}}, **NEW_CONSUMER}
    assert placement_api("PUT", f"/allocations/{YOU}", 39, body).status == 204
    new = {"driver": DRIVER, "uuid": NODE, "resource_class": "bm"}
    answer = client("POST", "/nodes", {**new, "instance_uuid": ME})
    assert (answer.status, YOU in sentence(answer)) == (409, True)
    assert client("GET", f"/nodes/{NODE}").status == 404
    assert placement_api("GET", f"/allocations/{ME}", 39).body["allocations"] == {}
    assert client("POST", "/nodes", new).body["instance_uuid"] == YOU


def test_other_methods_and_unknown_paths_are_refused(client):
    create(client)
    for method, path in (
        *(("PUT", "/nodes"), ("DELETE", "/nodes"), ("PATCH", "/nodes"), ("POST", "/nodes/n0"), ("PUT", "/nodes/n0")),
        *(("GET", "/nodes/n0/maintenance"), ("POST", "/nodes/n0/traits"), ("PUT", "/nodes/n0/states")),
        *(("GET", "/nodes/n0/traits/CUSTOM_A"), ("GET", "/nodes/n0/states/power"), ("PUT", "/nodes/n0/validate")),
    ):
        assert client(method, path).status == 405, (method, path)
    for path in ("ports", "bios", "children", "management", "vendor_passthru", "states/raid", "vifs"):
        assert client("GET", f"/nodes/n0/{path}").status == 404, path
    assert client("GET", f"/nodes/{uuid.uuid4()}/bogus").status == 404
