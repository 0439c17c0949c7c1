"""Ports: unique on the host, kept over stops, opened again where they were lost (HOSTILE row 43)."""

from __future__ import annotations

import json
import socket
import threading
from typing import Any

import pytest
from unit.configuring import configured
from unit.serving import FarEnd, caller_of, make_user, make_workspace

from svc import errors, limits
from svc.db.connect import close_database, database, write
from svc.domain.principal import Caller
from svc.domain.workspaces import ports, states

FIRST, LAST = 29400, 29449


@pytest.fixture(autouse=True)
def small_range() -> None:
    """Few host ports."""
    configured(port_range=(FIRST, LAST))


@pytest.fixture
def stopped(ada: Caller, template: str) -> str:
    return make_workspace(ada.user_id, template)


@pytest.fixture
def lab(stopped: str) -> str:
    """A running one."""
    database.execute_sql("UPDATE workspaces SET status = 'running', container_id = ?", ("c" * 64,))
    return stopped


def opened(far: FarEnd) -> list[tuple[int, int]]:
    """The pairs that were asked to be opened, in order."""
    return [
        (call.args["host_port"], call.args["container_port"])
        for call in far.calls
        if call.verb.name == "port.open"
    ]


def held(*pairs: tuple[int, int], **more: Any) -> dict[str, Any]:
    """What a shim says that holds these open."""
    keys = ("host_port", "container_port")
    base = {"access": "owner", "connections": 0, "refused": 0, "bytes": 5} | more
    return {"ports": [dict(zip(keys, pair, strict=True)) | base for pair in pairs]}


def port(name: str, container_port: int, access: str = "owner") -> dict[str, Any]:
    """One of a new workspace."""
    more = {"kind": "http", "user": None}
    return {"name": name, "container_port": container_port, "access": access, **more}


def taken(host_port: int) -> Any:
    """The answers of an agent on whose host another program has this port."""
    return lambda call: "conflict" if call.args["host_port"] == host_port else {}


def listener(port: int) -> socket.socket:
    """Another program of this host."""
    return socket.create_server(("127.0.0.1", port))


# --- rows ---------------------------------------------------------------------------------


def test_a_new_workspace_gets_its_ports(stopped: str) -> None:
    with write():
        ports.adopt(stopped, [port("web", 8000), port("ssh", 22, "host")])
    ssh, web = ports.rows_of(stopped)
    assert (ssh.name, ssh.container_port, ssh.access) == ("ssh", 22, "host")
    assert (web.name, web.container_port, web.access) == ("web", 8000, "owner")
    assert FIRST <= ssh.host_port <= LAST
    assert ssh.host_port != web.host_port


def test_the_ports_of_a_template_and_of_a_request() -> None:
    web, api = port("web", 1), port("api", 65535, "host")
    old = {"name": "web", "container_port": 1}  # of a template from before there was an access
    assert ports.combine([web], [api]) == ports.combine([old], [api]) == [web, api]
    with pytest.raises(errors.ValidationFailed, match="the template has a port web") as caught:
        ports.combine([web], [api, web])
    assert caught.value.fields[0]["field"] == "ports.1.name"
    many = [web | {"name": f"p{n}"} for n in range(limits.PORTS_PER_WORKSPACE)]
    with pytest.raises(errors.ValidationFailed, match="at most"):
        ports.combine([web], many)


def test_every_host_port_is_given_once_until_none_is_left(
    ada: Caller, far: FarEnd, template: str, stopped: str
) -> None:
    other = make_workspace(make_user("bob", 2002).id, template, "other")
    supplied = set()
    for number in range(LAST - FIRST + 1):
        with write():
            whose = stopped if number % 2 else other
            ports.adopt(whose, [port(f"p{number}", 1)])
    for whose in (stopped, other):
        supplied |= {row.host_port for row in ports.rows_of(whose)}
    assert supplied == set(range(FIRST, LAST + 1))
    cara = caller_of(make_user("cara", 2003), far)
    third = make_workspace(cara.user_id, template, "third")
    with pytest.raises(errors.PortUnavailable) as caught:
        ports.add(cara, "third", "web", 80)
    assert "SVC_PORT_RANGE" in caught.value.hint
    assert ports.rows_of(third) == []


@pytest.mark.parametrize(("count", "share"), [(2, 1), (10, 5), (50, 25), (100, 32), (4001, 1000)])
def test_no_user_has_more_than_a_share(
    ada: Caller, far: FarEnd, template: str, stopped: str, count: int, share: int
) -> None:
    """One user took all 100 ports of a range, 32 for each of four workspaces."""
    configured(port_range=(FIRST, FIRST + count - 1))
    other = make_workspace(ada.user_id, template, "other")
    rows = [(stopped if number % 2 else other, f"p{number}", FIRST + number) for number in range(share - 1)]
    database.execute_sql("DELETE FROM ports")
    for row in rows:
        database.execute_sql(
            "INSERT INTO ports (workspace_id, name, container_port, host_port, access, kind, follows,"
            " created_at) VALUES (?, ?, 1, ?, 'owner', 'http', 0, '')",
            row,
        )
    with write():
        ports.adopt(stopped, [port("last", 1)])
    with pytest.raises(errors.Conflict, match=f"you have {share} host ports, the most") as caught:
        ports.adopt(other, [port("more", 1)])
    assert caught.value.hint.startswith("svc ws ports ")
    with write():
        ports.adopt(make_workspace(make_user("bob", 2002).id, template, "bobs"), [port("web", 1)])


def test_a_port_on_which_something_listens_is_left_alone(
    stopped: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    configured(port_range=(FIRST, FIRST + 1))
    monkeypatch.setattr(ports, "PORTS_SHARE", 1)
    with (
        socket.create_server(("", FIRST)) if stopped else listener(FIRST),
        write(),
    ):
        ports.adopt(stopped, [port("web", 80)])
        assert ports.rows_of(stopped)[0].host_port == FIRST + 1
        with pytest.raises(errors.PortUnavailable):
            ports.adopt(stopped, [port("api", 80)])


def test_many_at_once_never_get_the_same(
    ada: Caller, far: FarEnd, template: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ports, "PORTS_SHARE", 1)
    names = [f"w{number}" for number in range(8)]
    for name in names:
        make_workspace(ada.user_id, template, name)
    failed: list[errors.SvcError] = []

    def add(name: str) -> None:
        try:
            for number in range(5):
                ports.add(ada, name, f"p{number}", 80)
        except errors.SvcError as error:
            failed.append(error)
        finally:
            close_database()

    threads = [threading.Thread(target=add, args=(name,)) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
    found = [row[0] for row in database.execute_sql("SELECT host_port FROM ports")]
    assert len(found) == len(set(found)) == 40


def test_they_go_with_their_workspace(stopped: str) -> None:
    with write():
        ports.adopt(stopped, [port("web", 80)])
    database.execute_sql("DELETE FROM workspaces")
    assert ports.rows_of(stopped) == []


# --- kinds, and the host's number ----------------------------------------------------------


def test_a_port_without_a_number_has_the_hosts_inside(ada: Caller, far: FarEnd, lab: str) -> None:
    record = ports.add(ada, "lab", "web")
    assert record["container_port"] == record["host_port"]
    assert opened(far) == [(record["host_port"], record["host_port"])]
    assert "follows" not in record


def test_it_follows_the_host_at_a_start(ada: Caller, far: FarEnd, stopped: str) -> None:
    before = ports.add(ada, "lab", "web")["host_port"]
    far.answers["port.open"] = taken(before)
    ports.restore(ada, states.find(ada, "lab"))
    (row,) = ports.rows_of(stopped)
    assert row.host_port != before
    assert row.container_port == row.host_port
    assert opened(far) == [(before, before), (row.host_port, row.host_port)]


def test_its_program_keeps_its_number_in_a_run(ada: Caller, far: FarEnd, lab: str) -> None:
    """It was told the former one when it was started; the next start tells it the new one."""
    before = ports.add(ada, "lab", "web")["host_port"]
    far.answers["port.open"] = taken(before)
    (record,) = ports.listing(ada, "lab")["items"]
    assert (record["container_port"], record["host_port"] == before) == (before, False)
    ports.restore(ada, states.find(ada, "lab"))
    (row,) = ports.rows_of(lab)
    assert row.container_port == row.host_port == record["host_port"]


def test_a_fixed_number_stays(ada: Caller, far: FarEnd, stopped: str) -> None:
    before = ports.add(ada, "lab", "web", 8888)["host_port"]
    far.answers["port.open"] = taken(before)
    ports.restore(ada, states.find(ada, "lab"))
    assert [(row.container_port, row.host_port == before) for row in ports.rows_of(stopped)] == [
        (8888, False)
    ]


# --- add and remove ------------------------------------------------------------------------


def test_add_to_a_running_one_opens_it(ada: Caller, far: FarEnd, lab: str) -> None:
    record = ports.add(ada, "lab", "web", 8000)
    host_port = record["host_port"]
    assert record == {
        "name": "web", "container_port": 8000, "host_port": host_port,
        "access": "owner", "kind": "http", "user": None,
        "url": f"http://127.0.0.1:{host_port}", "connect": f"http://127.0.0.1:{host_port}",
        "ssh": f"ssh -N -L {host_port}:127.0.0.1:{host_port} ada@localhost",
        "label": "web-00000lab", "app_local_url": "http://web-00000lab.localhost:24681/",
        "state": "open", "connections": 0,
        "refused": 0, "listens": None,
    }  # fmt: skip
    assert opened(far) == [(host_port, 8000)]
    rows = database.execute_sql("SELECT action, target, outcome FROM audit ORDER BY id").fetchall()
    assert rows == [("workspace.port_add", lab, "begun"), ("workspace.port_add", lab, "ok")]


def test_add_to_a_stopped_one_is_a_row(ada: Caller, far: FarEnd, stopped: str) -> None:
    assert ports.add(ada, "lab", "web", 8000)["state"] == "closed"
    assert far.verbs() == []
    assert [row.name for row in ports.rows_of(stopped)] == ["web"]


def test_a_name_twice_and_one_too_many(ada: Caller, far: FarEnd, lab: str) -> None:
    configured(port_range=(FIRST, FIRST + 2 * limits.PORTS_PER_WORKSPACE))
    ports.add(ada, "lab", "web", 8000)
    with pytest.raises(errors.NameTaken) as caught:
        ports.add(ada, "lab", "web", 8001)
    assert caught.value.hint == "svc ws ports lab"
    for number in range(limits.PORTS_PER_WORKSPACE - 1):
        ports.add(ada, "lab", f"p{number}", 8000)
    with pytest.raises(errors.Conflict):
        ports.add(ada, "lab", "more", 8000)
    assert len(ports.rows_of(lab)) == limits.PORTS_PER_WORKSPACE


def test_a_host_port_that_somebody_took_in_between(ada: Caller, far: FarEnd, lab: str) -> None:
    refused: list[int] = []

    def answer(call: Any) -> Any:
        if refused:
            return {}
        refused.append(call.args["host_port"])
        return "conflict"

    far.answers["port.open"] = answer
    record = ports.add(ada, "lab", "web", 8000)
    assert record["state"] == "open"
    assert record["host_port"] != refused[0]
    assert opened(far) == [(refused[0], 8000), (record["host_port"], 8000)]
    assert ports.rows_of(lab)[0].host_port == record["host_port"]


@pytest.mark.parametrize(
    ("code", "error"),
    [
        ("conflict", errors.PortUnavailable),
        ("failed", errors.EngineFailed),
        ("unavailable", errors.EngineUnavailable),
    ],
)
def test_what_cannot_be_opened_leaves_no_row(
    ada: Caller, far: FarEnd, lab: str, code: str, error: type[errors.SvcError]
) -> None:
    far.answers["port.open"] = code
    with pytest.raises(error):
        ports.add(ada, "lab", "web", 8000)
    assert ports.rows_of(lab) == []
    assert len(opened(far)) == (ports.TRIES if code == "conflict" else 1)


def test_add_to_one_that_ended_unseen(ada: Caller, far: FarEnd, lab: str) -> None:
    far.answers |= {"port.open": "not_running", "ctr.inspect": {"exists": True, "status": "exited"}}
    assert ports.add(ada, "lab", "web", 8000)["state"] == "closed"
    assert states.find(ada, "lab").status == "stopped"


def test_remove(ada: Caller, far: FarEnd, lab: str) -> None:
    host_port = ports.add(ada, "lab", "web", 8000)["host_port"]
    ports.remove(ada, "lab", "web")
    assert far.calls[-1].verb.name == "port.close"
    assert far.calls[-1].args == {"id": lab, "host_port": host_port}
    assert ports.rows_of(lab) == []
    with pytest.raises(errors.NotFound) as caught:
        ports.remove(ada, "lab", "web")
    assert caught.value.hint == "svc ws ports lab"


def test_a_port_that_cannot_be_closed_stays(ada: Caller, far: FarEnd, lab: str) -> None:
    ports.add(ada, "lab", "web", 8000)
    far.answers["port.close"] = "unavailable"
    with pytest.raises(errors.EngineUnavailable):
        ports.remove(ada, "lab", "web")
    assert len(ports.rows_of(lab)) == 1
    far.answers["port.close"] = "not_running"
    ports.remove(ada, "lab", "web")
    assert ports.rows_of(lab) == []


def test_another_users_do_not_exist(bob: Caller, boss: Caller, far: FarEnd, lab: str) -> None:
    for caller in (bob, boss):
        with pytest.raises(errors.NotFound):
            ports.listing(caller, lab)
        with pytest.raises(errors.NotFound):
            ports.add(caller, lab, "web", 80)
        with pytest.raises(errors.NotFound):
            ports.remove(caller, lab, "web")
    assert far.verbs() == []


# --- listing and restoring --------------------------------------------------------------------


def test_listing_of_a_stopped_one(ada: Caller, far: FarEnd, stopped: str) -> None:
    ports.add(ada, "lab", "web", 8000)
    [record] = ports.listing(ada, "lab")["items"]
    assert (record["state"], record["connections"]) == ("closed", 0)
    assert far.verbs() == []


def test_listing_of_a_running_one(ada: Caller, far: FarEnd, lab: str) -> None:
    host_port = ports.add(ada, "lab", "web", 8000)["host_port"]
    far.answers["port.list"] = held((host_port, 8000), connections=3, refused=7)
    [record] = ports.listing(ada, "lab")["items"]
    assert (record["state"], record["connections"], record["refused"]) == ("open", 3, 7)
    assert record["listens"] is None
    for listens in (True, False, None):
        far.answers["port.list"] = held((host_port, 8000), listens=listens)
        assert ports.listing(ada, "lab")["items"][0]["listens"] is listens
    assert len(opened(far)) == 1


def test_one_that_is_open_to_others_than_its_row_says_is_opened_anew(
    ada: Caller, far: FarEnd, lab: str
) -> None:
    host_port = ports.add(ada, "lab", "web", 8000)["host_port"]
    far.answers["port.list"] = held((host_port, 8000), access="host")
    assert ports.listing(ada, "lab")["items"][0]["access"] == "owner"
    assert far.verbs()[-2:] == ["port.close", "port.open"]
    assert far.calls[-1].args["access"] == "owner"


def test_one_for_every_user_of_the_host(ada: Caller, far: FarEnd, lab: str) -> None:
    assert ports.add(ada, "lab", "web", 8000, access="host")["access"] == "host"
    assert far.calls[-1].args["access"] == "host"
    assert [row.access for row in ports.rows_of(lab)] == ["host"]
    (detail,) = database.execute_sql("SELECT detail_json FROM audit WHERE outcome = 'begun'").fetchone()
    assert json.loads(detail)["access"] == "host"


def test_listing_opens_what_the_shim_lost_and_closes_what_it_should_not_have(
    ada: Caller, far: FarEnd, lab: str
) -> None:
    lost = ports.add(ada, "lab", "lost", 8000)["host_port"]
    other = ports.add(ada, "lab", "other", 8001)["host_port"]
    far.answers["port.list"] = held((other, 22), (29999, 80))
    records = ports.listing(ada, "lab")["items"]
    assert [record["state"] for record in records] == ["open", "open"]
    assert opened(far)[2:] == [(lost, 8000), (other, 8001)]
    closed = [call.args["host_port"] for call in far.calls if call.verb.name == "port.close"]
    assert closed == [other, 29999]


def test_listing_shows_what_cannot_be_opened(ada: Caller, far: FarEnd, lab: str) -> None:
    ports.add(ada, "lab", "web", 8000)
    far.answers["port.open"] = "failed"
    assert ports.listing(ada, "lab")["items"][0]["state"] == "closed"


@pytest.mark.parametrize("verb", ["port.list", "port.open"])
def test_listing_of_one_that_ended_unseen(ada: Caller, far: FarEnd, lab: str, verb: str) -> None:
    ports.add(ada, "lab", "web", 8000)
    far.answers |= {verb: "not_running"}
    far.answers["ctr.inspect"] = {"exists": True, "status": "exited"}
    assert ports.listing(ada, "lab")["items"][0]["state"] == "closed"
    assert states.find(ada, "lab").status == "stopped"


@pytest.mark.parametrize(
    "rows",
    [
        None,
        {},
        [5],
        held((0, 1))["ports"],
        held((65536, 1))["ports"],
        held((1, True))["ports"],
        held((1, 1), connections=-1)["ports"],
        held((1, 1), refused=-1)["ports"],
        held((1, 1), access="everybody")["ports"],
        [{"host_port": 1, "container_port": 1, "access": "owner", "refused": 0}],
        held(*[(1, 1)] * 1000)["ports"],
    ],
)
def test_a_hostile_agents_answer_is_refused(ada: Caller, far: FarEnd, lab: str, rows: Any) -> None:
    far.answers["port.list"] = {"ports": rows}
    with pytest.raises(errors.EngineFailed):
        ports.listing(ada, "lab")


def test_restore_opens_all_and_raises_nothing(ada: Caller, far: FarEnd, lab: str) -> None:
    one, two, three = (ports.add(ada, "lab", name, 80)["host_port"] for name in ("a", "b", "c"))
    far.calls.clear()
    taken: list[int] = []

    def answer(call: Any) -> Any:
        host_port = call.args["host_port"]
        if host_port == one:
            return "failed"
        if host_port == two:
            taken.append(host_port)
            return "conflict"
        return {}

    far.answers["port.open"] = answer
    ports.restore(ada, states.find(ada, "lab"))
    rows = {row.name: row.host_port for row in ports.rows_of(lab)}
    assert rows["a"] == one
    assert rows["b"] not in (one, two, three)
    assert rows["c"] == three
    assert opened(far)[-1] == (three, 80)


def test_a_port_removed_while_it_is_opened_is_closed_again(ada: Caller, far: FarEnd, stopped: str) -> None:
    host_port = ports.add(ada, "lab", "web", 80)["host_port"]
    row = ports.rows_of(stopped)[0]
    database.execute_sql("DELETE FROM ports")
    ports._open(ada, states.find(ada, "lab"), row)
    assert far.verbs() == ["port.open", "port.close"]
    assert far.calls[-1].args["host_port"] == host_port


def test_one_that_somebody_else_has_just_moved_is_opened_there(ada: Caller, far: FarEnd, lab: str) -> None:
    stale = ports.Port("web", 80, ports.add(ada, "lab", "web", 80)["host_port"], "owner")
    database.execute_sql("UPDATE ports SET host_port = 29499")
    far.answers["port.open"] = lambda call: {} if call.args["host_port"] == 29499 else "conflict"
    assert ports._open(ada, states.find(ada, "lab"), stale).host_port == 29499
    assert "port.close" not in far.verbs()


def test_an_agent_that_does_not_answer_is_waited_for_once(ada: Caller, far: FarEnd, lab: str) -> None:
    """Not thirty seconds for each port: a start after a reboot has one of two places for everybody."""
    for name in ("a", "b", "c"):
        ports.add(ada, "lab", name, 80)
    far.answers["port.open"] = None
    far.calls.clear()
    ports.restore(ada, states.find(ada, "lab"))
    assert far.verbs() == ["port.open"]
    far.calls.clear()
    assert [one["state"] for one in ports.listing(ada, "lab")["items"]] == ["closed"] * 3
    assert far.verbs() == ["port.list", "port.open"]
