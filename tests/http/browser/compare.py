"""Tests the view Compare: the tables of its charts and the code must agree with the API's replies."""

import json
import re
import urllib.parse
import urllib.request

from browser import LOOKS, URL, Browser, fetch
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select

# Saves the replies that the page gets. A request with 77 repeats never ends.
WATCH = """
const real = window.fetch;
window.replies = [];
window.aborted = 0;
window.fetch = async (path, options) => {
  if (options.body?.includes('"repeats":77,')) return new Promise((_, reject) => options.signal.addEventListener('abort', () => {
    window.aborted++;
    reject(options.signal.reason);
  }));
  if (options.body?.includes('"transpose"')) window.saidToCopy =
    ['.speed', '.roof'].map(part => document.querySelector(part + ' [role=status]')?.textContent);
  const response = await real(path, options);
  window.replies.push(await response.clone().text());
  return response;
};"""
LOCKED = """
const real = window.fetch;
window.fetch = (path, options) => options.headers.Authorization || path === 'openapi.json' ? real(path, options)
  : Promise.resolve(new Response('{"code": "unauthorized", "title": "API key needed"}', { status: 401 }));"""


def table(page, part):
    """Returns the rows of a part's table as {title: cell}."""
    titles, rows = page.run(
        "const shown = document.querySelector(arguments[0] + ' .figures table');"
        "if (!shown) return [[], []];"
        "const texts = (row) => [...row.cells].map(cell => cell.textContent);"
        "return [texts(shown.tHead.rows[0]), [...shown.tBodies[0].rows].map(texts)]", part)
    return [dict(zip(titles, row)) for row in rows]


def agree(cell, value):
    """Returns whether a cell shows this value of the API, up to a relative error of 0.001."""
    if not isinstance(value, (int, float)):
        return cell == ("–" if value is None else value)
    return abs(float(cell.replace(",", "")) - value) <= 1e-3 * abs(value)


def enter(page, name, value):
    page.run("const control = document.querySelector(`#compare [name=${arguments[0]}]`); control.focus(); control.select()", name)
    page.find(f"#compare [name={name}]").send_keys(str(value))


def choose(page, name, value):
    """Chooses an option and sends the event `input`, which Selenium leaves out."""
    page.run(
        "const select = document.querySelector(`#compare [name=${arguments[0]}]`);"
        "select.value = arguments[1];"
        "for (const type of ['input', 'change']) select.dispatchEvent(new Event(type, { bubbles: true }))", name, str(value))
    assert page.find(f"#compare [name={name}]").get_attribute("value") == str(value), (name, value)


def state(page):
    query = page.run("return location.hash").partition("?")[2]
    return {name: values[0] for name, values in urllib.parse.parse_qs(query).items()}


def ready(page):
    page.wait(lambda page: page.find(".code code").text, "all parts are filled")


def last_reply(page, member):
    """Returns the last reply to the page that contains the text `member`."""
    return json.loads(page.run("return window.replies.filter(text => text.includes(arguments[0])).at(-1)", member))


def time_them(page):
    page.find(".speed button.main").click()
    said = ":is(.speed, .roof) [role=status]"
    page.wait(lambda page: not page.find_all(said + " button"), "the benchmark ends")
    assert not page.find(said).text, page.find(said).text


def check_speed(page):
    variants = [one for one in fetch("/v1/variants")["variants"] if one["op"] == "matmul" and one["available"]]
    boxes = {box.get_attribute("value"): box for box in page.find_all("#compare [name=variants]") if box.is_displayed()}
    assert set(boxes) == {f"cpu:{one['name']}" for one in variants}, boxes
    for name, box in boxes.items():
        if box.is_selected() != (name in ("cpu:naive", "cpu:tiled_16", "cpu:auto")):
            box.click()
    for name, value in (("m", 24), ("k", 16), ("n", 40), ("repeats", 1)):
        enter(page, name, value)
    time_them(page)
    reply = last_reply(page, '"of_blas"')
    assert [reply[name] for name in "mkn"] == [24, 16, 40] and len(reply["rows"]) == 3, reply
    wanted = sorted(reply["rows"], key=lambda row: -row["gflops"])
    rows = table(page, ".speed")
    for row, want in zip(rows, wanted, strict=True):
        assert row["variant"] == f"cpu:{want['variant']}", (row, want)
        for title, value in (("median ms", want["kernel_ms"]["median"]), ("GFLOP/s", want["gflops"]),
                             ("relative error", want["relative_error"]), ("error / bound", want["max_error"]),
                             ("global loads", want["global_loads"]), ("repeats", want["repeats"]), ("ran", want.get("ran"))):
            assert agree(row[title], value), (title, row, want)
    assert "% of blas" not in rows[0]
    none, roof = page.run("return window.saidToCopy")
    assert none is None and "plain copy" in roof, "the wait for the copy is said beside the roof, not beside the finished figures"
    # Also compares with blas, and uses a type that some variants do not support.
    boxes["cpu:blas"].click()
    boxes["cpu:auto"].click()
    time_them(page)
    reply = last_reply(page, '"of_blas"')
    rows = table(page, ".speed")
    assert len(rows) == 3
    for row in rows:
        want = next(one for one in reply["rows"] if row["variant"] == "cpu:" + one["variant"])
        assert agree(row["% of blas"], 100 * want["of_blas"]), (row, want)
    choose(page, "dtype", "int32")
    page.wait(lambda page: not boxes["cpu:blas"].is_displayed() and boxes["cpu:naive"].is_displayed(), "blas takes no int32")
    choose(page, "dtype", "float32")

    page.expected.append("400 (Bad Request)")
    enter(page, "m", 0)
    page.find(".speed button.main").click()
    page.wait(lambda page: page.find(".speed .problem").text, "the server's refusal")
    enter(page, "m", 24)
    enter(page, "repeats", 77)
    page.find(".speed button.main").click()
    page.wait(lambda page: re.match(r"Timing the variants… \d+ s", page.find(".speed [role=status]").text), "what runs, and how long")
    page.find(".speed [role=status] button").click()
    page.wait(lambda page: page.run("return window.aborted") == 1 and page.find(".speed [role=status]").text == "Cancelled.",
              "the request ends")
    return reply


def check_transposes(page):
    enter(page, "repeats", 1)
    choose(page, "op", "transpose")
    assert not page.find("[name=k]").is_displayed() and "cpu:shared" in page.find(".speed fieldset").text
    page.run("const real = window.fetch; window.fetch = async (...all) => {"
                    "  const reply = await (await real(...all)).json();"
                    "  reply.rows[0].kernel_ms = { min: 1, median: 2, max: 1.4 };"
                    "  window.replies.push(JSON.stringify(reply));"
                    "  window.fetch = real;"
                    "  return new Response(JSON.stringify(reply)); }")
    time_them(page)
    assert "computes nothing" in page.find(".roof .note").text and not page.find_all(".roof table"), "the roofline is of a product"
    reply = last_reply(page, '"of_copy"')
    assert reply["op"] == "transpose" and [reply[name] for name in "mn"] == [24, 40] and len(reply["rows"]) == 2, reply
    for row in table(page, ".speed"):
        want = next(one for one in reply["rows"] if row["variant"] == "cpu:" + one["variant"])
        assert agree(row["GB/s"], want["gigabytes_per_second"]) and agree(row["% of copy"], 100 * want["of_copy"]), (row, want)
        ms = want["kernel_ms"]
        assert ("noisy" in row.get("remark", "")) == (ms["max"] > 4 / 3 * ms["min"]), (row, want)
    assert not page.clipped("#compare"), page.clipped("#compare")


def check_roof(page, speed):
    copy = last_reply(page, '"of_copy"')["rows"][0]
    rate = copy["gigabytes_per_second"] / copy["of_copy"]
    rows = table(page, ".roof")
    assert len(rows) == len(speed["rows"])
    for row in rows:
        want = next(one for one in speed["rows"] if row["variant"] == "cpu:" + one["variant"])
        assert agree(row["GFLOP/s"], want["gflops"])
        if want["global_loads"] is None:
            assert row["FLOP/byte"] == row["GFLOP/s that memory allows"] == "–", row
            continue
        intensity = 2 * 24 * 16 * 40 / (4 * want["global_loads"])
        assert agree(row["FLOP/byte"], intensity) and agree(row["GFLOP/s that memory allows"], intensity * rate), (row, rate)
        assert agree(row["% of that"], 100 * want["gflops"] / (intensity * rate)), (row, rate)


def check_code(page):
    variants = fetch("/v1/variants")["variants"]
    assert len(Select(page.find("[name=source]")).options) == len(variants)
    one = next(one for one in variants if len(one["sources"]) > 1 and one["backend"] == "cuda")
    choose(page, "source", f"cuda:{one['name']}")
    choose(page, "file", one["sources"][1].split("/")[-1])
    path = f"/v1/variants/{one['name']}/source?backend=cuda&op={one['op']}&file={one['sources'][1]}"
    text = urllib.request.urlopen(URL + path, timeout=20).read().decode()
    page.wait(lambda page: page.run("return document.querySelector('.code code').textContent") == text, "the file's text")
    assert len(page.find_all(".code .listing > *")) == text.count("\n"), "each line has a number"
    assert page.find(".code [role=status]").text.startswith(one["summary"])


def check_address(browser):
    """A link restores the state, and an edited address changes only what it names."""
    page = browser.open("/#compare?part=roof&m=33&dtype=int32&variants=cpu:naive&source=cuda:tiled_async&file=async.cuh")
    ready(page)
    page.wait(lambda page: page.run("return document.activeElement.className") == "roof", "the part has the focus")
    for name, value in (("m", "33"), ("k", "256"), ("dtype", "int32"), ("source", "cuda:tiled_async"), ("file", "async.cuh")):
        assert page.find(f"#compare [name={name}]").get_attribute("value") == value, name
    assert [box.get_attribute("value") for box in page.find_all("[name=variants]:checked:enabled")] == ["cpu:naive"]
    assert state(page)["n"] == "256" and state(page)["m"] == "33"
    page.find('.parts nav a[href$="part=code"]').click()
    page.wait(lambda page: state(page).get("m") == "33" and state(page)["part"] == "code", "another part, the same state")
    page.wait(lambda page: page.run("return document.activeElement.className") == "code", "that part has the focus")
    page.run("location.hash = '#compare?part=speed&m=16&op=transpose'")
    page.wait(lambda page: state(page).get("m") == "16" and not page.find("[name=k]").is_displayed(), "an edited address")
    page.find('header nav a[href="#operate"]').click()
    page.wait(lambda page: not page.find("#compare").is_displayed(), "another view")
    page.find('header nav a[href="#compare"]').click()
    page.wait(lambda page: page.find("#compare").is_displayed() and state(page).get("m") == "16", "the view and its state again")
    assert not page.messages()[0]


def before_page(browser, source):
    return browser.driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": source})


def check_key(browser):
    script = before_page(browser, LOCKED)
    page = browser.open("/#compare")
    button = page.wait(lambda page: page.find("#compare .hint button"), "a hint that a key is needed")
    assert not page.find_all("dialog") and not page.find(".speed").is_displayed()
    button.click()
    page.wait(lambda page: page.find("dialog input"), "the dialog").send_keys("secret", Keys.ENTER)
    ready(page)
    assert page.find(".speed").is_displayed() and not page.find("#compare .hint").text
    browser.driver.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", script)
    page.run("sessionStorage.clear()")


with Browser() as browser:
    page = browser.open("/#compare")
    ready(page)
    page.run(WATCH)
    check_roof(page, check_speed(page))
    check_code(page)
    assert not page.clipped("#compare"), page.clipped("#compare")
    page.finish("compare")
    check_transposes(page)
    check_address(browser)
    check_key(browser)
    for size, scheme in LOOKS[1:]:
        page = browser.open("/#compare?m=8&k=8&n=8&repeats=1", size, scheme)
        ready(page)
        time_them(page)
        page.finish("compare")
