# The checks of JSON that `expect` in server.sh has put off. Each reads its own line of input, which has WHAT, EXPECTED and the
# reply, with tabs between them, and returns a sentence if the check fails.

def found(filter):
    input / "\t" |
    {what: .[0], expected: .[1], got: (.[2] | try ([fromjson | filter | strings // tojson] | join(" ")) catch "jq says: \(.)")};

def failure: "\(.what): expected '\(.expected)', got '\(.got)'";

# The filter finds EXPECTED. If it finds several values, EXPECTED has a space between them.
def same(filter): found(filter) | select(.got != .expected) | failure;

# What the filter finds contains EXPECTED, in which * stands for any text.
def like(filter):
    found(filter) | ("\\Q" + (.expected / "*" | join("\\E.*\\Q")) + "\\E") as $regex | select(.got | test($regex) | not) | failure;

# The code of a problem.
def code: .code // "none";

# server.sh appends `, same(FILTER)` or `, like(FILTER)` for each check.
empty
