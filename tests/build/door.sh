#!/bin/sh
# What dev promises before it builds anything: wrong usage is exit status 2 and says why, the presets that
# it names are those of CMakePresets.json, and each verb of the help exists. Run in the top folder.
set -eu

failed=0

fail() {
    echo "$*"
    failed=$((failed + 1))
}

# refused WORDS ARG…: dev ends with 2 and its message contains the words.
refused() {
    words=$1
    shift
    code=0
    message=$(./dev "$@" 2>&1) || code=$?
    [ "$code" -eq 2 ] || fail "./dev $*: exit status $code, expected 2"
    case $message in *"$words"*) ;; *) fail "./dev $*: expected '$words', got: $message" ;; esac
}

refused "a verb is missing"
refused "no verb 'rum'" rum
refused "no verb '.*'" '.*'
refused "--preset takes one of" test --preset debug
refused "--preset takes one of" build --preset 'dev release'
refused "--preset takes one of" run --preset
refused "does not take '--port'" run --port 0
refused "does not take '-R'" test -R unit
refused "does not take '--'" build -- all
refused "got 'jsom'" fuzz jsom
refused "got 'jsom'" fuzz 5 jsom
refused "got '5s json'" fuzz 5s json
refused "does not take 'json'" coverage json

named=$(./dev --help | sed -n 's/^Presets: \([a-z -]*\) (.*/\1/p' | tr ' ' '\n' | sort)
present=$(jq -r '.configurePresets[] | select(.hidden | not) | .name' CMakePresets.json | sort)
[ "$named" = "$present" ] || fail "presets in dev: $named; in CMakePresets.json: $present"

verbs=$(./dev --help | sed -n 's|^  ./dev \([a-z]*\) .*|\1|p')
[ -n "$verbs" ] || fail "the help names no verb"
for verb in $verbs; do
    grep -qx "verb_$verb() {" dev || fail "the help names $verb, but dev has no verb_$verb"
done

echo "$failed failures"
[ "$failed" -eq 0 ]
