# shellcheck shell=bash disable=SC2317 # functions are called through check
# Sourced by boot-3.sh: signed releases, bad ones and a good one, while a workspace runs. 0.1.1 before and after.
export SVC_UPDATE_SOURCE=/opt/release

offer() { # VERSION COMMAND...: a release of that variant, signed by the tests' vendor
    variant "$@" || return
    rm -rf "$SVC_UPDATE_SOURCE"
    PYTHONPATH=/usr/lib/svc/python /root/checkout/packaging/vendor/release sign --key "$DEBS/release.pem" \
        --min-from 0.1.0 --out "$SVC_UPDATE_SOURCE" "$(deb "$1")"
}

adds_a_table() { add_migration 'CREATE TABLE novelties (id INTEGER PRIMARY KEY);'; }

fails_on_the_database() { # a migration that works in the rehearsal only
    adds_a_table
    cat >>usr/lib/svc/python/svc/db/migrate.py <<'PYTHON'


_apply = apply


def apply(*arguments, **named):
    import os

    if "rehearsal" not in os.environ.get("SVC_STATE_DIR", ""):
        raise sqlite3.OperationalError("it fails only here")
    return _apply(*arguments, **named)
PYTHON
}

never_runs() { printf '\nraise SystemExit("not today")\n' >>usr/lib/svc/python/svc/server/supervisor.py; }

applied() { # NAME: a field of the last apply
    svc admin update status --json | python3 -c 'import json, sys; print(json.load(sys.stdin)["applied"][sys.argv[1]])' "$1"
}

is_as_before() { # CONTAINER: the old version runs, with its data, and the workspace never stopped
    [ "$(version)" = 0.1.1 ] && is_healthy && [ "$1" = "$(container_pid)" ] || return
    field_is status running && [ "$(demo svc ws exec first -- cat /work/before)" = before ] &&
        svc admin list-users | grep -q alice
}

refuses_changed() {
    local said
    offer 0.1.2 true && sed -i 's/"min_from":"0.1.0"/"min_from":"0.0.1"/' "$SVC_UPDATE_SOURCE/release.json" || return 1
    ! said=$(svc admin update apply --yes 2>&1) || return 2
    printf '%s\n' "$said"
    grep -q 'was changed after it was signed' <<<"$said"
}
check 'a release that was changed after it was signed is refused' refuses_changed

rehearsal_fails() {
    local said main container
    main=$(main_pid) container=$(container_pid)
    offer 0.1.2 add_migration 'CREATE TABLE users (id);' || return 1
    ! said=$(svc admin update apply --yes 2>&1) || return 2
    printf '%s\n' "$said"
    grep -q 'failed in its rehearsal, and nothing was changed: .*table users already exists' <<<"$said" || return 3
    [ "$main" = "$(main_pid)" ] && is_as_before "$container" && [ "$(applied outcome)" = rehearsal_failed ]
}
check 'a release whose migration fails in the rehearsal touches nothing' rehearsal_fails

goes_back() { # VERSION COMMAND REASON
    local said container
    container=$(container_pid)
    offer "$1" "$2" || return 1
    ! said=$(svc admin update apply --yes 2>&1) || return 2
    printf '%s\n' "$said"
    grep -q "svc: $1 did not work, and 0.1.1 is in place again: .*$3" <<<"$said" || return 3
    is_as_before "$container" || return 4
    svc admin rollback list --json
    svc admin doctor --json | grep -q "the update to $1 on .* went back" || return 5
    svc admin rollback list --json | grep -q "svc admin update apply: 0.1.1 to $1" || return 6
    [ "$(applied outcome)" = went_back ] && applied reason | grep -q "$3"
}
check 'an update whose migration fails on the database goes back by itself' \
    goes_back 0.1.3 fails_on_the_database 'it fails only here'
check 'an update whose service does not get healthy goes back by itself' \
    goes_back 0.1.4 never_runs 'not healthy within'

killed() { # while the migration is rehearsed
    local pid container
    container=$(container_pid)
    cp -r "$SVC_UPDATE_SOURCE" /opt/release-0.1.4
    offer 0.1.5 adds_a_table || return 1
    svc admin update apply --yes 2>/tmp/apply.log &
    pid=$!
    until grep rehearsing /tmp/apply.log; do sleep 0.05; done
    kill -9 $pid
    wait $pid
    find /var/lib/svc/update
    is_as_before "$container"
}
check 'an apply that is killed in its rehearsal changes nothing' killed

updates() {
    svc admin update check | grep -q '^svc 0.1.5 of ' || return 1
    same_workspace svc admin update apply --yes || return 2
    [ "$(version)" = 0.1.5 ] && says_version && [ "$(applied outcome)" = ok ] || return 3
    ! dpkg --verify svc | grep -v ' c /etc/' || return 4 # settings may be the administrator's
    [ -z "$(ls /var/lib/svc/update)" ] && svc admin update apply --yes | grep -qx 'svc 0.1.5 is up to date'
}
check 'a signed release is installed while a workspace runs' updates

refuses_old() {
    local said
    ! said=$(SVC_UPDATE_SOURCE=/opt/release-0.1.4 svc admin update check 2>&1) || return 1
    printf '%s\n' "$said"
    grep -q 'an old release is offered again' <<<"$said"
}
check 'an older release that is offered again is refused' refuses_old

undone() {
    local set container
    set=$(applied recovery_set) container=$(container_pid)
    svc admin rollback apply "$set" --yes && is_as_before "$container" || return 1
    svc admin update check >/dev/null || return 2 # else the last one failed, which doctor says first
    svc admin doctor --json | grep -q '"the last check was on .* was undone since: 0.1.1 is installed"'
}
check 'a good update is undone with its recovery set' undone
unset SVC_UPDATE_SOURCE
