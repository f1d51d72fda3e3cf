#!/bin/sh
# What dev promises before it builds anything: wrong usage is exit status 2 and says why. Run in the top folder.
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

refused "name a verb"
refused "no verb 'rum'" rum
refused "no verb '.*'" '.*'
refused "--preset takes one of" test --preset debug
refused "--preset takes one of" run --preset
refused "--preset takes one of" run --preset base
refused "does not take '--port'" run --port 0
refused "does not take '-R'" test -R unit
refused "does not take 'all'" build all
refused "bench takes one of" bench
refused "got '.*'" bench '.*'

echo "$failed failures"
[ "$failed" -eq 0 ]
