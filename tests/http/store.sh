#!/bin/sh
# Tests stored matrices: formats, names, conditional requests, lifetimes, limits, and broken uploads.
# shellcheck source=tests/http/server.sh disable=SC2119
. "$(dirname "$0")/server.sh"

MATMULD=${FAULTY:?the path of the faulty matmuld} # starts faster than the real matmuld
alice=alice-has-this-key bob=bob-has-another-key- carol=carol-s-key-has-no-name
path=/v1/matrices
raw='Content-Type: application/octet-stream'

# put NAME BYTES [ARG…]: stores a uint8 matrix of BYTES bytes.
put() {
    name=$1 bytes=$2
    shift 2
    head -c "$bytes" /dev/zero >"$scratch/zeros"
    ask "$path/$name?dtype=uint8&m=1&n=$bytes" -X PUT -H "$raw" -H Expect: --data-binary "@$scratch/zeros" "$@"
}

# bytes_are STORED RESERVED RELEASED: waits until the metrics have these values.
bytes_are() {
    checks=$((checks + 1))
    # shellcheck disable=SC2016
    await 20 sh -c '
        [ "$(curl -s --max-time 60 "$1/metrics" | sed -n "s/^matmuld_store_bytes{state=\"[sr].*} //p" | paste -sd " " -)" = "$2" ]' \
        - "$url" "$*" || fail "bytes stored, reserved and released: expected $*, got $(curl -s "$url/metrics" | grep ^matmuld_store_bytes)"
}

# head_of BYTES [HEADER]: prints the head of a PUT with a uint8 matrix of BYTES bytes.
head_of() {
    printf 'PUT %s/slow?dtype=uint8&m=1&n=%s HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n%s\r\nContent-Length: %s\r\n\r\n' "$path" "$1" "$raw" "$1"
}

# hang_up: breaks off the upload of the process $half.
hang_up() {
    kill "$half"
    wait "$half" 2>/dev/null || :
}

start --backend cpu --memory-budget 64MiB

# --- Formats of uploads
printf '%s' '{"a": [[1, 2], [3, 4]]}' >"$scratch/m.json"
echo 1 2 3 4 | "$FLOAT32" encode >"$scratch/m.raw"
{ npy_head '<f4' False '(2, 2)' && cat "$scratch/m.raw"; } >"$scratch/m.npy"
{ npy_head '<f4' True '(2, 2)' && echo 1 3 2 4 | "$FLOAT32" encode; } >"$scratch/fortran.npy"
printf '1;2\n3;4\n' >"$scratch/m.csv"
while IFS='|' read -r what query header file; do
    ask "$path/m$query" -X PUT -H "$header" --data-binary "@$scratch/$file"
    expect "$what" 201 "[.name, .shape, .dtype, .bytes, .device]" '["m",[2,2],"float32",16,"cpu"]'
    ask "$path/m" -H 'Accept: application/json'
    expect "$what, read" 200 . '{"a":[[1,2],[3,4]],"dtype":"float32"}'
    ask "$path/m" -X DELETE
    expect "$what, deleted" 204
done <<'END'
JSON||Content-Type: application/json|m.json
JSON without a type||Content-Type:|m.json
JSON as text||Content-Type: text/plain;charset=UTF-8|m.json
raw by m and n|?m=2&n=2|Content-Type: application/octet-stream|m.raw
raw by shape, without a type|?shape=2,2|Content-Type:|m.raw
.npy||Content-Type: application/x-npy|m.npy
.npy without a type||Content-Type:|m.npy
.npy as anything||Content-Type: text/plain|m.npy
.npy as octet-stream||Content-Type: application/octet-stream|m.npy
.npy in Fortran order||Content-Type:|fortran.npy
CSV||Content-Type: text/csv|m.csv
END
ask "$path/m" -X PUT -F "a=@$scratch/m.npy"
expect "a form" 201 Location: "$path/m"
ask "$path/m" -T "$scratch/m.npy"
expect "curl -T, again" 200 Location: "$path/m"
same "the ETag in the body and in the head" "$(header ETag "$scratch/head")" "$(jq -r .etag "$scratch/got")"
bytes_are 16 0 0

# --- Formats of replies
ask "$path/m"
expect ".npy by default" 200 Content-Type: application/x-npy Vary: Accept Cache-Control: 'private, no-cache' \
    Matmul-Shape: '2, 2' Matmul-Dtype: float32 ETag: '"????????????????????????????????"'
cmp -s "$scratch/got" "$scratch/m.npy" || fail "the .npy file comes back otherwise"
ask "$path/m" -H "Accept: application/octet-stream"
cmp -s "$scratch/got" "$scratch/m.raw" || fail "the raw elements come back otherwise"
ask "$path/m" -H "Accept: text/csv"
same "CSV" '1,2 3,4' "$(paste -sd ' ' "$scratch/got")"
ask "$path/m" --head
expect "HEAD" 200 Content-Length: 144
ask "$path/m" -H "Accept: text/html"
expect "a form that there is not" 406 code not_acceptable
ask "$path/m?ttl_s=1"
expect "a parameter of PUT" 400 code bad_request .field ttl_s detail 'rows, cols, reduce'
ask "$path/m?ttl_s=1" -X DELETE
expect "a parameter of DELETE" 400 code bad_request .field ttl_s
ask "$path/cube?shape=1,1,1" -X PUT -H "$raw" --data-binary 1234
ask "$path/cube" -H "Accept: text/csv"
expect "CSV of rank 3" 406 code not_acceptable
for shape in 0,3,3 0,3 2,0,3 0; do
    ask "$path/none" -X DELETE
    ask "$path/none?shape=$shape" -X PUT -H "$raw" --data-binary ''
    expect "nothing of shape $shape" 201 .bytes 0
    ask "$path/none"
    expect "nothing of shape $shape, read" 200 Content-Length: 128
    ask "$path/none" -H 'Accept: application/json'
    cp "$scratch/got" "$scratch/none.json"
    ask "$path/none" -T "$scratch/none.json"
    expect "nothing of shape $shape, by JSON and back" 200 .shape "[$shape]"
done
ask "$path/none" -X PUT -H 'Content-Type: application/json' -d '{"a": [[1,2]], "shape": [2]}'
expect "a shape that the elements do not have" 422 code bad_shape .field shape

# --- Parts and reductions of a 2x2 matrix, a stack of two 2x3 matrices, a vector and a number
ask "$path/stack" -X PUT -d '{"dtype": "int64", "a": [[[1,2,3],[4,5,6]],[[7,8,9],[10,11,12]]]}'
ask "$path/row" -X PUT -d '{"a": [1,2,3]}'
{ npy_head '<f4' False '()' && echo 7 | "$FLOAT32" encode; } >"$scratch/one.npy"
ask "$path/one" -T "$scratch/one.npy"
while IFS='|' read -r query outcome; do
    ask "$path/$query" -H 'Accept: application/json'
    # shellcheck disable=SC2086
    expect "$query" $outcome
done <<'END'
m?rows=1:2|200 .a [[3,4]] Matmul-Shape: 1,*2
m?rows=0:1&cols=1:|200 .a [[2]]
m?cols=0:1|200 .a [[1],[3]] Matmul-Shape: 2,*1
m?rows=2:2|200 .a [] .shape [0,2] Matmul-Shape: 0,*2
m?cols=:0&rows=:|200 .a [[],[]] .shape [2,0]
m?reduce=sum,trace,min,max,max_abs,norm,finite|200 . {"reduce":{"sum":10,"trace":5,"min":1,"max":4,"max_abs":4,"norm":5.477225575051661,"finite":true},"shape":[2,2],"dtype":"float32"}
m?reduce=sum&rows=1:|200 . {"reduce":{"sum":7},"shape":[1,2],"dtype":"float32"}
m?reduce=min,sum&rows=:0|200 .reduce {"sum":0,"min":null}
stack?rows=1:&cols=:2|200 .a [[[4,5]],[[10,11]]] Matmul-Shape: 2,*1,*2
stack?cols=1:2|200 .a [[[2],[5]],[[8],[11]]]
stack?rows=:1|200 .a [[[1,2,3]],[[7,8,9]]]
stack?reduce=trace&cols=1:|200 .reduce {"trace":28}
row?cols=1:|200 .a [2,3] Matmul-Shape: 2
row?reduce=norm&cols=:2|200 .reduce {"norm":2.23606797749979}
one?reduce=max|200 . {"reduce":{"max":7},"shape":[],"dtype":"float32"}
m?rows=0:3|400 code bad_request .field rows
m?rows=2:1|400 code bad_request .field rows
m?cols=x|400 code bad_request .field cols
m?reduce=mean|400 code bad_request .field reduce
m?reply=none|400 code bad_request .field reply
row?rows=0:1|400 code bad_request .field rows
one?cols=0:1|400 code bad_request .field cols
m?reduce=trace&rows=1:|422 code bad_shape .field reduce
nothing?rows=x|400 code bad_request .field rows
END
for form in application/x-npy application/octet-stream; do
    for part in 'rows=1:' 'cols=1:'; do
        ask "$path/m?$part" -H "Accept: $form"
        expect "$part as $form" 200
        tail -c 8 "$scratch/got" | "$FLOAT32" decode
        length=$(header Content-Length "$scratch/head")
        ask "$path/m?$part" -H "Accept: $form" --head
        expect "HEAD of $part as $form" 200 Content-Length: "$length"
        ask "$path/m?$part" -H "Accept: $form" -H 'If-None-Match: *'
        expect "$part as $form, not modified" 304 Content-Length: "$length"
    done
done >"$scratch/parts"
same "parts in binary forms" '3 4 2 4 3 4 2 4' "$(paste -sd ' ' "$scratch/parts")"
ask "$path/m?rows=1:" -H 'Accept: text/csv'
same "a row as CSV" 3,4 "$(cat "$scratch/got")"
ask "$path/m?reduce=sum" -H 'Accept: application/x-npy'
expect "reductions as .npy" 400 code bad_request .field reduce
ask "$path/m?reduce=sum"
expect "reductions as JSON" 200 Content-Type: application/json .reduce '{"sum":10}'
ask "$path/m" -H 'Accept: application/json'
expect "the whole matrix after reading parts" 200 .a '[[1,2],[3,4]]'
for name in stack row one; do ask "$path/$name" -X DELETE; done

# A stack of 2⁶⁰ matrices without elements. Reductions must not loop over the stack.
while IFS='|' read -r shape figures outcome; do
    ask "$path/none?shape=2147483647,536870911,$shape" -X PUT -H "$raw" --data-binary ''
    ask "$path/none?reduce=$figures" --max-time 20
    expect "reductions of an empty matrix, $shape" 200 .reduce "$outcome"
    ask "/v1/transpose?a_from=none&reduce=$figures&timeout_ms=20000" -X POST
    expect "reductions of its transpose" 200 .reduce "$outcome"
done <<'END'
0,1|sum,norm,max_abs,min,max,finite|{"sum":0,"min":null,"max":null,"max_abs":0,"norm":0,"finite":true}
1,0|sum,min|{"sum":0,"min":null}
0,0|trace|{"trace":0}
END

# --- Large matrices, which the worker pool reads and writes
"$FLOAT32" fill 100000 1.5 >"$scratch/large.raw"
ask "$path/large?m=1000&n=100" -X PUT -H "$raw" --data-binary "@$scratch/large.raw"
ask "$path/large" -H 'Accept: application/json'
same "a large matrix as JSON" '1000 100 1.5' "$(jq -r '[(.a | length), (.a[999] | length), .a[999][99]] | join(" ")' "$scratch/got")"
cp "$scratch/got" "$scratch/large.json"
ask "$path/large?reduce=sum,max&rows=:998"
expect "reductions of a large matrix" 200 . '{"reduce":{"sum":149700,"max":1.5},"shape":[998,100],"dtype":"float32"}'
ask "$path/large?cols=1:" -H 'Accept: application/octet-stream'
"$FLOAT32" fill 99000 1.5 | cmp -s - "$scratch/got" || fail "all columns but one have wrong elements"
ask "$path/again" -X PUT -H 'Content-Type: application/json' --data-binary "@$scratch/large.json"
expect "a matrix read as JSON and stored again" 201 .bytes 400000
for name in cube none large again; do ask "$path/$name" -X DELETE; done
bytes_are 16 0 0

# The store keeps only the elements and frees the memory of other bytes of the body.
used=$(metric 'staging_bytes{state="used"}')
{ printf '%060000d\r\n--x\r\nContent-Disposition: form-data; name=a\r\n\r\n' 0 && cat "$scratch/m.npy" && printf '\r\n--x--\r\n'; } >"$scratch/form"
ask "$path/m" -X PUT -H 'Content-Type: multipart/form-data; boundary=x' --data-binary "@$scratch/form"
expect "a form with a long preamble" 200 .bytes 16
at_most "bytes of the budget beyond the elements" 16 $(($(metric 'staging_bytes{state="used"}') - used))
used=$(metric 'staging_bytes{state="used"}')
ask "$path/m" -T "$scratch/m.npy"
same "a .npy header uses no memory" "$used" "$(metric 'staging_bytes{state="used"}')"

# --- A rejected PUT does not change the old value.
while IFS='|' read -r what http code query header body; do
    ask "$path/m$query" -X PUT -H "$header" --data-binary "$body"
    expect "$what" "$http" code "$code"
done <<'END'
malformed JSON|400|bad_request||Content-Type: application/json|{"a": [[1
a wrong length|400|bad_request|?m=2&n=2|Content-Type: application/octet-stream|123
a cut .npy file|400|bad_request||Content-Type: application/x-npy|no
ragged CSV|400|bad_request||Content-Type: text/csv|1;2;,
no dimensions|400|bad_request||Content-Type: application/octet-stream|1234
bools past 1|400|bad_request|?m=2&n=2&dtype=bool|Content-Type: application/octet-stream|1234
dimensions and .npy|400|bad_request|?m=1|Content-Type: application/x-npy|1234
an unknown type|415|unsupported_media_type||Content-Type: text/html|1234
text, and nothing known|415|unsupported_media_type||Content-Type: text/plain|1234
no type, and nothing known|415|unsupported_media_type||Content-Type:|1234
a parameter of products|400|bad_request|?variant=naive|Content-Type: application/json|{"a": [[1]]}
the same in the body|400|bad_request||Content-Type: application/json|{"a": [[1]], "variant": "naive"}
a type that there is not|422|unsupported|?dtype=int7|Content-Type: application/json|{"a": [[1]]}
no life|400|bad_request|?ttl_s=0|Content-Type: application/json|{"a": [[1]]}
a life over a year|400|bad_request||Content-Type: application/json|{"a": [[1]], "ttl_s": 31536001}
END
for from in m 'uniform(1)'; do
    ask "$path/m" -X PUT -H 'Content-Type: application/json' -d "{\"a\": {\"from\": \"$from\"}}"
    expect "from $from" 400 code bad_request .field a.from detail 'PUT takes the elements themselves'
done
{ npy_head '|b1' False '(2, 2)' && printf '\2\0\377\1'; } >"$scratch/bool.npy"
ask "$path/m" -T "$scratch/bool.npy"
expect "a file of bools past 1" 400 code bad_request .field a detail 'neither 0 nor 1'
{ npy_head '<V2' False '(1, 1)' && printf 12; } >"$scratch/bfloat16.npy"
ask "$path/m" -T "$scratch/bfloat16.npy"
expect "a type that NumPy does not know" 422 code unsupported .field dtype detail 'add ?dtype=bfloat16'
ask "$path/m" -X PUT -H 'Transfer-Encoding: chunked' --data-binary "@$scratch/m.npy"
expect "a chunked body" 411 code length_required
ask "$path/m" -X PUT -H 'Content-Length:'
expect "PUT without Content-Length" 411 code length_required
{ head_of 100 | sed "s|/slow?|/m?|" && printf 'half'; } >"$scratch/broken"
talk broken 1000 LEAVE || :
ask "$path/m" -H 'Accept: application/json'
expect "the old value after rejected requests" 200 .a '[[1,2],[3,4]]'
bytes_are 16 0 0

# --- Names
long=$(printf '%0128d' 0)
for name in "$long" a.b_c-D ... ; do
    put "$name" 1
    expect "the name $name" 201
    ask "$path/$name" -X DELETE --path-as-is
    expect "the name $name, deleted" 204
done
for name in "${long}0" a%2Fb a/b a%20b a%2520b %C3%A9 . .. ''; do
    ask "$path/$name?m=1&n=1" -X PUT --path-as-is -H "$raw" --data-binary 1234
    expect "the name '$name'" 400 code bad_request .field name
    ask "$path/$name" --path-as-is
    expect "the name '$name', read" 400 code bad_request
done
ask "$path/%6D"
expect "an escaped name" 200
ask "$path/nothing"
expect "GET of an unknown name" 404 code no_such_matrix detail nothing
ask "$path/nothing" -X DELETE
expect "DELETE of an unknown name" 404 code no_such_matrix
for method in GET DELETE; do
    ask "$path/nothing" -X $method -H 'If-Match: *'
    expect "$method of an unknown name with If-Match" 404 code no_such_matrix
done
ask "$path/m" -X POST -d x
expect "POST" 405 code method_not_allowed Allow: 'GET, HEAD, PUT, DELETE, OPTIONS'

# --- Conditional requests
ask "$path/m" --head
tag=$(header ETag "$scratch/head")
put m 4 -H 'If-None-Match: *'
expect "If-None-Match: * for an existing matrix" 412 code precondition_failed .field If-None-Match
put m 4 -H "If-None-Match: $(printf '%05000d' 0), $tag"
expect "a list that is too long" 400 code bad_request .field If-None-Match detail 4095
for header in If-Match If-None-Match; do
    ask "$path/m" -H "$header: $(printf '%05000d' 0), $tag"
    expect "GET with a too long $header" 400 code bad_request .field $header
done
put m 4 -H 'If-None-Match: "a"' -H "If-None-Match: W/$tag"
expect "the current ETag in a second If-None-Match" 412 code precondition_failed
put m 4 -H 'If-Match: "old,*,tag"'
expect "If-Match with a star within a tag" 412 code precondition_failed .field If-Match
put new 4 -H 'If-None-Match: "old,*,tag"'
expect "If-None-Match with a star within a tag" 201
ask "$path/new" -X DELETE
# A star must be the only item of a list, and a tag needs quotes.
for header in If-Match If-None-Match; do
    for list in '*, "a"' "$tag, *" '*,*' '"a,*' 'a' 'W/a' 'w/"a"' '"a""b"' '"a" "b"' '"a b"'; do
        put m 4 -H "$header: $list"
        expect "$header: $list" 400 code bad_request .field "$header" detail 'ETags in quotes'
        ask "$path/m" -H "$header: $list"
        expect "GET, $header: $list" 400 code bad_request .field "$header"
    done
done
put m 4 -H 'If-Match: "other"'
expect "PUT with another ETag in If-Match" 412 code precondition_failed .field If-Match
put new 4 -H 'If-Match: *'
expect "If-Match: * for an unknown name" 412 code precondition_failed
ask "$path/m" -X DELETE -H 'If-Match: "other"'
expect "DELETE with another ETag in If-Match" 412 code precondition_failed
for tags in "$tag" "\"a\", W/$tag" ",\"a,b\",, $tag," ' * '; do
    ask "$path/m" -H "If-None-Match: $tags"
    expect "GET, If-None-Match: $tags" 304 ETag: "$tag" Vary: Accept Content-Length: 144
done
ask "$path/m" -H 'If-None-Match: "other"'
expect "GET, If-None-Match: other" 200
put m 4 -H "If-Match: \"a\", $tag"
expect "PUT with the current ETag in If-Match" 200
[ "$(header ETag "$scratch/head")" != "$tag" ] || fail "another value has the same ETag"
put m 4 -H "If-Match: $tag"
expect "PUT with an old ETag in If-Match" 412
put new 4 -H 'If-None-Match: *'
expect "If-None-Match: * for a new name" 201
put new 4 -H "If-None-Match: \"$(head -c 4092 /dev/zero | tr '\0' a)\"" -H 'If-None-Match: *'
expect "conditions that are too long to be read" 400 code bad_request .field If-None-Match

# Requests with two errors. The first error that the server finds decides the reply.
while IFS='|' read -r what http code query header length; do
    ask "$path/m?$query" -X PUT -H "$header" -H "$length" --data-binary x
    expect "$what" "$http" code "$code"
done <<'END'
too large, and a bad query|400|bad_request|tl=1|If-None-Match: *|Content-Length: 99999999999
too large, and a condition|412|precondition_failed||If-None-Match: *|Content-Length: 99999999999
too large|413|too_large||If-Match: *|Content-Length: 99999999999
no length, a bad query and a condition|411|length_required|tl=1|If-None-Match: *|Content-Length:
END

# Conditions are checked again after the upload, because the value may have changed meanwhile.
{ head_of 800 | sed 's|^Host|If-None-Match: *\r\nHost|' && head -c 800 /dev/zero; } >"$scratch/late"
"$TALK" 127.0.0.1 "${url##*:}" 400 1500 <"$scratch/late" >"$scratch/raw" &
late=$!
await 20 has_metric 'store_bytes{state="reserved"}' 800 || fail "no bytes are reserved"
put slow 2
wait "$late"
like "a conditional PUT that another PUT overtook" 'HTTP/1.1 412*' "$(head -n 1 "$scratch/raw")"
bytes_are 10 0 0

# --- The list of matrices
for page in '' '?limit=1' '?limit=1000&limit=1000' '?limit=2&after=m&after=m' '?after=slow' '?after=a'; do
    ask "$path$page"
    expect "the list$page" 200
    jq -c '[(.matrices | map(.name)), .next]' "$scratch/got"
done >"$scratch/pages"
same "pages" '[["m","new","slow"],null] [["m"],"m"] [["m","new","slow"],null] [["new","slow"],null] [[],null] [["m","new","slow"],null]' \
    "$(paste -sd ' ' "$scratch/pages")"
ask "$path"
expect "the list" 200 '[.bytes, .limit, (.matrices[0] | keys | length)]' '[10,33554432,8]'
for query in limit=0 limit=1001 limit=x limit= after=%2F after= page=2 'limit=2&limit=1' 'after=m&after=a'; do
    ask "$path?$query"
    expect "the list?$query" 400 code bad_request .field "${query%%=*}"
done
ask "$path" -X PUT -d x
expect "PUT of the list" 405

# --- Lifetimes
put m 4
expect "a matrix without a lifetime" 200 .expires null
put "m" 4 -G
ask "$path/m?dtype=uint8&m=1&n=4&ttl_s=31536000" -X PUT -H "$raw" --data-binary 1234
expect "a lifetime of a year" 200 '(.expires[0:19] + "Z" | fromdate) - (.created[0:19] + "Z" | fromdate)' 31536000
ask "$path/m?dtype=uint8&m=1&n=4&ttl_s=1" -X PUT -H "$raw" --data-binary 1234
expect "a lifetime of a second" 200
is_gone() { [ "$(status_of "$url$path/m")" = 404 ]; }
await 10 is_gone || fail "the matrix does not expire"
bytes_are 6 0 0

# --- Pages of other sites
put m 4 -H 'Origin: https://evil.example'
expect "PUT by another site" 403 code forbidden
ask "$path/new" -X DELETE -H 'Origin: https://evil.example'
expect "DELETE by another site" 403 code forbidden

# --- Counters. The log and the metrics show /v1/matrices/{name} instead of the name.
for row in 'put",result="precondition_failed 8' 'get",result="no_such_matrix 3' 'delete",result="no_such_matrix 3' 'list",result="failed 9'; do
    same "counted: $row" "${row##* }" "$(metric "store_requests_total{op=\"${row% *}\"}")"
done
same "matrices" 2 "$(metric store_matrices)"
[ "$(metric 'http_requests_total{route="/v1/matrices/{name}",code="412"}')" -ge 5 ] || fail "the route is not counted by its pattern"
same "names in the log" 0 "$(grep -c "matrices/[a-z0]" "$scratch/log")"
stop

# --- The memory budget is too small for the elements of a text.
start --backend cpu --memory-budget 8MiB --store-memory 8MiB
yes 1 | head -n 1500000 >"$scratch/long.csv"
ask "$path/m" -X PUT -H 'Content-Type: text/csv' --data-binary "@$scratch/long.csv"
expect "a text whose elements do not fit" 413 code too_large
ask "$path"
expect "the store after a rejected text" 200 .bytes 0

# --- The memory budget is too small for the text of the reply. HEAD and 304 need no text.
put wide 1000000
ask "$path/wide" -H 'Accept: application/json'
expect "a text that does not fit" 413 code too_large
ask "$path/wide" -H 'Accept: application/json' --head
expect "HEAD of a text that does not fit" 200 Matmul-Shape: '1, 1000000' Content-Type: application/json Content-Length: ''
ask "$path/wide" -H 'Accept: application/json' -H 'If-None-Match: *'
expect "a text that does not fit, not modified" 304 ETag: '"*"' Content-Length: ''
ask "$path/wide?reduce=sum" --head
expect "HEAD of a reduction" 200 Content-Length: ''
for condition in 'HEAD|A: b' 'GET|If-None-Match: *'; do
    printf '%s %s/wide HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: application/json\r\n%s\r\n\r\n' \
        "${condition%|*}" "$path" "${condition#*|}" >"$scratch/requests"
    talk requests 1000 || :
    last_reply
    like "$condition: its connection" close "$(header Connection "$scratch/head")"
    same "$condition: bytes behind its head" 0 "$(wc -c <"$scratch/got" | tr -d ' ')"
done
# A reply with a contiguous part of a matrix needs no memory for a copy.
put tall 5000000
ask "$path/tall" -X DELETE
ask "$path/tall?dtype=uint8&m=1000&n=5000" -X PUT -H "$raw" -H Expect: --data-binary "@$scratch/zeros"
expect "five of eight MiB" 201
ask "$path/tall?cols=1:"
expect "a copy that does not fit" 429 code busy
ask "$path/tall?cols=1:" --head
expect "HEAD of a copy that does not fit" 200 Content-Length: 4999128
ask "$path/tall?rows=1:"
expect "a contiguous part needs no copy" 200 Content-Length: 4995128
stop

# --- A text waits for memory for its elements, on the connection's thread or in the worker pool.
while read -r count budget; do
    start_held --backend cpu --memory-budget "$budget"
    prepare_held cpu 1 2000000 1
    hold_job first
    yes 1 | head -n "$count" >"$scratch/long.csv"
    : >"$scratch/status"
    curl -s -o "$scratch/got" -w '%{http_code}' -X PUT -H 'Content-Type: text/csv' --data-binary "@$scratch/long.csv" \
        "$url$path/m?dtype=float64" >"$scratch/status" &
    put=$!
    sleep 0.7
    same "$count numbers, before there is memory" '' "$(cat "$scratch/status")"
    release
    wait "$put"
    same "$count numbers, once there is" 201 "$(cat "$scratch/status")"
    finish_slow first "the product that came first" 200
    bytes_are $((8 * count)) 0 0
    stop
done <<'END'
32000 17280000
200000 18773334
END

# --- Limits of the store, exact to the byte
start --backend cpu --store-memory 1000 --store-count 3 --store-ttl-s 100
put a 1001
expect "one byte more than the store has" 507 code store_full '[.needed_bytes, .free_bytes, .limit]' '[1001,1000,1000]'
put a 1000
expect "as many bytes as the store has" 201 '(.expires[0:19] + "Z" | fromdate) - (.created[0:19] + "Z" | fromdate)' 100
put b 1
expect "a byte for a full store" 507 code store_full '[.needed_bytes, .free_bytes, .limit]' '[1,0,1000]'
put a 1000
expect "a replacement for which the full store has no bytes" 507
ask "$path/a" -X DELETE
bytes_are 0 0 0
for name in a b c; do put $name 1; done
put d 1
expect "a fourth matrix" 507 code store_full '[.needed_bytes, .free_bytes, .limit]' '[1,997,1000]' detail store-count
ask "$path/d?m=1&n=1" -X PUT -H "$raw" -H 'Expect: 100-continue' --data-binary 1234
expect "a fourth matrix with Expect: 100-continue" 507 code store_full
same "no 100 Continue was sent" 1 "$(grep -c '^HTTP' "$scratch/head")"
products=$(metric 'products_total{dtype="float32"}')
ask '/v1/matmul?m=1&k=1&n=1&a_from=identity()&b_from=identity()&out=d' -X POST
expect "a fourth matrix as the result of a product" 507 code store_full detail store-count
same "a product without space in the store is not computed" "$products" "$(metric 'products_total{dtype="float32"}')"
put c 2
expect "a new value for the third matrix" 200
for name in a b c; do ask "$path/$name" -X DELETE; done

# The size of a matrix that arrives as text is its decoded size. The size of a .npy file is the file's length.
ask "$path/a" -X PUT -H 'Content-Type: application/json' --data-binary "{\"dtype\": \"uint8\", \"a\": [$(yes 1 | head -n 1000 | paste -sd , -)]}"
expect "1000 bytes as JSON" 201 .bytes 1000
ask "$path/b" -X PUT -d '{"dtype": "uint8", "a": [1]}'
expect "one byte more" 507 .needed_bytes 1
ask "$path/a" -X DELETE
{ npy_head '|u1' False '(873,)' && head -c 873 /dev/zero; } >"$scratch/f.npy"
ask "$path/a" -T "$scratch/f.npy" -H 'Content-Type: application/x-npy'
expect "a .npy file of 1001 bytes" 507 .needed_bytes 1001
{ npy_head '|u1' False '(872,)' && head -c 872 /dev/zero; } >"$scratch/f.npy"
ask "$path/a" -T "$scratch/f.npy" -H 'Content-Type: application/x-npy'
expect "a .npy file of 1000 bytes" 201 .bytes 872
ask "$path/a" -X DELETE

# The store reserves memory when the head arrives, and releases it if the upload breaks off.
{ head_of 600 && head -c 100 /dev/zero; } >"$scratch/half"
"$TALK" 127.0.0.1 "${url##*:}" 200 700 <"$scratch/half" >"$scratch/raw" &
half=$!
await 20 has_metric 'store_bytes{state="reserved"}' 600 || fail "no bytes are reserved"
put a 401
expect "one byte more than an upload leaves" 507 '[.needed_bytes, .free_bytes]' '[401,400]'
hang_up
bytes_are 0 0 0
put a 401
expect "the bytes of an upload that broke off" 201
stop

# A stalled upload loses its memory long before the server closes the connection.
start --backend cpu --store-memory 1000 --timeout-ms 30000 --receive-timeout-ms 60000
"$TALK" 127.0.0.1 "${url##*:}" 200 60000 <"$scratch/half" >"$scratch/raw" &
half=$!
await 20 has_metric 'store_bytes{state="reserved"}' 600 || fail "no bytes are reserved"
put a 900
expect "an upload that has just begun" 507
checks=$((checks + 1))
puts_900() { put a 900 && [ "$status" = 201 ]; }
await 9 puts_900 || fail "a stalled upload keeps its bytes until it ends"
bytes_are 900 0 0
hang_up
stop

# --- A matrix is deleted while a client downloads it.
start --backend cpu --store-memory 32MiB --send-timeout-ms 600000
"$FLOAT32" fill 4000000 2.5 >"$scratch/large.raw"
ask "$path/large?m=2000&n=2000" -X PUT -H "$raw" -H Expect: --data-binary "@$scratch/large.raw"
curl -s --limit-rate 8M -H 'Accept: application/octet-stream' -o "$scratch/slowly" "$url$path/large" &
slowly=$!
await 20 test -s "$scratch/slowly" || fail "the download does not begin"
ask "$path/large" -X DELETE
expect "deleted while it is sent" 204
same "bytes of a deleted matrix in use" 16000000 "$(metric 'store_bytes{state="released"}')"
ask "$path/other?m=4400&n=1000" -X PUT -H "$raw" -H 'Content-Length: 17600000' --data-binary x
expect "an upload before the download ends" 507
wait "$slowly"
cmp -s "$scratch/slowly" "$scratch/large.raw" || fail "the client got other bytes than were stored"
bytes_are 0 0 0
stop

# --- API keys. Each key has its own matrices. Keys are told apart by name, or by the key itself.
umask 077
printf 'alice %s\nbob %s\n%s\n' "$alice" "$bob" "$carol" >"$scratch/keys"
start --backend cpu --store-memory 1000 --store-count 4 --api-key-file "$scratch/keys" --open-metrics
as() { key=$1 && shift && "$@" -H "Authorization: Bearer $key"; }
as "$alice" put w 500
expect "alice's half" 201
as "$alice" put x 1
expect "over alice's half" 507 '[.free_bytes, .limit]' '[0,500]' detail store-memory-per-key
# Requests for another key's matrix and for a missing matrix must get equal replies.
told() {
    as "$bob" ask "$@"
    cat "$scratch/head" "$scratch/got" && echo
}
for name in w nothing; do
    {
        told "$path/$name"
        told "$path/$name" --head
        told "$path/$name" -X DELETE
        told "/v1/matmul?a_from=$name&b_from=identity()" -X POST
    } >"$scratch/told"
    sed "s/'$name'//; s,matrices/$name,,; s/\"request_id[^,]*,//; /^X-Request-Id:/d; /^Date:/d; /^Content-Length:/d" \
        "$scratch/told" >"$scratch/answer.$name"
done
same "all statuses for another key's matrix" 404 "$(sed -n 's|^HTTP/1.1 \([0-9]*\).*|\1|p' "$scratch/answer.w" | sort -u)"
cmp -s "$scratch/answer.w" "$scratch/answer.nothing" || fail "another key's matrix and a missing matrix have different replies"
as "$bob" ask /v1/benchmark -d '{"a": {"from": "w"}, "n": 1}'
expect "another key's matrix in a benchmark" 404 code no_such_matrix
as "$alice" ask /v1/benchmark -d '{"a": {"from": "w"}, "n": 1}'
expect "alice's own in a benchmark" 200 '[.m, .k, .dtype]' '[1,500,"uint8"]'
as "$bob" put w 10
expect "bob's own" 201
as "$bob" put v 1
expect "half of all names" 201
as "$bob" put u 1
expect "over half of all names" 507 '[.free_bytes, .limit]' '[489,500]' detail store-count
as "$bob" ask "$path/v" -X DELETE
as "$bob" ask "$path"
expect "bob's list" 200 '[(.matrices | map(.bytes)), .bytes, .limit]' '[[10],10,500]'
as "$carol" put w 490
expect "as many bytes as are left" 201
as "$carol" put v 1
expect "the store is full of matrices of other keys" 507 '[.free_bytes, .limit]' '[10,500]' detail store-memory
ask "$path/w"
expect "without a key" 401
ask "$path/a%2Fb"
expect "without a key, an invalid name" 401

# The matrices belong to the name of a key, so they stay if the name gets a new key. A removed key loses them.
printf '# first\n%s\nalice %s\n' "$carol" "alice-has-a-new-key" >"$scratch/keys"
reload 'API keys in force: 2'
bytes_are 990 0 0
as alice-has-a-new-key ask "$path/w"
expect "alice's, by a new key" 200
as "$carol" ask "$path/w"
expect "carol's, on another line" 200
printf '%s\nbob %s\n' "$carol" "$bob" >"$scratch/keys"
reload 'API keys in force: 2'
bytes_are 490 0 0
as "$bob" ask "$path/w"
expect "bob's is not there again" 404
stop

# --- Pages of an allowed origin
start --backend cpu --cors-origin https://ours.example
ask "$path/m" -X OPTIONS -H 'Origin: https://ours.example' -H 'Access-Control-Request-Method: PUT'
expect "a preflight" 204 Access-Control-Allow-Methods: 'GET, HEAD, PUT, DELETE, OPTIONS' \
    Access-Control-Allow-Headers: '*If-Match, If-None-Match*'
put m 4 -H 'Origin: https://ours.example'
expect "PUT by an allowed site" 201 Access-Control-Expose-Headers: '*ETag, Location*'
stop

# --- The store is disabled.
start --backend cpu --store-memory 0
for name in '' /m; do
    ask "$path$name"
    expect "switched off: $path$name" 404 code not_found detail '--store-memory 0'
done
put m 4
expect "switched off: PUT" 404 code not_found
stop
finish
