#!/bin/sh
# Tests clients that openapi-python-client and datamodel-code-generator generate from /openapi.json. Skipped
# if PyPI cannot be reached.
# shellcheck source=tests/http/server.sh disable=SC2119
. "$(dirname "$0")/server.sh"

make_venv generators || exit 77
start --backend cpu --max-body 1MiB
PATH=$venv/bin:$PATH # openapi-python-client runs ruff, which is in this folder
checks=2
cd "$scratch"
openapi-python-client generate --path "$document" --meta none --output-path generated >report 2>&1 || fail "$(cat report)"
datamodel-codegen --input "$document" --input-file-type openapi --output-model-type pydantic_v2.BaseModel \
    --output models.py >report 2>&1 || fail "$(cat report)"
# openapi-python-client does not support the types .npy and CSV.
same "types of bodies that are left out" '' "$(sed -n 's/^Unsupported content type //p' report | grep -vx 'application/x-npy\|text/csv')"
PYTHONPATH=. python "$here/generators/use.py" "$url" || fail "the generated code"
stop
finish
