"""Automatic findings for the review of a template, each {code, message, file, line, diff}.

`static` findings are stored with a revision: root, ports, variables that look like secrets, what a build
would refuse, the bundle's digest, changes. `live` ones depend on the host: the registry policy, the GPUs.
None contains the value of a secret variable.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from svc.domain import image_users, registries
from svc.domain.gpus import hardware
from svc.domain.sizes import format_bytes
from svc.domain.templates import contexts, diffs, dockerfile_review, rows
from svc.domain.templates.bundle_paths import DOCKERFILE
from svc.domain.templates.parts import full_port
from svc.limits import FINDINGS_MAX, PORT_KINDS
from svc_helper.wire.limits import ACCESS_HOST

if TYPE_CHECKING:
    from svc.domain.gpus.gpus import Hardware
    from svc.domain.principal import Caller
    from svc.domain.templates.dockerfiles import Dockerfile
    from svc.domain.templates.rows import Source, Template


Finding = dict[str, Any]

NAMES_MAX = 10
_SINCE = re.compile(r"changed since revision ([0-9]+)")  # as _changed and the names of its revisions
_LINE = re.compile(r"line ([0-9]+): ")
# Values that are keys by their form, whatever the variable's name is.
_SECRET_VALUE = re.compile(
    r"-----BEGIN [A-Z ]*PRIVATE KEY|\b(?:svc_pat|ghp|gho|ghs|glpat|hf|sk|xoxb)[_-][A-Za-z0-9_-]{16,}"
    r"|\bAKIA[0-9A-Z]{16}\b|://[^/\s:@]+:[^/\s:@]+@"
)
_CUDA_TAG = re.compile(r"cuda[:_-]?v?([1-9][0-9]?\.[0-9]{1,2})")


class Content(NamedTuple):
    """The reviewed parts of a revision."""

    source: Source
    spec: dict[str, Any]
    sealed: dict[str, str]


# --- findings of a revision ------------------------------------------------------------------------


def static(
    content: Content, dockerfile: Dockerfile | None, earlier: Iterable[tuple[str, Content]] = ()
) -> list[Finding]:
    """The findings of a new revision with this Dockerfile; `earlier` has those to compare, by name."""
    found = [*islice(_static(content, dockerfile), FINDINGS_MAX)]
    return found + [change for name, before in earlier for change in _changed(name, before, content)]


def _static(content: Content, dockerfile: Dockerfile | None) -> Iterator[Finding]:
    source, spec = content.source, content.spec
    if dockerfile is not None:
        for one in dockerfile_review.findings(dockerfile):
            yield _finding(one["code"], f"Dockerfile: {one['message']}", line=one["line"])
        yield from _refused(dockerfile)
        if not spec["run_as"] and (own := dockerfile_review.own_user(dockerfile)):
            yield _finding(image_users.CODE, f"Dockerfile: {own['message']}", line=own["line"])
    if spec["run_as"] and spec["run_as"]["uid"] == 0:
        yield _finding("root_user", "run_as is root")
    if spec["ports"]:
        yield _finding("ports", f"maps the ports {_listed([_port(port) for port in spec['ports']])}")
    yield from _variables(content)
    if source.image_ref is not None and "@sha256:" not in source.image_ref:
        yield _finding("image_not_pinned", f"{source.image_ref} has no digest, so it may change")
    if source.bundle_digest is not None:
        yield _finding("bundle_digest", f"came in the bundle {source.bundle_digest}")


def _port(of_document: dict[str, Any]) -> str:
    port = full_port(of_document)
    facts = [str(port["container_port"] or "the host's number")]
    facts += [port["kind"]] if port["kind"] != PORT_KINDS[0] else []
    facts += ["open to every user of the host"] if port["access"] == ACCESS_HOST else []
    return f"{port['name']} ({', '.join(facts)})"


def _refused(dockerfile: Dockerfile) -> Iterator[Finding]:
    """The reasons why a build would be refused, apart from the registry policy, which is a live finding."""
    always = dockerfile_review.refusals(dockerfile, own=True, allows=bool)  # every image has a name
    for one in dockerfile_review.refusals(dockerfile, own=False, allows=bool):
        who = "nobody can build this" if one in always else "only its author can build this"
        line = int(_LINE.match(one["message"])[1])  # type: ignore[index]  # each refusal begins with it
        yield _finding("refused", f"Dockerfile: {one['message']}; {who}", line=line)


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
        and (dockerfile_review.is_secret_name(one["name"]) or _SECRET_VALUE.search(one.get("value") or ""))
    ]
    if bare:
        message = "everybody who sees the template can read what look like secrets:"
        yield _finding("secret_env", f"{message} {_listed(bare)}")
    yield from _unset(spec, content.sealed)


def _unset(spec: dict[str, Any], sealed: dict[str, str]) -> Iterator[Finding]:
    unset = [one["name"] for one in spec["env"] if one.get("secret") and one["name"] not in sealed]
    if unset:
        message = f"secret variables without a value, which no workspace gets: {_listed(unset)}"
        yield _finding("secret_unset", message)


def with_unset(found: list[Finding], spec: dict[str, Any], sealed: dict[str, str]) -> list[Finding]:
    """The findings of a revision that has only these encrypted values now."""
    return [one for one in found if one["code"] != "secret_unset"] + [*_unset(spec, sealed)]


# --- changes ---------------------------------------------------------------------------------------


def _changed(name: str, before: Content, after: Content) -> Iterator[Finding]:
    old, new = documents(before, after)
    parts = [key for key in new if old[key] != new[key]]
    lines = diffs.unified("template.json", pretty(old), pretty(new))
    dockerfiles = before.source.dockerfile or "", after.source.dockerfile or ""
    if dockerfiles[0] != dockerfiles[1]:
        parts.append("Dockerfile")
        lines += diffs.unified("Dockerfile", *dockerfiles)
    if before.source.context != after.source.context:
        parts.append("build context")
        listings = contexts.listing(before.source.context), contexts.listing(after.source.context)
        lines += diffs.unified("build context", *listings)
    if parts:
        message = f"changed since {name}: {', '.join(parts)}"
        yield _finding("changed", message, diffs.bounded(lines))


def documents(before: Content, after: Content) -> tuple[dict[str, Any], dict[str, Any]]:
    """Both as documents to compare, without the values of variables that are secret in either."""
    secret = {one["name"] for content in (before, after) for one in content.spec["env"] if one.get("secret")}

    def document(content: Content) -> dict[str, Any]:
        source = {
            "type": content.source.type, "image_ref": content.source.image_ref,
            "local_only": content.source.local_only,
        }  # fmt: skip
        env = [
            one | {"value": _placeholder(one["name"], content, before)} if one["name"] in secret else one
            for one in content.spec["env"]
        ]
        return {"source": source} | content.spec | {"env": env}

    return document(before), document(after)


def _placeholder(name: str, content: Content, before: Content) -> str:
    """The text in place of a secret value."""
    value = content.sealed.get(name)
    if value is None:
        plain = any(one["name"] == name and not one.get("secret") for one in content.spec["env"])
        return "(not shown)" if plain else "(not set)"
    return "(set)" if before.sealed.get(name, value) == value else "(changed)"


def pretty(document: dict[str, Any]) -> str:
    """A document as text to compare."""
    return json.dumps(document, indent=2, sort_keys=True, ensure_ascii=False)


# --- findings of the host --------------------------------------------------------------------------


def present(caller: Caller, template: Template) -> list[Finding]:
    """All findings now, as the caller may read them.

    The image in the caller's store says more of its user than its Dockerfile.
    """
    found = live(template) + template.findings
    if template.owner_id is None and not caller.administers:
        found = [_without_drafts(caller, template, one) for one in found]
    if not template.spec["run_as"] and (own := image_users.finding(caller, template.image_ref)):
        message, option = own
        if option:
            message += f"; to set it: svc template edit {rows.reference(caller.user_id, template.id)}{option}"
        others = [one for one in found if one["code"] != image_users.CODE]
        found = [_finding(image_users.CODE, message), *others]
    return found


def _without_drafts(caller: Caller, template: Template, found: Finding) -> Finding:
    """The finding, without a diff that has lines of a revision that the caller may not read."""
    if found["diff"] is None:
        return found
    since = _SINCE.match(found["message"])
    is_visible = since is not None and rows.sees(caller, template, int(since[1]))
    return found if is_visible else found | {"diff": None}


def live(template: Template) -> list[Finding]:
    """The present findings of the registry policy and of this host's GPUs."""
    images = [template.image_ref] if template.source_type == "registry" else []
    images += [image for image in template.images if image not in images]
    spec = template.spec
    return [
        *(_finding(found["code"], found["message"]) for found in registries.findings(images)),
        *_beyond(spec["gpu"], spec["defaults"].get("gpu_count") or 0, images),
    ]


def _beyond(needs: dict[str, Any], default: int, images: list[str]) -> Iterator[Finding]:
    min_cuda = needs.get("min_cuda")
    tagged = [(image, found[1]) for image in images if (found := _CUDA_TAG.search(image))]
    vram, capability = needs.get("min_vram_bytes"), needs.get("min_compute_capability")
    if not (min_cuda or tagged or vram or capability or default):
        return
    host = hardware.inventory()
    if default or vram or capability:
        count = max(1, default)
        fit = sum(gpu.leasable and hardware.fits(gpu, needs) for gpu in host.gpus)
        if fit < count:
            need, special = _gpus(count, vram, capability), bool(vram or capability)
            yield _finding("gpu_beyond_host", f"needs {need}; this host has {_has(host, fit, special)}")
    if min_cuda and _is_newer(min_cuda, host.max_cuda):
        yield _finding("cuda_beyond_host", f"needs CUDA {min_cuda}; {_runs(host)}")
    for image, cuda in tagged:
        if _is_newer(cuda, host.max_cuda):
            yield _finding("cuda_beyond_host", f"{image} is made for CUDA {cuda}; {_runs(host)}")


def _is_newer(required: str, available: str | None) -> bool:
    return available is None or hardware.version(required) > hardware.version(available)


def _gpus(count: int, vram: int | None, capability: str | None) -> str:
    each = [f"{format_bytes(vram)} of memory"] if vram else []
    each += [f"compute capability {capability}"] if capability else []
    gpus = "1 GPU" if count == 1 else f"{count} GPUs"
    return f"{gpus} with {' and '.join(each)}" if each else gpus


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


def _listed(names: Iterable[str]) -> str:
    names = list(names)
    more = f" and {len(names) - NAMES_MAX} more" if len(names) > NAMES_MAX else ""
    return f"{', '.join(names[:NAMES_MAX])}{more}"


def damaged(message: str) -> Finding:
    """The only finding about a revision whose documents cannot be read."""
    return _finding("damaged", message)


def _finding(code: str, message: str, diff: str | None = None, *, line: int | None = None) -> Finding:
    """A finding; one with a line is of that line of the Dockerfile."""
    file = None if line is None else DOCKERFILE
    return {"code": code, "message": message, "file": file, "line": line, "diff": diff}
