#!/bin/sh
# Tests the Open Inference Protocol: its paths, its errors, and infer requests by oip.py.
# Ends with status 77 without NumPy.
# shellcheck source=tests/http/server.sh disable=SC2119
. "$(dirname "$0")/server.sh"

find_numpy || {
    echo "no python3 here has NumPy: nothing is tested"
    exit 77
}

start --cors-origin '*'

# Each row: method|path|status|arguments of `expect`
while IFS='|' read -r method path status_wanted outcome; do
    ask "/v2$path" -X "$method"
    # shellcheck disable=SC2086
    expect "$method /v2$path" "$status_wanted" Content-Type: application/json X-Request-Id: '*' $outcome
done <<'END'
GET||200|.name matmuld .extensions[0] binary_tensor_data
GET|/health/live|200|.live true
GET|/health/ready|200|.ready true
GET|/models|200|.models[0] matmul
GET|/models/matmul|200|.inputs[0].datatype FP32 .platform matmuld .versions[0] 1
GET|/models/matmul.INT8/versions/1|200|.inputs[1].datatype INT8 .outputs[0].datatype INT32
GET|/models/matmul.tiled_16.FP64/config|200|.input[0].data_type TYPE_FP64 .max_batch_size 0
GET|/models/matmul/ready|200|.ready true .name matmul
GET|/models/matmul/versions/1/stats|200|.model_stats[0].name matmul .model_stats[0].version 1
GET|/models/stats|200|.model_stats[0].name matmul
POST|/repository/index|200|.[0].name matmul .[0].state READY
GET|/models/none|404|.error?!=null true
GET|/models/matmul/versions/2|404|.error?!=null true
GET|/models/matmul.tiled_8.FP64|404|.error?!=null true
GET|/models/matmul.auto|404|.error?!=null true
GET|/models/matmul/infer/x|404|.error?!=null true
GET|/none|404|.error?!=null true
GET|/models/matmul/infer|405|.error?!=null true Allow: POST,*
POST|/models/matmul|405|.error?!=null true Allow: GET,*
GET|/repository/index|405|.error?!=null true
POST|/models/matmul/infer|411|.error?!=null true
END

inputs='"inputs":[{"name":"A","shape":[1,1],"datatype":"FP32","data":[2]},{"name":"B","shape":[1,1],"datatype":"FP32","data":[3]}]'
ask /v2/models/matmul/versions/1/infer -d "{$inputs,\"id\":\"\"}" -H Expect:
expect "an empty id" 200 .outputs[0].data '[6]' .id null Inference-Header-Content-Length: ''
ask /v2/models/matmul/infer -d "{$inputs,\"id\":\"é\",\"model_name\":\"x\"}" -H 'Accept: text/html' -H 'Content-Type: x/y'
expect "an id, and KServe's member" 200 .id é
ask /v2/models/matmul/infer -d "{$inputs}" -H Origin:http://other -H Inference-Header-Content-Length:5000
expect "a length past the body" 400 Access-Control-Expose-Headers: '*Inference-Header-Content-Length*' '.error|test("5000")' true
ask /v2/models/matmul/infer -d "{$inputs}" -H Inference-Header-Content-Length:1x
expect "a length that is no number" 400 '.error|test("1x")' true
ask /v2/models/matmul/infer -d "{$inputs}" -H Content-Encoding:br
expect "an unknown coding" 415 .error?!=null true
ask /v2/models/none/infer -d "{$inputs}"
expect "no such model" 404 .error?!=null true
ask /v2/models/matmul/infer -d "{$inputs,\"parameters\":{\"variant\":\"none\"}}"
expect "no such variant" 422 .error?!=null true
ask /v2/models/matmul.naive/infer -d "{$inputs,\"parameters\":{\"verify\":true}}"
expect "a check" 200 .parameters.verify_passed true .parameters.variant naive Matmul-Variant: naive
edge() { printf '{"name":"%s","shape":[600,600],"datatype":"FP32","parameters":{"from":"uniform(1)"}}' "$1"; }
ask /v2/models/matmul.naive/infer -d "{\"inputs\":[$(edge A),$(edge B)],\"parameters\":{\"timeout\":1500}}"
expect "a timeout" 504 '.error|test("deadline")' true
ask /v2/models/matmul.naive/infer -d "{$inputs,\"parameters\":{\"timeout\":0}}"
expect "a timeout of 0" 200 .outputs[0].data '[6]'
ask /v2/models/matmul/infer -X OPTIONS -H Origin:http://other
expect "a preflight" 204 Access-Control-Allow-Headers: '*Inference-Header-Content-Length*'
await 10 has_logged '"route":"/v2/models/{name}/infer"' || fail "the log has no pattern of the path"
same "the metrics' label" 1 "$(curl -s "$url/metrics" | grep -c '^matmuld_http_requests_total{.*route="/v2/models/{name}/infer".*code="411"')"

checks=$((checks + 1))
"$python" "$here/oip.py" "$url" || fail "oip.py"
stop

start --max-body 100 --store-memory 0
ask /v2/models/matmul/infer -d "{$inputs}"
expect "a long body" 413 .error?!=null true
stop

start_with_key a-long-enough-key-0123456789abcdef --allowed-hosts matmul.example
ask /v2/models
expect "without a key" 401 .error?!=null true WWW-Authenticate: '*'
ask /v2/health/ready -H Host:other.example
expect "health takes no key and any host" 200 .ready true
ask /v2/models -H Host:other.example -H 'Authorization: Bearer a-long-enough-key-0123456789abcdef'
expect "another host" 403 .error?!=null true
stop
finish
