# shellcheck shell=bash
# One line for each check: "ok - NAME" or "not ok - NAME: what was seen".

check() { # NAME COMMAND...
    local name=$1 said start=$EPOCHREALTIME code=0
    shift
    said=$("$@" 2>&1) || code=$?
    local took
    took=$(awk "BEGIN { printf \"%.2f\", $EPOCHREALTIME - $start }")
    if [ $code = 0 ]; then
        echo "ok - $name ($took s)"
    else
        echo "not ok - $name: exit $code after $took s: $(tail -n 25 <<<"$said" | tr '\n' '|')"
    fi
    printf '%s\n' "$said" | sed 's/^/    /'
}

demo() { runuser -u demo -- env -i PATH=/usr/local/bin:/usr/bin:/bin HOME=/home/demo LANG=C.UTF-8 "$@"; }

field() { # NAME: of the workspace `first`
    demo svc ws list --json | python3 -c '
import json, sys
items = {item["name"]: item for item in json.load(sys.stdin)["items"]}
print(items["first"][sys.argv[1]])' "$1"
}

field_is() { # NAME VALUE: within ten seconds
    for _ in $(seq 50); do
        [ "$(field "$1")" = "$2" ] && return
        sleep 0.2
    done
    echo "$1 is $(field "$1"), not $2"
    return 1
}

container_pid() { # the init of demo's workspace, by its cgroup in the user's own slice
    pgrep -u demo -f 'sleep infinity' | head -n 1
}
