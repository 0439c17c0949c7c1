"""An image like the official ones of Python: Debian's Python of this host, its libraries, and a real pip.

pip finds JupyterLab and all that it needs in a folder of the image, since a build on a minimal host
reaches no package index. The wheels come from PyPI, once for each host.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import subprocess
import sysconfig
import tempfile
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from e2e.installation import PREFIX
from e2e.registries import Shelf

LOCK = Path(__file__).with_name("jupyterlab.lock")
CACHE = Path("/var/cache/svc-tests")
PROGRAM = os.path.realpath("/usr/bin/python3")
LIBRARY = f"/usr/lib/{os.path.basename(PROGRAM)}"
LEFT_OUT = {"__pycache__", "test", "idlelib", "turtledemo", "lib2to3", "dist-packages", "EXTERNALLY-MANAGED"}
LIBRARIES = f"/lib/{sysconfig.get_config_var('MULTIARCH')}"
MANYLINUX = "stdc++.so.6 gcc_s.so.1 pthread.so.0 rt.so.1 dl.so.2 util.so.1 m.so.6"  # which wheels may need
OF_WHEELS = tuple(f"{LIBRARIES}/lib{name}" for name in MANYLINUX.split())
ENV = [
    "PATH=/usr/local/bin:/usr/bin:/bin",
    "PIP_NO_INDEX=1",
    "PIP_FIND_LINKS=/wheels",
    "PIP_ROOT_USER_ACTION=ignore",
    "PIP_NO_COMPILE=1",  # of ten thousand modules a few hundred are loaded
]
PIP = b'#!/bin/sh\nexec python3 -m pip "$@"\n'


def wheels() -> Path:
    """The folder with the wheels of the lock file; raises CalledProcessError where PyPI is not reached."""
    digest = hashlib.sha256(LOCK.read_bytes()).hexdigest()[:16]
    folder = CACHE / f"wheels-{digest}"
    if folder.exists():
        return folder
    with tempfile.TemporaryDirectory(prefix="wheels-", dir=CACHE, ignore_cleanup_errors=True) as draft:
        argv = [PREFIX / "bin/python3", "-I", "-m", "pip", "download", "--quiet", "--no-deps"]
        argv += ["--only-binary=:all:", "--dest", draft, "--requirement", LOCK]
        subprocess.run(argv, check=True, capture_output=True, text=True)
        os.chmod(draft, 0o755)
        with contextlib.suppress(OSError):  # another run of this host was sooner
            os.rename(draft, folder)
    return folder


def put(shelf: Shelf, folder: Path | None = None) -> str:
    """Put the image on the shelf, with pip and these wheels if they are given; its tag."""
    files = _python()
    if folder:
        files |= _pip(folder)
    programs = [name for name in files if name.startswith("usr/bin/") or ".so" in name]
    tag = "python-with-wheels" if folder else "python"
    shelf.put(tag, files, programs, Env=ENV, Cmd=["python3"])
    return tag


def _python() -> dict[str, bytes]:
    """Python, its standard library, and what both are linked with."""
    found = list(_library())
    linked = _linked([PROGRAM, *OF_WHEELS, *(path for path in found if path.endswith(".so"))])
    files = {path.lstrip("/"): Path(path).read_bytes() for path in (*found, *linked)}
    return files | {"usr/bin/python3": Path(PROGRAM).read_bytes()}


def _pip(folder: Path) -> dict[str, bytes]:
    """pip, and the wheels that it finds."""
    # Of several platforms in a name the last one: a name in this kind of tar is at most 100 long.
    files = {
        "wheels/" + re.sub(r"[\w.]+\.(\w+\.whl)$", r"\1", path.name): path.read_bytes()
        for path in folder.iterdir()
    }
    (pip,) = folder.glob("pip-*.whl")
    with zipfile.ZipFile(pip) as archive:
        for name in archive.namelist():
            files[f"usr/lib/python3/dist-packages/{name}"] = archive.read(name)
    return files | {"usr/bin/pip": PIP}


def _library() -> Iterator[str]:
    for place, folders, names in os.walk(LIBRARY):
        folders[:] = [name for name in folders if name not in LEFT_OUT]
        paths = [os.path.join(place, name) for name in names if name not in LEFT_OUT]
        yield from (path for path in paths if os.path.exists(path))  # links may lead to other packages


def _linked(programs: Iterable[str]) -> set[str]:
    """The libraries that they need, and those given."""
    found = {path for path in programs if path in OF_WHEELS}
    printed = subprocess.run(["ldd", *programs], capture_output=True, text=True, check=True).stdout
    return found | set(re.findall(r"(/\S+) \(0x", printed))
