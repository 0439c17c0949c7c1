"""The fields that `svc ws get` prints; a module of its own, so that `svc ws list` need not import it."""

from __future__ import annotations

from svc.cli.template.columns import each, idle, launcher_notes, mounts
from svc.cli.ws.columns import COLUMNS
from svc.commandline.output import pick, plain, size, state, text, when
from svc_helper.wire.limits import ACCESS_HOST


def _gpu(gpu: object, human: bool) -> str:
    return f"{text(gpu, 'uuid')} ({text(gpu, 'mode')})"


def _launcher(launcher: object, human: bool) -> str:
    return text(launcher, "name") + launcher_notes(launcher, human)


def _port(port: object, human: bool) -> str:
    shared = ", for every user" if pick(port, "access") == ACCESS_HOST else ""
    return f"{text(port, 'name')} {text(port, 'container_port')} at {text(port, 'connect')}{shared}"


def _ssh(port: object, human: bool) -> str:
    return text(port, "ssh")


FIELDS = (
    *COLUMNS[:2],
    ("DISPLAY NAME", "display_name", plain),
    ("OWNER", "owner", plain),
    *COLUMNS[2:3],
    *COLUMNS[6:],
    ("HEALTH", "health", plain),
    ("LAST ERROR", "last_error.message", plain),
    ("EXIT CODE", "exit_code", plain),
    ("OPERATION", "operation.id", plain),
    *COLUMNS[3:4],
    ("REVISION", "template.revision", plain),
    ("NEWER REVISION", "template.newer_revision", plain),
    ("IMAGE", "image.ref", plain),
    ("IMAGE STATUS", "image_status", state),
    ("NEWER IMAGE", "newer_image", plain),
    ("CPUS", "resources.cpu_limit", plain),
    ("MEMORY", "resources.memory_bytes", size),
    ("SHM SIZE", "resources.shm_bytes", size),
    ("PIDS", "resources.pids_limit", plain),
    ("LIMITS MISSING", "limits_missing", plain),
    ("GPU COUNT", "resources.gpu_count", plain),
    ("GPU MODE", "resources.gpu_mode", plain),
    ("GPUS", "gpus", each(_gpu)),
    ("COMMAND", "command", plain),
    ("ENV", "env", plain),
    ("MOUNTS", "mounts", mounts),
    ("NETWORK", "network", plain),
    ("LAUNCHERS", "launchers", each(_launcher)),
    ("PORTS", "ports", each(_port)),
    ("FROM ELSEWHERE", "ports", each(_ssh)),
    ("IDLE POLICY", "idle", idle),
    ("IDLE SINCE", "idle.since", when),
    ("KEPT UNTIL", "idle.keep_until", when),
    ("RESTART ON BOOT", "restart_on_boot", plain),
    ("DELETE WHEN STOPPED", "delete_when_stopped", plain),
    ("CREATED", "created_at", when),
    ("UPDATED", "updated_at", when),
    ("STARTED", "started_at", when),
    ("STOPPED", "stopped_at", when),
)
