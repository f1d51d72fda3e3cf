#!/bin/sh
# Shows that the tests find defects. Each row of mutants.txt is a defect (a mutant): this script puts it into a copy of
# the sources in build/mutants, builds what the row's tests need, and runs them. If none fails, the mutant survived.
# Usage: sh tests/mutants.sh [--preset P] [ROW...], rows by number (default: all); P is cpu-only by default, and a row may
# name its own. Rows of the preset dev need a GPU. Exit 1 if a mutant survived or a row is out of date.
set -eu

cd "$(dirname "$0")/.."
copy=$PWD/build/mutants
log=$copy/build/mutant.log
default=cpu-only
[ "${1:-}" != --preset ] || { default=${2:?the name of a preset} && shift 2; }
mutated=
restore() { [ -z "$mutated" ] || cp "$mutated" "$copy/$mutated"; }
trap restore EXIT
trap 'exit 130' INT TERM HUP

# The wanted rows as NUMBER|FILE|OLD|NEW|PRESET|TESTS|DEFECT.
rows=$(sed '/^#/d; /^$/d; s/ *| */|/g' tests/mutants.txt | awk -F'|' -v wanted=" $* " -v preset="$default" '
    NF != 5 { print "this row does not have 5 fields: " $0 >"/dev/stderr"; exit 1 }
    wanted ~ /[0-9]/ && !index(wanted, " " NR " ") { next }
    { own = preset }
    split($4, part, ":") == 2 { own = part[1]; $4 = part[2] }
    { print NR "|" $1 "|" $2 "|" $3 "|" own "|" $4 "|" $5 }')

# Prints FILE with OLD replaced by NEW; fails unless OLD occurs once.
change() {
    old=$2 new=$3 awk '
        at = index($0, ENVIRON["old"]) {
            rest = substr($0, at + length(ENVIRON["old"]))
            count += 1 + (index(rest, ENVIRON["old"]) > 0)
            $0 = substr($0, 1, at - 1) ENVIRON["new"] rest
        }
        { print }
        END { exit count != 1 }' "$1"
}

# Builds the targets of PRESET's tests that match TESTS, patterns with spaces between them; fails if there are none.
build() {
    targets=$(ctest --test-dir "$copy/build/$1" -N -R "$(echo "$2" | tr ' ' '|')" | awk '
        !sub(/^ *Test *#[0-9]*: /, "") { next }
        { kind = $0; sub("/.*", "", kind) }
        kind ~ /unit|fuzz/ { gsub("/", "_"); print; next }
        { print "server/all tests/" kind "/all" }' | sort -u)
    # The targets are words to be split.
    # shellcheck disable=SC2086
    [ -n "$targets" ] && (cd "$copy" && cmake --build --preset "$1" --target $targets) >"$log" 2>&1
}

# Whether PRESET's TESTS pass within SECONDS; 124: they hang. Those that speak HTTP may depend on time, and get a second
# try, since the machine may be busy.
pass() (
    cd "$copy"
    case $2 in *http/*) tries=2 ;; *) tries=1 ;; esac
    exec timeout $(($3 * tries)) ctest --preset "$1" -j "$(nproc)" --stop-on-failure --repeat until-pass:$tries \
        -R "$(echo "$2" | tr ' ' '|')"
) >"$log" 2>&1

mkdir -p "$copy/build"
for item in *; do
    [ "$item" = build ] || cp -pru "$item" "$copy"
done
all=$(printf "%s\n" "$rows" | wc -l)
nvidia-smi -L >"$log" 2>&1 || rows=$(printf "%s\n" "$rows" | awk -F'|' '$5 != "dev"')
limit=60 # seconds that the tests of a mutant may take; more if they take over half of it without one
for preset in $(printf "%s\n" "$rows" | cut -d'|' -f5 | sort -u); do
    tests=$(printf "%s\n" "$rows" | awk -F'|' -v preset="$preset" '$5 == preset { print $6 }' | tr ' ' '\n' | sort -u | paste -sd' ')
    (cd "$copy" && cmake --preset "$preset" -DMATMULD_WERROR=OFF) >"$log" 2>&1 &&
        build "$preset" "$tests" && started=$(date +%s) && pass "$preset" "$tests" 1000 && {
        taken=$(($(date +%s) - started))
        [ $((2 * taken)) -le "$limit" ] || limit=$((2 * taken))
        continue
    }
    tail -n 40 "$log" && echo "preset $preset fails without a mutant; if it does so here alone, remove $copy" && exit 1
done

found=0 survived=0 stale=0
while IFS='|' read -r number file old new preset tests defect; do
    mutated=$file code=0
    [ -n "$file" ] || continue
    if change "$file" "$old" "$new" >"$copy/$file" && build "$preset" "$tests"; then
        pass "$preset" "$tests" "$limit" || code=$?
        [ "$code" -ne 0 ] && result=found found=$((found + 1)) || result=SURVIVED survived=$((survived + 1))
        [ "$code" -ne 124 ] || result='found (hangs)'
    else
        result='OUT OF DATE (its string must occur once, it must build, and tests must match)' stale=$((stale + 1))
    fi
    restore
    echo "$result: $number $file ($tests): $defect"
done <<END_OF_ROWS
$rows
END_OF_ROWS
echo "$found found, $survived survived, $stale out of date, $((all - found - survived - stale)) skipped for want of a GPU"
[ $((survived + stale)) -eq 0 ]
