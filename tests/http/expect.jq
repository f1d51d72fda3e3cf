# Checks of JSON that `expect` in server.sh has deferred. An input line has WHAT, EXPECTED and the reply, separated by
# tabs. The result is a sentence if the check fails.

def found(filter):
    input / "\t" |
    {what: .[0], expected: .[1], got: (.[2] | try ([fromjson | filter | strings // tojson] | join(" ")) catch "jq says: \(.)")};

def failure: "\(.what): expected '\(.expected)', got '\(.got)'";

# same(FILTER): the filter finds EXPECTED. Several values are separated by a space.
def same(filter): found(filter) | select(.got != .expected) | failure;

# like(FILTER): the value matches EXPECTED, in which * stands for any text.
def like(filter):
    found(filter) | ("\\Q" + (.expected / "*" | join("\\E.*\\Q")) + "\\E") as $regex | select(.got | test($regex) | not) | failure;

# The code of a problem.
def code: .code // "none";

# server.sh appends `, same(FILTER)` or `, like(FILTER)` for each check.
empty
