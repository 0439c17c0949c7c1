"""Refusals and findings for a Dockerfile.

Refused before a build: mounts (CVE-2024-1753, -9407, -9675, -11218, each a way to the host in buildah
1.28), other builders by `# syntax=`, images of off-list registries (hostile input 34). Instructions of
a base image (ONBUILD) are not in the file; the agent checks for them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Set
from itertools import islice
from typing import Any

from svc.domain import registries
from svc.domain.templates.dockerfiles import (
    FIELD,
    FLAGS,
    PLATFORM_ARGUMENTS,
    Dockerfile,
    Instruction,
    Stage,
    excerpt,
)
from svc.errors import RegistryNotAllowed, ValidationFailed
from svc.limits import REFUSALS_MAX

OFF_LIST = "registry_not_allowed"
UNDETERMINED = "image_undetermined"
REMOTE = ("http://", "https://")
GIT = ("git@", "git://", "ssh://")

_JSON_LIST = re.compile(r'\[\s*(?:"(?:[^"\\]|\\.)*"\s*(?:,\s*"(?:[^"\\]|\\.)*"\s*)*)?\]')
# An open quote extends to the end, so that each quote is matched once.
_QUOTED = re.compile(r"\"(?:[^\"\\]|\\.|\\\Z)*(?:\"|\Z)|'[^']*(?:'|\Z)")
_NAMED = re.compile(r"(?<![^\s])([A-Za-z_][A-Za-z0-9_]*)=")
_SECRET_NAME = re.compile(
    r"passw|passphrase|secret|token|credential|(?:^|[_.-])(?:pass|pwd|api[_.-]?key|key|auth)(?:[_.-]|$)",
    re.IGNORECASE,
)

_OPERATOR = re.compile(r"\$\{[A-Za-z_][A-Za-z0-9_]*(?!:[-+]|[A-Za-z0-9_}])")  # one that buildah 1.28 lacks

Allows = Callable[[str], bool]
Found = dict[str, str]


def refusals(dockerfile: Dockerfile, *, own: bool, allows: Allows) -> list[Found]:
    """The reasons not to build the file, each {code, message}; at most REFUSALS_MAX.

    `own`: the caller wrote the file, and may mount and download in their own build. `allows` is the registry
    policy; while a template is edited, its code `registry_not_allowed` is only a finding.
    """
    return list(islice(_refusals(dockerfile, own, allows), REFUSALS_MAX))


def require(dockerfile: Dockerfile, *, own: bool, allows: Allows) -> None:
    """Raise ValidationFailed, or RegistryNotAllowed if that is the only reason, for a refused file."""
    found = refusals(dockerfile, own=own, allows=allows)
    if not found:
        return
    fields = [{"field": FIELD, **one} for one in found]
    wrong = next((one for one in found if one["code"] != OFF_LIST), None)
    if wrong:
        raise ValidationFailed(f"{FIELD}: {wrong['message']}", fields=fields)
    raise RegistryNotAllowed(
        f"{FIELD}: {found[0]['message']}; an administrator adds registries",
        hint="svc image allowlist",
        fields=fields,
    )


def images(dockerfile: Dockerfile) -> list[str]:
    """The images that a build takes from registries, each once, as far as the file determines them."""
    found: list[str] = []
    for stage, earlier in _with_earlier(dockerfile):
        if stage.parent is None and stage.image and stage.image != "scratch":
            found.append(stage.image)
        for one in stage.instructions:
            stages = frozenset() if one.onbuild else earlier
            found += [source for source in _copied_from(one) if source not in stages]
    return [image for image in dict.fromkeys(found) if _is_whole(image)]


def _is_whole(image: str) -> bool:
    try:
        registries.check_image_ref(image)
    except ValidationFailed:
        return False
    return True


def arguments(dockerfile: Dockerfile) -> set[str]:
    """The names that its ARGs declare and a build may set: not those that the platform determines."""
    ours = [*dockerfile.arguments, *(one for stage in dockerfile.stages for one in stage.instructions)]
    declared = {
        name for one in ours if one.keyword == "ARG" and not one.onbuild for name in _argument_names(one)
    }
    return declared - PLATFORM_ARGUMENTS


def findings(dockerfile: Dockerfile) -> list[dict[str, Any]]:
    """The findings for a reviewer, each with its `line`: root, ports, secrets, images that may change."""
    last = _lineage(dockerfile)
    found = [_user(last, dockerfile.stages[-1].line)]
    exposed = [one for one in last if one.keyword == "EXPOSE" and not one.onbuild]
    ports = [(port, one.line) for one in exposed for port in one.rest.split()]
    found.append(_listed("ports", "opens the ports", ports))
    secrets = [(name, line) for name, line in _set_names(dockerfile) if is_secret_name(name)]
    found.append(_listed("secret_env", "has names that look like secrets:", secrets))
    bases = [(one.image, one.line) for one in dockerfile.stages if one.image and one.image != "scratch"]
    loose = [(image, line) for image, line in bases if "@sha256:" not in image]
    found.append(_listed("image_not_pinned", "without a digest, so they may change:", loose))
    return [one for one in found if one]


def own_user(dockerfile: Dockerfile) -> dict[str, Any]:
    """A finding for an image whose programs do not run as root: {message, line}; empty for any other."""
    users = _users(_lineage(dockerfile))
    user = _user_name(users[-1]) if users else ""
    if not users or "$" in user or _is_root(user):
        return {}
    message = f"runs as {excerpt(users[-1].rest)}, who cannot open /work without run_as; its build says which"
    return {"message": message, "line": users[-1].line}


def is_secret_name(name: str) -> bool:
    """Check whether a variable's name suggests a secret value."""
    return _SECRET_NAME.search(name) is not None


def _refusals(dockerfile: Dockerfile, own: bool, allows: Allows) -> Iterator[Found]:
    if dockerfile.syntax:
        yield _refusal(dockerfile.syntax, "syntax", "# syntax= names another builder; Podman is the one here")
    for one in dockerfile.arguments:
        yield from _flags(one)
    for stage, stages in _with_earlier(dockerfile):
        yield from _flags(Instruction(stage.line, "FROM", stage.flags, stage.written))
        if stage.parent is None and stage.image != "scratch":
            yield from _image(stage.line, stage.written, stage.image, allows)
        for one in stage.instructions:
            yield from _flags(one)
            earlier = frozenset() if one.onbuild else stages  # it runs in another file's build
            if one.keyword == "RUN":
                yield from _mounts(one, own)
            elif one.keyword == "ADD":
                yield from _downloads(one, own)
            for source in _copied_from(one) if own or one.keyword == "COPY" else ():
                if source not in earlier:
                    yield from _source(one.line, source, earlier, allows)


def _with_earlier(dockerfile: Dockerfile) -> Iterator[tuple[Stage, Set[str]]]:
    """The stages, each with the names and numbers of the earlier ones."""
    earlier: set[str] = set()
    for number, stage in enumerate(dockerfile.stages):
        yield stage, frozenset(earlier)
        earlier |= {str(number), stage.name} - {""}


def _copied_from(one: Instruction) -> Iterator[str]:
    """The sources of COPY --from and RUN --mount from=: earlier stages or images."""
    for flag in one.flags:
        name, _, value = flag.partition("=")
        if name == "--from" and one.keyword == "COPY":
            yield value
        elif name == "--mount" and one.keyword == "RUN":
            yield from (part.partition("=")[2] for part in value.split(",") if part.startswith("from="))


def secrets(dockerfile: Dockerfile) -> Set[str]:
    """The ids of the secrets that its steps read."""
    found = set()
    for stage in dockerfile.stages:
        for flag in (flag for one in stage.instructions if one.keyword == "RUN" for flag in one.flags):
            name, _, mount = flag.partition("=")
            options = dict(part.partition("=")[::2] for part in mount.split(","))
            if name == "--mount" and options.get("type") == "secret":
                target = options.get("target") or options.get("dst") or options.get("destination") or ""
                found.add(options.get("id") or target.rpartition("/")[2])
    return found


def _refusal(line: int, code: str, message: str) -> Found:
    return {"code": code, "message": f"line {line}: {message}"}


def _flags(one: Instruction) -> Iterator[Found]:
    """Flags that Podman 4.3 does not have, such as --network=host and --security=insecure of RUN."""
    for flag in one.flags:
        name = flag.partition("=")[0]
        if name not in FLAGS.get(one.keyword, ()):
            yield _refusal(one.line, "flag", f"{one.keyword} takes no {excerpt(name)}")


def _mounts(one: Instruction, own: bool) -> Iterator[Found]:
    """Mounts of a build, also cache mounts: every kind was a way out of buildah before 1.38."""
    for flag in one.flags:
        name, _, mount = flag.partition("=")
        if name != "--mount":
            continue
        if not own:
            yield _refusal(one.line, "mount", "RUN --mount is allowed only in Dockerfiles that you wrote")
        elif "$" in mount:
            yield _refusal(one.line, "mount", "RUN --mount must not contain variables")


def _source(line: int, source: str, earlier: Set[str], allows: Allows) -> Iterator[Found]:
    """The reasons against an image that files are taken from, or against a name that should be a stage's."""
    alike = next((name for name in earlier if name.lower() == source.lower()), None)
    if "$" in source:
        yield _refusal(
            line, "variable", f"{excerpt(source)}: a variable is not taken here; write the name itself"
        )
    elif alike is not None:
        yield _refusal(
            line,
            "stage_name",
            f"{excerpt(source)}: the stage is named {alike}; Podman compares letter by letter",
        )
    else:
        yield from _image(line, source, source, allows)


def _image(line: int, written: str, image: str | None, allows: Allows) -> Iterator[Found]:
    if image is None:
        yield _refusal(line, UNDETERMINED, f"{excerpt(written)}: {_why_undetermined(written)}")
        return
    try:
        registries.check_image_ref(image, "image")
    except ValidationFailed as error:
        yield _refusal(line, "image_ref", f"{excerpt(image)}: {error.fields[0]['message']}")
        return
    if not allows(image):
        yield _refusal(line, OFF_LIST, f"{registries.refused_place(image)} is not on the registry allowlist")


def _why_undetermined(written: str) -> str:
    if _OPERATOR.search(written):
        return "only ${NAME}, ${NAME:-default} and ${NAME:+other} are taken"
    return "the file does not determine which image this is; give the ARG a default above the FROM"


def _downloads(one: Instruction, own: bool) -> Iterator[Found]:
    """ADD of a URL: buildah downloads it in the host's network, where local services listen.

    (RUN downloads in the build's own network.) A source that begins with a variable may become a URL.
    Podman 5 would clone from git in the same way.
    """
    for source in _sources(one.rest):
        literal, variable, _ = re.sub(r"['\"\\]", "", source).partition("$")
        literal = literal.lower()
        if literal.startswith(GIT):
            yield _refusal(one.line, "add_git", "ADD from git is not taken; use RUN git clone")
        elif literal.startswith(REMOTE) and not own:
            message = "ADD of a URL downloads in the host's network; use RUN to download it"
            yield _refusal(one.line, "add_url", message)
        elif variable and not own and any(scheme.startswith(literal) for scheme in REMOTE):
            yield _refusal(one.line, "add_url", f"{excerpt(source)} may become a URL; COPY takes files only")


def _sources(rest: str) -> list[str]:
    """The sources of ADD in either form; buildah ignores text after a JSON list."""
    if listed := _JSON_LIST.match(rest):
        try:
            return list(json.loads(listed[0]))[:-1]
        except ValueError:
            pass  # an escape that JSON does not have: split at spaces
    return rest.split()[:-1]


def _lineage(dockerfile: Dockerfile) -> list[Instruction]:
    """The instructions of the final image: the last stage's, after those of its parent stages."""
    chain: list[Stage] = [dockerfile.stages[-1]]
    while (parent := chain[-1].parent) is not None:
        chain.append(dockerfile.stages[parent])
    return [one for stage in reversed(chain) for one in stage.instructions]


def _user(instructions: list[Instruction], last_from: int) -> dict[str, Any]:
    users = _users(instructions)
    message, line = "", users[-1].line if users else last_from
    if not users:
        message = "has no USER, so it runs as the user of its image, mostly root"
    else:
        user = _user_name(users[-1])
        if "$" in user:
            message = f"runs as {excerpt(users[-1].rest)}, which may be root"
        elif _is_root(user):
            message = "runs as root"
    return {"code": "root_user", "message": message, "line": line} if message else {}


def _users(instructions: list[Instruction]) -> list[Instruction]:
    return [one for one in instructions if one.keyword == "USER" and not one.onbuild]


def _user_name(one: Instruction) -> str:
    return re.sub(r"['\"\\]", "", one.rest).partition(":")[0]


def _is_root(user: str) -> bool:
    return user == "root" or user.strip("0") == ""


def _set_names(dockerfile: Dockerfile) -> Iterator[tuple[str, int]]:
    """The names that ENV and ARG set in every stage, and their lines: all stay in an image's history."""
    ours = [*dockerfile.arguments, *(one for stage in dockerfile.stages for one in stage.instructions)]
    for one in ours:
        text = _QUOTED.sub("''", one.rest)
        if one.keyword == "ARG":
            names = _argument_names(one)
        elif one.keyword == "ENV":
            names = _NAMED.findall(text) if "=" in text.split()[0] else text.split()[:1]
        else:
            continue
        yield from ((name, one.line) for name in names)


def _argument_names(one: Instruction) -> list[str]:
    return [part.partition("=")[0] for part in _QUOTED.sub("''", one.rest).split()]


def _listed(code: str, message: str, found: list[tuple[str, int]]) -> dict[str, Any]:
    """The finding of these items; its line is that of the first."""
    items = list(dict.fromkeys(item for item, _ in found))
    if not items:
        return {}
    more = f" and {len(items) - REFUSALS_MAX} more" if len(items) > REFUSALS_MAX else ""
    message = f"{message} {', '.join(map(excerpt, items[:REFUSALS_MAX]))}{more}"
    return {"code": code, "message": message, "line": found[0][1]}
