# shellcheck shell=bash disable=SC2317 # functions are called through check
# A Debian without systemd, from the quickstart to its removal: the whole life of workspaces, with a build, a port, a terminal,
# networks, another user inside, and a restore.
# shellcheck source=../guest/check.sh
. /opt/check/check.sh

check 'the quickstart ends with a running workspace' /root/checkout/packaging/quickstart
check 'the quickstart can be run twice' /root/checkout/packaging/quickstart

nothing_fails() { # warnings are of this machine: no controllers, no clock of its own
    svc admin doctor --json | python3 -c '
import json, sys
failed = [item for item in json.load(sys.stdin)["items"] if item["level"] == "fail"]
print(failed)
sys.exit(bool(failed))'
}
check 'the doctor finds nothing that fails' nothing_fails
check 'the doctor reads the version of Podman' sh -c 'svc admin doctor | grep -E "podman_version.*podman [0-9.]{3,}"'

check 'another workspace with a port and a launcher starts' make_again
check 'its launcher is reached through its port' again_serves 1
check 'what its launcher prints is captured' again_said 'start number 1'

by_terminal() { # its standard input stays open: script echoes the end of one as "^@" into what is printed
    demo script -qec "svc ws shell ${1:-first} --command 'tty; id -u'" /dev/null <> <(:) | tr -d '\r'
}
has_a_terminal() {
    local said
    said=$(by_terminal)
    echo "$said"
    grep -qx '/dev/pts/[0-9]*' <<<"$said"
}
check 'a terminal opens in it' has_a_terminal

base() { demo svc template get hello --json | python3 -c 'import json, sys; print(json.load(sys.stdin)["source"]["image_ref"])'; }
builds() {
    printf 'FROM %s\nRUN echo built > /built\n' "$(base)" |
        demo svc template create --dockerfile - --name built && demo svc image build built --wait && demo svc template enable built &&
        demo svc ws setup --template built --name made && demo svc ws start made || return 1
    [ "$(demo svc ws exec made -- cat /built)" = built ]
}
check 'a template is built from a Dockerfile' builds

as_another_user() { # whose files of /work are the user's own outside
    demo svc template create --file - <<TEXT || return 1
{"name": "mapped", "source": {"type": "registry", "image_ref": "$(base)"}, "run_as": {"uid": 1000, "gid": 1000},
 "launchers": [{"name": "who", "autostart": true, "command": ["sh", "-c", "id -u > /work/who; sleep 999"]}]}
TEXT
    demo svc ws setup --template mapped --name mapped && demo svc ws start mapped || return 2
    [ "$(demo svc ws exec mapped -- id -u)" = 1000 ] || return 3
    by_terminal mapped | grep -qx 1000 || return 4
    for _ in $(seq 50); do [ "$(cat /home/demo/work/who 2>/dev/null)" = 1000 ] && break; sleep 0.2; done
    [ "$(cat /home/demo/work/who)" = 1000 ] && [ "$(stat -c %U /home/demo/work/who)" = demo ]
}
check 'a workspace runs as another user inside: exec, terminal and launcher' as_another_user

on_a_network() {
    local name
    for name in one two; do
        demo svc ws setup --template hello --name $name --network lab && demo svc ws start $name || return 1
    done
    demo svc ws exec one --exit-status -- nslookup two
}
check 'two workspaces find each other on a network' on_a_network

whole_life() {
    demo svc ws stop first && field_is status stopped && demo svc ws rename first --name renamed && demo svc ws start renamed || return 1
    demo svc ws restart renamed && field_is status running renamed && demo svc ws logs renamed | grep -q 'workspace ready' || return 2
    demo svc ws stop renamed && demo svc ws rename renamed --name first && demo svc ws start first || return 3
    demo svc ws delete made --yes && ! demo svc ws get made
}
check 'stop, rename, start, restart, logs and delete' whole_life

is_restored() { # the workspace that was deleted since is in the snapshot, and its container is gone
    rm -f /root/before.db*
    svc admin backup --out /root/before.db && svc admin backup --verify /root/before.db || return 1
    demo svc ws delete mapped --yes || return 2
    /root/checkout/packaging/quickstart --stop || return 3
    svc admin restore /root/before.db --yes || return 4
    /root/checkout/packaging/quickstart || return 5
    demo svc ws get mapped && field_is status running && [ "$(demo svc ws exec first -- cat /work/hello | wc -l)" = 1 ]
}
check 'a backup is restored, and workspaces go on' is_restored

removed_all() {
    /root/checkout/packaging/quickstart --stop --all && /root/checkout/packaging/quickstart --remove --yes || return 1
    ! pgrep -u svc,svc-apps,svc-unix,svc-tls,svc-worker && ! getent passwd demo && [ ! -e /opt/svc ] && [ ! -e /var/lib/svc ]
}
check 'the quickstart takes everything away' removed_all
