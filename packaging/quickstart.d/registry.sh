# shellcheck shell=bash
# A registry on loopback with one small image. Every user of the host can reach it, so that
# it is read-only: it is filled in a network of its own, before it listens on the host. The
# policy names it only while it runs, since anybody may listen on its port afterwards.

REGISTRY_PID=/run/svc-quickstart.pid
REGISTRY_UNIT=svc-quickstart-registry.service
POLICY=/var/lib/svc/registries.json

registry_config() { # MODE: "true" for one that takes nothing
    cat <<YAML
version: 0.1
log: { level: warn }
storage: { filesystem: { rootdirectory: $CREATED/registry }, maintenance: { readonly: { enabled: $1 } } }
http: { addr: "$REGISTRY" }
YAML
}

is_read_only() { grep -q 'readonly: { enabled: true }' "$CREATED/registry.yml" 2>/dev/null; }

registry_answers() { # one request, without curl
    python3 -I - "$REGISTRY" 2>/dev/null <<'PYTHON'
import sys, urllib.request
urllib.request.urlopen(f"http://{sys.argv[1]}/v2/", timeout=2)
PYTHON
}

as_registry() { # COMMAND...: this shell becomes the command, as the registry's user
    exec setpriv --reuid docker-registry --regid docker-registry --clear-groups --no-new-privs "$@"
}

fill_registry() { # push the image where nobody else can push, and keep its digest
    install -d -m 0755 "$CREATED"
    is_read_only || rm -rf "$CREATED/registry" # others could push to it
    install -d -m 0755 -o docker-registry -g docker-registry "$CREATED/registry"
    registry_config false >"$CREATED/filling.yml"
    export -f as_registry fill_in_namespace registry_answers
    export CREATED REGISTRY IMAGE PARTS
    unshare --net --pid --fork --kill-child bash -c fill_in_namespace >"$CREATED/digest" 2>>"$CREATED/registry.log" ||
        die "could not push the image to the registry" "see $CREATED/registry.log"
    rm "$CREATED/filling.yml"
}

fill_in_namespace() { # in a network of its own, of which everything ends with this shell
    python3 -I - <<'PYTHON' # up with the loopback interface, without iproute2
import fcntl, socket, struct
with socket.socket() as any:
    fcntl.ioctl(any, 0x8914, struct.pack("16sH14x", b"lo", 1))  # SIOCSIFFLAGS, IFF_UP
PYTHON
    as_registry docker-registry serve "$CREATED/filling.yml" </dev/null >&2 &
    for _ in $(seq 100); do
        registry_answers && break
        sleep 0.1
    done
    "$PARTS/base-image" "$REGISTRY" "$IMAGE"
}

end_former_registry() { # of an earlier run with another port: two would be one too many for --stop
    if [ -z "$FORMER" ] || [ "$FORMER" = "$REGISTRY" ]; then return; fi
    stop_registry
    local REGISTRY=$FORMER # for what is called from here
    forget_registry
}

start_registry() {
    if registry_answers; then
        { has_systemd && systemctl is-active -q $REGISTRY_UNIT; } || pid_runs "$REGISTRY_PID" docker-registry ||
            die "another program listens on $REGISTRY" "stop it, or: packaging/quickstart --registry-port N"
        if is_read_only && [ -s "$CREATED/digest" ]; then
            say "the registry is running already on $REGISTRY"
            return
        fi
        stop_registry
    fi
    fill_registry
    registry_config true >"$CREATED/registry.yml"
    if has_systemd; then
        start_registry_unit
    else
        as_registry setsid docker-registry serve "$CREATED/registry.yml" </dev/null >>"$CREATED/registry.log" 2>&1 &
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

image_ref() { # by its digest: the same bytes, whoever listens there
    printf '%s/%s@%s' "$REGISTRY" "${IMAGE%:*}" "$(cat "$CREATED/digest")"
}

set_policy() { # [ENTRY]: the administrator's list without our registry, and with ENTRY; needs no server
    local body
    body=$(POLICY=$POLICY REGISTRY=$REGISTRY ENTRY=${1:-} python3 -I -c '
import json, os, pathlib
file = pathlib.Path(os.environ["POLICY"])  # of root: svc admin writes it
present = json.loads(file.read_text())["registries"] if file.exists() else []
kept = [item for item in present if item["host"] != os.environ["REGISTRY"]]
added = [json.loads(os.environ["ENTRY"])] if os.environ["ENTRY"] else []
print(json.dumps({"registries": kept + added}))') &&
        printf '%s' "$body" | show root svc admin registry set - >/dev/null
}

allow_registry() {
    set_policy "{\"host\": \"$REGISTRY\", \"path_prefix\": \"quickstart/\", \"insecure\": true}" ||
        die "could not write the registry policy" "svc admin doctor"
}

forget_registry() {
    if ! grep -qF "\"$REGISTRY\"" "$POLICY" 2>/dev/null; then return; fi
    set_policy || die "the registry policy still names $REGISTRY" "svc admin doctor; packaging/quickstart --stop"
}
