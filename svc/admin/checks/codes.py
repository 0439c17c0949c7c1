"""The codes of the doctor's findings: each is stable, and has one line in docs/doctor.md.

FILE and KIND stand for the end of a code that names a file or a namespace.
"""

from __future__ import annotations

import re

NOT_CHECKED = "not_checked"
CODES = {
    "repair": "What `--repair` has set, moved aside, or could not repair safely.",
    NOT_CHECKED: "Every check could run; this one could not, the others went on.",
    # the service
    "settings_file": "`/etc/svc/svc.env` is root's alone to write; while others can, it is not used.",
    "settings": "The settings file and the environment are valid; each fault has its line.",
    "unknown_settings": "Every name that begins with `SVC_` is a setting.",
    "service_user": "The system users of the app exist, each with a uid of its own.",
    "ca_file": "The file that SVC_CA_FILE names has certificates, and users can read it.",
    "state_dir": "SVC_STATE_DIR is root's alone to write, and readable for the app.",
    "state_dir.FILE": "A file of SVC_STATE_DIR is root's; nobody else can write it, or read what is secret.",
    "data_dir": "The database's directory belongs to svc, and nobody else may read it.",
    "data_dir.FILE": "A file of the database's directory is svc's and private; no link, no second name.",
    "secret_key": "The signing secret is there, whole, private, and the one that the database was used with.",
    "tls_certificate": "The certificate fits its key, names this host, and does not end within 30 days.",
    "tls_key": "The key that SVC_TLS_KEY names cannot be read by other accounts of the host.",
    "database": "The database opens, has the whole schema of this program, its newest rows, and no damage.",
    "accounts": "No account is left by a creation or deletion that was cut short.",
    "root_password": "The superuser `root` has a service password.",
    "audit_growth": "The audit has not grown by 100,000 rows since yesterday.",
    "database_disk": "The database's disk has room, works, and has shown no damage.",
    "audit_chain": "The audit's rows are those that were written, and go on from the last run's.",
    "backups": "The newest complete snapshot in SVC_BACKUP_DIR is at most 48 hours old.",
    "recovery_sets": "The newest set in SVC_RECOVERY_DIR is whole; how many there are, how much they take.",
    "switch_under_way": "No switch to another version was interrupted.",
    "update": "The last `svc admin update apply` did not fail or go back, the last `check` found its source.",
    "update_available": "No newer release was seen than the installed one; one that was is only said.",
    "disk": "Every file system that is written to has room: a warning below 1 GiB or a tenth,"
    " a failure below 64 MiB or a hundredth, whichever is less.",
    "inodes": "Every such file system has inodes: a warning below 5 %, a failure below 1 %.",
    "run_tmpfs": "`/run` and users' directories in it are in memory: Podman's files there end with a boot.",
    "clock": "The clock is synchronised, and not from before the installation.",
    "run_dir": "The socket's directory is root's alone to write.",
    "pam_service": "`/etc/pam.d/svc` has account rules, by which locked accounts are refused.",
    "interpreter": "The account svc can read the program's files.",
    "sqlite_version": "This SQLite does not lose pages when two processes checkpoint (3.51.3 or newer).",
    "unit": "systemd has loaded svc.service.",
    "unit_changed": "systemd has read the present files of svc.service.",
    "unit_disabled": "svc.service starts at boot.",
    "unit_failed": "systemd has not given svc.service up after failures.",
    "server": "The running server responds and is healthy.",
    "helper_limits": "No drop-in of the unit takes from users' Podman what it needs"
    " (NoNewPrivileges=, PrivateTmp=, ProtectSystem= and the like).",
    "confinement": "The processes of the app run as their accounts, without capabilities, with seccomp.",
    "confinement.KIND": "The app has a mount, network, IPC and process namespace of its own.",
    "apps": "Apps in the browser are served, on both addresses of loopback.",
    "license": "A trial or licence is in force; only root can replace its file.",
    "license_host": "This host has a request code, for which a licence is made.",
    "license_ending": "The trial or licence does not end within 14 days.",
    "license_lapsed": "The trial or licence has not ended; else workspaces are neither created nor started.",
    "license_not_in_force": "The installed licence is valid, for this host and date.",
    "license_clock": "The clock is not behind what the service has seen.",
    "license_users": "There are no more users than the licence allows.",
    "license_gpus": "There are no more GPUs than the licence allows.",
    # the host
    "podman_way": "How containers run here: in users' own systemd managers, or with cgroupfs.",
    "podman": "Podman is installed.",
    "conmon": "conmon, which holds each container, is installed.",
    "crun": "The runtime crun is installed.",
    "catatonit": "catatonit, the first process of each container, is installed.",
    "newuidmap": "`newuidmap` is installed and may set ids.",
    "newgidmap": "`newgidmap` is installed and may set ids.",
    "skopeo": "skopeo, which reads manifests of registries, is installed.",
    "pasta": "pasta, which connects containers from Podman 5 on, is installed.",
    "slirp4netns": "slirp4netns is installed: it connects the containers that Podman 4 made.",
    "networks": "netavark, aardvark-dns and iptables (Podman 5: nft) are installed: networks need them.",
    "setpriv": "setpriv, which starts programs with another account's rights, is installed.",
    "podman_version": "Podman is 4.3 or newer.",
    "user_namespaces": "An account without privileges may make user namespaces.",
    "cgroup2": "`/sys/fs/cgroup` is the unified hierarchy.",
    "controllers": "The kernel offers controllers for cpu, memory and processes.",
    "dev_net_tun": "`/dev/net/tun` is accessible to users.",
    "dev_fuse": "`/dev/fuse` is accessible to users.",
    "subuid": "Every enrolled user has 65,536 subordinate uids.",
    "subgid": "Every enrolled user has 65,536 subordinate gids.",
    "subuid_overlap": "No range of `/etc/subuid` overlaps another one, or has the uid of a real account.",
    "subgid_overlap": "No range of `/etc/subgid` overlaps another one, or has the gid of a real group.",
    # each user
    "enrolment": "Every enrolled name still is the Linux account that was enrolled.",
    "user_manager": "Every user's systemd manager runs.",
    "lingering": "Users' managers go on after logout and start at boot.",
    "delegation": "Every user's manager may set limits of cpu, memory and processes.",
    "user_bus": "Every user has a bus, by which Podman asks for a container's cgroup.",
    "home": "Every home is on a local file system that keeps ids and extended attributes of containers, and"
    " is mounted neither noexec nor nodev; or SVC_STORE_DIR is set.",
    "store_dir": "Every user's directory of SVC_STORE_DIR is that user's own, on a local disk, and in use.",
    "storage": "Every user's Podman has the overlay driver (vfs copies every layer), and records of"
    " the user's present uid.",
    "forgotten_containers": "Podman knows of each container that runs: nobody emptied `/run/user/UID`.",
    "podman_locks": "The memory with the locks of each user's Podman is that user's own.",
    "pause_process": "No user's pause process keeps the private /tmp of a service.",
    "container_cgroups": "Users' containers run in their own slices, and do not end with a service.",
    "stale_downloads": "No killed pull of a user left layers in `/var/tmp` for more than a day.",
    "docker_group": "No enrolled user is in the group docker, whose members can become root.",
    "gpus": "The GPUs that SVC_GPU_PROVIDER names respond.",
    "cdi": "Every GPU has a name in a CDI specification of the running driver.",
}
_FORMS = {
    code: re.compile(re.sub("FILE|KIND", ".+", code.replace(".", r"\."))) for code in CODES if "." in code
}


def line_of(code: str) -> str | None:
    """The code of the table that this one is; None for one that is not in it."""
    return (
        code if code in CODES else next((line for line, form in _FORMS.items() if form.fullmatch(code)), None)
    )
