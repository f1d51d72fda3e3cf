#!/bin/sh
# Tests the HTTP headers of the page's files. browser.sh tests what the page shows.
# shellcheck source=tests/http/server.sh disable=SC2119
. "$(dirname "$0")/server.sh"

policy="default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

start_with_key one-of-environment --backend cpu
while read -r path file type; do
    ask "$path"
    expect "$path" 200 Content-Type: "$type; charset=utf-8" Content-Security-Policy: "$policy" \
        X-Content-Type-Options: nosniff Referrer-Policy: no-referrer Cache-Control: no-cache
    same "$path: is the file" 0 "$(cmp "$scratch/got" "$here/../../server/page/$file" >&2; echo $?)"
    etag=$(header ETag "$scratch/head")
    ask "$path" -H "If-None-Match: $etag"
    expect "$path: known" 304 ETag: "$etag" Content-Length: "$(wc -c <"$here/../../server/page/$file")" Content-Security-Policy: "$policy"
    ask "$path" -H 'If-None-Match: "0123456789abcdef0123456789abcdef"'
    expect "$path: another" 200
    ask "$path" -H 'Accept-Encoding: br, gzip'
    expect "$path: gzip" 200 Content-Type: "$type; charset=utf-8" Content-Encoding: gzip Vary: Accept-Encoding
    gzip -d <"$scratch/got" >"$scratch/plain"
    same "$path: gzip: is the file" 0 "$(cmp "$scratch/plain" "$here/../../server/page/$file" >&2; echo $?)"
    [ "$(header ETag "$scratch/head")" != "$etag" ] || fail "$path: two codings have one ETag"
    ask "$path" -H 'Accept-Encoding: identity'
    expect "$path: identity" 200 ETag: "$etag" Content-Encoding: '' Vary: Accept-Encoding
    ask "$path" --head
    expect "$path: HEAD" 200 ETag: "$etag"
done <<'END'
/ index.html text/html
/docs docs.html text/html
/page/base.js base.js text/javascript
/page/style.css style.css text/css
/page/5-banks.md ../../docs/lessons/5-banks.md text/plain
END
ask /page/chart.js
expect "the charts" 200 Content-Type: 'text/javascript; charset=utf-8'
for path in /page/ /page/nothing.js /page/../page.c /page/base.js.gz /page/base.js/ /docs/; do
    ask "$path" --path-as-is
    expect "$path" 404 code not_found
done
stop

start --backend cpu --no-page
for path in / /docs /page/base.js; do
    ask "$path"
    expect "$path" 404 code not_found
    like "$path: why" '*--no-page*' "$(jq -r .detail "$scratch/got")"
done
ask /healthz
expect "/healthz without the page" 200
stop
finish
