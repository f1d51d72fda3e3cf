#!/bin/sh
# PageRank by curl. The matrix is stored once. Each step is one product. Its result replaces the stored
# vector, and curl gets only one number.
#   pagerank.sh [URL]    (default: http://127.0.0.1:8080)
set -eu
url=${1:-http://127.0.0.1:8080}

# call PATH ARGUMENT…: sends a request. If the service returns an error, prints it and ends the script.
call() {
    path=$1
    shift
    curl -sS --fail-with-body "$url$path" "$@"
}

# Each input line is a page and the pages that it links to. A page divides 85% of its rank equally among its
# links, and 15% among all pages. The element at row i, column j is the fraction that page j gives to page i.
awk '
    { count[$1] = NF - 1; for (at = 2; at <= NF; at++) links[$at, $1] = 1 }
    END {
        for (i = 1; i <= NR; i++)
            for (j = 1; j <= NR; j++)
                printf "%.9g%s", 0.15 / NR + (links[i, j] ? 0.85 / count[j] : 0), j < NR ? "," : "\n"
    }' <<'END' | call /v1/matrices/links -X PUT -H 'Content-Type: text/csv' --data-binary @- -o /dev/null
1 2 3
2 3
3 1
4 1 3 6
5 4 6
6 5 4
END

printf '1\n0\n0\n0\n0\n0\n' | call /v1/matrices/rank -X PUT -H 'Content-Type: text/csv' --data-binary @- -o /dev/null
steps=0 largest=0 before=
while [ "$largest" != "$before" ] && [ $steps -lt 100 ]; do
    before=$largest
    reply=$(call '/v1/matmul?a_from=links&b_from=rank&out=rank&reduce=max' -X POST)
    largest=$(echo "$reply" | sed 's/.*"max": \([0-9.]\{1,7\}\).*/\1/')
    steps=$((steps + 1))
done

echo "after $steps steps:"
call /v1/matrices/rank -H 'Accept: text/csv' | awk '{ printf "page %d %.4f\n", NR, $1 }' | sort -rk 3
call /v1/matrices/links -X DELETE
call /v1/matrices/rank -X DELETE
