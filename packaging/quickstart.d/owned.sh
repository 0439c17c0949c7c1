# shellcheck shell=bash
# What the quickstart has made: a list, with a line written before each thing is made. Only that is
# removed or stopped; another installation of svc is refused, with the way out.

OWNED=$CREATED/owned
LINK=/usr/local/bin/svc
PROGRAM=/opt/svc
UNIT=/etc/systemd/system/svc.service
DATA=(/var/lib/svc /var/log/svc /run/svc /etc/svc)
SYSTEM_USERS=(svc-apps svc-unix svc-tls svc-worker svc) # the group goes with the last

exists() { [ -e "$1" ] || [ -L "$1" ]; }

is_owned() { grep -qxF -- "$1" "$OWNED" 2>/dev/null; }

holds_data() { # DIRECTORY: is there more than the lock files of commands?
    [ -L "$1" ] || [ -n "$(find "$1" -mindepth 1 ! -name '*.lock' -print -quit 2>/dev/null)" ]
}

own() { # WHAT: a path, user:NAME or "program"
    is_owned "$1" || printf '%s\n' "$1" >>"$OWNED"
}

disown_program() { # once it is removed: who installs it next need not be the quickstart
    sed -i '/^program$/d' "$OWNED"
}

link_is_ours() { [ "$(readlink "$LINK" || true)" = "$PROGRAM/bin/svc" ]; }

package_is_installed() {
    case $(dpkg-query -W -f '${db:Status-Status}' svc 2>/dev/null || true) in
    '' | not-installed | config-files) return 1 ;;
    esac
}

refuse_another() { # an installation that the quickstart has not made is neither changed nor stopped
    local found
    if exists "$LINK" && ! link_is_ours; then
        found="$LINK is of another installation: $(readlink -f "$LINK" || true)"
    elif package_is_installed && ! { is_owned program && link_is_ours; }; then
        found="the Debian package svc is installed"
    elif is_owned program; then
        return 0
    else
        for found in "$LINK" "$UNIT" "$PROGRAM"; do ! exists "$found" || break; done
        exists "$found" || return 0
        found="an svc that the quickstart has not made is installed: $found"
    fi
    die "$found; nothing was changed" "$(if package_is_installed; then
        echo "docs/install.md says how it is set up; to remove it and keep its data: sudo apt-get remove svc"
    else
        echo "packaging/install updates it; to remove it and keep its data: sudo packaging/install --remove"
    fi)"
}

adopt_earlier() { # what a quickstart without a list has made, where it is recognisably that
    local name
    if [ -e "$OWNED" ] || { [ ! -e "$CREATED/registry.yml" ] && [ ! -e "$CREATED/account" ]; }; then return 0; fi
    if package_is_installed || { exists "$LINK" && ! link_is_ours; }; then return 0; fi
    for name in "${SYSTEM_USERS[@]}"; do own "user:$name"; done
    for name in "${DATA[@]}"; do own "$name"; done
    if exists "$LINK"; then own program; fi
}

claim_host() { # before anything is made; what is there already is used, and never removed
    local name
    adopt_earlier
    refuse_another
    install -d -m 0755 "$CREATED"
    for name in "${DATA[@]}"; do holds_data "$name" || own "$name"; done
    for name in "${SYSTEM_USERS[@]}"; do getent passwd "$name" >/dev/null || own "user:$name"; done
    own program
}

made_here() { # for --stop and --remove: is there anything of the quickstart?
    adopt_earlier
    refuse_another
    [ ! -s "$OWNED" ] || return 0
    say "nothing on this host was made by the quickstart"
    return 1
}

remove_owned_data() {
    local name
    for name in "${DATA[@]}"; do
        if is_owned "$name"; then
            rm -rf -- "${name:?}"
        elif exists "$name"; then
            say "kept, since it was there before the quickstart: $name"
        fi
    done
    for name in "${SYSTEM_USERS[@]}"; do
        if is_owned "user:$name" && getent passwd "$name" >/dev/null && ! userdel "$name"; then
            say "the system user $name stays: other processes on this host run as it"
        fi
    done
}
