"""Tests the API page at /docs: it shows all of /openapi.json, and its examples run."""

import json
import re
import subprocess
import urllib.error
import urllib.request

from browser import LOOKS, URL, Browser, By, fetch
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select

DOCUMENT = fetch("/openapi.json")
METHODS = ("get", "put", "post", "delete")


def resolve(node):
    if "$ref" not in node:
        return node
    target = DOCUMENT
    for name in node["$ref"][2:].split("/"):
        target = target[name]
    return {**resolve(target), **{key: value for key, value in node.items() if key != "$ref"}}


def article(page, operation):
    """Returns the texts of an article, also of its closed details."""
    return page.run("""const article = document.getElementById(arguments[0]);
        const column = (table) => [...table.tBodies[0].rows].map(row => row.cells[0].textContent);
        return { title: article.querySelector('h3').textContent, text: article.textContent,
                 tables: [...article.querySelectorAll('table')].map(column),
                 blocks: [...article.querySelectorAll('details pre')].map(one => one.textContent) }""", operation)


def shows_all(page):
    assert {link.get_attribute("hash") for link in page.find_all("main nav a")} == {"#errors"} | {
        "#" + item[method]["operationId"] for item in DOCUMENT["paths"].values() for method in METHODS if method in item}
    for path, item in DOCUMENT["paths"].items():
        for method in METHODS:
            if method not in item:
                continue
            described = item[method]
            shown = article(page, described["operationId"])
            assert shown["title"] == f"{method.upper()} {path}", shown["title"]
            parameters = [resolve(one) for one in item.get("parameters", []) + described.get("parameters", [])]
            assert shown["tables"] == [[one["name"] for one in parameters], list(described["responses"])], shown["title"]
            texts = [described["summary"], described.get("description", "")]
            texts += [one["description"] for one in parameters if "description" in one]
            texts += [resolve(one)["description"] for one in described["responses"].values()]
            texts += list(described.get("requestBody", {}).get("content", {}))
            assert not [text for text in texts if text.replace("`", "") not in shown["text"]], shown["title"]
    codes = {code for response in DOCUMENT["components"]["responses"].values()
             for kind, content in response.get("content", {}).items() if kind == "application/problem+json"
             for code in [content["schema"]["properties"]["code"]] for code in code.get("enum", [code.get("const")])}
    assert codes == {code for cell in page.find_all("#errors td:nth-child(2)") for code in cell.text.split(", ")}
    assert "next" in [one.get_attribute("textContent") for one in page.find_all("#listMatrices td code")], "`next` is code"

    product = article(page, "multiply")["blocks"][0]
    assert "a?: [number | boolean | \"NaN\" | \"Infinity\" | \"-Infinity\" | [any, …], …] | {" in product, product
    assert "timeout_ms?: integer, ≥ 1" in product and "transpose_a?: boolean = false" in product, product


def run(page, operation):
    """Presses Run. Returns the status line, the headers and the body that the page shows."""
    form = page.find(f"#{operation} form")
    result = form.find_element(By.CSS_SELECTOR, "[role=status]")
    page.run("arguments[0].replaceChildren()", result)
    form.find_element(By.CSS_SELECTOR, "button.main").click()
    page.wait(lambda page: len(result.find_elements(By.TAG_NAME, "pre")) == 2, f"a reply to {operation}")
    status, headers, body = [one.get_attribute("textContent") for one in result.find_elements(By.CSS_SELECTOR, "p, pre")]
    return status, dict(line.split(": ", 1) for line in headers.splitlines()), body


def field(page, operation, label):
    return next(one for one in page.find_all(f"#{operation} form label") if one.text.split("\n")[0] == label).find_element(
        By.CSS_SELECTOR, "input, select, textarea")


def write(control, text):
    control.send_keys(Keys.CONTROL, "a")
    control.send_keys(text)


def curl(page, operation):
    """Runs the shown curl command in a shell."""
    line = page.find(f"#{operation} .copied code").text
    return line, subprocess.run(["sh", "-c", line], capture_output=True, check=False, timeout=60).stdout.decode()


def multiplies(page):
    body = {"a": [[1, 2], [3, 4]], "b": [[5, 6], [7, 8]]}
    status, headers, text = run(page, "multiply")
    assert status == "200 OK" and json.loads(text)["c"] == fetch("/v1/matmul", body)["c"] and '\n  "c": ' in text, text
    assert headers["Matmul-Shape"] == "2, 2" and headers["Content-Type"] == "application/json", headers
    write(field(page, "multiply", "Body"), '{"a": [[2]], "b": [[3, 0.5]], "variant": "it\'s"}')
    line, answer = curl(page, "multiply")
    assert json.loads(answer)["code"] == "unsupported" and "it's" in json.loads(answer)["detail"], (line, answer)
    page.expected.append("422")
    status, _, text = run(page, "multiply")
    assert status.startswith("422") and json.loads(text)["detail"] == json.loads(answer)["detail"]
    write(field(page, "multiply", "Body"), '{"a": [[2]], "b": [[3, 0.5]]}')
    write(field(page, "multiply", "Query"), "variant=naive&transpose_a=true" + Keys.TAB)
    Select(field(page, "multiply", "Accept")).select_by_visible_text("text/csv")
    csv, (line, answer) = run(page, "multiply")[2], curl(page, "multiply")
    assert csv == answer == "6,1\n", (csv, line, answer)
    Select(field(page, "transpose", "Example")).select_by_visible_text("options")
    assert "[9223372036854775807]" in run(page, "transpose")[2], "a large integer keeps its digits"

    # After two runs the page shows the reply to the second run, even if that reply arrives first.
    page.run("""const real = fetch, replies = [];
        window.fetch = (...all) => { const reply = real(...all); replies.push(reply); return replies.length > 1 ? reply
          : new Promise((resolve) => { window.release = () => resolve(reply); }); };
        window.restore = () => { window.fetch = real; }; sessionStorage.setItem('matmuld-key', 'secret')""")
    Select(field(page, "transpose", "Example")).select_by_index(0)
    page.find("#transpose form .main").click()
    page.wait(lambda page: re.search(r"… \d+ s$", page.find("#transpose form [role=status]").text), "how long it waits")
    Select(field(page, "transpose", "Example")).select_by_visible_text("options")
    assert "9223372036854775807" in run(page, "transpose")[2]
    page.driver.execute_async_script("release(); setTimeout(arguments[0], 100)")
    assert "9223372036854775807" in page.find("#transpose form [role=status]").text, "an earlier reply takes its place"
    line = page.find("#transpose .copied code").text
    assert "$MATMULD_API_KEY" in line and "secret" not in page.run("return document.body.textContent"), line
    page.run("restore(); sessionStorage.clear()")


def reads_a_source(page):
    name = next(one["name"] for one in fetch("/v1/variants")["variants"] if one["available"] and "sources" in one)
    write(field(page, "readVariantSource", "name"), name)
    with urllib.request.urlopen(f"{URL}/v1/variants/{name}/source", timeout=60) as reply:
        source = reply.read().decode()
    status, _, text = run(page, "readVariantSource")
    assert status == "200 OK" and text == source, text[:200]
    _, _, text = run(page, "readMetrics")
    assert len(text) < 21000 and "bytes in all" in text, "a large reply is cut"


def stores(page):
    for operation in ("storeMatrix", "readMatrix", "deleteMatrix"):
        write(field(page, operation, "name"), "of-the-page")
    write(field(page, "storeMatrix", "Body"), '{"a": [[1, 2, 3]], "dtype": "int32"}')
    status, headers, text = run(page, "storeMatrix")
    assert status == "201 Created" and headers["Location"] == "/v1/matrices/of-the-page", (status, headers)
    [stored] = fetch("/v1/matrices")["matrices"]
    assert json.loads(text)["etag"] == stored["etag"] == headers["ETag"]
    for text in (run(page, "readMatrix")[2], curl(page, "readMatrix")[1]):
        assert json.loads(text) == {"a": [[1, 2, 3]], "dtype": "int32"}
    Select(field(page, "readMatrix", "Accept")).select_by_visible_text("application/x-npy")
    reply = run(page, "readMatrix")
    assert "140 bytes in all" in reply[2], reply
    assert run(page, "deleteMatrix")[0] == "204 No Content" and fetch("/v1/matrices")["matrices"] == []
    page.expected.append("404")
    Select(field(page, "readMatrix", "Accept")).select_by_visible_text("application/json")
    status, _, text = run(page, "readMatrix")
    assert status == "404 Not Found" and json.loads(text)["code"] == "no_such_matrix"
    assert json.loads(curl(page, "storeMatrix")[1])["shape"] == [1, 3] and len(fetch("/v1/matrices")["matrices"]) == 1
    assert curl(page, "deleteMatrix")[1] == "" and fetch("/v1/matrices")["matrices"] == []


def opened(browser, address="/docs", *how):
    page = browser.open(address, *how)
    page.wait(lambda page: page.find("#errors"), "the document")
    return page


with Browser() as browser:
    page = opened(browser, "/docs#storeMatrix")
    page.wait(lambda page: abs(page.run("return document.getElementById('storeMatrix').getBoundingClientRect().top")) < 5,
              "a link leads to its endpoint")
    console, requests = page.messages()
    asked = {url.split("#")[0] for url in requests if url.startswith("http") and "/page/" not in url}
    assert asked == {URL + "/docs", URL + "/openapi.json"}, "nothing runs by itself"
    shows_all(page)
    multiplies(page)
    reads_a_source(page)
    stores(page)
    for size, scheme in LOOKS:
        page = opened(browser, "/docs", size, scheme)
        page.run("document.querySelectorAll('#listMatrices details').forEach(one => { one.open = true; })")
        run(page, "listVariants")
        assert not page.clipped("article"), page.clipped("article")
        page.finish("docs")
