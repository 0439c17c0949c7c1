"""The program that moves a user's store to the store directory: run as the user while no server runs.

Argv: the agent's configuration. It copies, and removes nothing: the former store stays. What was copied
completely is not copied again by another run, except what containers have written, which may have
changed. The store directory is in use from the moment its store has its name, at the very end. Containers
are created again at their next start, with what was written in them: see podman/moved_layers.py.

The exit status is 0 when the store is in use, RUNNING when a workspace runs; output goes to the agent's log.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys

from svc_helper import interpreter
from svc_helper.agent.containers.spec import LABEL
from svc_helper.agent.home import STORAGE, Home
from svc_helper.agent.images.store import container_rows, rows_of
from svc_helper.agent.leave import end, end_podman, is_ours, podman
from svc_helper.agent.podman import moved_layers
from svc_helper.wire.quick_typing import Any

RUNNING = 3
MOVING = "moving"  # the copy under way, in the store directory
PART = ".part"
DRIVER = "overlay"


def main() -> int:
    """Move the store; returns the exit status."""
    config = json.loads(sys.argv[1])
    if "copy" in config:  # the second process, in the namespace of the user's ids
        copy(**config["copy"])
        return 0
    store = config["store"]
    if os.path.isdir(f"{store}/{STORAGE}"):
        return 0
    former = Home(**config | {"store": ""})
    former.prepare()
    end(is_ours)
    status, running = podman(former, "ps", "--quiet", "--filter", f"label={LABEL}")
    if status != 0 or running.split():
        return RUNNING if status == 0 else 1
    request = {"copy": {"root": root_of(former), "store": store, "containers": containers_of(former)}}
    command = interpreter.command("svc_helper.agent.move_store", json.dumps(request))
    status, _ = podman(former, "unshare", *command, timeout_s=None)
    images = image_ids(former)
    end_podman(former)
    if status != 0:
        return 1
    os.rename(f"{store}/{MOVING}", f"{store}/{STORAGE}")
    return 0 if works(config, images) else 1


def works(config: dict[str, Any], images: set[str]) -> bool:
    """Whether the new store has all images; otherwise it loses its name, and the former stays in use."""
    home = Home(**config)
    home.prepare()
    found = image_ids(home)
    end_podman(home)
    if images <= found:
        return True
    print(f"images are missing in the new store: {sorted(images - found)}", file=sys.stderr)
    os.rename(f"{home.store}/{STORAGE}", f"{home.store}/{MOVING}")
    shutil.rmtree(f"{home.store}/{MOVING}/libpod", ignore_errors=True)
    return False


def root_of(home: Home) -> str:
    """The root directory of a store."""
    return podman(home, "info", "--format", "{{.Store.GraphRoot}}")[1].strip()


def image_ids(home: Home) -> set[str]:
    """The ids of a store's images."""
    return set(podman(home, "images", "--all", "--quiet", "--no-trunc")[1].split())


def containers_of(home: Home) -> list[dict[str, Any]]:
    """Of each workspace's container: its id, its image, and its volumes by their path inside."""
    found = []
    ids = podman(home, "ps", "--all", "--quiet", "--no-trunc", "--filter", f"label={LABEL}")[1].split()
    for row in json.loads(podman(home, "inspect", "--type=container", *ids)[1]) if ids else []:
        workspace_id = row["Config"]["Labels"][LABEL]
        if row["Name"] != f"svc-{workspace_id}":
            continue  # prepared to replace another, or labelled by the user
        volumes = {
            mount["Destination"]: mount["Source"] for mount in row["Mounts"] if mount["Type"] == "volume"
        }
        found.append({"workspace": workspace_id, "id": row["Id"], "image": row["Image"], "volumes": volumes})
    return found


# --- the copy, by a process that is root of the user's ids ------------------------------------


def copy(root: str, store: str, containers: list[dict[str, Any]]) -> None:
    """Copy layers and images, and what the containers of workspaces have written."""
    draft = f"{store}/{MOVING}"
    tops = {row["id"]: row["layer"] for row in container_rows(f"{root}/{DRIVER}")}
    for directory in (f"{draft}/{DRIVER}", f"{draft}/{DRIVER}-layers", f"{draft}/{DRIVER}-images"):
        os.makedirs(directory, 0o700, exist_ok=True)
    known = [row for row in rows_of(f"{root}/{DRIVER}-layers/layers.json") if row["id"] not in tops.values()]
    for row in known:
        copy_tree(f"{root}/{DRIVER}/{row['id']}", f"{draft}/{DRIVER}/{row['id']}")
    copy_tree(f"{root}/{DRIVER}/l", f"{draft}/{DRIVER}/l", again=True)
    for name in os.listdir(f"{root}/{DRIVER}-layers"):
        if name.removesuffix(".tar-split.gz") in {row["id"] for row in known}:
            copy_tree(f"{root}/{DRIVER}-layers/{name}", f"{draft}/{DRIVER}-layers/{name}", again=True)
    with open(f"{draft}/{DRIVER}-layers/layers.json", "w", encoding="utf-8") as file:
        json.dump(known, file)
    copy_tree(f"{root}/{DRIVER}-images", f"{draft}/{DRIVER}-images", again=True)
    if os.path.isdir(f"{root}/networks"):
        copy_tree(f"{root}/networks", f"{draft}/networks", again=True)
    for container in containers:
        copy_written(container, f"{root}/{DRIVER}/{tops[container['id']]}/diff", store)


def copy_written(container: dict[str, Any], layer: str, store: str) -> None:
    """Copy what a container has written, in its own layer and in volumes, for its next start."""
    directory = moved_layers.directory(store, container["workspace"])
    shutil.rmtree(directory, ignore_errors=True)
    os.makedirs(directory, 0o700)
    parts = {moved_layers.LAYER: layer} | container["volumes"]
    for number, source in enumerate(parts.values()):
        copy_tree(source, f"{directory}/{number}", again=True)
    moved_layers.note(directory, container["image"], list(parts))


def copy_tree(source: str, target: str, *, again: bool = False) -> None:
    """Copy with owners, attributes and links; a complete copy is kept unless it is to be made `again`."""
    if os.path.lexists(target):
        if not again:
            return
        remove(target)
    remove(target + PART)
    subprocess.run(["/bin/cp", "-a", "--reflink=auto", "-T", "--", source, target + PART], check=True)
    os.rename(target + PART, target)


def remove(path: str) -> None:
    """Remove a file or a tree, if it is there."""
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path)
    elif os.path.lexists(path):
        os.unlink(path)
