# shellcheck shell=bash
# The main job, as the demo user would do it by hand; each command is shown.

TEMPLATE=hello
WORKSPACE=first

template_spec() {
    printf '{"name": "%s", "description": "a few commands from busybox", "source": {"type": "registry", "image_ref": "%s"}}' \
        "$TEMPLATE" "$REGISTRY/$IMAGE"
}

has_item() { # WORD...: does `svc WORD... list --json` as demo name $NAME?
    as_user "$DEMO" svc "$@" list --json | NAME=$NAME python3 -c '
import json, os, sys
sys.exit(os.environ["NAME"] not in [item["name"] for item in json.load(sys.stdin)["items"]])'
}

tour() {
    if NAME=$TEMPLATE has_item template; then
        say "the template $TEMPLATE is there already"
    else
        printf "%s%s\$ echo '%s' |%s\n" "$BOLD" "$DEMO" "$(template_spec)" "$PLAIN"
        template_spec | show "$DEMO" svc template create --file -
    fi
    if NAME=$WORKSPACE has_item ws; then
        say "the workspace $WORKSPACE is there already"
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
    cat <<TEXT

${BOLD}It runs.${PLAIN} The workspace $WORKSPACE belongs to the account $DEMO; go on as that user:
  runuser -u $DEMO -- svc ws exec $WORKSPACE -- sh -c 'echo hello from inside'
  runuser -u $DEMO -- svc --help
As root:
  svc admin create-user NAME       another account (asks for its password)
  svc admin set-password $DEMO     $DEMO has a random one that nobody knows
  svc admin doctor                 is everything as it should be?
The end:
  packaging/quickstart --stop      stop svc and the registry (--all: the workspaces too)
  packaging/quickstart --remove    take away what this script made, data last
TEXT
}
