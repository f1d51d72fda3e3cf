# What every problem is to have (RFC 9457, and the project's own members), given the reply's $status and
# request $id: one line for each thing missing.
def expect(condition; $what): if condition then empty else "a problem: expected \($what), got \(tojson)" end;

expect(.type | type == "string" and . != ""; "type, a text"),
expect(.title | type == "string" and . != ""; "title, a text"),
expect(.detail | type == "string" and length > 10; "detail, a sentence"),
expect(.code | type == "string" and test("^[a-z_]+$"); "code, a name"),
expect(.status | tostring == $status; "status \($status), as in the status line"),
expect(.request_id == $id; "request_id \($id), as in X-Request-Id"),
expect((.line == null and .column == null) or (.line >= 1 and .column >= 1); "line and column together, from 1")
