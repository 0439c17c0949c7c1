"""What the machine sees in a template before a person reviews it: findings, {code, message, diff}.

Some stay true for a revision and are kept with it (`static`): root, ports, variables that look like
secrets, what a build would refuse, the bundle it came in, what changed. Others depend on the host and are
looked at each time (`live`): the registry policy, the GPUs. A secret variable's value is in none of them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from svc.domain import registries
from svc.domain.gpus import hardware
from svc.domain.sizes import format_bytes
from svc.domain.templates import diffs, dockerfile_review
from svc.limits import FINDINGS_MAX

if TYPE_CHECKING:  # revisions keep what is found here, records show it
    from svc.domain.gpus.gpus import Hardware
    from svc.domain.templates.dockerfiles import Dockerfile
    from svc.domain.templates.rows import Source, Template


Finding = dict[str, Any]

NAMES_SHOWN = 10
# What is a key by its look, whatever the variable is called; each of a form that nothing else has.
_SECRET_VALUE = re.compile(
    r"-----BEGIN [A-Z ]*PRIVATE KEY|\b(?:svc_pat|ghp|gho|ghs|glpat|hf|sk|xoxb)[_-][A-Za-z0-9_-]{16,}"
    r"|\bAKIA[0-9A-Z]{16}\b|://[^/\s:@]+:[^/\s:@]+@"
)
_MADE_FOR_CUDA = re.compile(r"cuda[:_-]?v?([1-9][0-9]?\.[0-9]{1,2})")


class Content(NamedTuple):
    """What a revision is made of, as far as a review looks at it."""

    source: Source
    spec: dict[str, Any]
    sealed: dict[str, str]


# --- what stays true of a revision --------------------------------------------------------------


def static(
    content: Content, dockerfile: Dockerfile | None, earlier: Iterable[tuple[str, Content]] = ()
) -> list[Finding]:
    """The findings of a new revision, which has this Dockerfile; `earlier` ones by what they are called."""
    found = [*islice(_static(content, dockerfile), FINDINGS_MAX)]
    return found + [change for name, before in earlier for change in _changed(name, before, content)]


def _static(content: Content, dockerfile: Dockerfile | None) -> Iterator[Finding]:
    source, spec = content.source, content.spec
    if dockerfile is not None:
        for one in dockerfile_review.findings(dockerfile):
            yield _finding(one["code"], f"Dockerfile: {one['message']}")
        yield from _refused(dockerfile)
    if spec["run_as"] and spec["run_as"]["uid"] == 0:
        yield _finding("root_user", "run_as is root")
    if spec["ports"]:
        ports = [f"{port['name']} ({port['container_port']})" for port in spec["ports"]]
        yield _finding("ports", f"maps the ports {_listed(ports)}")
    yield from _variables(content)
    if source.image_ref is not None and "@sha256:" not in source.image_ref:
        yield _finding("image_not_pinned", f"{source.image_ref} has no digest, so it may change")
    if source.bundle_digest is not None:
        yield _finding("bundle_digest", f"came in the bundle {source.bundle_digest}")


def _refused(dockerfile: Dockerfile) -> Iterator[Finding]:
    """Why a build would be refused; which registries it may take from is asked anew each time.

    What is off any list here is an image that the file alone does not tell.
    """
    always = dockerfile_review.refusals(dockerfile, own=True, allows=_anything)
    for one in dockerfile_review.refusals(dockerfile, own=False, allows=_anything):
        who = "nobody can build this" if one in always else "only who wrote it can build this"
        yield _finding("refused", f"Dockerfile: {one['message']}; {who}")


def _anything(_image: str) -> bool:
    return True


def _variables(content: Content) -> Iterator[Finding]:
    spec = content.spec
    groups = [
        ("env", spec["env"]),
        ("defaults.env", spec["defaults"].get("env", [])),
        *((f"the launcher {launcher['name']}", launcher["env"]) for launcher in spec["launchers"]),
    ]
    bare = [
        f"{one['name']} ({where})"
        for where, env in groups
        for one in env
        if not one.get("secret")
        and (dockerfile_review.looks_secret(one["name"]) or _is_key(one.get("value")))
    ]
    if bare:
        words = "everybody who sees the template can read what look like secrets:"
        yield _finding("secret_env", f"{words} {_listed(bare)}")
    unset = [one["name"] for one in spec["env"] if one.get("secret") and one["name"] not in content.sealed]
    if unset:
        message = f"secret variables without a value, which no workspace gets: {_listed(unset)}"
        yield _finding("secret_unset", message)


def _is_key(value: str | None) -> bool:
    return value is not None and _SECRET_VALUE.search(value) is not None


# --- what changed ---------------------------------------------------------------------------------


def _changed(name: str, before: Content, after: Content) -> Iterator[Finding]:
    old, new = _documents(before, after)
    parts = [key for key in new if old[key] != new[key]]
    lines = diffs.unified("template.json", _pretty(old), _pretty(new))
    dockerfiles = before.source.dockerfile or "", after.source.dockerfile or ""
    if dockerfiles[0] != dockerfiles[1]:
        parts.append("Dockerfile")
        lines += diffs.unified("Dockerfile", *dockerfiles)
    if parts:
        message = f"changed since {name}: {', '.join(parts)}"
        yield _finding("changed", message, diffs.shown(lines))


def _documents(before: Content, after: Content) -> tuple[dict[str, Any], dict[str, Any]]:
    """Both as documents to compare, in which a variable that is secret in either has no value."""
    secret = {one["name"] for content in (before, after) for one in content.spec["env"] if one.get("secret")}

    def document(content: Content) -> dict[str, Any]:
        source = {
            "type": content.source.type, "image_ref": content.source.image_ref,
            "context": content.source.context, "local_only": content.source.local_only,
        }  # fmt: skip
        env = [
            one | {"value": _instead(one["name"], content, before)} if one["name"] in secret else one
            for one in content.spec["env"]
        ]
        return {"source": source} | content.spec | {"env": env}

    return document(before), document(after)


def _instead(name: str, content: Content, before: Content) -> str:
    """What a difference shows in place of a secret value."""
    value = content.sealed.get(name)
    if value is None:
        plain = any(one["name"] == name and not one.get("secret") for one in content.spec["env"])
        return "(not shown)" if plain else "(not set)"
    return "(set)" if before.sealed.get(name, value) == value else "(changed)"


def _pretty(document: dict[str, Any]) -> str:
    return json.dumps(document, indent=2, sort_keys=True, ensure_ascii=False)


# --- what depends on the host ---------------------------------------------------------------------


def live(template: Template) -> list[Finding]:
    """What the registry policy and the GPUs of this host say of a template now."""
    images = [template.image_ref] if template.source_type == "registry" else []
    images += [image for image in template.images if image not in images]
    spec = template.spec
    return [
        *(_finding(found["code"], found["message"]) for found in registries.findings(images)),
        *_beyond(spec["gpu"], spec["defaults"].get("gpu_count") or 0, images),
    ]


def _beyond(needs: dict[str, Any], default: int, images: list[str]) -> Iterator[Finding]:
    wanted_cuda = needs.get("min_cuda")
    made_for = [(image, found[1]) for image in images if (found := _MADE_FOR_CUDA.search(image))]
    vram, capability = needs.get("min_vram_bytes"), needs.get("min_compute_capability")
    if not (wanted_cuda or made_for or vram or capability or default):
        return
    host = hardware.inventory()
    if default or vram or capability:
        count = max(1, default)
        fit = sum(gpu.leasable and hardware.fits(gpu, needs) for gpu in host.gpus)
        if fit < count:
            wanted, special = _gpus(count, vram, capability), bool(vram or capability)
            yield _finding("gpu_beyond_host", f"needs {wanted}; this host has {_has(host, fit, special)}")
    if wanted_cuda and _is_newer(wanted_cuda, host.max_cuda):
        yield _finding("cuda_beyond_host", f"needs CUDA {wanted_cuda}; {_runs(host)}")
    for image, cuda in made_for:
        if _is_newer(cuda, host.max_cuda):
            yield _finding("cuda_beyond_host", f"{image} is made for CUDA {cuda}; {_runs(host)}")


def _is_newer(wanted: str, there: str | None) -> bool:
    return there is None or hardware.version(wanted) > hardware.version(there)


def _gpus(count: int, vram: int | None, capability: str | None) -> str:
    each = [f"{format_bytes(vram)} of memory"] if vram else []
    each += [f"compute capability {capability}"] if capability else []
    words = "1 GPU" if count == 1 else f"{count} GPUs"
    return f"{words} with {' and '.join(each)}" if each else words


def _has(host: Hardware, fit: int, special: bool) -> str:
    if not host.gpus:
        return "none"
    models = _listed(
        dict.fromkeys(
            f"{gpu.model} ({format_bytes(gpu.vram_bytes or 0)}, {gpu.compute_capability or '?'})"
            for gpu in host.gpus
        )
    )
    like = f"{fit or 'none'} like that, of {len(host.gpus)}" if special else str(fit)
    return f"{like}: {models}"


def _runs(host: Hardware) -> str:
    if host.max_cuda is None:
        return "this host has no GPU driver"
    return f"this host's driver supports up to {host.max_cuda}"


def _listed(words: Iterable[str]) -> str:
    words = list(words)
    more = f" and {len(words) - NAMES_SHOWN} more" if len(words) > NAMES_SHOWN else ""
    return f"{', '.join(words[:NAMES_SHOWN])}{more}"


def _finding(code: str, message: str, diff: str | None = None) -> Finding:
    return {"code": code, "message": message, "diff": diff}
