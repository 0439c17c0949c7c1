"""Structure: small modules and functions, plain names, nothing swallowed, nothing unfinished."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections import Counter
from pathlib import Path

from conventions.inspection import PACKAGES, ROOT, functions, modules, scripts, tree

MODULE_LINES_MAX = 600
FUNCTION_LINES_MAX = 60
FUNCTION_LINES_USUAL = 40  # at least 95 in 100 stay within
SCRIPT_LINES_MAX = 300
DRAWERS = {"utils", "util", "helpers", "common", "base", "manager", "managers", "misc", "core"}
UNFINISHED = re.compile(r"\b(TODO|FIXME|XXX|HACK|NotImplementedError)\b")


def length(node: ast.AST) -> int:
    """Lines of a definition."""
    return node.end_lineno - node.lineno + 1  # type: ignore[attr-defined]


def test_modules_are_short() -> None:
    long = {
        str(path.relative_to(ROOT)): n
        for path in modules()
        if (n := path.read_text().count("\n")) > MODULE_LINES_MAX
    }
    assert not long


def test_scripts_are_short() -> None:
    long = {
        str(path.relative_to(ROOT)): n
        for path in scripts()
        if (n := path.read_text().count("\n")) > SCRIPT_LINES_MAX
    }
    assert not long


def test_functions_are_short() -> None:
    assert not {where: n for where, node in functions() if (n := length(node)) > FUNCTION_LINES_MAX}


def test_nearly_all_functions_are_very_short() -> None:
    lengths = [length(node) for _, node in functions()]
    assert sum(n <= FUNCTION_LINES_USUAL for n in lengths) >= 0.95 * len(lengths)


def test_every_function_says_what_it_returns() -> None:
    assert not [where for where, node in functions() if node.returns is None]


def test_every_module_says_what_it_is_for() -> None:
    assert not [str(path.relative_to(ROOT)) for path in modules() if not ast.get_docstring(tree(path))]


def test_no_module_or_class_is_a_drawer() -> None:
    names = [str(path.relative_to(ROOT)) for path in modules() if path.stem.lower() in DRAWERS]
    for path in modules():
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.ClassDef) and re.search(
                r"(Manager|Base|Util|Helpers|Handler)$", node.name
            ):
                names.append(f"{path.relative_to(ROOT)}:{node.lineno} {node.name}")
    assert not names


def comments(path: Path) -> dict[int, str]:
    """The comments of a module by line."""
    found = tokenize.generate_tokens(io.StringIO(path.read_text()).readline)
    return {token.start[0]: token.string for token in found if token.type == tokenize.COMMENT}


def test_a_broad_except_gives_its_reason() -> None:
    silent = []
    for path in modules():
        said = comments(path)
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.ExceptHandler) and (
                node.type is None or getattr(node.type, "id", "") in ("Exception", "BaseException")
            ):
                reason = re.sub(r"#\s*(noqa|nosec)[:\s]*[A-Z0-9, ]*", "", said.get(node.lineno, "")).strip(
                    " -#"
                )
                if len(reason) < 10:
                    silent.append(f"{path.relative_to(ROOT)}:{node.lineno}")
    assert not silent


def test_commands_of_administrators_import_at_their_top() -> None:
    """Each is loaded as one, when it is named (`Deferred`): late imports in it would hide what it needs."""
    late = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in modules()
        if path.is_relative_to(ROOT / "svc/admin")
        for function in ast.walk(tree(path))
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
        for node in ast.walk(function)
        if isinstance(node, ast.Import | ast.ImportFrom)
    ]
    assert not late


def test_an_ignored_lint_gives_its_reason() -> None:
    silent = []
    for path in modules():
        for line, text in comments(path).items():
            match = re.search(r"#\s*(noqa|type: ignore|nosec)(?::\s*[A-Z0-9, ]+|\[[a-z, -]+\])?(.*)", text)
            if match and len(match[2].strip(" -#")) < 8:
                silent.append(f"{path.relative_to(ROOT)}:{line} {text}")
    assert not silent


def test_nothing_is_unfinished() -> None:
    own = Path(__file__)
    files = [*modules(), *scripts(), *(ROOT / "tests").rglob("*.py"), *(ROOT / "docs").rglob("*.md")]
    marks = [
        f"{path.relative_to(ROOT)}:{number} {line.strip()}"
        for path in files
        if path != own
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if UNFINISHED.search(line)
    ]
    assert not marks


def test_lock_files_name_no_host_and_no_path() -> None:
    for path in (ROOT / "packaging").glob("*.lock"):
        assert not re.findall(r"://|@ |^-|/(?:home|opt|tmp|root)/", path.read_text(), re.MULTILINE), path.name


# Modules that only mean something at work, and the test file in which they are.
TESTED_ELSEWHERE = {
    "svc/engine_errors.py": "unit/test_errors.py",
    "svc/tls/host_names.py": "unit/web/callers/test_host_header.py",
    "svc/web/audited.py": "unit/web/api/test_fs.py",
    "svc_helper/shim/terminal_command.py": "agent/shim/test_terminal.py",
    "svc_helper/shim/terminal_master.py": "agent/shim/test_terminal.py",
    "svc_helper/agent/output.py": "agent/containers/test_exec.py",
    "svc_helper/agent/process.py": "agent/podman/test_service.py",
    "svc_helper/interpreter.py": "unit/server/test_children.py",
    "svc_helper/provision/verbs.py": "helper/provision/test_programs.py",
    "svc_helper/provision/logins.py": "e2e/accounts/test_people.py",
    "svc_helper/agent/podman/moved_layers.py": "agent/test_move_store.py",
    "svc_helper/agent/leave.py": "e2e/accounts/test_people.py",
    "svc_helper/provision/leaving.py": "e2e/accounts/test_people.py",
    "svc/server/supervisor.py": "e2e/processes/test_faults.py",
    "svc/worker/loop.py": "e2e/processes/test_faults.py",
    "svc/worker/reconciler.py": "e2e/processes/test_faults.py",
    "svc/worker/runs.py": "e2e/workspaces/test_journey.py",
    "svc_helper/agent/images/build_cleanup.py": "agent/images/test_builds.py",
    "svc_helper/agent/images/builder.py": "agent/images/test_builds.py",
    "svc_helper/agent/calls.py": "agent/podman/test_service.py",
    "svc_helper/agent/containers/cdi_yaml.py": "agent/containers/test_cdi.py",
    "svc_helper/agent/runtime/cgroups.py": "agent/containers/test_exec.py",
    "svc_helper/agent/podman/commands.py": "agent/images/test_preflight.py",
    "svc_helper/agent/runtime/runtime_errors.py": "agent/containers/test_exec.py",
    "svc_helper/agent/runtime/crun.py": "agent/containers/test_exec.py",
    "svc_helper/agent/containers/exec.py": "agent/containers/test_exec.py",
    "svc_helper/agent/containers/container_info.py": "agent/containers/test_containers.py",
    "svc_helper/agent/home.py": "agent/podman/test_service.py",
    "svc_helper/agent/runtime/process_tracker.py": "agent/containers/test_exec.py",
    "svc_helper/agent/containers/logs.py": "agent/containers/test_containers.py",
    "svc_helper/agent/paths.py": "agent/containers/test_launchers.py",
    "svc_helper/agent/podman/podman.py": "agent/test_faults.py",
    "svc_helper/agent/images/puller.py": "agent/images/test_images.py",
    "svc_helper/agent/runtime/records.py": "agent/containers/test_exec.py",
    "svc_helper/agent/runtime/processor_time.py": "agent/containers/test_stats.py",
    "svc_helper/agent/images/background.py": "agent/images/test_images.py",
    "svc_helper/agent/containers/stale_containers.py": "agent/test_faults.py",
    "svc_helper/agent/containers/running.py": "agent/containers/test_stats.py",
    "svc_helper/agent/scope.py": "agent/podman/test_service.py",
    "svc_helper/agent/containers/spec.py": "agent/containers/test_containers.py",
    "svc_helper/agent/runtime/kill_marked.py": "agent/containers/test_exec.py",
    "svc_helper/agent/podman/http.py": "agent/test_faults.py",
    "svc_helper/shim/control.py": "agent/containers/test_shims.py",
    "svc_helper/shim/ending.py": "agent/containers/test_launchers.py",
    "svc_helper/shim/inside.py": "agent/containers/test_ports.py",
    "svc_helper/shim/run.py": "agent/containers/test_shims.py",
    "svc_helper/shim/launcher.py": "agent/containers/test_launchers.py",
    "svc_helper/shim/loop.py": "agent/shim/test_forward.py",
    "svc_helper/shim/__main__.py": "agent/containers/test_shims.py",
    "svc_helper/shim/starting.py": "agent/containers/test_launchers.py",
    "svc_helper/agent/runtime/launcher_states.py": "agent/containers/test_launchers.py",
    "svc_helper/shim/workspace.py": "agent/containers/test_shims.py",
}


def test_each_module_has_a_test_of_its_name() -> None:
    assert not [name for name in TESTED_ELSEWHERE.values() if not (ROOT / "tests" / name).exists()]
    tests = {path.stem for path in (ROOT / "tests").rglob("test_*.py")}
    missing = []
    for path in modules():
        name = str(path.relative_to(ROOT))
        if (
            path.stem.startswith("__")
            or name in TESTED_ELSEWHERE
            or not any(True for _ in _definitions(path))
        ):
            continue
        stems = (f"test_{path.stem.strip('_')}", f"test_{path.parent.name}_{path.stem.strip('_')}")
        if not any(test == stem or test.startswith(stem + "_") for test in tests for stem in stems):
            missing.append(name)
    assert not missing


def _definitions(path: Path) -> list[ast.AST]:
    return [node for node in tree(path).body if isinstance(node, ast.FunctionDef | ast.ClassDef)]


def test_every_package_is_installed() -> None:
    setup = (ROOT / "setup.cfg").read_text()
    listed = set(re.search(r"^packages =\n((?:    .+\n)+)", setup, re.MULTILINE)[1].split())  # type: ignore[index]
    found = {
        "svc." + str(path.parent.relative_to(ROOT))
        if path.parent.name == "schema"
        else ".".join(path.parent.relative_to(ROOT).parts)
        for package in PACKAGES
        for path in (ROOT / package).rglob("__init__.py")
    }
    assert listed == found


ROOT_LINES_MAX = 1500


def test_resident_root_code_fits_on_a_few_pages() -> None:
    """What runs as root for as long as the service does, without the wire format that all sides share."""
    paths = [*(ROOT / "svc_helper/root").rglob("*.py"), *(ROOT / "svc_helper").glob("*.py")]
    lines = sum(len(path.read_text().splitlines()) for path in paths)
    assert lines <= ROOT_LINES_MAX, f"{lines} lines; move what only `svc admin` needs to svc_helper/provision"


def test_nothing_is_run_by_machinectl_shell() -> None:
    """Its exit status is 0 whatever the command's was (systemd's issue 4215)."""
    texts = {path: path.read_text() for path in (*modules(), *scripts())}
    assert [str(path) for path, text in texts.items() if "machinectl" in text] == []


FOLDER_MODULES_MAX = 25


def test_no_folder_is_a_pile() -> None:
    tests = (path for path in (ROOT / "tests").rglob("*.py") if ".venv" not in path.parts)
    folders = Counter(path.parent.relative_to(ROOT) for path in (*modules(), *tests))
    assert not {str(folder): count for folder, count in folders.items() if count > FOLDER_MODULES_MAX}


FOLDER_MODULES_MIN = 4  # modules and folders in it, without its __init__.py
SMALL_FOLDERS = {
    "schema": "the schema itself lies beside what writes it",
    "svc/cli/skill": "the texts of the skill lie beside it",
    "svc/cli/template/examples": "the definitions of the templates lie beside it",
}


def test_a_small_folder_has_a_reason() -> None:
    """A folder is a name more on every way through it: fewer modules stand in the folder above."""
    packages = {path.parent for path in modules() if path.name == "__init__.py"}
    content = Counter(path.parent for path in modules() if path.name != "__init__.py")
    content.update(package.parent for package in packages)
    small = {str(each.relative_to(ROOT)) for each in packages if content[each] < FOLDER_MODULES_MIN}
    assert small == SMALL_FOLDERS.keys()
