# shellcheck shell=bash
# A template and a workspace, by commands that the demo user could type; each is printed.

TEMPLATE=hello
WORKSPACE=first

template_spec() {
    printf '{"name": "%s", "description": "a few commands from busybox", "source": {"type": "registry", "image_ref": "%s"}}' \
        "$TEMPLATE" "$(image_ref)"
}

has_item() { # GROUP: does `svc GROUP list --json` as demo contain $NAME?
    as_user "$DEMO" svc "$@" list --json | NAME=$NAME python3 -c '
import json, os, sys
sys.exit(os.environ["NAME"] not in [item["name"] for item in json.load(sys.stdin)["items"]])'
}

tour() {
    if NAME=$TEMPLATE has_item template; then
        say "the template $TEMPLATE exists already"
    else
        printf "%s%s\$ echo '%s' |%s\n" "$BOLD" "$DEMO" "$(template_spec)" "$PLAIN"
        template_spec | show "$DEMO" svc template create --file -
    fi
    if NAME=$WORKSPACE has_item ws; then
        say "the workspace $WORKSPACE exists already"
    else
        show "$DEMO" svc ws setup --template "$TEMPLATE" --name "$WORKSPACE"
    fi
    show "$DEMO" svc ws start "$WORKSPACE"
    show "$DEMO" svc ws exec "$WORKSPACE" -- id
    show "$DEMO" svc ws exec "$WORKSPACE" -- sh -c 'date > /work/hello; ls -l /work'
    show "$DEMO" svc ws logs "$WORKSPACE"
    show "$DEMO" svc ws list
}

farewell() {
    local port
    port=$(svc env --all | sed -n 's/^SVC_PORT\t\([0-9]*\).*/\1/p')
    cat <<TEXT

${BOLD}svc is running.${PLAIN} The workspace $WORKSPACE belongs to the account $DEMO; as that user:
  runuser -u $DEMO -- svc ws exec $WORKSPACE -- sh -c 'echo hello from inside'
  runuser -u $DEMO -- svc --help
In a browser, https://localhost:$port/ or https://$(hostname):$port/, or from elsewhere by ssh -N -L $port:127.0.0.1:$port USER@$(hostname):
  svc admin set-password $DEMO     set the password that $DEMO signs in with: only a random one is set
  the certificate is the service's own, and the browser warns of it; its SHA-256 fingerprint
  (svc admin tls-fingerprint) is
  $(svc admin tls-fingerprint 2>/dev/null)
As root:
  svc admin create-user NAME       another account (asks for its password)
  svc admin doctor                 check this host
To stop or remove it:
  packaging/quickstart --stop      stop svc and the registry (--all: the workspaces too)
  packaging/quickstart --remove    remove what this script created, data last
TEXT
}
