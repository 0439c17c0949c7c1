"""The listening sockets: the peer-credential listener, the TLS listener and that of apps on loopback.

Root binds them and passes them on by descriptor: no unprivileged process can bind them, and
a restarted child finds them unchanged.
"""

from __future__ import annotations

import contextlib
import errno
import os
import socket
import stat

from svc.descriptors import SO_PASSRIGHTS
from svc.errors import HostRefused
from svc.host.owner import repair_command
from svc.log import log
from svc.service_commands import status_command
from svc_helper.wire import sock_diag

BACKLOG = 256
DOCTOR = "sudo svc admin doctor"
WITHOUT_IPV6 = (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT)


def unix_listener(path: str) -> socket.socket:
    """The host-local socket, "a root-owned Unix socket": anyone may connect, SO_PEERCRED identifies them.

    Replaces a socket file without a listener; raises HostRefused for anything else at the path.
    """
    directory = os.path.dirname(path)
    os.makedirs(directory, mode=0o755, exist_ok=True)
    parent = os.stat(directory)
    if parent.st_uid != os.geteuid() or parent.st_mode & 0o022:
        raise HostRefused(f"{directory} can be changed by others than its owner", hint=_repair())
    _remove_stale(path)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(path)
    os.chmod(path, 0o666)  # noqa: S103  access is decided by SO_PEERCRED, not by the file mode
    refuse_descriptors(listener)
    listener.listen(BACKLOG)
    return listener


def _repair() -> str:
    return repair_command() if os.geteuid() == 0 else "set SVC_SOCKET to a path that only you can change"


def refuse_descriptors(listener: socket.socket) -> None:
    """Have the kernel refuse descriptors that clients send with a request, on all connections to come.

    Accepted sockets have it from the listener.

    Older kernels cannot: there the listener's process looks out for them.
    """
    with contextlib.suppress(OSError):
        listener.setsockopt(socket.SOL_SOCKET, SO_PASSRIGHTS, 0)


def _remove_stale(path: str) -> None:
    try:
        found = os.lstat(path)
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(found.st_mode):
        raise HostRefused(f"{path} exists and is not a socket", hint=_repair())
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(1)
        try:
            probe.connect(path)
        except ConnectionRefusedError:
            os.unlink(path)
        except OSError as error:
            raise HostRefused(
                f"{path} is in use: {error.strerror or error}", hint=status_command(DOCTOR)
            ) from None
        else:
            raise HostRefused(f"another server is listening on {path}", hint=status_command(DOCTOR))


def tcp_listener(host: str, port: int) -> socket.socket:
    """The TLS listener on one address, or on all (IPv4 and IPv6) if host is empty."""
    try:
        if host:
            family = socket.AF_INET6 if ":" in host else socket.AF_INET
            return socket.create_server((host, port), family=family, backlog=BACKLOG)
        if socket.has_dualstack_ipv6():
            return socket.create_server(
                ("", port), family=socket.AF_INET6, backlog=BACKLOG, dualstack_ipv6=True
            )
        return socket.create_server(("", port), backlog=BACKLOG)
    except OSError as error:
        raise HostRefused(
            f"cannot listen on port {port}: {error.strerror}", hint=f"ss -ltnp 'sport = :{port}'"
        ) from None


def app_listeners(port: int) -> list[socket.socket]:
    """The listeners of apps on 127.0.0.1 and ::1, both or none; none for the port 0.

    Whoever had one of the two would be where browsers look for the apps of others. A host
    without IPv6 has the first alone. A port that is taken is logged: the service has no less for it.
    """
    if port == 0:
        return []
    listening: list[socket.socket] = []
    try:
        for family, address in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")):
            try:
                listening.append(socket.create_server((address, port), family=family, backlog=BACKLOG))
            except OSError as error:
                if family != socket.AF_INET6 or error.errno not in WITHOUT_IPV6:
                    raise
    except OSError as error:
        for each in listening:
            each.close()
        why = f"cannot listen on port {port} of {address}: {error.strerror}"
        log("supervisor", f"no apps in the browser on this host: {why}", "error")
        return []
    return listening


def netlink() -> int:
    """A descriptor that tells whose a loopback connection is; of /dev/null where the kernel has none.

    The app has a network namespace of its own, in which it could ask about nothing.
    """
    try:
        return sock_diag.connected().detach()
    except OSError:
        return os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
