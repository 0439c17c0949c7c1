# shellcheck shell=bash disable=SC2317 # functions are called through check
# Debian 13, after the reboot: the package for it, and what Podman 4 has made.
# shellcheck source=../guest/check.sh
. /opt/check/check.sh
# shellcheck source=../guest/package.sh
. /opt/check/package.sh
# shellcheck source=workspaces.sh
. /opt/check/workspaces.sh
prepare_apt

same_containers() {
    podman --version && podman --version | grep -q ' 5\.' || return 1
    diff /opt/check/containers <(containers) && [ "$(podman_of_demo info --format '{{.Host.DatabaseBackend}}')" = boltdb ]
}
check 'Podman 5 has the containers of Podman 4, in their store' same_containers

back() {
    as_written "$SECTION" 4 && [ "$(version)" = 0.1.0 ] || return 1
    as_written "$SECTION" 5 && is_healthy && says_version && as_written "$SECTION" 6 || return 2
    as_written "$SECTION" 7
    judged
}
check 'the package for Debian 13 is installed and started as the page says, and the doctor finds nothing wrong' back

lives_on() {
    demo svc ws start first && field_is status running || return 1
    [ "$(demo svc ws exec first -- cat /work/before /root/kept)" = $'before\nkept' ] || return 2
    pgrep -u demo slirp4netns
}
check 'a workspace goes on with its container, its files and its network' lives_on

check 'one with restart_on_boot has restarted with its launcher and port' again_serves 2

joined_lives_on() {
    demo svc ws start joined && field_is status running joined && [ "$(demo svc ws exec joined -- cat /root/kept)" = kept ] &&
        podman_of_demo network ls --format '{{.Name}}' | grep lab
}
check 'one on a network too' joined_lives_on

owned_lives_on() {
    demo svc ws start owned && field_is status running owned &&
        [ "$(demo svc ws exec owned -- sh -c 'id -u; ls /work/owned')" = $'1000\n/work/owned' ]
}
check 'one with run_as too' owned_lives_on

check 'they are the same containers' diff /opt/check/containers <(containers)

fresh() {
    demo svc ws setup --template hello --name fresh && demo svc ws start fresh && field_is status running fresh &&
        demo svc ws exec fresh -- true && pgrep -u demo pasta
}
check 'a new workspace is connected by pasta' fresh

set_of_12() { # listed with the reason, refused before anything is stopped
    local said name
    said=$(svc admin rollback list --json) || return 1
    grep 'its program was built for debian-12, this host is debian-13' <<<"$said" || return 2
    name=$(python3 -c 'import json, sys; print(next(each["id"] for each in json.load(sys.stdin)["items"] if each["version"]))' <<<"$said")
    ! said=$(svc admin rollback apply "$name" --yes 2>&1) || return 3
    printf '%s\n' "$said"
    grep 'cannot be applied: its program was built for debian-12' <<<"$said" && is_healthy
}
check 'the recovery set of Debian 12 is refused by name' set_of_12
exit 0
