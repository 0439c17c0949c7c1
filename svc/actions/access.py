"""Access rules, as values: who may make a request, on which listener and with which credential."""

from __future__ import annotations

from typing import NamedTuple

UNIX, TLS = "unix", "tls"

# Who may call: anyone, any account, any account but root, administrators.
ANYONE, ACCOUNT, MEMBER, ADMIN = "anyone", "account", "member", "admin"
FILES, APPS = "files", "apps"  # scopes of tokens
ONE_APP = "app:"  # begins the only scope of a token that opens one app, and nothing else


class Access(NamedTuple):
    """The access rule of one route."""

    who: str
    listeners: tuple[str, ...] = (UNIX, TLS)
    pat: bool = False  # open to personal access tokens
    scope: str = ""  # open to those with this additional scope
    owner: bool = False  # takes ?owner=, and with it root may call
    stream: bool = False  # `svc api` cannot print it
    credential: str = ""  # creates a credential, which `svc api` never does: the command that does
    ticket: bool = False  # opened by a one-time ticket too
    websocket: bool = False  # of a page of this service alone: its Origin is checked

    def allows_token(self, scopes: frozenset[str]) -> bool:
        """Whether a token with these additional scopes may call."""
        if any(scope.startswith(ONE_APP) for scope in scopes):
            return False
        return self.pat or (self.scope != "" and self.scope in scopes)


ACCOUNTS = Access(ACCOUNT, pat=True)
MEMBERS = Access(MEMBER, pat=True)  # "not available to the root account"
ADMINISTRATORS = Access(ADMIN)
OWNED = Access(MEMBER, pat=True, owner=True)  # administrators may name another owner
OWNER_ONLY = Access(ACCOUNT, pat=True)  # a workspace's inside: administrators and root get owner_only
NO_TOKENS = Access(ACCOUNT)  # sessions and the host's socket: a token makes and ends no credentials
# "Creation is possible only through the CLI"
ON_THE_HOST = Access(MEMBER, listeners=(UNIX,), credential="svc token create --help")
LINK = Access(ACCOUNT, listeners=(UNIX,), credential="svc ws open --help")
LOGIN = Access(ANYONE, listeners=(TLS,))
SESSION_ONLY = Access(ACCOUNT, listeners=(TLS,))
OWN_FILES = Access(MEMBER, scope=FILES)
FILE_STREAMS = Access(MEMBER, scope=FILES, stream=True, ticket=True)
