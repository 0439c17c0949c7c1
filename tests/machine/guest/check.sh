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

field() { # NAME [WORKSPACE]: of `first` unless said otherwise
    demo svc ws list --json | python3 -c '
import json, sys
items = {item["name"]: item for item in json.load(sys.stdin)["items"]}
print(items[sys.argv[2]][sys.argv[1]])' "$1" "${2:-first}"
}

field_is() { # NAME VALUE [WORKSPACE]: within twenty seconds
    for _ in $(seq 100); do
        [ "$(field "$1" "${3:-first}")" = "$2" ] && return
        sleep 0.2
    done
    echo "$1 is $(field "$1" "${3:-first}"), not $2"
    return 1
}

make_again() { # a workspace with a port and a launcher, which comes back after a reboot
    local image
    image=$(demo svc template get hello --json |
        python3 -c 'import json, sys; print(json.load(sys.stdin)["source"]["image_ref"])') || return 1
    demo svc template create --file - <<TEXT || return 2
{"name": "again", "source": {"type": "registry", "image_ref": "$image"}, "command": ["sleep", "999999"],
 "ports": [{"name": "web", "container_port": 8080}],
 "launchers": [{"name": "web", "port": "web", "autostart": true, "command": ["sh", "-c",
  "n=\$((\$(cat /work/starts || echo 0) + 1)); echo \$n > /work/starts; echo start number \$n; trap 'sleep 1; echo ended \$n >> /work/ends; exit 0' TERM; httpd -f -p 127.0.0.1:8080 -h /work & wait"]}]}
TEXT
    demo svc ws create --template again --name again --restart-on-boot || return 3
    demo svc ws start again && demo svc ws get again
}

again_port() { # the host's port of the workspace `again`
    demo svc ws ports again --json | python3 -c 'import json, sys; print(json.load(sys.stdin)["items"][0]["host_port"])'
}

again_serves() { # NUMBER: its launcher answers through its port, and says how often it was started
    local port
    port=$(again_port) || return 1
    for _ in $(seq 100); do
        [ "$(python3 -c 'import sys, urllib.request as u; print(u.urlopen(sys.argv[1], timeout=5).read().decode().strip())' \
            "http://127.0.0.1:$port/starts")" = "$1" ] && return
        sleep 0.2
    done
    demo svc ws launchers again
    demo svc ws ports again
    return 1
}

again_said() { # TEXT: it is in what the launcher printed
    for _ in $(seq 50); do
        demo svc ws logs again --launcher web | grep -qx "$1" && return
        sleep 0.2
    done
    demo svc ws logs again --launcher web
    return 1
}

container_pid() { # the init of demo's workspace, by its cgroup in the user's own slice
    pgrep -u demo -f 'sleep infinity' | head -n 1
}

manual_renders() { # as it was installed, without a warning
    local page
    for page in '1 svc' '1 svc-ws' '5 svc.env' '8 svc-admin'; do
        # shellcheck disable=SC2086 # two words
        demo env MANWIDTH=80 man $page | grep -m 1 " ${page#* } - " || return 1
        # shellcheck disable=SC2086
        [ -z "$(demo man --warnings -E UTF-8 $page 2>&1 >/dev/null)" ] || return 2
    done
}

tab_completes() { # commands, options, the caller's own workspace and files; in bash, zsh and fish
    python3 /opt/check/tab.py demo 'svc who' 'svc whoami' 'svc ws sta' 'svc ws start' 'svc ws logs --fo' 'svc ws logs --follow' \
        'svc ws start fi' 'svc ws start first' 'svc fs ls wo' 'svc fs ls work/'
}
