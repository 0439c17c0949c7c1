"""The loop of the root helper with the root verbs, each performed in a child of its own."""

from __future__ import annotations

from typing import Any

from svc_helper.provision.accounts import VERBS
from svc_helper.provision.verbs import Refusal, failure
from svc_helper.root.agents import Host
from svc_helper.root.log import log
from svc_helper.root.serve import Pending, Server, call_facts, refuse, reply_to
from svc_helper.wire.protocol import Call

ROOT_VERB_S = 60  # at least
ROOT_VERBS_MAX = 8  # at once; they wait for one lock


class ProvisioningServer(Server):
    """Serves the pair `admin`."""

    root_verbs = 0

    def perform_root_verb(self, pending: Pending) -> None:
        """Perform it in a child, which sends the reply itself."""
        if self.single_user and pending.call.verb.name != "registries.write":
            self.end(pending, "refused", "accounts are fixed in single-user mode")
            return
        if self.root_verbs >= ROOT_VERBS_MAX:
            self.end(pending, "unavailable", "too many administrative calls at once")
            return

        def work() -> None:
            self.perform_and_reply(pending)

        def ended(_code: int) -> None:
            self.root_verbs -= 1

        try:
            self.children.fork(
                work,
                ended,
                source="root verbs",
                keep=[pending.reply.fileno()],
                deadline_s=max(ROOT_VERB_S, pending.call.verb.max_timeout_s),
            )
        except OSError as error:
            self.end(pending, "unavailable", f"no child process: {error.strerror}")
            return
        self.root_verbs += 1
        pending.reply.close()

    def perform_and_reply(self, pending: Pending) -> None:
        """In the child: perform the verb, send the reply, log the call."""
        outcome, why = "ok", ""
        try:
            data = perform(self.config.host, pending.call)
            reply_to(pending.reply, {"ok": True, "data": data})
        except Refusal as refusal:
            outcome, why = refusal.code, refusal.message
            refuse(pending.reply, outcome, why)
        log("call", "info", **call_facts(pending, outcome, why))


def perform(host: Host, call: Call) -> dict[str, Any]:
    """Perform one root verb and return the data of its reply; raises Refusal."""
    try:
        return VERBS[call.verb.name](host, call)
    except OSError as error:
        raise failure(error, call.verb.name) from None
