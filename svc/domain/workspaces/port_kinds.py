"""What is behind a port, and so how a person comes to it: a URL to open, or a command to run.

The same for one port in Python and for a list in SQL: both are made from the table below.
"""

from __future__ import annotations

from svc.limits import PORT_KINDS, PORT_USERS

OF_APPS = ("http",)  # kinds that a browser opens at an address of their own
_HTTP = "http://127.0.0.1:{port}"
_POSTGRES = "postgresql://{user}@127.0.0.1:{port}/"
_URLS = {"http": _HTTP, "https": "https://127.0.0.1:{port}", "postgres": _POSTGRES}
_CONNECT = _URLS | {
    "tcp": "127.0.0.1:{port}",
    "ssh": "ssh -p {port} {user}@127.0.0.1",
    "postgres": f"psql {_POSTGRES}",
}


def url(kind: str, host_port: int, user: str | None) -> str | None:
    """Its address on this host as a URL; None where no program opens one: tcp, ssh."""
    return _filled(_URLS[kind], kind, host_port, user) if kind in _URLS else None


def connect(kind: str, host_port: int, user: str | None) -> str:
    """What a person on this host opens, or runs."""
    return _filled(_CONNECT[kind], kind, host_port, user)


def _filled(form: str, kind: str, host_port: int, user: str | None) -> str:
    return form.format(port=host_port, user=user or PORT_USERS.get(kind))


def url_sql(table: str) -> str:
    """url() of a row of `ports`."""
    return _case(table, _URLS)


def connect_sql(table: str) -> str:
    """connect() of a row of `ports`."""
    return _case(table, _CONNECT)


def _case(table: str, forms: dict[str, str]) -> str:
    cases = " ".join(
        f"WHEN '{kind}' THEN '{_sql(table, kind, forms[kind])}'" for kind in PORT_KINDS if kind in forms
    )
    return f"CASE {table}.kind {cases} END"


def _sql(table: str, kind: str, form: str) -> str:
    user = f"' || coalesce({table}.user, '{PORT_USERS.get(kind, '')}') || '"
    return form.format(port=f"' || {table}.host_port || '", user=user)
