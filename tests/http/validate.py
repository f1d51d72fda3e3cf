"""Checks an OpenAPI document, and the replies of a server against the document.

validate.py DOCUMENT checks the references, and that examples and defaults conform to their schemas.
validate.py DOCUMENT EXCHANGES [DOCUMENT EXCHANGES]… checks the replies in folders. NAME.head is the status
line and headers of a reply, NAME.body its body, and NAME.request the request in the format of
golden/README.md.

Prints the first error and ends with status 1.
"""

import functools
import json
import sys
import urllib.parse
from decimal import Decimal
from pathlib import Path

from jsonschema import Draft202012Validator

# Reply headers that the document need not list: HTTP's own, and those for CORS, which tests/http/cors.sh
# checks
UNDOCUMENTED = {"date", "server", "content-length", "content-type", "connection", "transfer-encoding", "vary"}
OF_CORS = "access-control-"


class Fault(Exception):
    pass


def expect(condition, what):
    if not condition:
        raise Fault(what)


class Document:
    def __init__(self, text):
        self.root = json.loads(text)
        self.validators = {}

    def follow(self, node):
        """Returns the object that a $ref names. Returns any other node unchanged."""
        while isinstance(node, dict) and "$ref" in node:
            top, *keys = node["$ref"].split("/")
            expect(top == "#", f"{node}: only references within the document are expected")
            node = self.root
            for key in keys:
                node = node[key.replace("~1", "/").replace("~0", "~")]
        return node

    def conform(self, value, schema, what):
        validator = self.validators.get(id(schema))
        if validator is None:
            Draft202012Validator.check_schema(schema)
            # References in a schema start at the document's root, so the validator needs the components.
            validator = Draft202012Validator({"allOf": [schema], "components": self.root["components"]})
            self.validators[id(schema)] = validator
        for error in validator.iter_errors(value):
            raise Fault(f"{what}: at {list(error.absolute_path)}: {error.message[:500]}")

    def conform_text(self, text, schema, what):
        """Converts a header or a parameter from text to its schema's type."""
        kind = self.follow(schema).get("type", "")
        if "integer" in kind and text.removeprefix("-").isdecimal():
            text = int(text)
        elif kind == "number":
            text = float(text)
        self.conform(text, schema, what)


def exact(text):
    """Returns a float if it is exact, or else a Decimal, so large integers are compared exactly."""
    number = float(text)
    return number if Decimal(number) == Decimal(text) else Decimal(text)


def check_document(document, node, path):
    """Returns all examples and defaults below this node, with their schemas."""
    if isinstance(node, dict):
        document.follow(node)
        schema = node.get("schema", {})
        if "example" in node:
            document.conform(node["example"], schema, f"{path}/example")
        for name, example in node.get("examples", {}).items() if schema else ():
            document.conform(document.follow(example)["value"], schema, f"{path}/examples/{name}")
        if "default" in node and not isinstance(node["default"], dict):
            document.conform(node["default"], node, f"{path}/default")
    children = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, child in children:
        if key not in ("example", "examples"):
            check_document(document, child, f"{path}/{key}")


def find_response(document, method, path, status):
    """Returns the documented response and the operation. HEAD is documented as GET."""
    any_path = document.root["x-any-path"]
    # Paths with a parameter match a template by the text before `{` and after `}`; the longest template counts.
    paths = document.root["paths"]
    parts = {known: (known.partition("{")[0], known.partition("}")[2]) for known in paths if "{" in known}
    templates = [known for known, (start, end) in parts.items() if path.startswith(start) and path.endswith(end)]
    item = paths.get(path) or (paths[max(templates, key=len)] if templates else {})
    # Methods are case-sensitive, so `post` is unknown.
    operation = item.get("get" if method == "HEAD" else method.lower()) if method.isupper() else None
    if operation is None and path.startswith("/v2") and method != "OPTIONS":
        return document.root["components"]["responses"]["InferError"], {}
    if operation is None:
        operation = any_path["options"] if method == "OPTIONS" else any_path
    response = operation["responses"].get(status, operation["responses"].get("default"))
    expect(response is not None, f"status {status} is not documented")
    return document.follow(response), operation


def read_head(path):
    lines = path.read_text().splitlines()
    # Interim replies such as 100 Continue come first, so only the last head counts.
    lines = lines[max(index for index, line in enumerate(lines) if line.startswith("HTTP/")) :]
    headers = {}
    for line in filter(None, lines[1:]):
        name, _, value = line.partition(":")
        expect(name.lower() not in headers, f"the header {name} stands twice")
        headers[name.lower()] = value.strip()
    return lines[0].split()[1], headers


def check_headers(document, response, headers):
    documented = {name.lower(): document.follow(header) for name, header in response.get("headers", {}).items()}
    for name, header in documented.items():
        expect(name in headers or not header.get("required"), f"the header {name} is missing")
        if name in headers:
            document.conform_text(headers[name], header["schema"], f"the header {name}")
    for name in headers.keys() - documented.keys() - UNDOCUMENTED:
        expect(name.startswith(OF_CORS), f"the header {name} is not documented")


def check_body(document, method, response, headers, body):
    media_type = headers.get("content-type")
    content = response.get("content", {})
    if not content:
        expect(not body and media_type is None, f"a body is not documented, but there is one ({media_type})")
        return
    expect(media_type in content, f"the type {media_type} is not documented")
    if method != "HEAD" and media_type.endswith("json"):
        document.conform(json.loads(body), content[media_type]["schema"], "the body")


def check_request(document, operation, target, head, body):
    """Checks that the document has all parameters and JSON members of a successful request."""
    known = {one["name"]: one for one in map(document.follow, operation.get("parameters", []))}
    for name, value in urllib.parse.parse_qsl(urllib.parse.urlsplit(target).query, keep_blank_values=True):
        expect(name in known, f"the request's parameter {name} is not documented")
        document.conform_text(value, known[name]["schema"], f"the request's parameter {name}")
    if body.startswith("{") and "octet-stream" not in head and "inference-header" not in head.lower():
        schema = operation["requestBody"]["content"]["application/json"]["schema"]
        document.conform(json.loads(body, parse_float=exact), schema, "the request's body")


def check_exchange(document, head):
    text = head.with_suffix(".request").read_bytes().decode("utf-8", "replace")
    method, target = text.split(maxsplit=2)[:2]
    request_head, _, request_body = text.partition("\n\n")
    status, headers = read_head(head)
    response, operation = find_response(document, method, urllib.parse.urlsplit(target).path, status)
    check_headers(document, response, headers)
    check_body(document, method, response, headers, head.with_suffix(".body").read_bytes())
    if status == "200" and method == "POST":
        check_request(document, operation, target, request_head, request_body)


def main(path, *rest):
    documents = functools.cache(Document)  # most documents are equal, so results are cached
    count = 0
    what = path
    try:
        if not rest:
            document = documents(Path(path).read_text())
            check_document(document, document.root, "")
        for path, exchanges in zip(*[iter([path, *rest])] * 2):
            document = documents(Path(path).read_text())
            heads = sorted(Path(exchanges).glob("*.head"))
            expect(heads, f"{exchanges} has no exchange")
            for head in heads:
                what = head.stem
                check_exchange(document, head)
            count += len(heads)
    except Fault as fault:
        print(f"against the document: {what}: {fault}")
        return 1
    print(f"{count} exchanges conform to the document" if rest else "the document conforms to itself")
    return 0


sys.exit(main(*sys.argv[1:]))
