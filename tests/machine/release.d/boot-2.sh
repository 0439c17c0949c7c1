# shellcheck shell=bash disable=SC2317 # functions are called through check
# After the reboot: what restart_on_boot says, with its limits; then the way out.
# shellcheck source=say.sh
. /opt/check/say.sh

figure "boot: $(systemd-analyze time | head -n 1)"

runs_again() { # the record may still say so from before the reboot: the kernel is asked too
    for _ in $(seq 60); do
        limit tight memory.max 2>/dev/null && becomes tight status running && return
        sleep 1
    done
    record tight w
    return 1
}
check 'after a reboot the workspace with restart_on_boot runs again' runs_again
check 'the other one is stopped' becomes first status stopped

limits_again() {
    local seen
    seen="$(limit tight memory.max) $(limit tight pids.max) $(limit tight cpu.max)"
    echo "$seen"
    [ "$seen" = '100663296 60 25000 100000' ]
}
check 'with its limits' limits_again

served_again() {
    local port
    port=$(record tight "next(p['host_port'] for p in w['ports'] if p['name'] == 'web')")
    for _ in $(seq 60); do
        [ "$(fetch "http://127.0.0.1:$port/page")" = 'through the port' ] && return
        sleep 1
    done
    demo svc ws launchers tight
    return 1
}
check 'with its launcher and its port' served_again
exit 0
