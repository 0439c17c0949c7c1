# shellcheck shell=bash
# Start and stop the server, through systemd or by pid.

SERVER_PID=/run/svc/server.pid
SERVER_LOG=/var/log/svc/server.log

pid_runs() { # PIDFILE NAME: is the process alive, with NAME in its command line?
    local pid
    pid=$(cat "$1" 2>/dev/null) || return 1
    [ -n "$pid" ] && tr '\0' ' ' 2>/dev/null <"/proc/$pid/cmdline" | grep -q -- "$2"
}

end_pid() { # PIDFILE NAME SECONDS: TERM, wait, KILL
    local pid
    if pid_runs "$1" "$2"; then
        pid=$(cat "$1")
        kill -TERM "$pid" 2>/dev/null || true
        for _ in $(seq $(($3 * 10))); do
            [ -e "/proc/$pid" ] || break
            sleep 0.1
        done
        kill -KILL "$pid" 2>/dev/null || true
    fi
    rm -f "$1"
}

server_answers() { svc api GET /api/health >/dev/null 2>&1; }

server_is_current() { # does the running server have the installed version?
    svc api GET /api/version 2>/dev/null | grep -q "$(svc --version)"
}

start_server() {
    if server_answers && server_is_current; then
        say "the server is running already"
        return
    fi
    if has_systemd; then
        systemctl enable -q svc.service
        systemctl restart svc.service ||
            die "svc.service did not start" "journalctl -u svc -n 50; svc admin doctor"
        say "svc.service is running and starts with the host"
    else
        end_pid "$SERVER_PID" server 10
        start_server_apart
        say "svc server is running, pid $(cat "$SERVER_PID"), log $SERVER_LOG"
    fi
    server_answers || die "the server runs but does not respond" "svc api GET /api/health; svc admin doctor"
}

start_server_apart() { # without systemd: a daemon in a mount namespace of its own
    install -d -m 0755 /run/svc
    install -d -m 0750 -g adm /var/log/svc
    setsid env -i "PATH=$PATH" LANG=C.UTF-8 "$PARTS/private-namespace" /usr/local/bin/svc server \
        </dev/null >>"$SERVER_LOG" 2>&1 &
    local pid=$! deadline=$((SECONDS + 30))
    echo "$pid" >"$SERVER_PID"
    while [ $SECONDS -lt $deadline ] && kill -0 "$pid" 2>/dev/null; do # its command line is empty during an exec
        server_answers && return
        sleep 0.1
    done
    tail -n 15 "$SERVER_LOG" | cut -c 1-400 >&2
    die "svc server did not start (log: $SERVER_LOG)" "svc admin doctor"
}

stop_server() {
    if has_systemd; then
        systemctl disable --now -q svc.service 2>/dev/null || true
    else
        end_pid "$SERVER_PID" server 10
    fi
}
