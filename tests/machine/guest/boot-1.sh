# shellcheck shell=bash disable=SC2317,SC2009 # functions are called through check; ps is what is checked
# A bare machine: the quickstart, what it left running, a restart of svc meanwhile.
# shellcheck source=check.sh
. /opt/check/check.sh

check 'the quickstart ends with a running workspace' /root/checkout/packaging/quickstart
check 'the quickstart can be run twice' /root/checkout/packaging/quickstart
check 'the program says its commit' grep -qx '[0-9a-f]\{40\}' <(svc --version)

check 'its manual pages are read by man' manual_renders
check 'TAB completes in bash, zsh and fish' tab_completes

by_digest() { demo svc template get hello --json | grep -q '"image_ref": *"[0-9.:]*/quickstart/base@sha256:[0-9a-f]\{64\}"'; }
check 'its image is named by its digest' by_digest

nobody_pushes() { # every user of the host reaches the registry
    runuser -u nobody -- python3 -c '
import json, sys, urllib.error, urllib.request
ref = json.load(sys.stdin)["source"]["image_ref"]
host, _, rest = ref.partition("/")
for method, path in ("PUT", rest.partition("@")[0] + "/manifests/1"), ("POST", "quickstart/mine/blobs/uploads/"):
    try:
        urllib.request.urlopen(urllib.request.Request(f"http://{host}/v2/{path}", b"{}", method=method))
        sys.exit(f"pushed to {path}")
    except urllib.error.HTTPError as error:
        assert error.code == 405, error.code' <<<"$(demo svc template get hello --json)"
}
check 'nobody can push to its registry' nobody_pushes
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

bus_is_closed() { # through logind an account would get a service manager of its own
    local user
    for user in svc svc-unix svc-tls svc-worker svc-apps; do
        setpriv --reuid "$user" --regid "$(id -gn "$user")" --clear-groups busctl call org.freedesktop.login1 \
            /org/freedesktop/login1 org.freedesktop.login1.Manager SetUserLinger ubb 0 1 0 && return 1
        [ ! -e "/var/lib/systemd/linger/$user" ] || return 2
    done
    runuser -u demo -- busctl call org.freedesktop.login1 /org/freedesktop/login1 \
        org.freedesktop.login1.Manager GetUser u "$(id -u demo)" # others are answered
}
check 'the accounts of the app get nothing from the bus' bus_is_closed

app_is_confined() {
    svc admin doctor --json | python3 -c '
import json, sys
found = [item for item in json.load(sys.stdin)["items"] if item["code"].startswith("confinement")]
print(found)
sys.exit([item["level"] for item in found] != ["ok"] or "network" not in found[0]["found"])' || return 1
    ! ls "/proc/$(pgrep -u svc-unix | head -n 1)/root/run/dbus/system_bus_socket"
}
check 'the app has no bus, no network and no terminal' app_is_confined
check 'the unit is not more exposed than recorded' \
    systemd-analyze security --offline=true --threshold=89 --no-pager /etc/systemd/system/svc.service

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

recorded() { # calls of demo with an exec, in the stream of the journal that only root holds
    journalctl --sync && journalctl -b -t svc-helper _UID=0 -o cat --no-pager | grep '"verb": "ctr.exec", "user": "demo"' | grep -c '"sent"'
}

record_survives() {
    local before
    before=$(recorded)
    /opt/svc/bin/python3 -I /opt/check/flood.py || return 1
    demo svc ws exec first -- true || return 2
    echo "$before before, $(recorded) after; $(journalctl -b -t svc-helper -o cat --no-pager | wc -l) lines"
    [ "$(recorded)" = $((before + 1)) ] || return 3
    sleep 11 # the rest is counted
    journalctl -b -t svc-helper -o cat --no-pager | grep -c '"lines left out"'
}
check 'a call is on record in the journal after 150000 refused ones' record_survives

restart_keeps_container() {
    local before after
    before=$(container_pid)
    systemctl restart svc.service || return 1
    after=$(container_pid)
    echo "container init $before -> $after"
    [ -n "$before" ] && [ "$before" = "$after" ] && demo svc ws exec first -- true && field_is status running
}
check 'a restart of svc leaves the container running' restart_keeps_container

main_pid() { systemctl show --property=MainPID --value svc.service; }

watchdog_restarts() { # a service that is up and answers nobody; with a short interval, as an administrator may set
    local container main folder=/run/systemd/system/svc.service.d
    container=$(container_pid)
    install -d "$folder"
    printf '[Service]\nWatchdogSec=6\n' >"$folder/watchdog.conf"
    systemctl daemon-reload && systemctl restart svc.service || return 1
    main=$(main_pid)
    sleep 14
    [ "$main" = "$(main_pid)" ] || { echo 'it was restarted while it answered'; return 2; }
    pkill -STOP -u svc,svc-unix,svc-tls
    for _ in $(seq 300); do
        [ "$main" = "$(main_pid)" ] || ! svc api GET health >/dev/null 2>&1 || break
        sleep 0.1
    done
    journalctl -u svc.service -n 20 -o cat --no-pager
    journalctl -u svc.service -o cat --no-pager | grep -q "Failed with result 'watchdog'" || return 3
    rm -r "$folder"
    systemctl daemon-reload && systemctl restart svc.service || return 4
    [ -n "$container" ] && [ "$container" = "$(container_pid)" ] && demo svc ws exec first -- true && field_is status running
}
check 'a service that answers nobody is restarted, and the container runs on' watchdog_restarts

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
    ! pgrep -u svc,svc-apps,svc-unix,svc-tls,svc-worker || return 1
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
# Two calendars at once: cron at second 0 of each minute, the timer at 20, 35 and 50.
backups_by_calendar() {
    install -d -m 0700 /var/backups/by-timer
    svc admin backup --retention 1 && svc admin backup --dir /var/backups/by-timer --retention 1 || return 1
    echo '* * * * * root /usr/local/bin/svc admin backup --retention 1' >/etc/cron.d/svc-backup
    ! systemctl is-enabled svc-backup.timer || return 2
    mkdir -p /etc/systemd/system/svc-backup.{service,timer}.d
    printf '[Service]\nExecStart=\nExecStart=/usr/local/bin/svc admin backup --dir %s --retention 1\n' \
        /var/backups/by-timer >/etc/systemd/system/svc-backup.service.d/test.conf
    printf '[Timer]\nOnCalendar=\nOnCalendar=*:*:20/15\nAccuracySec=1s\nRandomizedDelaySec=0\n' \
        >/etc/systemd/system/svc-backup.timer.d/test.conf
    systemctl daemon-reload && systemctl enable --now svc-backup.timer && systemctl is-active cron.service
}
check 'cron and a timer are set up to back up' backups_by_calendar

made_and_pruned() { # DIR: a second snapshot is there, and the first is gone
    local made
    for _ in $(seq 160); do
        made=$(ls "$1"/*.db)
        if [ "$(wc -l <<<"$made")" = 1 ] && grep -q '"number": \([2-9]\|1[0-9]\)' "$made.json"; then
            svc admin backup --verify "$made"
            return
        fi
        sleep 0.5
    done
    ls -l "$1"
    journalctl -n 20 --no-pager -u svc-backup -u cron
    return 1
}
check 'a timer of systemd backs up and prunes' made_and_pruned /var/backups/by-timer
check 'a line of crontab backs up and prunes' made_and_pruned /var/backups/svc

silent() { # cron would mail it; without a mail program it logs that
    rm /etc/cron.d/svc-backup
    systemctl disable --now svc-backup.timer && rm -r /etc/systemd/system/svc-backup.{service,timer}.d
    journalctl --no-pager -u cron | tail -n 20
    journalctl --no-pager -u cron | grep -q 'CMD (/usr/local/bin/svc admin backup' || return 1
    ! journalctl --no-pager -u cron | grep -q 'discarding output' || return 2
    ! journalctl --no-pager -o cat _SYSTEMD_UNIT=svc-backup.service _COMM=svc | grep .
}
check 'both say nothing when all is well' silent
again_port >/opt/check/port
exit 133
