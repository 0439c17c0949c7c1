"""Imports: no circle among modules, and every folder under a contract of .importlinter."""

from __future__ import annotations

import configparser

import grimp
import pytest
from conventions.inspection import ROOT

SMALL = 2  # a folder of one module has no directions


@pytest.fixture(scope="module")
def graph() -> grimp.ImportGraph:
    """All imports, those inside functions and those for type checkers included."""
    return grimp.build_graph("svc", "svc_helper", cache_dir=None)


def circle(graph: grimp.ImportGraph, module: str) -> tuple[str, ...]:
    """The shortest way of imports from a module back to itself; empty without one."""
    ways = (
        graph.find_shortest_chain(importer=imported, imported=module)
        for imported in graph.find_modules_directly_imported_by(module)
    )
    return min((way for way in ways if way), key=len, default=())


def test_no_modules_import_each_other_in_a_circle(graph: grimp.ImportGraph) -> None:
    """Not even by way of a package's own module, which the contract on circles leaves out."""
    assert not [circle(graph, module) for module in sorted(graph.modules) if circle(graph, module)]


def test_a_circle_is_found(graph: grimp.ImportGraph) -> None:
    changed = grimp.ImportGraph()
    for importer, imported in (("a", "b"), ("b", "c"), ("c", "a"), ("c", "d")):
        changed.add_import(importer=importer, imported=imported)
    assert circle(changed, "b") == ("c", "a", "b")
    assert circle(changed, "d") == ()


def test_every_folder_has_a_contract(graph: grimp.ImportGraph) -> None:
    """A folder's modules have layers, without exception, or do not import each other at all."""
    config = configparser.ConfigParser()
    config.read(ROOT / ".importlinter")
    contracts = [config[name] for name in config.sections() if name.startswith("importlinter:contract:")]
    layered = {each["containers"] for each in contracts if each["type"] == "layers" and each["exhaustive"]}
    peers = {each["modules"] for each in contracts if each["type"] == "independence"}
    folders = [module for module in graph.modules if len(graph.find_children(module)) >= SMALL]
    assert not [folder for folder in sorted(folders) if folder not in layered and f"{folder}.*" not in peers]
