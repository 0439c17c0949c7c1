"""Private parts of gunicorn: used in one package only, listed there, and read for the pinned version."""

from __future__ import annotations

import ast
import importlib
import inspect
import re

from conventions.inspection import ROOT, modules, tree
from gunicorn.workers.gthread import ThreadWorker

from svc.web import gunicorn_worker
from svc.web.gunicorn_worker.fair_worker import FairThreads

PACKAGE = ROOT / "svc/web/gunicorn_worker"
PUBLIC = {"svc/web/listeners.py": {"gunicorn.app.base", "gunicorn.glogging"}}
LISTED = re.findall(r"^- ([\w.]+): ((?:.+\n)(?:  .+\n)*)", gunicorn_worker.__doc__ or "", re.MULTILINE)


def imported(module: ast.Module) -> set[str]:
    """The modules of gunicorn that a module imports."""
    names = set()
    for node in ast.walk(module):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names.add(str(node.module))
    return {name for name in names if name.partition(".")[0] == "gunicorn"}


def docstrings(module: ast.Module) -> set[int]:
    """The ids of a module's expression statements, docstrings among them."""
    return {id(node.value) for node in ast.walk(module) if isinstance(node, ast.Expr)}


def test_the_version_is_the_one_in_the_lock_file() -> None:
    pinned = re.search(r"^gunicorn==(\S+)", (ROOT / "packaging/requirements.lock").read_text(), re.MULTILINE)
    assert pinned
    assert f"Written for gunicorn {pinned[1]}, the version in packaging/requirements.lock." in " ".join(
        (gunicorn_worker.__doc__ or "").split()
    )


def test_no_other_module_uses_private_parts() -> None:
    found = []
    for path in modules():
        if PACKAGE in path.parents:
            continue
        name, module = str(path.relative_to(ROOT)), tree(path)
        found += [f"{name}: {other}" for other in imported(module) - PUBLIC.get(name, set())]
        prose = docstrings(module)
        found += [
            f"{name}:{node.lineno}: {node.value}"
            for node in ast.walk(module)
            if isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and node.value.startswith("gunicorn.")
            and id(node) not in prose
        ]
    assert not found


def test_what_is_listed_exists() -> None:
    missing = []
    for where, names in LISTED:
        module, _, kind = where.rpartition(".") if where.rpartition(".")[2][0].isupper() else (where, "", "")
        found = importlib.import_module(module)
        source = inspect.getsource(getattr(found, kind) if kind else found)
        bases = [inspect.getsource(base) for base in getattr(found, kind).__mro__[1:-1]] if kind else []
        for name in names.partition(" and ")[0].split():
            if not re.search(rf"(?<!\w){re.escape(name)}(?!\w)", "\n".join([source, *bases])):
                missing.append(f"{where}: {name}")
    assert LISTED
    assert not missing


def test_what_is_replaced_or_imported_is_listed() -> None:
    listed = {where: set(names.split()) for where, names in LISTED}
    replaced = {name for name in vars(FairThreads) if callable(vars(FairThreads)[name])} & set(
        dir(ThreadWorker)
    )
    assert replaced <= listed["gunicorn.workers.gthread.ThreadWorker"]
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.ImportFrom) and str(node.module).startswith("gunicorn"):
                for alias in node.names:
                    assert (
                        f"{node.module}.{alias.name}" in listed or alias.name in listed[str(node.module)]
                    ), f"{path.name}: {node.module} {alias.name}"
