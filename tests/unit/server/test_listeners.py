"""The sockets of root: who owns them, what a stale or foreign file at the path does."""

from __future__ import annotations

import os
import socket
import stat
from pathlib import Path

import pytest
from ports import free_port

from svc.errors import HostRefused
from svc.server.listeners import app_listeners, tcp_listener, unix_listener


def test_everybody_may_connect_and_nobody_else_owns_it(tmp_path: Path) -> None:
    path = str(tmp_path / "run" / "svc.sock")
    with unix_listener(path):
        found = os.stat(path)
        assert stat.S_IMODE(found.st_mode) == 0o666 and found.st_uid == os.geteuid()
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(path)


def test_a_stale_socket_is_replaced(tmp_path: Path) -> None:
    path = str(tmp_path / "svc.sock")
    unix_listener(path).close()
    unix_listener(path).close()


def test_a_second_server_is_refused(tmp_path: Path) -> None:
    path = str(tmp_path / "svc.sock")
    with unix_listener(path), pytest.raises(HostRefused, match="another server is listening"):
        unix_listener(path)


@pytest.mark.parametrize("make", [os.mkdir, lambda path: os.symlink("/etc/passwd", path), os.mkfifo])
def test_what_is_no_socket_is_left_alone(tmp_path: Path, make) -> None:
    path = str(tmp_path / "svc.sock")
    make(path)
    with pytest.raises(HostRefused, match="is not a socket"):
        unix_listener(path)
    assert os.path.lexists(path)


def test_a_directory_that_others_may_change_is_refused(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run").chmod(0o777)
    with pytest.raises(HostRefused, match="can be changed by others"):
        unix_listener(str(tmp_path / "run" / "svc.sock"))


def test_a_taken_port_names_the_command_that_shows_by_whom() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(HostRefused) as refused:
            tcp_listener("127.0.0.1", port)
        assert f":{port}" in refused.value.hint


def both(port: int) -> list[str]:
    """The addresses on which somebody listens there now."""
    found = []
    for address in ("127.0.0.1", "::1"):
        try:
            socket.create_connection((address, port), timeout=1).close()
            found.append(address)
        except OSError:
            continue
    return found


def test_apps_have_both_addresses_of_loopback() -> None:
    port = free_port()
    made = app_listeners(port)
    assert both(port) == ["127.0.0.1", "::1"][: len(made)]
    for each in made:
        each.close()
    assert app_listeners(0) == []


@pytest.mark.parametrize(("family", "address"), [(socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")])
def test_who_has_one_of_them_gets_no_visitors_of_apps(
    capfd: pytest.CaptureFixture[str], family: socket.AddressFamily, address: str
) -> None:
    """The other address stays closed: half of the browsers would ask the one, half the other."""
    try:
        squatter = socket.create_server((address, 0), family=family)
    except OSError:
        pytest.skip("this host has no IPv6")
    with squatter:
        port = squatter.getsockname()[1]
        assert app_listeners(port) == []
        assert both(port) == [address]
    assert f"cannot listen on port {port} of {address}" in capfd.readouterr().err
