# shellcheck shell=bash
# Output of the quickstart: numbered steps, printed commands, failures with their remedy.

if [ -t 1 ] && [ -z "${NO_COLOR:-}" ]; then
    BOLD=$'\e[1m' PLAIN=$'\e[0m'
else
    BOLD='' PLAIN=''
fi
STEP=0
TOTAL=0

steps() { # N: set the number of steps
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

ended() { # STATUS: a remedy for failures that no other place handles
    [ "$1" = 0 ] || die "failed at step $STEP of $TOTAL (exit status $1); the error is above" \
        "follow its hint; 'svc admin doctor' checks the host; then run packaging/quickstart again"
}

show() { # USER COMMAND...: print the command as that user would type it, then run it as that user
    local user=$1 argument line=''
    shift
    for argument in "$@"; do
        case $argument in *[!A-Za-z0-9_./:=,@%+-]*) argument="'$argument'" ;; esac
        line+=" $argument"
    done
    printf '%s%s$%s%s\n' "$BOLD" "$user" "$line" "$PLAIN"
    as_user "$user" "$@"
}

as_user() { # USER COMMAND...: run it as that user in a clean environment
    local user=$1
    shift
    runuser -u "$user" -- env -i "PATH=$PATH" LANG=C.UTF-8 "HOME=$(getent passwd "$user" | cut -d: -f6)" \
        "USER=$user" "TERM=${TERM:-dumb}" ${NO_COLOR:+"NO_COLOR=$NO_COLOR"} "$@"
}

has_systemd() { [ -d /run/systemd/system ]; }

listed() { # FILE...: their lines without comments
    sed -e 's/#.*//' -e '/^[[:space:]]*$/d' "$@"
}

confirm() { # QUESTION: asks on a terminal unless --yes is set
    [ "$YES" = yes ] && return 0
    [ -t 0 ] || return 1
    local answer
    read -r -p "$1 [y/N] " answer
    [ "$answer" = y ] || [ "$answer" = yes ]
}
