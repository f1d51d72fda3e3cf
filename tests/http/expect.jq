# Runs the checks that server.sh has saved. An input line: name, expected value and reply, separated by tabs.

def found(filter):
    input / "\t" |
    {what: .[0], expected: .[1], got: (.[2] | try ([fromjson | filter | strings // tojson] | join(" ")) catch "jq says: \(.)")};

def failure: "\(.what): expected '\(.expected)', got '\(.got)'";

# same(FILTER): the values that the filter finds, joined by spaces, must equal the expected text.
def same(filter): found(filter) | select(.got != .expected) | failure;

# like(FILTER): the value must match the expected text, in which * stands for any text.
def like(filter):
    found(filter) | ("\\Q" + (.expected / "*" | join("\\E.*\\Q")) + "\\E") as $regex | select(.got | test($regex) | not) | failure;

def code: .code // "none";

# server.sh appends `, same(FILTER)` or `, like(FILTER)` for each check. The word `empty` starts this list.
empty
