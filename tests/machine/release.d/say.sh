# shellcheck shell=bash
# What the checks of a release add to check.sh: the console, figures, a workspace's record and cgroup.

# shellcheck source=../guest/check.sh
. /opt/check/check.sh

{ echo; exec tail -n +1 -F "/opt/check/out.$(cat /opt/check/boots)"; } >/dev/ttyS0 2>/dev/null & # ends with the machine

patiently() { # COMMAND...: the service's patience with its host is meant for a real processor
    for _ in 1 2 3; do "$@" && return; done
    return 1
}

figure() { echo "figure $*"; }

record() { # WORKSPACE EXPRESSION: of its record, as `w`
    demo svc ws list --json | python3 -c '
import json, sys
w = next(item for item in json.load(sys.stdin)["items"] if item["name"] == sys.argv[1])
print(eval(sys.argv[2]))' "$1" "$2"
}

becomes() { # WORKSPACE FIELD VALUE: within a minute
    for _ in $(seq 60); do
        [ "$(record "$1" "w['$2']")" = "$3" ] && return
        sleep 1
    done
    record "$1" w
    return 1
}

inside() { # WORKSPACE SCRIPT: what a shell in there says
    demo svc ws exec "$1" --exit-status -- sh -c "$2"
}

limit() { # WORKSPACE FILE: of the container's own cgroup, as the kernel has it
    local slice group
    [ -s "/run/id-$1" ] || record "$1" "w['id'].replace('-', '')" >"/run/id-$1"
    slice=svc-$(cat "/run/id-$1").slice
    group=$(find "/sys/fs/cgroup/user.slice/user-$(id -u demo).slice" -path "*/$slice/libpod-*.scope/container" -prune)
    cat "$group/$2"
}

monitor() { # WORKSPACE EXPRESSION: of one snapshot, as `m`
    demo svc ws monitor "$1" --json | python3 -c '
import json, sys
m = json.load(sys.stdin)
print(eval(sys.argv[1]))' "$2"
}

between() { # LOW VALUE HIGH
    awk "BEGIN { exit !($1 <= $2 && $2 <= $3) }" || { echo "$2 is not between $1 and $3"; return 1; }
}

fetch() { # URL
    python3 -c 'import sys, urllib.request as u; print(u.urlopen(sys.argv[1], timeout=20).read().decode())' "$1"
}
