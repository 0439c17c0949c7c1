# shellcheck shell=bash disable=SC2317,SC2009 # functions are called through check; ps is what is checked
# A bare machine: the quickstart, what it left running, a restart of svc meanwhile.
# shellcheck source=check.sh
. /opt/check/check.sh

check 'the quickstart ends with a running workspace' /root/checkout/packaging/quickstart
check 'the quickstart can be run twice' /root/checkout/packaging/quickstart
check 'the program says its commit' grep -qx '[0-9a-f]\{40\}' <(svc --version)
check 'svc.service is active' systemctl is-active svc.service
check 'svc.service is enabled' systemctl is-enabled svc.service
check 'health is ok' sh -c 'svc api GET /api/health | grep -q "\"ok\""'
check 'the workspace is running' field_is status running
check 'id answers from inside' sh -c 'runuser -u demo -- svc ws exec first -- id | grep -q uid=0'

files_are_demos() {
    demo svc ws exec first -- sh -c 'echo inside > /work/from-inside; echo kept > /etc/kept' || return 1
    [ "$(stat -c %U /home/demo/work/from-inside)" = demo ]
}
check 'files made inside belong to the user outside' files_are_demos

make_again() {
    local image
    image=$(demo svc template get hello --json |
        python3 -c 'import json, sys; print(json.load(sys.stdin)["source"]["image_ref"])') || return 1
    demo svc template create --file - <<TEXT || return 2
{"name": "again", "source": {"type": "registry", "image_ref": "$image"}, "command": ["sleep", "999999"],
 "ports": [{"name": "web", "container_port": 8080}],
 "launchers": [{"name": "web", "port": "web", "autostart": true, "command": ["sh", "-c",
  "n=\$((\$(cat /work/starts || echo 0) + 1)); echo \$n > /work/starts; echo start number \$n; exec httpd -f -p 127.0.0.1:8080 -h /work"]}]}
TEXT
    demo svc ws create --template again --name again --restart-on-boot || return 3
    demo svc ws start again && demo svc ws get again
}
check 'another workspace, with a port and a launcher, is to come back after a reboot' make_again
check 'its launcher is reached through its port' again_serves 1
check 'what its launcher prints is captured' again_said 'start number 1'

in_user_slice() {
    local pid
    pid=$(container_pid)
    cat "/proc/$pid/cgroup"
    grep -q "user.slice/user-$(id -u demo).slice" "/proc/$pid/cgroup"
}
check 'the container lives in the slice of its user' in_user_slice

agent_in_user_slice() {
    local pid
    pid=$(pgrep -u demo -f svc_helper | head -n 1)
    cat "/proc/$pid/cgroup"
    grep -q "user-$(id -u demo).slice" "/proc/$pid/cgroup"
}
check 'the agent lives in the slice of its user' agent_in_user_slice

users_are_right() {
    ps -eo user:12,pid,ppid,args | grep -E 'svc|gunicorn' | grep -v grep
    ps -eo user:12,args | grep -v grep | grep 'bin/svc server' | grep -q '^root' || return 1
    ps -eo user:12,args | grep -v grep | grep 'svc_helper.root.__main__' | grep -q '^root' || return 2
    ps -eo user:12,args | grep -v grep | grep 'svc.app' | grep -q '^svc' || return 3
    ! ps -eo user:12,args | grep -v grep | grep 'svc.app' | grep -q '^root'
}
check 'each process runs as the right user' users_are_right

timeout_ends_all() { # forked twice, a session of its own, no environment, deaf to TERM
    demo svc ws exec first --timeout 2 -- sh -c 'trap "" TERM; (setsid env -i /bin/sleep 4242 &); sleep 4242' && return 1
    pgrep -a -f 'sleep 4242' && return 2
    demo svc ws exec first -- true
}
check 'an exec that runs into its timeout leaves nothing behind' timeout_ends_all

cold_exec() { # no agent, no Podman process
    pkill -KILL -u demo -f svc_helper.agent
    pkill -KILL -u demo -f 'podman system service'
    [ "$(demo svc ws exec first -- echo here)" = here ] && ! pgrep -u demo -f 'podman system service'
}
check 'the first exec after an idle time needs no Podman' cold_exec

restart_keeps_container() {
    local before after
    before=$(container_pid)
    systemctl restart svc.service || return 1
    after=$(container_pid)
    echo "container init $before -> $after"
    [ -n "$before" ] && [ "$before" = "$after" ] && demo svc ws exec first -- true && field_is status running
}
check 'a restart of svc leaves the container running' restart_keeps_container

kill_keeps_container() {
    local before after
    before=$(container_pid)
    systemctl kill --signal=KILL svc.service
    for _ in $(seq 50); do svc api GET /api/health >/dev/null 2>&1 && break; sleep 0.2; done
    after=$(container_pid)
    echo "container init $before -> $after"
    [ -n "$before" ] && [ "$before" = "$after" ] && demo svc ws exec first -- true
}
check 'killed as a whole, svc comes back and the container never left' kill_keeps_container

stop_in_time() {
    local start=$EPOCHREALTIME
    systemctl stop svc.service
    awk "BEGIN { exit !($EPOCHREALTIME - $start < 5) }" || return 1
    ! pgrep -u svc || return 1
    container_pid | grep -q . && systemctl start svc.service && field_is status running
}
check 'a stop takes less than five seconds and nothing of svc is left' stop_in_time

check 'a port and its launcher outlive all restarts of svc' again_serves 1
check 'what was captured does so too' again_said 'start number 1'

second_user() {
    head -c 24 /dev/urandom | base64 | svc admin create-user second || return 1
    runuser -u second -- svc ws list --json
    runuser -u second -- svc ws list --json | grep -q '"total": *0' || return 1
    ! runuser -u second -- svc ws exec first -- id
}
check 'a second user sees nothing of it' second_user

third_user() {
    useradd -m third
    runuser -u third -- svc ws list
    [ $? = 3 ]
}
check 'a user without an account gets exit 3' third_user

killed_behind() {
    kill -KILL "$(container_pid)"
    field_is status stopped || return 1
    [ "$(field status_reason)" = container_exited ] || { field status_reason; return 1; }
    demo svc ws start first
}
check 'a container killed behind its back is noticed' killed_behind

limits_refused() { # no controllers, and systemd runs: auto refuses
    demo svc ws create --template hello --name capped --memory 64m --json | grep limits_not_enforceable || return 1
    ! demo svc ws list | grep capped
}
check 'a limit that this host cannot keep is refused' limits_refused

limits_allowed() {
    echo SVC_MISSING_LIMITS=allow >>/etc/svc/svc.env
    systemctl restart svc.service || return 1
    demo svc ws create --template hello --name capped --memory 64m 2>&1 |
        grep 'cannot apply: memory_bytes' || return 2
    demo svc ws start capped 2>&1 | grep 'cannot apply: memory_bytes' || return 5
    demo svc ws get capped | grep memory_bytes && field_is status running capped || return 3
    demo svc ws stop capped && demo svc ws delete capped --yes || return 4
    sed -i /SVC_MISSING_LIMITS/d /etc/svc/svc.env
    systemctl restart svc.service
}
check 'unless the administrator allows it, and then it is told' limits_allowed

doctor_is_honest() { # this machine has no cgroup controllers: the doctor must say so
    svc admin doctor --json || true
    svc admin doctor | grep -i controller
}
check 'the doctor says which way is in force and that controllers are missing' doctor_is_honest
again_port >/opt/check/port
exit 133
