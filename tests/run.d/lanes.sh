# shellcheck shell=bash
# Which suites run one after the other, and which beside each other.

run_lane() { # SUITE...: one after the other
    local suite
    for suite in "$@"; do
        case $suite in
        bench) run_bench ;;
        release) run_release ;;
        other) [ -z "$OTHER" ] || run_on_other ;;
        *) run_suite "$suite" ;;
        esac
    done
}

run_lanes() { # LANE...: lists of suites, beside each other; what those after the first print follows, one by one
    local lane pids=() logs=()
    for lane in "${@:2}"; do
        logs+=("$RESULTS/lane-${#pids[@]}.log")
        # shellcheck disable=SC2086 # a list of suites
        run_lane $lane >"${logs[-1]}" 2>&1 &
        pids+=($!)
    done
    # Its processor time is not that of the lanes beside it, and it computes while those wait.
    # shellcheck disable=SC2086
    (renice -n 5 -p "$BASHPID" >/dev/null && run_lane $1)
    for lane in "${!pids[@]}"; do
        wait "${pids[lane]}" || true # a suite that has left nothing has failed
        cat "${logs[lane]}"
    done
}

run_all() { # first what is measured in this process; then the pages beside what waits, each lane with users of its own
    local slim='' after=()
    [ "${MACHINE[*]}" != "$LIFE" ] || slim=machine # boots have the host for themselves
    run_lane conventions unit
    run_lanes pages e2e "hostile stories $slim" "helper agent other"
    for suite in "${WANTED[@]}"; do
        case $suite in "$slim") ;; machine | applications | release) after+=("$suite") ;; esac
    done
    run_lane "${after[@]}"
}
