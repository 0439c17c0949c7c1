# shellcheck shell=bash
# How deep a run goes (tests/depths.py has the tests' own marks), and what its suites cost.

# What a boot of the machine suite is about: a change elsewhere has the life on the other Debian alone, a merge all.
MACHINE=(tests/machine)
LIFE=tests/machine/test_other_debian.py
OF_MACHINE=(packaging systemd svc/server svc_helper/provision tests/machine)

suites_of_depth() { # WANTED becomes what runs when no suite is named
    WANTED=("${ALL[@]}" machine)
    # shellcheck disable=SC2034 # tests/run reads it
    wants_machine || MACHINE=("$LIFE")
    [ "$DEPTH" != release ] || WANTED+=(applications release)
}

base_of_change() { # the commit that this work began at; on main itself the commit before
    local git=(git -c safe.directory='*' -C "$SOURCE") head branch base
    head=$("${git[@]}" rev-parse --verify --quiet HEAD) || return 1
    for branch in ${SVC_TEST_BASE:+"$SVC_TEST_BASE"} origin/HEAD origin/main main; do
        base=$("${git[@]}" merge-base HEAD "$branch" 2>/dev/null) || continue
        [ "$base" != "$head" ] || "${git[@]}" rev-parse --verify --quiet HEAD~1 || return 1
        [ "$base" = "$head" ] || echo "$base"
        return 0
    done
    return 1
}

wants_machine() { # is its boot of this depth? Where nobody knows what changed, it is.
    local base
    [ "$DEPTH" = change ] || return 0
    if ! base=$(base_of_change); then
        say "machine boots: this clone has no history that says what changed"
        return 0
    fi
    if [ -n "$({ git -c safe.directory='*' -C "$SOURCE" diff --name-only "$base" -- "${OF_MACHINE[@]}" &&
        git -c safe.directory='*' -C "$SOURCE" ls-files --others --exclude-standard -- "${OF_MACHINE[@]}"; } 2>&1)" ]; then
        say "machine boots: ${OF_MACHINE[*]} changed since ${base:0:10}"
        return 0
    fi
    say "machine boots at --depth merge: nothing of ${OF_MACHINE[*]} changed since ${base:0:10}"
    return 1
}

measure_processor() { # PROCESSOR_MS becomes user and system time of the children of this shell that have ended
    local line fields
    read -r line <"/proc/$BASHPID/stat"
    read -r -a fields <<<"${line##*) }"
    # shellcheck disable=SC2034 # tests/run reads it
    PROCESSOR_MS=$(((fields[13] + fields[14]) * 1000 / $(getconf CLK_TCK)))
}
