"""The headers that say what a page may do (Content-Security-Policy, Trusted Types), and those of all else."""

from __future__ import annotations

# A page loads and calls nothing but this service, runs no script that is not a file of it, is framed by
# nobody, and has no policy that turns text into mark-up: with Trusted Types, `innerHTML` throws.
_PAGE = (
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self'",
    "connect-src 'self'",
    "form-action 'self'",
    "base-uri 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
)
PAGE = {
    "Cache-Control": "no-cache",  # kept, and asked for by its ETag: a new release is seen at once
    "Content-Security-Policy": "; ".join(_PAGE),
    "Cross-Origin-Opener-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
}
STATIC = {"Cache-Control": "public, max-age=31536000, immutable"}  # the path has the digest of the content
# Of every answer over TLS that has none of its own: data, errors, downloads. Nothing in them is a page, and
# no page of another port of this host may load them as a script, a picture or a frame.
OTHERS = {
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
}
