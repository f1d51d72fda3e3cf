# Whether a reply ($got) holds all that a case names ($expected): one line for each difference. Objects
# may have more members than named, arrays not more elements; "*" stands for any value; `detail` is to
# contain the text, or all of several. Numbers in `c` are float32 and compare as such.

# The float32 nearest to a number within float32's range.
def float32:
  if type != "number" or . == 0 then .
  else
    . as $x
    | ([($x | frexp | .[1]), -125] | max) as $exponent
    | (1 | ldexp(.; $exponent - 24)) as $unit
    | (($x / $unit) | nearbyint) * $unit
  end;

def differences($path; $expected; $got):
  if $expected == "*" then
    if $got == null then "\($path): expected any value, got none" else empty end
  elif $path | test("[.]detail$") then
    [$expected] | flatten | .[] | select(. as $part | ($got // "") | tostring | contains($part) | not)
    | "\($path): expected it to contain \(tojson), got \($got | tojson)"
  elif ($expected | type) == "object" and ($got | type) == "object" then
    $expected | keys_unsorted[] | differences("\($path).\(.)"; $expected[.]; $got[.])
  elif ($expected | type) == "array" and ($got | type) == "array" and ($expected | length) == ($got | length) then
    range($expected | length) | differences("\($path)[\(.)]"; $expected[.]; $got[.])
  elif ($path | startswith(".c[")) and ($expected | float32) == ($got | float32) then empty
  elif $expected == $got then empty
  else "\($path): expected \($expected | tojson), got \($got | tojson)"
  end;

if ($got | length) != 1 then "expected one JSON value, got \($got | length)"
else differences(""; $expected[0]; $got[0])
end
