# shellcheck shell=bash disable=SC2317 # functions are called through check
# Limits and figures where the kernel has every controller; then a reboot.
# shellcheck source=say.sh
. /opt/check/say.sh

BURN='while :; do :; done'
EAT='dd if=/dev/zero of=/dev/null bs=100M count=1'                # needs 100 MiB
HOLD='dd if=/dev/zero bs=40M count=1 2>/dev/null | sleep 1000'    # keeps 40 MiB while nobody reads

figure "boot: $(systemd-analyze time | head -n 1)"
check 'the quickstart ends with a running workspace' patiently /root/checkout/packaging/quickstart
demo svc ws start first || exit 1 # nothing of what follows could be seen
check 'the doctor finds every controller' sh -c 'svc admin doctor | grep "^controllers" | grep -w ok'

make_workspaces() {
    local template
    template='{"name": "limits", "source": {"type": "registry", "image_ref": "127.0.0.1:24690/quickstart/base:1"},
        "command": ["/bin/sh", "-c", "until [ -e /work/eat ]; do sleep 1; done; exec '$EAT'"],
        "launchers": [{"name": "web", "title": "Web", "port": "web", "autostart": true,
            "command": ["httpd", "-f", "-p", "127.0.0.1:8080", "-h", "/work"]}],
        "ports": [{"name": "web", "container_port": 8080}]}'
    demo svc template create --file - <<<"$template" || return 1
    demo svc ws create --template limits --name tight --cpus 0.5 --memory 64m --pids 40 --restart-on-boot || return 2
    demo svc ws start tight && becomes tight status running
}
check 'a workspace with limits starts' make_workspaces

limits_said() {
    record tight "w['limits_missing']"
    [ "$(record tight "w['limits_missing']")" = '[]' ]
}
check 'no limit is said to be missing' limits_said

limits_are() { # MEMORY PIDS CPU
    local seen
    seen="$(limit tight memory.max) $(limit tight pids.max) $(limit tight cpu.max)"
    echo "$seen"
    [ "$seen" = "$1 $2 $3" ]
}
check 'its cgroup has them' limits_are 67108864 40 '50000 100000'

no_preference() { # the unit's OOM score is the service's alone
    local seen
    seen="$(cat "/proc/$(systemctl show -p MainPID --value svc.service)/oom_score_adj") $(inside tight 'cat /proc/self/oom_score_adj')"
    echo "$seen"
    [ "$seen" = '-500 0' ] && ! inside tight 'echo -400 >/proc/self/oom_score_adj'
}
check 'a user does not inherit the OOM score of the service, and cannot lower it' no_preference

too_many() {
    local refused
    # shellcheck disable=SC2016 # expanded in there
    inside tight 'i=0; while [ $i -lt 60 ]; do sleep 20 & i=$((i+1)); done' >/dev/null 2>/tmp/refused && return 1
    refused=$(limit tight pids.events | sed -n 's/^max //p')
    cat /tmp/refused
    figure "a limit of 40 processes: $(limit tight pids.current) run, then $refused refused"
    demo svc ws exec tight -- true
    for _ in $(seq 60); do
        [ "$(limit tight pids.current)" -ge 10 ] || break
        sleep 1
    done
    grep -q 'Resource temporarily unavailable' /tmp/refused && [ "$refused" -ge 1 ] && inside tight true
}
check 'a fork beyond the limit of processes fails' too_many

used() { limit "$1" cpu.stat | sed -n 's/^usage_usec //p'; }

cpu_holds() { # WORKSPACE PERCENT: a loop that would take a whole core, for ten seconds
    local before began percent
    demo svc ws exec "$1" --timeout 60 -- timeout 25 sh -c "$BURN" >/dev/null 2>&1 &
    sleep 5
    before=$(used "$1") began=$EPOCHREALTIME
    sleep 10
    percent=$(awk "BEGIN { printf \"%.1f\", ($(used "$1") - $before) / ($EPOCHREALTIME - $began) / 10000 }")
    figure "a busy loop under a limit of $2 % of a core used: $percent %"
    wait $!
    between "$(($2 * 8 / 10))" "$percent" "$(($2 * 11 / 10 + 1))"
}
check 'the limit of processor time holds' cpu_holds tight 50

monitor_cpu() { # WORKSPACE PERCENT
    local seen
    demo svc ws exec "$1" --timeout 120 -- timeout 40 sh -c "$BURN" >/dev/null 2>&1 &
    sleep 5
    seen=$(for _ in 1 2 3 4 5; do monitor "$1" "m['cpu_percent']"; done | sort -n | sed -n 3p)
    figure "ws monitor beside that loop, median of five: $seen %"
    demo svc ws monitor "$1"
    wait $!
    between "$(($2 * 6 / 10))" "$seen" "$(($2 * 15 / 10))"
}
check 'ws monitor sees the processor time' monitor_cpu tight 50

monitor_memory() {
    local before held kernel
    before=$(monitor tight "m['memory_bytes']")
    demo svc ws exec tight --timeout 60 -- timeout 30 sh -c "$HOLD" >/dev/null 2>&1 &
    sleep 12
    held=$(monitor tight "m['memory_bytes']") kernel=$(limit tight memory.current)
    figure "ws monitor, memory before $before, with 40 MiB held $held, memory.current then $kernel"
    monitor tight "m"
    wait $!
    between $((40 << 20)) $((held - before)) $((48 << 20)) && between $((kernel - (4 << 20))) "$held" $((kernel + (4 << 20)))
}
check 'ws monitor sees the memory' monitor_memory

monitor_pids() {
    local before more
    before=$(monitor tight "m['pids']")
    demo svc ws exec tight --timeout 60 -- timeout 30 sh -c 'for i in 1 2 3 4 5 6 7 8 9 10; do sleep 25 & done; wait' &
    sleep 12
    more=$(monitor tight "m['pids']")
    figure "ws monitor, processes before $before, with ten more and their shell $more"
    wait $!
    between $((before + 10)) "$more" $((before + 13))
}
check 'ws monitor counts the processes' monitor_pids

edited() {
    inside tight 'echo kept > /etc/kept' && demo svc ws stop tight || return 1
    echo '{"resources": {"cpu_limit": 0.25, "memory_bytes": 100663296, "pids_limit": 60}}' |
        demo svc ws edit tight --file - || return 2
    demo svc ws start tight || return 3
    limits_are 100663296 60 '25000 100000' && [ "$(inside tight 'cat /etc/kept')" = kept ]
}
check 'an edited limit is in force, in the same container' edited
monitor_limits() {
    [ "$(monitor tight "m['cpu_limit'], m['memory_limit_bytes'], m['pids_limit']")" = '(0.25, 100663296, 60)' ]
}
check 'ws monitor names the limits in force' monitor_limits
check 'the edited limit of processor time holds' cpu_holds tight 25

podman_is_known() { # the same container, started by hand: the kernel has what it was created with
    demo svc ws stop tight && demo svc ws start tight && limits_are 100663296 60 '25000 100000'
}
check 'and at the next start too' podman_is_known

web_port() { record tight "next(p['host_port'] for p in w['ports'] if p['name'] == 'web')"; }

served() {
    echo through the port >/home/demo/work/page && chown demo: /home/demo/work/page
    for _ in $(seq 30); do
        [ "$(fetch "http://127.0.0.1:$(web_port)/page")" = 'through the port' ] && return
        sleep 1
    done
    demo svc ws launchers tight
    return 1
}
check 'the launcher of the template answers on its port' served

shim() { pgrep -u demo -f 'svc_helper.shim' | sort | head -n 1; }

shim_stays() {
    local before
    before=$(shim)
    systemctl restart svc.service || return 1
    echo "shim $before -> $(shim)"
    cat "/proc/$before/cgroup"
    [ -n "$before" ] && [ "$before" = "$(shim)" ] && served && demo svc ws launchers tight | grep -w started
}
check 'a restart of svc leaves the shim, the launcher and the port' shim_stays

killed() {
    demo svc ws stop first && touch /home/demo/work/eat || return 1
    becomes tight status stopped || return 2
    rm -f /home/demo/work/eat
    record tight "(w['status_reason'], w['exit_code'])"
    [ "$(record tight "(w['status_reason'], w['exit_code'])")" = "('oom_killed', 137)" ]
}
check 'beyond its memory it is killed, and says so' killed

child_killed() { # the kernel takes what asked for too much; the workspace goes on
    demo svc ws start tight || return 1
    inside tight "$EAT"
    [ $? = 137 ] && becomes tight status running
}
check 'a command beyond the memory is killed alone' child_killed

killed_by_hand() { # after that: not every end by SIGKILL is the kernel's
    demo svc ws stop tight && demo svc ws start tight || return 1
    inside tight 'kill -9 -1'
    becomes tight status stopped
    record tight "(w['status_reason'], w['exit_code'])"
    [ "$(record tight "w['status_reason']")" = container_exited ] && demo svc ws start tight
}
check 'a workspace killed by hand is not said to lack memory' killed_by_hand
exit 133
