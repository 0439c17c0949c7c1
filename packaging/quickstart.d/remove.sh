# shellcheck shell=bash
# --stop and --remove: the way back, data last and only when asked for.

stop_workspaces() { # of the demo account; those of others are none of our business
    getent passwd "$DEMO" >/dev/null || return 0
    server_answers || return 0
    local name
    for name in $(as_user "$DEMO" svc ws list --json 2>/dev/null | python3 -c '
import json, sys
print(*(item["name"] for item in json.load(sys.stdin)["items"] if item["status"] != "stopped"))' 2>/dev/null); do
        show "$DEMO" svc ws stop "$name"
    done
}

stop_everything() {
    steps 2
    if [ "$ALL" = yes ]; then
        steps 3
        step "Stopping the workspaces of $DEMO"
        stop_workspaces
    fi
    step "Stopping svc"
    stop_server
    step "Stopping the registry"
    stop_registry
    [ "$ALL" = yes ] || say "workspaces that were running go on running; packaging/quickstart starts svc again"
}

end_account_processes() { # USER: whatever of that account is still there
    local uid
    uid=$(id -u "$1")
    if has_systemd; then
        loginctl disable-linger "$1" 2>/dev/null || true
        loginctl terminate-user "$1" 2>/dev/null || true
    fi
    for _ in 1 2 3 4 5; do
        pkill -KILL -U "$uid" 2>/dev/null || return 0
        sleep 0.2
    done
}

remove_account() {
    [ -e "$MADE/account" ] || return 0
    getent passwd "$DEMO" >/dev/null || return 0
    end_account_processes "$DEMO"
    userdel --remove "$DEMO" 2>/dev/null || rm -rf "/home/${DEMO:?}"
    rm -rf "/run/user/$1"
}

remove_data() {
    local uid
    uid=$(id -u "$DEMO" 2>/dev/null || echo none)
    remove_account "$uid"
    rm -rf /var/lib/svc /var/log/svc /run/svc /etc/svc
    if getent passwd svc >/dev/null && ! userdel svc; then
        say "the system user svc stays: something else on this host runs as it"
    fi
    rm -rf "$MADE"
}

remove_everything() {
    steps 4
    step "Stopping the workspaces of $DEMO"
    stop_workspaces
    step "Stopping svc and the registry"
    stop_server
    stop_registry
    step "Removing the program"
    "$HERE/install" --remove
    step "Removing the data"
    if confirm "Remove the database, the settings and the account $DEMO with its home and workspaces?"; then
        remove_data
        say "all data is gone"
    else
        say "data is kept: /var/lib/svc /etc/svc /var/log/svc $MADE and the account $DEMO"
        say "to remove it too: packaging/quickstart --remove --yes"
    fi
    say "Debian packages stay; see packaging/quickstart.d/packages for what was asked for"
}
