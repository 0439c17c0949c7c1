# shellcheck shell=bash
# The systems that the quickstart is made for.

check_host() { # refuses another system, unless UNTESTED is yes
    local system
    # shellcheck source=/dev/null
    system=$(. /etc/os-release && echo "${ID:-linux} ${VERSION_ID:-}")
    case $system in
    "debian 12" | "debian 13") return ;;
    esac
    [ -x /usr/bin/apt-get ] || die "this host ($system) has no apt-get" "use Debian 12 or 13"
    [ "$UNTESTED" = yes ] || die "svc is tested on Debian 12 and 13, and nothing of it on this system ($system)" \
        "use Debian 12 or 13; to try it all the same: packaging/quickstart --untested"
    say "svc is tested on Debian 12 and 13; this is $system, continuing anyway"
}
