"""Holds an OpenAPI document, and the replies of a server, against the document.

Usage: validate.py DOCUMENT                     the document itself
       validate.py DOCUMENT REQUESTS EXCHANGES  every NAME.head (the reply's status line and headers) in the
                                                folder EXCHANGES, with its NAME.body, as the reply to
                                                NAME.request in the folder REQUESTS (golden/README.md)

Ends with 1 at the first fault, which it prints, and with 77 where the package jsonschema is missing.
"""

import json
import re
import sys
import urllib.parse
from decimal import Decimal
from pathlib import Path

try:
    from jsonschema import Draft202012Validator, SchemaError
except ImportError:
    print("Python's package jsonschema is missing")
    sys.exit(77)

METHODS = {"get", "put", "post", "delete", "options", "head", "patch", "trace"}

# What HTTP itself gives a reply; OpenAPI leaves these out.
OF_HTTP = {"date", "content-length", "content-type", "connection", "transfer-encoding"}

# What every reply can have for browsers; tests/http/cors.sh judges it.
OF_CORS = {
    "vary",
    "access-control-allow-headers",
    "access-control-allow-methods",
    "access-control-allow-origin",
    "access-control-expose-headers",
    "access-control-max-age",
}


class Fault(Exception):
    pass


class Document:
    def __init__(self, path):
        self.root = json.loads(Path(path).read_text())
        self.validators = {}

    def follow(self, node):
        """The object that a reference stands for; anything else is itself."""
        while isinstance(node, dict) and "$ref" in node:
            node = self.lookup(node["$ref"])
        return node

    def lookup(self, reference):
        node = self.root
        if not reference.startswith("#/"):
            raise Fault(f"$ref {reference}: only references within the document are expected")
        for key in reference[2:].split("/"):
            key = key.replace("~1", "/").replace("~0", "~")
            if not isinstance(node, dict) or key not in node:
                raise Fault(f"$ref {reference}: there is no '{key}'")
            node = node[key]
        return node

    def conform(self, value, schema, what):
        validator = self.validators.get(id(schema))
        if validator is None:
            # References begin at the top, so that the components have to stand there.
            validator = Draft202012Validator({"allOf": [schema], "components": self.root["components"]})
            self.validators[id(schema)] = validator
        for error in validator.iter_errors(value):
            where = "/".join(str(part) for part in error.absolute_path)
            raise Fault(f"{what}: at '/{where}': {error.message[:500]}")

    def conform_text(self, text, schema, what):
        """A header or a parameter, which is text, as its schema's type."""
        self.conform(self.typed(text, self.type_of(schema)), schema, what)

    def type_of(self, schema):
        return self.follow(schema).get("type") if "type" not in schema else schema["type"]

    @staticmethod
    def typed(text, kind):
        if kind == "integer" and re.fullmatch("-?[0-9]+", text):
            return int(text)
        return text


def exact(text):
    """A number that is compared as it stands, where the double nearest to it is another one."""
    number = float(text)
    return number if Decimal(number) == Decimal(text) else Decimal(text)


# --- the document


def walk(node, path=""):
    """Every object of the document, with the path to it."""
    if isinstance(node, dict):
        yield path, node
    children = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, child in children:
        if key not in ("example", "examples"):
            yield from walk(child, f"{path}/{key}")


def expect(condition, what):
    if not condition:
        raise Fault(what)


def check_examples(document, path, node):
    """The examples of a media type, a parameter or a header, and a schema's default."""
    schema = node.get("schema", {})
    if "example" in node:
        document.conform(node["example"], schema, f"{path}/example")
    for name, example in node.get("examples", {}).items():
        document.conform(document.follow(example)["value"], schema, f"{path}/examples/{name}")
    if "default" in schema:
        document.conform(schema["default"], schema, f"{path}/schema/default")


def check_operation(document, path, template, item, operation):
    for key in ("operationId", "summary", "responses"):
        expect(operation.get(key), f"{path}: it has no {key}")
    for status, response in operation["responses"].items():
        expect(re.fullmatch("[1-5][0-9][0-9]", status), f"{path}: '{status}' is no status")
        expect("description" in document.follow(response), f"{path}/{status}: it has no description")
    parameters = [document.follow(one) for one in item.get("parameters", []) + operation.get("parameters", [])]
    for one in parameters:
        expect(one.get("in") in ("query", "header", "path", "cookie"), f"{path}: parameter {one.get('name')}: in")
        expect("schema" in one, f"{path}: parameter {one.get('name')} has no schema")
    names = [(one["name"], one["in"]) for one in parameters]
    expect(len(names) == len(set(names)), f"{path}: a parameter stands twice")
    in_path = {name for name, place in names if place == "path"}
    expect(in_path == set(re.findall("{([^}]*)}", template)), f"{path}: its parameters and those of the path differ")


def check_document(document):
    root = document.root
    expect(re.fullmatch(r"3\.1\.[0-9]+", root["openapi"]), "openapi: expected 3.1")
    expect(root["info"]["title"] and re.fullmatch("[0-9]+[.][0-9]+[.][0-9]+", root["info"]["version"]),
           "info: expected a title and a version")
    for path, node in walk(root):
        if "$ref" in node:
            document.lookup(node["$ref"])
        if "schema" in node:
            Draft202012Validator.check_schema(node["schema"])
            check_examples(document, path, node)
    for name, schema in root["components"]["schemas"].items():
        Draft202012Validator.check_schema(schema)
        for member, value in schema.get("properties", {}).items():
            if isinstance(value, dict) and "default" in value:
                document.conform(value["default"], value, f"schemas/{name}/{member}/default")
    used = {node["$ref"] for _, node in walk(root) if "$ref" in node}
    for requirement in [one for _, node in walk(root) for one in node.get("security", [])]:
        for scheme in requirement:
            document.lookup(f"#/components/securitySchemes/{scheme}")
            used.add(f"#/components/securitySchemes/{scheme}")
    for kind, components in root["components"].items():
        for name in components:
            expect(f"#/components/{kind}/{name}" in used, f"{kind}/{name} is not used")
    identifiers = []
    for template, item in root["paths"].items():
        expect(template.startswith("/"), f"paths: '{template}' does not begin with /")
        for method in METHODS & item.keys():
            check_operation(document, f"{method} {template}", template, item, item[method])
            identifiers.append(item[method]["operationId"])
    expect(identifiers and len(identifiers) == len(set(identifiers)), f"an operationId stands twice: {identifiers}")
    print(f"{len(identifiers)} operations")


# --- the exchanges


def find_response(document, method, path, status):
    """The response that is documented for it, and the operation; HEAD is answered as GET is."""
    any_path = document.root["x-any-path"]
    item = document.root["paths"].get(path, {})
    # Methods are told apart by case: post is none.
    operation = item.get("get" if method == "HEAD" else method.lower()) if method.isupper() else None
    if operation is None:
        operation = any_path["options"] if method == "OPTIONS" else any_path
    response = operation["responses"].get(status)
    expect(response is not None, f"status {status} is not documented")
    return document.follow(response), operation


def read_head(path):
    lines = path.read_text().splitlines()
    # Interim replies (100 Continue) come first; the last head counts.
    lines = lines[max(index for index, line in enumerate(lines) if line.startswith("HTTP/")) :]
    headers = {}
    for line in lines[1:]:
        if line:
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
    for name in headers.keys() - documented.keys() - OF_HTTP - OF_CORS:
        raise Fault(f"the header {name} is not documented")


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
    """That what was taken is documented: the query's parameters, and a body that is JSON's text."""
    known = {one["name"]: one for one in map(document.follow, operation.get("parameters", []))}
    for name, value in urllib.parse.parse_qsl(urllib.parse.urlsplit(target).query, keep_blank_values=True):
        expect(name in known, f"the request's parameter {name} is not documented")
        document.conform_text(value, known[name]["schema"], f"the request's parameter {name}")
    if body.startswith("{") and "octet-stream" not in head:
        schema = operation["requestBody"]["content"]["application/json"]["schema"]
        document.conform(json.loads(body, parse_float=exact), schema, "the request's body")


def check_exchange(document, request, head, body):
    text = request.read_bytes().decode("utf-8", "replace")
    method, target = text.split(maxsplit=2)[:2]
    request_head, _, request_body = text.partition("\n\n")
    status, headers = read_head(head)
    response, operation = find_response(document, method, urllib.parse.urlsplit(target).path, status)
    check_headers(document, response, headers)
    check_body(document, method, response, headers, body.read_bytes())
    if status == "200" and method == "POST":
        check_request(document, operation, target, request_head, request_body)


def check_exchanges(document, requests, exchanges):
    heads = sorted(Path(exchanges).glob("*.head"))
    expect(heads, f"{exchanges} has no exchange")
    for head in heads:
        try:
            check_exchange(document, Path(requests) / f"{head.stem}.request", head, head.with_suffix(".body"))
        except Fault as fault:
            raise Fault(f"{head.stem}: {fault}") from None
    print(f"{len(heads)} exchanges conform to the document")


def main(arguments):
    try:
        document = Document(arguments[0])
        if len(arguments) == 1:
            check_document(document)
        else:
            check_exchanges(document, *arguments[1:])
    except SchemaError as fault:
        print(f"against the document: a schema is none: {fault.message}: {json.dumps(fault.instance)[:200]}")
        return 1
    except Fault as fault:
        print(f"against the document: {fault}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
