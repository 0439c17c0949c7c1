# shellcheck shell=bash
# A template and a workspace, by commands that the demo user could type; each is printed.

TEMPLATE=hello
WORKSPACE=first
PAGE=web

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
    serve_page
    show "$DEMO" svc ws list
}

serve_page() { # a program with a page of its own, which is not there after a restart of the workspace
    if ! as_user "$DEMO" svc ws ports "$WORKSPACE" | grep -q "^$PAGE"; then
        show "$DEMO" svc ws port add "$WORKSPACE" "$PAGE" --container-port 8000
    fi
    show "$DEMO" svc ws exec "$WORKSPACE" -- sh -c \
        'mkdir -p /tmp/web; echo "<h1>hello from inside</h1>" >/tmp/web/index.html; pidof httpd || httpd -p 127.0.0.1:8000 -h /tmp/web'
}

farewell() {
    local port
    port=$(svc env --all | sed -n 's/^SVC_PORT\t\([0-9]*\).*/\1/p')
    cat <<TEXT

${BOLD}svc is running.${PLAIN} The workspace $WORKSPACE belongs to the account $DEMO; as that user:
  runuser -u $DEMO -- svc ws exec $WORKSPACE -- sh -c 'echo hello from inside'
  runuser -u $DEMO -- svc --help
In a browser: https://localhost:$port/ here, https://$(hostname):$port/ from other computers, or by ssh alone:
  ssh -N -L $port:127.0.0.1:$port USER@$(hostname)    then https://localhost:$port/ where you typed it
  svc admin set-password $DEMO     as root, before you sign in as $DEMO there: 8 characters or more, not like the name
  The browser warns of the certificate, which svc has made itself. The SHA-256 fingerprint that it must show:
  $(svc admin tls-fingerprint 2>/dev/null)
  svc env --certificate            prints the certificate, for curl --cacert, and that fingerprint again
As root:
  svc admin create-user NAME       another account (asks for its password)
  svc admin doctor                 check this host
To stop or remove it:
  packaging/quickstart --stop      stop svc and the registry (--all: the workspaces too)
  packaging/quickstart --remove    remove what this script created, data last
TEXT
    open_page
}

open_page() { # nothing where another program has the port of apps, which the doctor says
    local link number
    link=$(as_user "$DEMO" svc ws open "$WORKSPACE" "$PAGE" --link 2>/dev/null) || return 0
    number=${link#*.localhost:}
    number=${number%%/*}
    cat <<TEXT
The page of a program in $WORKSPACE, signed in as $DEMO without a password; the link works once, within five minutes:
  Open: $link
  From another computer, first: ssh -N -L $number:127.0.0.1:$number USER@$(hostname)
TEXT
}
