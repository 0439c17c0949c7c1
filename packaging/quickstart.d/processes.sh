# shellcheck shell=bash
# Start and stop the server and the registry, through systemd or by pid.

SERVER_PID=/run/svc/server.pid
SERVER_LOG=/var/log/svc/server.log
REGISTRY_PID=/run/svc-quickstart.pid
REGISTRY_UNIT=svc-quickstart-registry.service

pid_runs() { # PIDFILE NAME: is the process alive, with NAME in its command line?
    local pid
    pid=$(cat "$1" 2>/dev/null) || return 1
    [ -n "$pid" ] && tr '\0' ' ' <"/proc/$pid/cmdline" 2>/dev/null | grep -q -- "$2"
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
    echo $! >"$SERVER_PID"
    local deadline=$((SECONDS + 30))
    while [ $SECONDS -lt $deadline ] && pid_runs "$SERVER_PID" .; do
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

write_registry_config() {
    install -d -m 0755 "$CREATED"
    install -d -m 0755 -o docker-registry -g docker-registry "$CREATED/registry"
    cat >"$CREATED/registry.yml" <<YAML
version: 0.1
log: { level: warn }
storage: { filesystem: { rootdirectory: $CREATED/registry } }
http: { addr: "$REGISTRY" }
YAML
}

registry_answers() { # one request, without curl
    python3 -I - "$REGISTRY" 2>/dev/null <<'PYTHON'
import sys, urllib.request
urllib.request.urlopen(f"http://{sys.argv[1]}/v2/", timeout=2)
PYTHON
}

start_registry() {
    if registry_answers; then
        { has_systemd && systemctl is-active -q $REGISTRY_UNIT; } || pid_runs "$REGISTRY_PID" docker-registry ||
            die "another program listens on $REGISTRY" "stop it, or: packaging/quickstart --registry-port N"
        say "the registry is running already on $REGISTRY"
        return
    fi
    write_registry_config
    if has_systemd; then
        start_registry_unit
    else
        setsid setpriv --reuid docker-registry --regid docker-registry --clear-groups --no-new-privs \
            docker-registry serve "$CREATED/registry.yml" </dev/null >>"$CREATED/registry.log" 2>&1 &
        echo $! >"$REGISTRY_PID"
    fi
    for _ in $(seq 100); do
        registry_answers && return
        sleep 0.1
    done
    die "the local registry did not start on $REGISTRY" \
        "see $CREATED/registry.log; if the port is taken: packaging/quickstart --registry-port N"
}

start_registry_unit() {
    cat >"/etc/systemd/system/$REGISTRY_UNIT" <<UNIT
[Unit]
Description=Local image registry of the svc quickstart

[Service]
User=docker-registry
ExecStart=/usr/bin/docker-registry serve $CREATED/registry.yml
StandardOutput=append:$CREATED/registry.log
StandardError=append:$CREATED/registry.log
NoNewPrivileges=yes

[Install]
WantedBy=multi-user.target
UNIT
    systemctl daemon-reload
    systemctl enable -q --now $REGISTRY_UNIT
}

stop_registry() {
    if has_systemd; then
        systemctl disable --now -q $REGISTRY_UNIT 2>/dev/null || true
        rm -f "/etc/systemd/system/$REGISTRY_UNIT"
        systemctl daemon-reload
    else
        end_pid "$REGISTRY_PID" docker-registry 5
    fi
}
