"""Every rule of the specification on authentication, templates, images, the skill is cited by its test.

The phrases are the specification's own; a test that keeps one quotes it in its
docstring or in a comment, so that whoever breaks the rule reads it.
"""

from __future__ import annotations

import re
from functools import cache

import pytest
from conventions.inspection import ROOT

AUTHENTICATION = {
    "1": (
        "authenticate through a root-owned Unix socket",
        "reads the caller's Linux UID from the kernel and maps it to a service account",
        "No password, login step, session file or token is used",
    ),
    "2": (
        "the command exits with code 3",
        "There is no client-side command to enable an account",
    ),
    "3": (
        "Authorization: Bearer",
        "the token starts with `svc_pat_`",
        "A token has the permissions of the user who created it",
        "It never performs administrator operations",
        "A token cannot create, list or revoke tokens",
        "authenticate only as a signed-in browser session or as the host-local socket",
        "Creation is possible only through the CLI",
        "The secret is shown once and is never stored",
        "Lifetime: 1 to 365 days, default 90",
    ),
    "4": (
        "The raw passthrough cannot create credentials",
        "the login endpoint and password changes are rejected on the socket",
    ),
    "5": (
        "normalised before validation",
        "regular accounts 8 to 64 Unicode characters",
        "root and superuser accounts 12 to 64",
        "Common passwords and easy guesses derived from the user name or the product name are rejected",
        "There is no required mix of character classes",
        "Existing passwords stay valid after an upgrade",
    ),
    "6": ("are run on the host as root",),
    "7": ("In `--dev` mode the JWT signing secret is ephemeral",),
    "token table": (
        "Flagged in the browser when it expires within seven days",
        "A password reset does this too",
    ),
}

TEMPLATES = {
    "resource template": (
        "Global (managed, visible to everyone after review) or private (owned by one user)",
        "Can be backed by a registry image or by a Dockerfile",
        "Imported templates start disabled",
        "A clone has its own editable build context",
        "A global template's Dockerfile is read-only",
    ),
    "resource image": (
        "Pulled or built in the calling user's own store",
        "No shared or root-owned image scope exists",
        "Image builds are listed",
        "An allowlist of registries exists, set by the administrator",
    ),
    "states": (
        "Held for review",
        "A Dockerfile-backed clone or import must be built before it can be enabled",
        "Missing image is downloaded or built first",
        "When the image is missing, the start does not pull or build it",
    ),
    "commands": (
        "Downloads or builds a missing image and creates the workspace as one operation",
        "Prints a clone's or import's Dockerfile",
        "replaces it in the clone's own build context",
        "Imports a bundle; the result is disabled",
        "`-` reads standard input",
        "Pulls a registry image into the caller's own store",
        "Builds a Dockerfile-backed template in the caller's own store",
        "private fallback for a published managed recipe whose download failed",
        "builds the unchanged embedded Dockerfile under the same image reference",
        "Local-only managed recipes are built this way by each user after the administrator enables",
        "Removes unused images in the caller's store",
        "which write a local file and do not accept `--json`",
    ),
    "rule 3": (
        "Starting a workspace never pulls or builds an image",
        "The image must be prepared first with `image pull` or `image build`",
    ),
    "rule 4": (
        "`image list`, `pull`, `build`, `delete` and `prune` are not available to the root account",
        "Root only configures registry policy",
    ),
    "admin": (
        "Imports a host-local bundle, disabled for review",
        "`--global` makes a managed template visible to everyone after review",
        "`--owner` makes a private template of that user",
        "Dockerfile bundles are refused here (they need a build) and are imported from `/admin/templates`",
    ),
}
SKILL = {
    "skill install": (
        "Local only, does not contact the server",
        "Installs the embedded CLI-usage skill into an agent's skills directory",
        "Exactly one of `--agent` or `--path` is required",
        "Existing skill is overwritten only with `--force`",
        "comes from an environment variable for the agent, else a hidden directory in the user's home",
        "`skill install` with both or neither of `--agent`, `--path`",
    ),
}
RULES = AUTHENTICATION | TEMPLATES | SKILL


@cache
def what_tests_say() -> str:
    """The text of all tests but this one, on one line without comment signs."""
    files = [path for path in (ROOT / "tests").rglob("*.py") if path.name != "test_specification.py"]
    text = "\n".join(path.read_text() for path in files)
    return re.sub(r"\s+#?\s*", " ", text)


@pytest.mark.parametrize(
    ("rule", "phrase"), [(rule, phrase) for rule, phrases in RULES.items() for phrase in phrases]
)
def test_each_phrase_is_cited_by_a_test(rule: str, phrase: str) -> None:
    assert phrase in what_tests_say(), f"no test cites rule {rule}"
