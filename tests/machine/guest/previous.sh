# shellcheck shell=bash disable=SC2317 # functions are called through check
# Sourced by boot-3.sh at its end: the package of the release before this one, in use, and the upgrade to this one.
PREVIOUS=0.0.9

previous_in_use() { # on a database of its own; what the checks before left is put aside
    mv /var/lib/svc /var/lib/svc.before && demo env "XDG_RUNTIME_DIR=/run/user/$(id -u demo)" podman rm -fa -t 0 || return 1
    [ -z "$(container_pid)" ] && rm -f /home/demo/work/before || return 2
    apt-get install "$DEBS/svc_${PREVIOUS}_amd64.deb" && [ "$(version)" = $PREVIOUS ] || return 3
    svc admin migrate && systemctl start svc.service && is_healthy || return 4
    svc admin create-user demo <<<'another long passphrase' || return 5
    (use_registry && tour) && make_again || return 6
    demo svc ws exec first -- sh -c 'echo before > /work/before' && field_is status running && again_serves 1
}
check 'the previous release runs workspaces' previous_in_use

upgrade_from_previous() {
    local migrations
    migrations=$(find /usr/lib/svc/python/svc/schema/migrations -name '*.sql' | wc -l)
    same_workspace apt-get install "$(deb 0.1.0)" && [ "$(version)" = 0.1.0 ] || return 1
    echo "migrations: $migrations -> $(find /usr/lib/svc/python/svc/schema/migrations -name '*.sql' | wc -l)"
    svc admin migrate && field_is status running again && again_serves 1 && again_said 'start number 1'
}
check 'an upgrade from the previous release leaves its workspaces running' upgrade_from_previous

goes_on() { # what the previous release made is managed by this one
    demo svc ws stop again && field_is status stopped again && demo svc ws start again && again_serves 2 || return 1
    demo svc ws stop first && demo svc ws start first && [ "$(demo svc ws exec first -- cat /work/before)" = before ] || return 2
    nothing_wrong
}
check 'and they are stopped, started and reached by this one' goes_on
