# shellcheck shell=bash disable=SC2317 # functions are called through check
# Debian 12 with svc and workspaces that run, and its upgrade by apt.
# shellcheck source=../guest/check.sh
. /opt/check/check.sh
# shellcheck source=../guest/package.sh
. /opt/check/package.sh
# shellcheck source=workspaces.sh
. /opt/check/workspaces.sh
prepare_apt
echo 'force-unsafe-io' >/etc/dpkg/dpkg.cfg.d/test

service_runs() {
    grep -qx 'VERSION_ID="12"' /etc/os-release && as_written Install 1 && as_written Install 2 || return 1
    as_written Install 3 <<<'a long enough passphrase' && as_written Install 4 && as_written Install 7 && is_healthy
}
check 'svc is installed on Debian 12' service_runs

workspaces_run() { # plain, with a launcher, on a network, and with another user inside
    svc admin create-user demo <<<'another long passphrase' && (use_registry && tour) && make_again && again_serves 1 || return 1
    make_from hello joined '{"network": "lab"}' && make_from hello owned '{"run_as": {"uid": 1000, "gid": 100}}' || return 2
    demo svc ws exec first -- sh -c 'echo before > /work/before; echo kept > /root/kept' || return 3
    demo svc ws exec joined -- sh -c 'echo kept > /root/kept' || return 4
    [ "$(demo svc ws exec owned -- sh -c 'touch /work/owned; id -u')" = 1000 ] || return 5
    containers >/opt/check/containers && cat /opt/check/containers && [ "$(wc -l </opt/check/containers)" = 4 ] || return 6
    [ -s /home/demo/.local/share/containers/storage/libpod/bolt_state.db ]
}
check 'workspaces run in Podman 4' workspaces_run

kept_before() {
    as_written "$SECTION" 1 && as_written "$SECTION" 2 && as_written "$SECTION" 3 || return 1
    svc admin rollback list --json | grep -q 'before Debian 13'
}
check 'a recovery set and a snapshot are made as the page says' kept_before

upgraded() {
    local said container
    container=$(container_pid)
    cp /opt/debian13/apt.conf /etc/apt/apt.conf.d/91debian13
    said=$(apt-get full-upgrade 2>&1) || { tail -n 40 <<<"$said"; return 1; }
    sed -n '/REMOVED/,/upgraded,/p' <<<"$said"
    tail -n 5 <<<"$said"
    grep -qx 'VERSION_ID="13"' /etc/os-release && [ -z "$(dpkg --audit)" ] || return 2
    [ "$(dpkg-query -W -f '${db:Status-Status}' svc)" = config-files ] && [ ! -e /usr/lib/svc ] || return 3
    ! systemctl is-active svc.service && [ -s /var/lib/svc/data/svc.db ] && [ -s /etc/svc/svc.env ] || return 4
    [ -n "$container" ] && [ "$container" = "$(container_pid)" ]
}
check 'full-upgrade removes svc alone, and workspaces run on' upgraded
exit 133
