# shellcheck shell=bash
# What a run has of the host: a view of its own (view), or else the host for itself alone; and how its suites are started there.

become_root() {
    [ "$EUID" != 0 ] || return 0
    command -v sudo >/dev/null || die "this needs root, and there is no sudo" "become root (su -) and run $HERE/run again"
    exec sudo -- "$HERE/run" "$@"
}

needs_host() { # SUITE: does it need root and the host's lock?
    case $1 in unit | conventions | pages) return 1 ;; esac
}

own_folder() { # PARENT: FOLDER becomes a new one; the next run removes it if this one is killed, since its lock is free then
    FOLDER=$(mktemp -d -p "$1" svc-tests.XXXXXX 2>/dev/null) && chmod 0711 "$FOLDER" && exec {lock}>"$FOLDER/lock" && flock "$lock"
}

remove_dead_folders() { # FOLDER...: this user's, of runs that were killed
    local folder
    for folder in "$@"; do
        if [ ! -L "$folder" ] && [ -O "$folder/lock" ]; then (flock -n 7 && rm -rf "$folder") 7<"$folder/lock" || true; fi
    done
}

in_view() { [ "${SVC_TEST_VIEW:-}" = "$1" ]; } # WHAT: of this host (host), or of a tree of another Debian (tree)?

REAPED=(unshare --pid --fork --kill-child --mount-proc)

in_namespace() { # SUITE: how its processes are started
    local network=() begin=''
    WRAP=()
    if ! needs_host "$1"; then
        # What a browser leaves behind is reaped there, and its processor time counted.
        [ "$1" != pages ] || [ "$EUID" != 0 ] || WRAP=(setpriv --pdeathsig KILL "${REAPED[@]}" /bin/bash -c '"$@"; exit $?' bash)
        return 0
    fi
    case $1 in
    machine | stories | applications | release) ;; # they fetch what they need, and the machines have networks of their own
    *) ! in_view host || network=(--net) begin='ip link set lo up; ' ;; # its loopback alone: its ports are its own
    esac
    # What a suite starts and mounts ends with namespaces of its own, whose first process is a shell that
    # reaps; and that ends when the timeout, or this script, is killed.
    WRAP=("${REAPED[@]}" "${network[@]}" /bin/bash -c "$begin"'"$@"; exit $?' bash)
    case $1 in
    e2e | stories | hostile | applications | bench) # the mounts that rootless Podman wants on a host without systemd; agent makes its own
        WRAP=("$TREE/packaging/quickstart.d/private-namespace" "${WRAP[@]}")
        ;;
    esac
    [ "$1" = machine ] || [ ! -d /run/systemd/system ] || WRAP=("$TREE/tests/run.d/without-systemd" "${WRAP[@]}")
    [ "$1" = machine ] || [ -z "${SVC_TEST_VIEW:-}" ] || WRAP=("$HERE/run.d/own-accounts" "$RESULTS" "$1" "${WRAP[@]}")
    WRAP=(setpriv --pdeathsig KILL "${WRAP[@]}")
}

copy_tree() { # the checkout as it is now, readable by the tests' own users
    mkdir -p "$TREE"
    find "$TREE" -mindepth 1 -delete
    tar -C "$SOURCE" --exclude=.git --exclude=__pycache__ --exclude='*.egg-info' --exclude='.*_cache' --exclude=.venv \
        -cf - . | tar -C "$TREE" --no-same-owner --no-same-permissions -xf -
    chmod -R a+rX "$TREE"
    git -c safe.directory='*' -C "$SOURCE" rev-parse HEAD >"$TREE/.commit" 2>/dev/null || echo unknown >"$TREE/.commit"
    # For the upgrade on the machine; a clone without its history does without.
    local commit release
    read -r commit release < <(listed "$SOURCE/packaging/previous-release")
    # shellcheck source=/dev/null
    if [ "$(. /etc/os-release && echo "${VERSION_CODENAME:-}")" = "$release" ]; then
        git -c safe.directory='*' -C "$SOURCE" archive --output="$TREE/.previous.tar" "$commit" 2>/dev/null ||
            rm -f "$TREE/.previous.tar"
    fi
}

alone() { # COMMAND...: no other run of this host does such a thing meanwhile; for what is kept for all of them
    (flock 7; "$@") 7>/var/cache/svc-tests/lock
}

kept_program() { # prints where /opt/svc-test is kept, with these versions of all that it installs
    local files name
    mapfile -t files < <(locks)
    name=$({ cat "${files[@]}" "$HERE"/run.d/*/package-lock.json; /usr/bin/python3 -VV; } | sha256sum | cut -c1-16)
    echo "/var/cache/svc-tests/program-$name"
}

keep_program() { # for later runs, which begin with it; one that none has begun with for a week goes
    local kept
    kept=$(kept_program)
    find "${kept%/*}" -maxdepth 1 -name 'program-*' -mtime +7 -exec rm -rf {} +
    [ ! -d "$kept" ] || { touch "$kept"; return; }
    rm -rf "$kept.new"
    cp -a "$PREFIX" "$kept.new"
    mv "$kept.new" "$kept"
}

run_in_view() { # this script again, in a view of this host; returns only where none can be made
    local code=0
    alone install_packages
    setpriv --pdeathsig TERM env -u TMPDIR SVC_TEST_VIEW=host "$HERE/run.d/view" --prefix "$PREFIX" "$(kept_program)" "$SOURCE" \
        "$HERE/run" "${ARGUMENTS[@]}" || code=$?
    [ $code = 97 ] || exit $code
}

take_host() { # for the whole run
    exec 9>/run/lock/svc-tests
    flock -n 9 || { say "another run has this host's test users and ports; waiting"; flock 9; }
}

prepare_host() {
    export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root
    umask 022
    PREFIX=/opt/svc-test
    TREE=/var/cache/svc-tests/tree
    mkdir -p "${TREE%/*}"
    [ -n "${SVC_TEST_VIEW:-}" ] || run_in_view
    [ -n "${SVC_TEST_VIEW:-}" ] || take_host
    in_view host || install_packages
    install_program
    ! in_view host || alone keep_program
    copy_tree
    install_pieces
    fetch_wheels
}
