# shellcheck shell=bash disable=SC2317,SC2009 # functions are called through check; ps is what is checked
# The same machine after a reboot: everything is known again; then the way back.
# shellcheck source=check.sh
. /opt/check/check.sh

# Its owner asks before the worker has looked: what that call finds ended is to come back all the same.
while ! again_port; do sleep 0.1; done >/dev/null 2>&1 &

wait_active() {
    for _ in $(seq 150); do systemctl is-active -q svc.service && return; sleep 0.2; done
    systemctl status svc.service --no-pager
    return 1
}
check 'svc.service came back by itself' wait_active
check 'the workspace that was to come back runs again' field_is status running again
check 'its launcher runs again, reached through its port' again_serves 2
check 'its port is the one that it was' test "$(again_port)" = "$(cat /opt/check/port)"
# Its trap takes a second: with the end of the container's first process the kernel would have killed it.
check 'its launcher could end in order when the host went down' grep -qx 'ended 1' /home/demo/work/ends
check 'what its launcher printed before the reboot is still there' again_said 'start number 1'
check 'and what it prints now comes after it' again_said 'start number 2'
check 'the other workspace is known again, as stopped' field_is status stopped
check 'it says that the host was rebooted' field_is status_reason host_reboot
check 'it starts again' demo svc ws start first
check 'what was installed in it is still there' sh -c 'runuser -u demo -- svc ws exec first -- cat /etc/kept | grep -q kept'
check 'its files are still there' sh -c 'runuser -u demo -- svc ws exec first -- cat /work/from-inside | grep -q inside'
check 'the quickstart still ends well' /root/checkout/packaging/quickstart

stopped_all() {
    /root/checkout/packaging/quickstart --stop --all || return 1
    ! systemctl is-active svc.service || return 1
    ! pgrep -u svc,svc-apps,svc-unix,svc-tls,svc-worker || return 1
    ! container_pid | grep .
}
check 'the quickstart stops what it started' stopped_all
check 'the policy no longer names the registry that it stopped' grep -q '"registries": \[\]' /var/lib/svc/registries.json

removed_all() {
    /root/checkout/packaging/quickstart --remove --yes || return 1
    for path in /opt/svc /usr/local/bin/svc /etc/svc /var/lib/svc /var/lib/svc-quickstart /etc/pam.d/svc /home/demo \
        /usr/local/share/man/man1/svc.1 /usr/local/share/bash-completion/completions/svc /etc/fish/completions/svc.fish; do
        [ ! -e "$path" ] || { echo "left: $path"; return 1; }
    done
    ! getent passwd demo svc svc-apps svc-unix svc-tls svc-worker
}
check 'the quickstart takes everything away' removed_all
exit 133
