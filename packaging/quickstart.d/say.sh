# shellcheck shell=bash
# How the quickstart speaks: numbered steps, shown commands, failures with their remedy.

if [ -t 1 ] && [ -z "${NO_COLOR:-}" ]; then
    BOLD=$'\e[1m' PLAIN=$'\e[0m'
else
    BOLD='' PLAIN=''
fi
STEP=0
TOTAL=0

steps() { # N: so many will follow
    TOTAL=$1
}

step() { # TEXT
    STEP=$((STEP + 1))
    printf '%s[%d/%d] %s%s\n' "$BOLD" "$STEP" "$TOTAL" "$*" "$PLAIN"
}

say() { printf '      %s\n' "$*"; }

die() { # MESSAGE REMEDY
    printf '\nquickstart: %s\n' "$1" >&2
    [ -z "${2:-}" ] || printf 'what to do: %s\n' "$2" >&2
    trap - EXIT
    exit 1
}

ended() { # EXIT STATUS: no failure without its remedy, also one that nobody foresaw
    [ "$1" = 0 ] || die "stopped at step $STEP of $TOTAL (exit $1); its own words are above" \
        "follow the hint there; 'svc admin doctor' checks the host; then run packaging/quickstart again"
}

show() { # USER COMMAND...: print the command as that user would type it, then run it so
    local user=$1 word line=''
    shift
    for word in "$@"; do
        case $word in *[!A-Za-z0-9_./:=,@%+-]*) word="'$word'" ;; esac
        line+=" $word"
    done
    printf '%s%s$%s%s\n' "$BOLD" "$user" "$line" "$PLAIN"
    as_user "$user" "$@"
}

as_user() { # USER COMMAND...: with that user's identity and a clean environment
    local user=$1
    shift
    runuser -u "$user" -- env -i "PATH=$PATH" LANG=C.UTF-8 "HOME=$(getent passwd "$user" | cut -d: -f6)" \
        "USER=$user" "TERM=${TERM:-dumb}" ${NO_COLOR:+"NO_COLOR=$NO_COLOR"} "$@"
}

has_systemd() { [ -d /run/systemd/system ]; }

listed() { # FILE: its lines without comments
    sed -e 's/#.*//' -e '/^[[:space:]]*$/d' "$1"
}

confirm() { # QUESTION: yes on a terminal, or --yes
    [ "$YES" = yes ] && return 0
    [ -t 0 ] || return 1
    local answer
    read -r -p "$1 [y/N] " answer
    [ "$answer" = y ] || [ "$answer" = yes ]
}
