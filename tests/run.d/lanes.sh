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
    # shellcheck disable=SC2086
    (run_lane $1) # whose processor time is not that of the lanes beside it
    for lane in "${!pids[@]}"; do
        wait "${pids[lane]}" || true # a suite that has left nothing has failed
        cat "${logs[lane]}"
    done
}

run_all() { # what computes first; then what waits, each lane with users and a server of its own
    local after=()
    run_lane unit conventions pages
    run_lanes e2e "hostile stories" "helper agent other"
    for suite in "${WANTED[@]}"; do
        case $suite in machine | applications | release) after+=("$suite") ;; esac
    done
    run_lane "${after[@]}"
}
