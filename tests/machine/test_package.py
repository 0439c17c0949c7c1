"""The Debian package as a file: reproducible, complete, runs from an unpacked tree of its own Debian."""

from __future__ import annotations

import gzip
import hashlib
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from machine.conftest import HOST

SOURCE = Path(__file__).parents[2]
PACKAGES = "usr/lib/svc/python"
BUILD_ONLY = {"setuptools", "wheel", "argparse-manpage", "shtab"}
FRONTEND = SOURCE / "packaging/frontend"
UNPACKED = "var/tmp/unpacked"  # of the tree
NOBODY = 65534
pytestmark = pytest.mark.timeout(1800)  # the first one builds the tree and the packages


def run_in(
    tree: Path, *argv: str, uid: int = 0, folder: str = "/", **environment: str
) -> subprocess.CompletedProcess[str]:
    """A command in the Debian of the package."""
    command = ["chroot", f"--userspec={uid}:{uid}", "--groups=", tree, "/usr/bin/env", "-i", "-C", folder]
    settings = {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", **environment}
    words = [f"{name}={value}" for name, value in settings.items()]
    return subprocess.run([*command, *words, *argv], capture_output=True, text=True)


@pytest.fixture(scope="module")
def python(tree: Path) -> str:
    """The version of its Python, "3.11"."""
    (path,) = (tree / "usr/lib").glob("python3.*")
    return path.name.removeprefix("python")


@pytest.fixture(scope="module")
def system(tree: Path) -> tuple[str, str]:
    """What its os-release says: ("13", "trixie")."""
    found = dict(line.split("=", 1) for line in (tree / "etc/os-release").read_text().splitlines())
    return found["VERSION_ID"].strip('"'), found["VERSION_CODENAME"]


@pytest.fixture(scope="module")
def deb(debs: Path) -> Path:
    return next((debs / "0").glob("*.deb"))


@pytest.fixture(scope="module")
def unpacked(deb: Path, tree: Path) -> Path:
    """Its files, in a folder of the tree that any user may enter."""
    folder = tree / UNPACKED
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    subprocess.run(["dpkg-deb", "-x", deb, folder], check=True)
    return folder


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_two_builds_in_two_folders_have_the_same_bytes(debs: Path) -> None:
    (one,), (other,) = ((debs / folder).iterdir() for folder in ("0", "again"))
    assert one.name == other.name and digest(one) == digest(other)
    assert one.stat().st_uid != 0, "it was built by an ordinary user"


def test_everything_belongs_to_root_and_is_no_ones_to_change(deb: Path) -> None:
    listing = subprocess.run(["dpkg-deb", "-c", deb], capture_output=True, text=True, check=True).stdout
    for line in listing.splitlines():
        mode, owner, *_ = line.split()
        # A link's own mode is always the same, and says nothing.
        assert owner == "root/root" and re.fullmatch(r"[-d]rw[-x]r-[-x]r-[-x]|lrwxrwxrwx", mode), line
        assert not line.split()[5].startswith("./usr/local"), line


def test_it_has_the_pinned_packages_and_no_other(unpacked: Path) -> None:
    lock = (SOURCE / "packaging/requirements.lock").read_text()
    pinned = {name.lower(): version for name, version in re.findall(r"^([\w.-]+)==(\S+)", lock, re.M)}
    found = {}
    for info in (unpacked / PACKAGES).glob("*.dist-info"):
        head = (info / "METADATA").read_text().split("\n\n")[0]
        name, version = (re.search(rf"^{field}: *(.+)$", head, re.M)[1] for field in ("Name", "Version"))
        found[name.lower()] = version
        texts = [
            path
            for path in (unpacked / f"usr/share/doc/svc/licences/{name}").iterdir()
            if path.stat().st_size
        ]
        assert texts, f"{name} has no licence"
    assert found == {name: version for name, version in pinned.items() if name not in BUILD_ONLY}


def test_the_command_for_a_registry_cache_is_in_it(unpacked: Path) -> None:
    """It says what is wrong before it changes anything, also as an ordinary user."""
    command = unpacked / "usr/share/svc/registry-cache"
    assert command.read_bytes() == (SOURCE / "packaging/registry-cache").read_bytes()
    ran = subprocess.run([command, "no-url"], capture_output=True, text=True)
    assert (ran.returncode, "no URL of a registry" in ran.stderr) == (1, True)


def test_every_module_is_compiled(unpacked: Path, python: str) -> None:
    missing = [
        path
        for path in (unpacked / PACKAGES).rglob("*.py")
        if not (path.parent / "__pycache__" / f"{path.stem}.cpython-{python.replace('.', '')}.pyc").exists()
    ]
    assert not missing


def test_an_unpacked_tree_runs_and_sees_nothing_else(unpacked: Path, tree: Path, python: str) -> None:
    """From anywhere, by a link, as another user, with an environment that would mislead Python."""
    wrong = "/var/tmp/wrong"
    shutil.rmtree(f"{tree}{wrong}", ignore_errors=True)
    os.makedirs(f"{tree}{wrong}/svc")
    Path(f"{tree}{wrong}/svc/__init__.py").write_text("raise SystemExit('the wrong svc')")
    (unpacked / "link").symlink_to("usr/lib/svc/svc")
    misled = {"PYTHONPATH": wrong, "PYTHONHOME": wrong}
    done = run_in(tree, f"/{UNPACKED}/link", "--version", uid=NOBODY, folder=wrong, **misled)
    commit = (SOURCE / ".commit").read_text().strip() if (SOURCE / ".commit").exists() else ".*"
    assert done.returncode == 0, done.stderr
    assert re.fullmatch(commit, done.stdout.strip())
    program = (
        f"import sys; sys.path[:] = [each for each in sys.path if each] + ['/{UNPACKED}/{PACKAGES}']\n"
        "import svc.app, svc.web.listeners, svc.worker.loop, svc_helper.root.__main__\n"
        "import svc_helper.agent.__main__, pam, yaml._yaml, cryptography.x509, bcrypt, zxcvbn, pynvml\n"
        "print({module.__file__ for module in sys.modules.values() if getattr(module, '__file__', None)\n"
        f"  and not module.__file__.startswith(('/usr/lib/python{python}/', '/{UNPACKED}/'))}})"
    )
    done = run_in(tree, "/usr/bin/python3", "-I", "-S", "-c", program, folder=wrong)
    assert done.returncode == 0 and done.stdout.strip() == "set()", done.stdout + done.stderr


def test_it_has_the_files_that_the_service_reads(unpacked: Path) -> None:
    schema = SOURCE / "schema"
    for path in [schema / "openapi.json", *schema.glob("migrations/*.sql")]:
        kept = unpacked / PACKAGES / "svc/schema" / path.relative_to(schema)
        assert kept.read_bytes() == path.read_bytes()


def test_its_settings_file_changes_nothing(unpacked: Path) -> None:
    """Every setting is there, as a comment; but the database, whose default is for a checkout."""
    lines = (unpacked / "etc/svc/svc.env").read_text().splitlines()
    active = [line for line in lines if line and not line.startswith("#")]
    assert active == ["SVC_DB=/var/lib/svc/data/svc.db"]
    page = (SOURCE / "docs/settings.md").read_text()
    for name in re.findall(r"^\| `(SVC_\w+)`", page, re.M):
        assert any(re.match(rf"#?{name}=", line) for line in lines), name


def test_it_has_manual_pages_and_completion(unpacked: Path) -> None:
    share = unpacked / "usr/share"
    assert (share / "man/man1/svc-ws.1.gz").exists() and (share / "man/man8/svc-admin.8.gz").exists()
    for path in (
        "bash-completion/completions/svc",
        "zsh/vendor-completions/_svc",
        "fish/vendor_completions.d/svc.fish",
    ):
        assert (share / path).stat().st_size


def test_it_has_the_pieces_of_the_web_pages(unpacked: Path, tree: Path) -> None:
    """Each with its digest, and its licence beside those of the Python packages; nothing else of npm's."""
    folder = unpacked / PACKAGES / "svc/web/frontend"
    licences = unpacked / "usr/share/doc/svc/licences"
    copyright_ = (unpacked / "usr/share/doc/svc/copyright").read_text()
    sums = dict(reversed(line.split()) for line in (FRONTEND / "SHA256SUMS").read_text().splitlines())
    for name, wanted in sums.items():
        place = licences if name.endswith("/LICENSE") else folder
        assert digest(place / name) == wanted, name
        if place is licences:
            assert f"/web/frontend/{name.removesuffix('/LICENSE')}/*\nCopyright: " in copyright_
    found = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
    assert found == {name for name in sums if not name.endswith("/LICENSE")}
    program = (
        f"import sys; sys.path.append('/{UNPACKED}/{PACKAGES}')\n"
        "from svc.web import pieces; print([pieces.find_missing(page) for page in pieces.PAGES])"
    )
    done = run_in(tree, "/usr/bin/python3", "-I", "-S", "-c", program)
    assert done.stdout == "[None, None]\n", done.stdout + done.stderr


def test_its_documentation_has_no_broken_link(unpacked: Path) -> None:
    """What each link means is checked by tests/unit/packaging/test_pages.py; here: it is complete."""
    folder = unpacked / "usr/share/doc/svc/html"
    assert (folder / "index.html").exists() and (folder / "docs/decisions/index.html").exists()
    for path in folder.rglob("*.html"):
        for link in re.findall(r'href="(?!https?:|#)([^"#]+)', path.read_text()):
            assert (path.parent / link).exists(), f"{path} -> {link}"


def test_its_fields(deb: Path, python: str, system: tuple[str, str]) -> None:
    """It says which release it is, and for which Debian and Python; only its version has both in one."""
    fields = subprocess.run(["dpkg-deb", "-f", deb], capture_output=True, text=True, check=True).stdout
    release = re.search(r"^version = (.+)$", (SOURCE / "setup.cfg").read_text(), re.M)[1]
    number = system[0]
    assert f"\nVersion: {release}+deb{number}\n" in fields
    assert f"\nSvc-Release: {release}\n" in fields and f"\nSvc-System: debian-{number}\n" in fields
    major, minor = python.split(".")
    assert f"python3 (>= {python}), python3 (<< {major}.{int(minor) + 1})" in fields
    assert "libc6 (>=" in fields


def test_its_changelog_names_the_suite(unpacked: Path, system: tuple[str, str]) -> None:
    text = gzip.decompress((unpacked / "usr/share/doc/svc/changelog.gz").read_bytes()).decode()
    assert re.match(rf"svc \(\S+\+deb{system[0]}\) {system[1]}; urgency=", text)


def test_lintian_says_nothing(deb: Path, tree: Path, system: tuple[str, str]) -> None:
    """That of the package's own Debian: this host's, or the tree's."""
    if system[1] == HOST:
        env = {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"}
        done = subprocess.run(["lintian", deb], capture_output=True, text=True, env=env)
    else:
        shutil.copy(deb, tree / "var/tmp")
        done = run_in(tree, "lintian", f"/var/tmp/{deb.name}", uid=NOBODY, folder="/var/tmp")
    assert not done.stdout and done.returncode == 0, done.stdout + done.stderr
