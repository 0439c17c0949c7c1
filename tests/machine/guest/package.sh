# shellcheck shell=bash disable=SC2317 # functions are called through check
# For the checks of the package: commands as docs/install.md has them, versions, a registry.

DEBS=/opt/debs
PAGE=/root/checkout/docs/install.md

as_written() { # SECTION NUMBER: run that command of the section
    local command
    command=$(awk -v want="## $1" '/^## / { on = ($0 == want) } on && /^    / { print substr($0, 5) }' "$PAGE" |
        sed -n "$2p")
    printf '%s\n' "$command"
    [ -n "$command" ] && (cd "$DEBS" && bash -e -c "$command")
}

version() { dpkg-query -W -f '${Version}' svc; }

main_pid() { systemctl show -p MainPID --value svc.service; }

is_healthy() { svc api GET /api/health | grep -q '"ok"'; }

says_version() { # the server that runs, its release
    [ "$(svc api GET /api/version | sed -n 's/.*"version": *"\([^"]*\)".*/\1/p')" = "$(version)" ]
}

variant() { # VERSION COMMAND...: a package of that version, as 0.1.1 but for what COMMAND changes in its tree
    local tree=/var/tmp/variant
    rm -rf "$tree"
    dpkg-deb -R "$DEBS/svc_0.1.1_amd64.deb" "$tree" && cd "$tree" || return
    sed -i "s/^Version: .*/Version: $1/" DEBIAN/control
    sed -i "s/^VERSION = .*/VERSION = '$1'/" usr/lib/svc/python/svc/_build.py
    "${@:2}" || return
    python3 -m compileall -q -f --invalidation-mode unchecked-hash -s "$tree" -p / usr/lib/svc/python/svc || return
    find usr -type f -print0 | sort -z | xargs -0 md5sum >DEBIAN/md5sums
    cd / && dpkg-deb --root-owner-group -Znone --build "$tree" "$DEBS/svc_$1_amd64.deb" && rm -rf "$tree"
}

add_migration() { # SQL: in the tree of a variant
    local last folder=usr/lib/svc/python/svc/schema/migrations
    last=$(find "$folder" -name '*.sql' -printf '%f\n' | sort | tail -n 1)
    printf '%s\n' "$1" >"$folder/$(printf %04d $((10#${last%%_*} + 1)))_test.sql"
}

prepare_apt() { # apt asks nothing, and no settings file is asked about
    printf '%s\n' 'APT::Get::Assume-Yes "true";' 'Dpkg::Options { "--force-confdef"; "--force-confold"; };' \
        'Dpkg::Use-Pty "0";' \
        >/etc/apt/apt.conf.d/90test
    export DEBIAN_FRONTEND=noninteractive
}

use_registry() { # the quickstart's own, with its image, allowed by the policy
    # shellcheck disable=SC2034 # of the parts
    PARTS=/root/checkout/packaging/quickstart.d CREATED=/var/lib/svc-quickstart IMAGE=quickstart/base:1 DEMO=demo \
        REGISTRY=127.0.0.1:24690
    local part
    for part in output processes registry tour; do
        # shellcheck source=/dev/null
        . "$PARTS/$part.sh"
    done
    start_registry
    allow_registry
}
