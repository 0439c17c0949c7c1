"""Enabling a template as the API does, with the check for a built image."""

from functools import partial

from svc.domain.images import builds
from svc.domain.templates import reviews

enable = partial(reviews.enable, is_built=builds.is_built)
