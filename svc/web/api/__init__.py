"""The JSON API: one file per noun."""

from svc.web.api import (
    admin,
    auth,
    fs,
    images,
    launchers,
    operations,
    ports,
    service,
    streams,
    template_bundles,
    templates,
    tokens,
    usage,
    users,
    workspaces,
)

BLUEPRINTS = (
    service.blueprint,
    auth.blueprint,
    users.blueprint,
    tokens.blueprint,
    usage.blueprint,
    workspaces.blueprint,
    launchers.blueprint,
    ports.blueprint,
    streams.blueprint,
    templates.blueprint,
    template_bundles.blueprint,
    images.blueprint,
    operations.blueprint,
    fs.blueprint,
    admin.blueprint,
)
