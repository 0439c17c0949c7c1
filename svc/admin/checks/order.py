"""The checks of `svc admin doctor`, in the order of its table."""

from __future__ import annotations

from svc.admin.checks.accounts import (
    delegation,
    docker_group,
    enrolment,
    lingering,
    managers,
    podman_locks,
    storage,
)
from svc.admin.checks.apps import apps
from svc.admin.checks.audit import audit_chain
from svc.admin.checks.backups import backups
from svc.admin.checks.clock import clock
from svc.admin.checks.confinement import confinement
from svc.admin.checks.database import database, database_disk, sqlite_version
from svc.admin.checks.disks import disk, run_tmpfs
from svc.admin.checks.gpus import gpus
from svc.admin.checks.licence import licence
from svc.admin.checks.podman_traces import container_cgroups, stale_downloads
from svc.admin.checks.prerequisites import (
    cgroups,
    connections,
    devices,
    networks,
    podman_version,
    podman_way,
    programs,
    user_namespaces,
)
from svc.admin.checks.recovery import recovery_sets, switch_under_way
from svc.admin.checks.service import (
    ca_file,
    data_dir,
    interpreter,
    pam_service,
    run_dir,
    secret_key,
    server,
    service_user,
    settings,
    settings_file,
    state_dir,
)
from svc.admin.checks.stores import homes, stores
from svc.admin.checks.subids import subids
from svc.admin.checks.tls import tls_certificate, tls_key
from svc.admin.checks.unit import helper_limits, unit
from svc.admin.checks.update import update

CHECKS = (
    settings_file,
    settings,
    service_user,
    ca_file,
    state_dir,
    data_dir,
    secret_key,
    tls_certificate,
    tls_key,
    database,
    database_disk,
    audit_chain,
    backups,
    recovery_sets,
    switch_under_way,
    update,
    disk,
    run_tmpfs,
    clock,
    run_dir,
    pam_service,
    interpreter,
    sqlite_version,
    unit,
    server,
    helper_limits,
    confinement,
    apps,
    licence,
    podman_way,
    programs,
    connections,
    networks,
    podman_version,
    user_namespaces,
    cgroups,
    devices,
    subids,
    enrolment,
    managers,
    lingering,
    delegation,
    homes,
    stores,
    storage,
    podman_locks,
    container_cgroups,
    stale_downloads,
    docker_group,
    gpus,
)
NEED_DATABASE = (
    data_dir,
    secret_key,
    tls_certificate,
    database,
    database_disk,
    audit_chain,
    backups,
    recovery_sets,
)
