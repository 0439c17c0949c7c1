# shellcheck shell=bash disable=SC2317 # functions are called through check
# What both boots know of the workspaces.
# shellcheck disable=SC2034 # of the boots
SECTION='From Debian 12 to 13'

podman_of_demo() { demo env "XDG_RUNTIME_DIR=/run/user/$(id -u demo)" podman "$@"; }

containers() { podman_of_demo ps --all --no-trunc --format '{{.ID}} {{.Names}}' | sort; }

make_from() { # TEMPLATE NAME MEMBERS: a template as that one but for these members, and its workspace, which is started
    local image
    image=$(demo svc template get "$1" --json | python3 -c 'import json, sys; print(json.load(sys.stdin)["source"]["image_ref"])') &&
        python3 -c 'import json, sys; print(json.dumps({"name": sys.argv[1], "source": {"type": "registry", "image_ref": sys.argv[2]}}
            | json.loads(sys.argv[3])))' "$2" "$image" "$3" | demo svc template create --file - || return
    demo svc ws setup --template "$2" --name "$2" && demo svc ws start "$2" && field_is status running "$2"
}
