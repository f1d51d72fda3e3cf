#!/bin/sh
# ./dev bench remote: compares the service with a plain socket loop for a client behind a slow or lossy line.
# The client is in a network namespace behind a virtual link, and tc's netem delays packets. Needs root,
# iproute2 and a kernel with netem. Removes what it creates.
# Usage: remote.sh BUILD_FOLDER OPTION…, in the top folder.
# Rows: lossy (5 ms, 0.5% loss), slow (1 ms, 1 Gbit/s), rate (1 Gbit/s by tbf, no delay), plain (no limit)
bench=remote
known_rows='lossy slow rate plain'
rows=$known_rows connections=8
# shellcheck source=bench/lib/service.sh
. "$(dirname "$0")/lib/service.sh"
seconds=5
near=10.231.77.1 far=10.231.77.2
space=matmuld-bench-$$ near_link=mm$$a far_link=mm$$b

options() {
    echo '--connections N|connections number 1000|at once (8)'
}

# link_options ROW: prints options of tc for each direction. Queues are longer than the data in flight.
link_options() {
    case $1 in
    lossy) echo 'netem limit 20000 delay 5ms loss 0.5%' ;;
    slow) echo 'netem limit 20000 delay 1ms rate 1gbit' ;;
    rate) echo 'tbf rate 1gbit burst 256kb limit 32mb' ;;
    esac
}

take_link_away() {
    ip link del "$near_link" 2>/dev/null || :
    ip netns del "$space" 2>/dev/null || :
}

far_away() {
    ip netns exec "$space" "$@"
}

# Creates the link. If that is not allowed, returns false and sets `why`.
lay_link() {
    if ! {
        ip netns add "$space" && ip link add "$near_link" type veth peer name "$far_link" &&
            ip link set "$far_link" netns "$space" && ip address add "$near/30" dev "$near_link" &&
            ip link set "$near_link" up && far_away ip address add "$far/30" dev "$far_link" && far_away ip link set "$far_link" up
    } 2>"$scratch/link"; then
        why="$(tail -n 1 "$scratch/link")"
        return 1
    fi
}

# shape_link OPTION…: applies the options to both directions; without options removes earlier ones.
shape_link() {
    tc qdisc del dev "$near_link" root 2>/dev/null || :
    far_away tc qdisc del dev "$far_link" root 2>/dev/null || :
    [ $# -gt 0 ] || return 0
    if ! { tc qdisc add dev "$near_link" root "$@" &&
        far_away tc qdisc add dev "$far_link" root "$@"; } 2>"$scratch/link"; then
        why="$1: $(tail -n 1 "$scratch/link")"
        return 1
    fi
}

can_lay_links() {
    if [ "$(id -u)" -ne 0 ]; then
        why='this takes root'
    elif ! command -v ip >/dev/null || ! command -v tc >/dev/null; then
        why='ip and tc are not here (package iproute2)'
    else
        return 0
    fi
    return 1
}

# across KEY ARGUMENT…: multiplies 1024×1024 squares, with 8 MiB to the service and 4 MiB back.
across() {
    key=$1
    shift
    if far_away "$load/steady.py" --host "$near" --shape 1024x1024x1024 --connections "$connections" \
        --seconds "$seconds" "$@" >"$scratch/figures" 2>"$scratch/trouble"; then
        keep "$key" "$(awk -v rate="$(figure rate)" 'BEGIN { print rate * 12 * 1048576 / 1e6 }')"
    else
        say "$key: $(head -n 1 "$scratch/trouble")"
        keep "$key" ''
    fi
}

bench_link() {
    link=$(link_options "$1")
    what="1024, raw, $connections connections, $1 link${link:+ ($link)}; beside: socket loop"
    # Without quotes, the shell splits the options into words.
    # shellcheck disable=SC2086
    if ! shape_link $link; then
        row_left_out "$what" '≥ 0.9' "$why"
        return 0
    fi
    for _ in $(seq "$rounds"); do
        across "$1" --port "$service"
        across "$1.sockets" --port "$floor" --unchecked
    done
    row_ratio "$what" "$([ "$1" = plain ] || echo '≥ 0.9')" "$1" "$1.sockets" MB/s
}

run() {
    print_head 'A remote client' 'link|veth to a network namespace, netem on both ends'
    print_table_head
    if ! can_lay_links; then
        row_left_out 'all' '≥ 0.9' "$why"
        return 0
    fi
    trap 'end_servers; take_link_away' EXIT
    if lay_link && start_matmuld matmuld --backend cpu --host "$near" && service=$port &&
        start_sockets "$connections" 8388608 4194304 "$near"; then
        for wanted in $rows; do
            bench_link "$wanted"
        done
    else
        row_left_out 'all' '≥ 0.9' "$why"
    fi
}

main "$@"
