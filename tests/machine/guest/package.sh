# shellcheck shell=bash disable=SC2317 # functions are called through check
# For the checks of the package: commands as docs/install.md has them, versions, a registry.

DEBS=/opt/debs
PAGE=/root/checkout/docs/install.md
SUFFIX=+deb$(. /etc/os-release && echo "$VERSION_ID") # of the versions that are built for this system

as_written() { # SECTION NUMBER: run that command of the section
    local command
    command=$(awk -v want="## $1" '/^## / { on = ($0 == want) } on && /^    / { print substr($0, 5) }' "$PAGE" |
        sed -n "$2p")
    command=${command//+deb12/$SUFFIX}
    printf '%s\n' "$command"
    [ -n "$command" ] && (cd "$DEBS" && bash -e -c "$command")
}

deb() { echo "$DEBS/svc_$1${SUFFIX}_amd64.deb"; } # RELEASE

version() { # of the release: without the system
    local whole
    whole=$(dpkg-query -W -f '${Version}' svc) && echo "${whole%"$SUFFIX"}"
}

main_pid() { systemctl show -p MainPID --value svc.service; }

is_healthy() { svc api GET /api/health | grep -q '"ok"'; }

says_version() { # the server that runs, its release
    [ "$(svc api GET /api/version | sed -n 's/.*"version": *"\([^"]*\)".*/\1/p')" = "$(version)" ]
}

judged() { # the doctor finds nothing wrong, but the controllers, which this machine does not have
    svc admin doctor --json | python3 -c '
import json, sys
found = [item for item in json.load(sys.stdin)["items"] if item["level"] == "fail"]
print(*found, sep="\n")
sys.exit({item["code"] for item in found} - {"controllers"} != set())'
}

variant() { # VERSION COMMAND...: a package of that version, as 0.1.1 but for what COMMAND changes in its tree
    local tree=/var/tmp/variant
    rm -rf "$tree"
    dpkg-deb -R "$(deb 0.1.1)" "$tree" && cd "$tree" || return
    sed -i "s/^Version: .*/Version: $1$SUFFIX/; s/^Svc-Release: .*/Svc-Release: $1/" DEBIAN/control
    sed -i "s/^VERSION = .*/VERSION = '$1'/" usr/lib/svc/python/svc/_build.py
    "${@:2}" || return
    python3 -m compileall -q -f --invalidation-mode unchecked-hash -s "$tree" -p / "$tree/usr/lib/svc/python/svc" || return
    find usr -type f -print0 | sort -z | xargs -0 md5sum >DEBIAN/md5sums
    cd / && dpkg-deb --root-owner-group -Znone --build "$tree" "$(deb "$1")" && rm -rf "$tree"
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
