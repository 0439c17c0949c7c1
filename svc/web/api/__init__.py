"""The JSON API: one file per noun."""

from svc.web.api import (
    admin,
    auth,
    events,
    fs,
    images,
    launchers,
    operations,
    ports,
    reports,
    service,
    streams,
    template_bundles,
    template_contexts,
    template_revisions,
    templates,
    terminals,
    tickets,
    tokens,
    usage,
    users,
    workspaces,
)

BLUEPRINTS = tuple(
    module.blueprint
    for module in (
        service, auth, users, tokens, tickets, usage, workspaces, launchers, ports, streams, events,
        terminals, templates, template_bundles, template_contexts, template_revisions, images, operations,
        fs, admin, reports,
    )
)  # fmt: skip
