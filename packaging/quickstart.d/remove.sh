# shellcheck shell=bash
# --stop and --remove; data is removed last and only after a confirmation.

stop_workspaces() { # of the demo account only
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
    made_here || return 0
    steps 3
    if [ "$ALL" = yes ]; then
        steps 4
        step "Stopping the workspaces of $DEMO"
        stop_workspaces
    fi
    step "Removing the registry from the policy"
    forget_registry
    step "Stopping svc"
    stop_server
    step "Stopping the registry"
    stop_registry
    [ "$ALL" = yes ] || say "running workspaces continue to run; packaging/quickstart starts svc again"
}

end_account_processes() { # USER: kill what is left of that account
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
    [ -e "$CREATED/account" ] || return 0
    getent passwd "$DEMO" >/dev/null || return 0
    end_account_processes "$DEMO"
    userdel --remove "$DEMO" 2>/dev/null || rm -rf "/home/${DEMO:?}"
    rm -rf "/run/user/$1" "/run/user/.svc-$1"
}

remove_data() {
    local uid
    uid=$(id -u "$DEMO" 2>/dev/null || echo none)
    remove_account "$uid"
    if package_is_installed; then
        say "kept for the Debian package svc, which is installed: ${DATA[*]}"
    else
        remove_owned_data
        rmdir /var/backups/svc 2>/dev/null || [ ! -d /var/backups/svc ] || say "snapshots are kept: /var/backups/svc"
    fi
    rm -rf "${CREATED:?}"
}

remove_everything() {
    made_here || return 0
    steps 4
    step "Stopping the workspaces of $DEMO"
    stop_workspaces
    step "Stopping svc and the registry"
    stop_server
    stop_registry
    step "Removing the program"
    if is_owned program; then
        "$HERE/install" --remove
        disown_program
    else
        say "it is removed already"
    fi
    step "Removing the data"
    if confirm "Remove the database, the settings and the account $DEMO with its home and workspaces?"; then
        remove_data
        say "what the quickstart made is removed"
    else
        say "data is kept: /var/lib/svc /etc/svc /var/log/svc $CREATED and the account $DEMO"
        say "to remove it too: packaging/quickstart --remove --yes"
    fi
    say "Debian packages stay; packaging/quickstart.d/packages lists them"
}
