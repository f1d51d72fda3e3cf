# Judges a reply's JSON ($got), one line for each fault: whether it holds all that the case names
# ($expected), and what every problem, product or transposition ($kind) is to have, given the reply's $status and
# $head.

# The value of a header; null where it is absent.
def header($name):
  [$head | split("\n")[] | capture("^(?<name>[^:]+): *(?<value>.*)$") | select(.name | ascii_downcase == $name).value][0];

# The float32 nearest to a number within float32's range.
def float32:
  if type != "number" or . == 0 then .
  else
    . as $x
    | ([($x | frexp | .[1]), -125] | max) as $exponent
    | (1 | ldexp(.; $exponent - 24)) as $unit
    | (($x / $unit) | nearbyint) * $unit
  end;

# Objects may have more members than named, arrays not more elements; "*" stands for any value; `detail`
# is to contain the text, or all of several. Numbers in a `c` of float32 compare as such.
def differences($path; $rounds; $expected; $got):
  if $expected == "*" then
    if $got == null then "\($path): expected any value, got none" else empty end
  elif $path | test("[.]detail$") then
    [$expected] | flatten | .[] | select(. as $part | ($got // "") | tostring | contains($part) | not)
    | "\($path): expected it to contain \(tojson), got \($got | tojson)"
  elif ($expected | type) == "object" and ($got | type) == "object" then
    $expected | keys_unsorted[] | differences("\($path).\(.)"; $rounds; $expected[.]; $got[.])
  elif ($expected | type) == "array" and ($got | type) == "array" and ($expected | length) == ($got | length) then
    range($expected | length) | differences("\($path)[\(.)]"; $rounds; $expected[.]; $got[.])
  elif ($path | startswith(".c[")) and $rounds and ($expected | float32) == ($got | float32) then empty
  elif $expected == $got then empty
  else "\($path): expected \($expected | tojson), got \($got | tojson)"
  end;

def expect(condition; $what): if condition then empty else "expected \($what) in the \($kind), got \(del(.c) | tojson)" end;

# RFC 9457, and the project's own members.
def problem:
  expect(.type | type == "string" and . != ""; "type, a text"),
  expect(.title | type == "string" and . != ""; "title, a text"),
  expect(.detail | type == "string" and length > 10; "detail, a sentence"),
  expect(.code | type == "string" and test("^[a-z_]+$"); "code, a name"),
  expect(.status | tostring == $status; "status \($status), as in the status line"),
  expect(.request_id == header("x-request-id"); "request_id \(header("x-request-id")), as in X-Request-Id"),
  expect((.line == null and .column == null) or (.line >= 1 and .column >= 1); "line and column together, from 1");

def spans: ["receive", "decode", "queue", "upload", "kernel", "download", "encode", "total"];

# Its rate has this name and not the other.
def product($rate; $other):
  expect((.shape | map(tostring) | join(", ")) == header("matmul-shape"); "shape \(header("matmul-shape")), as in Matmul-Shape"),
  expect((.c | length) == .shape[0]; "as many rows of c as shape says"),
  expect(.shape[1] as $columns | .c | all(length == $columns); "rows of c as long as shape says"),
  expect(.dtype == header("matmul-dtype"); "dtype \(header("matmul-dtype")), as in Matmul-Dtype"),
  expect(.variant == header("matmul-variant") and .variant != "auto"; "variant \(header("matmul-variant")), as in Matmul-Variant, and not auto"),
  expect(.backend == header("matmul-backend") and .backend != "auto"; "backend \(header("matmul-backend")), as in Matmul-Backend, and not auto"),
  expect(.device == header("matmul-device"); "device \(header("matmul-device")), as in Matmul-Device"),
  expect(.[$rate] | type == "number" and . >= 0; "\($rate), a number"),
  expect(has($other) | not; "no \($other)"),
  expect(.batched | type == "number" and . >= 1; "batched, a count"),
  expect((.timing | keys) == (spans | map(. + "_ms") | sort); "the spans \(spans) in timing"),
  expect(.timing | all(.[]; type == "number" and . >= 0); "milliseconds in timing"),
  expect(.timing | .total_ms * 1.000001 + 0.000001 >= .queue_ms + .kernel_ms; "a total of at least queue and kernel"),
  expect(.timing.kernel_ms as $json | (header("server-timing") | capture("kernel;dur=(?<ms>[0-9.]+)").ms | tonumber) as $header
         | ($json - $header) | fabs < 0.001; "the kernel's time as in Server-Timing \(header("server-timing"))");

if ($got | length) != 1 then "expected one JSON value, got \($got | length)"
else
  ($expected[] | differences(""; $got[0].dtype? == "float32"; .; $got[0])),
  ($got[0] | if $kind == "problem" then problem
             elif $kind == "product" then product("gflops"; "gigabytes_per_second")
             elif $kind == "transposition" then product("gigabytes_per_second"; "gflops")
             else empty end)
end
