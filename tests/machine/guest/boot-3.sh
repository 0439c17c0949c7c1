# shellcheck shell=bash disable=SC2317 # functions are called through check
# The machine, bare again after the quickstart's removal, with the Debian package: docs/install.md is followed.
# shellcheck source=check.sh
. /opt/check/check.sh
# shellcheck source=package.sh
. /opt/check/package.sh
prepare_apt

check 'the package installs on a bare machine' as_written Install 1

nothing_runs() {
    [ "$(readlink /usr/local/bin/svc)" = /usr/lib/svc/svc ] && [ "$(version)" = 0.1.0 ] || return 1
    ! systemctl is-active svc.service && ! systemctl is-enabled svc.service && ! systemctl is-enabled svc-backup.timer || return 2
    ! pgrep -u svc,svc-apps,svc-unix,svc-tls,svc-worker && [ ! -e /var/lib/svc/data/svc.db ]
}
check 'it starts, enables and creates nothing' nothing_runs
check 'its units are sound' systemd-analyze verify --man=no svc.service svc-backup.service svc-backup.timer

bootstrap() {
    as_written Install 2 && as_written Install 3 <<<'a long enough passphrase' && as_written Install 4 && is_healthy && says_version &&
        systemctl is-enabled svc.service
}
check 'the service is set up as the page says' bootstrap

no_quickstart() { # it would put its own program in the place of the package's
    local said
    ! said=$(/root/checkout/packaging/quickstart 2>&1) || return 1
    printf '%s\n' "$said" | grep 'of another installation.*; nothing was changed' || return 2
    [ "$(readlink /usr/local/bin/svc)" = /usr/lib/svc/svc ] && [ ! -e /var/lib/svc-quickstart ]
}
check 'the quickstart leaves the package alone' no_quickstart

nothing_wrong() {
    as_written Install 5
    judged
}
check 'the doctor finds nothing wrong with the package' nothing_wrong

runs_from_tree() {
    local pid
    for pid in $(pgrep -u svc-unix) $(main_pid); do
        echo "$pid $(readlink "/proc/$pid/exe") $(tr '\0' ' ' <"/proc/$pid/cmdline" | cut -c 1-200)"
        [ "$(readlink "/proc/$pid/exe")" = "$(readlink -f /usr/bin/python3)" ] || return 1
        ! grep -E '/usr/lib/python3/dist-packages|/opt/|/usr/local/lib' "/proc/$pid/maps" || return 2
    done
    grep -q /usr/lib/svc/python/ "/proc/$(pgrep -u svc-unix | head -n 1)/maps" || return 3
    dpkg --verify svc
    [ -z "$(dpkg --verify svc)" ]
}
check 'it runs from its private tree, of which every file is as shipped' runs_from_tree

backs_up() { # by the unit as it is shipped, with all that it denies itself
    as_written Install 7 && systemctl start svc-backup.service && systemctl list-timers --no-pager | grep svc-backup || return 1
    local made
    made=$(find /var/backups/svc -name '*.db' -newer /usr/local/bin/svc)
    svc admin backup --verify "$made"
}
check 'the timer of the package is enabled, and its service backs up' backs_up

first_workspace() {
    as_written Install 6 <<<'another long passphrase' && getent passwd alice || return 1
    svc admin create-user demo <<<'another long passphrase' || return 2
    (use_registry && tour) || return 3
    demo svc ws exec first -- sh -c 'echo before > /work/before' && field_is status running
}
check 'a user has a running workspace' first_workspace

alice() { runuser -u alice -- env -i PATH=/usr/local/bin:/usr/bin:/bin HOME=/home/alice LANG=C.UTF-8 "$@"; }

alice_runs() { # her workspace runs, and she reads in it what she wrote
    [ "$(alice svc ws exec stored -- cat /root/kept)" = kept ] &&
        [ "$(alice svc ws get stored --json | python3 -c 'import json, sys; print(json.load(sys.stdin)["status"])')" = running ]
}

alice_container() { pgrep -u alice -f 'sleep infinity' | head -n 1; }

store_elsewhere() { # SVC_STORE_DIR, with the unit as it is shipped
    local image container
    image=$(demo svc template get hello --json | python3 -c 'import json, sys; print(json.load(sys.stdin)["source"]["image_ref"])')
    echo 'SVC_STORE_DIR=/var/lib/svc-stores/%u' >>/etc/svc/svc.env && systemctl restart svc.service || return 1
    alice svc template create --file - <<<"{\"name\": \"hers\", \"source\": {\"type\": \"registry\", \"image_ref\": \"$image\"}}" || return 2
    alice svc ws setup --template hers --name stored && alice svc ws start stored || return 3
    alice svc ws exec stored -- sh -c 'echo kept > /root/kept' || return 4
    [ "$(stat -c '%U %a' /var/lib/svc-stores/alice)" = 'alice 700' ] && [ "$(stat -c '%U %a' /var/lib/svc-stores)" = 'root 755' ] &&
        [ -s /var/lib/svc-stores/alice/storage/overlay-images/images.json ] && [ ! -e /home/alice/.local/share/containers ] || return 5
    container=$(alice_container)
    systemctl restart svc.service && alice_runs && [ -n "$container" ] && [ "$container" = "$(alice_container)" ] || return 6
    systemctl stop svc.service && systemctl start svc.service && alice_runs && [ "$container" = "$(alice_container)" ] || return 7
    alice svc ws stop stored && alice svc ws start stored && alice_runs && field_is status running || return 8
    nothing_wrong || return 9
    svc admin disk --measure alice && svc admin disk alice | cut -f3 | grep -v '^0$' | grep . || return 10
    alice svc ws delete stored --yes && sed -i /SVC_STORE_DIR/d /etc/svc/svc.env && systemctl restart svc.service && is_healthy
}
check 'a store in SVC_STORE_DIR outlives restarts of the service' store_elsewhere

caches() { # by the command of docs/registries.md, in front of the quickstart's registry
    local command
    command=$(sed -n 's,^sudo \(/usr/share/svc/registry-cache\) .*,\1,p' /usr/share/doc/svc/registries.md)
    [ -x "$command" ] && "$command" --port 24691 http://127.0.0.1:24690 || return 1
    python3 -c 'import urllib.request as u; print(u.urlopen("http://127.0.0.1:24691/v2/quickstart/base/tags/list", timeout=20).read())' |
        grep quickstart/base || return 2
    systemctl disable --now docker-registry.service && svc admin registry remove 127.0.0.1:24691
}
check 'the pull-through cache of the package is set up by its command' caches

check 'the manual pages of the package are read by man' manual_renders
check 'TAB completes in bash, zsh and fish with the files of the package' tab_completes

pages_are_there() {
    local html=/usr/share/doc/svc/html
    grep -q '<h1 id="installing-svc-on-a-host">' "$html/docs/install.html" && grep -q 'href="docs/install.html"' "$html/index.html"
}
check 'its documentation is installed as HTML' pages_are_there

logs_turn() { # by logrotate, where a server writes into a file
    install -d -m 0750 -g adm /var/log/svc && echo before >/var/log/svc/server.log && chmod 0640 /var/log/svc/server.log || return 1
    logrotate --force --state /tmp/logrotate.state /etc/logrotate.conf 2>&1 || return 2
    echo after >>/var/log/svc/server.log
    [ "$(zcat /var/log/svc/server.log.1.gz)" = before ] && [ "$(cat /var/log/svc/server.log)" = after ] && rm /var/log/svc/*
}
check 'logrotate turns its logs' logs_turn

cron_example() { # the line as cron reads it; that cron runs such a line was seen in the first boot
    local line
    line=$(grep -v '^#' /usr/share/doc/svc/examples/svc-backup.cron)
    printf '%s\n' "$line"
    [[ $line =~ ^([0-9*]+\ ){5}root\ /usr/local/bin/svc\ admin\ backup ]] || return 1
    [ -z "$(bash -e -c "${line#*root }" 2>&1)" ]
}
check 'the line of the cron example backs up and says nothing' cron_example

skill_installs() { demo sh -c 'svc skill install --path ~/skills && test -s ~/skills/svc/SKILL.md'; }
check 'its skill installs for a user' skill_installs

restarts_under_load() { # no workspace and no acknowledged change is lost; at most four: systemd counts starts
    local container load seen folder=/tmp/load
    container=$(container_pid)
    install -d -o demo "$folder"
    demo python3 /opt/check/load.py "$folder" >"$folder/said" 2>&1 &
    load=$!
    for _ in 1 2 3 4; do
        seen=$(cat "$folder/acknowledged" 2>/dev/null || echo 0)
        for _ in $(seq 600); do
            [ "$(cat "$folder/acknowledged" 2>/dev/null || echo 0)" -lt $((seen + 30)) ] || break
            kill -0 "$load" || break
            sleep 0.1
        done
        systemctl restart svc.service || return 1
    done
    sleep 1
    touch "$folder/end"
    wait "$load" || { cat "$folder/said"; return 2; }
    cat "$folder/said"
    grep -q "'acknowledged': [1-9][0-9][0-9]" "$folder/said" || return 3
    [ -n "$container" ] && [ "$container" = "$(container_pid)" ] && field_is status running &&
        [ "$(demo svc ws exec first -- cat /work/before)" = before ]
}
check 'restarts under load lose no workspace and no acknowledged change' restarts_under_load
check 'the doctor finds nothing wrong beside a running workspace' nothing_wrong

same_workspace() { # COMMAND...: it runs on, the service is another process and has the same data
    local container main
    container=$(container_pid) main=$(main_pid)
    "$@" || return 1
    echo "container $container -> $(container_pid), service $main -> $(main_pid)"
    [ -n "$container" ] && [ "$container" = "$(container_pid)" ] || return 2
    [ "$main" != "$(main_pid)" ] && is_healthy && [ ! -e /run/svc-package ] || return 3
    field_is status running && [ "$(demo svc ws exec first -- cat /work/before)" = before ]
}

upgrade() { same_workspace as_written Upgrade 1 && [ "$(version)" = 0.1.1 ] && says_version; }
check 'an upgrade leaves the workspace running and the service answers again' upgrade

again() { # the same version, and its scripts alone
    dpkg -i "$(deb 0.1.1)" && /var/lib/dpkg/info/svc.postinst configure "0.1.1$SUFFIX" &&
        /var/lib/dpkg/info/svc.postinst configure "0.1.1$SUFFIX"
}
check 'the same version can be installed again, and its scripts run twice' same_workspace again

stays_stopped() {
    systemctl stop svc.service && dpkg -i "$(deb 0.1.1)" || return 1
    ! systemctl is-active svc.service && systemctl start svc.service && is_healthy
}
check 'a service that was stopped is not started by an upgrade' stays_stopped

failed_upgrade() { # the message names the command that goes back, and that command does
    local said back container
    container=$(container_pid)
    variant 0.1.1.1 add_migration 'CREATE TABLE users (id);' || return 1
    if said=$(apt-get install "$(deb 0.1.1.1)" 2>&1); then return 2; fi
    printf '%s\n' "$said"
    ! systemctl is-active svc.service && [ "$(version)" = 0.1.1.1 ] || return 3
    back=$(sed -n 's/^svc: back to the version before: //p' <<<"$said")
    [ -n "$back" ] && bash -e -c "$back" || return 4
    [ "$(version)" = 0.1.1 ] && [ -z "$(dpkg --audit)" ] && is_healthy && [ ! -e /run/svc-package ] || return 5
    [ "$container" = "$(container_pid)" ] && field_is status running && svc admin list-users | grep alice
}
check 'an upgrade whose migration fails names the command that goes back' failed_upgrade

refused_upgrade() { # no recovery set can be made: nothing is changed
    local said
    mv /var/lib/svc/recovery /var/lib/svc/recovery.away && touch /var/lib/svc/recovery || return 1
    said=$(dpkg -i "$(deb 0.1.0)" 2>&1) && return 2
    printf '%s\n' "$said"
    rm /var/lib/svc/recovery && mv /var/lib/svc/recovery.away /var/lib/svc/recovery || return 3
    grep -q 'no recovery set could be made, so the package is not upgraded' <<<"$said" || return 4
    [ "$(version)" = 0.1.1 ] && [ -z "$(dpkg --audit)" ] && is_healthy && [ ! -e /run/svc-package ]
}
check 'without a recovery set the package is not exchanged, and the service runs again' refused_upgrade

for part in /opt/check/rollback.sh /opt/check/update.sh; do # each leaves 0.1.1 installed and the service running
    # shellcheck source=/dev/null
    if [ -e "$part" ]; then . "$part"; fi
done

downgrade() { same_workspace as_written Downgrade 1 && [ "$(version)" = 0.1.0 ] && says_version; }
check 'a downgrade leaves the workspace running too' downgrade

removed() {
    local container
    container=$(container_pid)
    as_written Remove 1 || return 1
    ! systemctl is-active svc.service && ! pgrep -u svc,svc-apps,svc-unix,svc-tls,svc-worker && [ ! -L /usr/local/bin/svc ] || return 2
    [ ! -e /usr/lib/svc ] && [ -e /var/lib/svc/data/svc.db ] && [ -e /etc/svc/svc.env ] || return 3
    [ -n "$container" ] && [ "$container" = "$(container_pid)" ]
}
check 'a removal leaves settings, data and the workspace' removed

reinstalled() {
    as_written Install 1 && ! systemctl is-active svc.service && as_written Install 4 && is_healthy || return 1
    field_is status running && [ "$(demo svc ws exec first -- cat /work/before)" = before ]
}
check 'installed again, it knows everything' reinstalled

purged() {
    local said path container
    container=$(container_pid)
    said=$(as_written Remove 2 2>&1) || { echo "$said"; return 1; }
    printf '%s\n' "$said"
    for path in /var/lib/svc /var/backups/svc; do grep -qx "svc: kept: $path" <<<"$said" || return 2; done
    for path in /var/lib/svc/data/svc.db /home/demo/work/before; do [ -e "$path" ] || return 3; done
    ls /var/backups/svc/*.db || return 4
    for path in /etc/svc/svc.env /etc/pam.d/svc /usr/lib/svc /usr/local/bin/svc /run/svc-package; do
        [ ! -e "$path" ] || { echo "left: $path"; return 5; }
    done
    [ -n "$container" ] && [ "$container" = "$(container_pid)" ]
}
check 'a purge keeps database, snapshots, homes and containers, and says where' purged

foreign_link() {
    local said
    ln -s /opt/other/svc /usr/local/bin/svc
    said=$(as_written Install 1 2>&1) || { echo "$said"; return 1; }
    printf '%s\n' "$said"
    grep -q '/usr/local/bin/svc is of another installation' <<<"$said" || return 2
    apt-get purge -qq svc && [ "$(readlink /usr/local/bin/svc)" = /opt/other/svc ] && rm /usr/local/bin/svc
}
check 'the program of another installation is left where it is' foreign_link

if [ -e "$DEBS/svc_0.0.9_amd64.deb" ]; then # else this clone does not have the commit of packaging/previous-release
    # shellcheck source=previous.sh
    . /opt/check/previous.sh
fi
exit 0
