# shellcheck shell=bash
# Suites that run only when they are named, or on the other Debian.

run_bench() {
    local WRAP=()
    say bench
    in_namespace bench
    (cd "$TREE" && exec "${WRAP[@]}" "$PREFIX/bin/python3" -m tests.bench "${EXTRA[@]}") </dev/null 9>&-
}

run_release() { # the machine with a kernel of its own; or debian13, distupgrade, or the named row of docs/database.md
    local WRAP=() row=${EXTRA[0]:-release} code=0
    if [ -x "$TREE/tests/machine/$row" ]; then
        in_namespace machine
        "${WRAP[@]}" "$TREE/tests/machine/$row" "${EXTRA[@]:1}" </dev/null 9>&- || code=$?
    else
        say "release: ${EXTRA[*]}"
        in_namespace hostile
        (cd "$TREE/tests" && exec "${WRAP[@]}" "$PREFIX/bin/python3" -m "hostile.faults.${EXTRA[0]}" "${EXTRA[@]:1}") \
            </dev/null 9>&- || code=$?
    fi
    echo "$code" >"$RESULTS/release.code"
}

find_other() { # OTHER becomes the release that this host is not, when it is one of the two
    # shellcheck source=/dev/null
    case $(. /etc/os-release && echo "${VERSION_CODENAME:-}") in
    bookworm) OTHER=trixie ;;
    trixie) OTHER=bookworm ;;
    *) say "this host is neither Debian 12 nor 13: nothing runs on the other of them" ;;
    esac
}

run_on_other() { # the suites without root, with the Python of the Debian that this host is not; no lint is run by it
    local suite report
    mkdir "$RESULTS/other"
    SVC_TEST_RESULTS=$RESULTS/other timeout --foreground --kill-after=30 2400 \
        "$HERE/run.d/on" "$OTHER" no --depth "$DEPTH" "${WITHOUT_ROOT[@]}" \
        -- --ignore-glob='*/test_lints.py' --ignore-glob='*/test_javascript.py' </dev/null 9>&- || true
    for suite in "${WITHOUT_ROOT[@]}"; do
        for report in xml code processor left-out; do
            mv "$RESULTS/other/$suite.$report" "$RESULTS/$suite-$OTHER.$report" 2>/dev/null || true
        done
        [ -e "$RESULTS/$suite-$OTHER.code" ] || echo 1 >"$RESULTS/$suite-$OTHER.code"
    done
}
