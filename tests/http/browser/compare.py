"""The view Compare: each chart's table, and the drawing of banks, against what the API answers to the same requests."""

import json
import re
import urllib.parse
import urllib.request

from browser import LOOKS, URL, Browser, fetch
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select

# Keeps the replies that the page receives; a request whose body has `hang` in it never ends by itself.
WATCH = """
const real = window.fetch;
window.replies = [];
window.aborted = 0;
window.fetch = async (path, options) => {
  if (options.body?.includes('"repeats":77,')) return new Promise((_, reject) => options.signal.addEventListener('abort', () => {
    window.aborted++;
    reject(options.signal.reason);
  }));
  if (options.body?.includes('"transpose"')) window.saidToCopy = document.querySelector('.speed [role=status]').textContent;
  const response = await real(path, options);
  window.replies.push(await response.clone().text());
  return response;
};"""
# A server that wants a key, whichever.
LOCKED = """
const real = window.fetch;
window.fetch = (path, options) => options.headers.Authorization || path === 'openapi.json' ? real(path, options)
  : Promise.resolve(new Response('{"code": "unauthorized", "title": "API key needed"}', { status: 401 }));"""

# A server with --no-benchmark.
OFF = """
const real = window.fetch;
window.fetch = (path, options) => path !== 'v1/benchmark' ? real(path, options)
  : Promise.resolve(new Response('{"title": "There is nothing at this path", "detail": "switched off"}', { status: 404 }));"""


def table(page, part):
    """The rows of a part's table: {title: cell}."""
    titles, rows = page.run(
        "const shown = document.querySelector(arguments[0] + ' .figures table');"
        "if (!shown) return [[], []];"
        "const texts = (row) => [...row.cells].map(cell => cell.textContent);"
        "return [texts(shown.tHead.rows[0]), [...shown.tBodies[0].rows].map(texts)]", part)
    return [dict(zip(titles, row)) for row in rows]


def agree(cell, value):
    """Whether a cell shows a value of the API, to three digits."""
    if not isinstance(value, (int, float)):
        return cell == ("–" if value is None else value)
    return abs(float(cell.replace(",", "")) - value) <= 1e-3 * abs(value)


def enter(page, name, value):
    page.run("const control = document.querySelector(`#compare [name=${arguments[0]}]`); control.focus(); control.select()", name)
    page.find(f"#compare [name={name}]").send_keys(str(value))


def choose(page, name, value):
    """Selenium's own choice sends no event `input`, as browsers do."""
    page.run(
        "const select = document.querySelector(`#compare [name=${arguments[0]}]`);"
        "select.value = arguments[1];"
        "for (const type of ['input', 'change']) select.dispatchEvent(new Event(type, { bubbles: true }))", name, str(value))
    assert page.find(f"#compare [name={name}]").get_attribute("value") == str(value), (name, value)


def state(page):
    query = page.run("return location.hash").partition("?")[2]
    return {name: values[0] for name, values in urllib.parse.parse_qs(query).items()}


def ready(page):
    page.wait(lambda page: page.find(".banks [role=status]").text.startswith("Degree"), "the server predicts")
    page.wait(lambda page: table(page, ".banks") and table(page, ".blocks") and page.find(".code code").text,
              "all parts are filled")


def last_reply(page, member):
    """The last reply with this text that the page received."""
    return json.loads(page.run("return window.replies.filter(text => text.includes(arguments[0])).at(-1)", member))


def time_them(page):
    page.find(".speed button.main").click()
    page.wait(lambda page: not page.find_all(".speed [role=status] button"), "the benchmark ends")
    assert not page.find(".speed [role=status]").text, page.find(".speed [role=status]").text


def check_speed(page):
    variants = [one for one in fetch("/v1/variants")["variants"] if one["op"] == "matmul" and one["available"]]
    boxes = {box.get_attribute("value"): box for box in page.find_all("#compare [name=variants]")}
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
    assert "plain copy" in page.run("return window.saidToCopy"), "after the figures, the page says for what it still waits"
    # Against blas; and a type that not all variants take.
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

    # A refusal, and a benchmark that is cancelled.
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


def check_drawing(page, body, what):
    """Until the drawing shows the server's prediction."""
    want = fetch("/v1/benchmark", {"op": "shared_access", **body})["rows"][0]

    def shown(page):
        said = page.find(".banks [role=status]").text
        if said != f"Degree {want['predicted_degree']}, passes: {want['predicted_wavefronts']}":
            return False
        lines, counts = page.run(
            "const lines = [...document.querySelectorAll('.banks line')], counts = [...document.querySelectorAll('.banks rect + text')];"
            "return [lines.map(line => line.closest('.out') ? null : (line.getAttribute('x2') - 12) / 24),"
            " counts.map(one => +one.textContent)]")
        return lines == want["banks"] and max([1, *counts]) == want["predicted_degree"]
    page.wait(shown, f"the drawing of {what} is as the API predicts: {want}")
    return want


def check_banks(page):
    own = {"padded": False, "word_bytes": 4}
    words = [2 * lane for lane in range(32)]
    assert len(page.find_all(".banks line")) == len(page.find_all(".banks rect")) == 32
    check_drawing(page, {"offsets": words, **own}, "stride 2")
    for pattern in ("linear", "permuted", "same_bank", "broadcast"):
        choose(page, "pattern", pattern)
        check_drawing(page, {"patterns": pattern, **own}, pattern)
    choose(page, "pattern", "stride")
    enter(page, "stride", 31)
    page.find("[name=padded]").click()
    check_drawing(page, {"patterns": "stride", "strides": 31, "padded": True, "word_bytes": 4}, "stride 31, padded")
    assert page.find(".banks g:nth-of-type(9)").get_attribute("class") == "many"
    choose(page, "word_bytes", 8)
    check_drawing(page, {"patterns": "stride", "strides": 31, "padded": True, "word_bytes": 8}, "words of 8 bytes")
    choose(page, "bank_bytes", 8)
    check_drawing(page, {"patterns": "stride", "strides": 31, "padded": True, "word_bytes": 8, "bank_bytes": 8},
                  "banks of 8 bytes")
    choose(page, "word_bytes", 4)
    enter(page, "offsets", "33 34")
    check_drawing(page, {"offsets": [33, 34], "padded": True, "word_bytes": 4, "bank_bytes": 8},
                  "two words in one of a bank, behind a gap")
    choose(page, "pattern", "stride")
    choose(page, "bank_bytes", 4)
    page.find("[name=padded]").click()

    # Lanes moved by keys, by the pointer, and in the text.
    enter(page, "stride", 1)
    check_drawing(page, {"patterns": "linear", **own}, "stride 1")
    lanes = page.find_all(".banks [role=slider]")
    lanes[1].send_keys(Keys.ARROW_RIGHT, Keys.ARROW_DOWN)
    words = [0, 34, *range(2, 32)]
    assert check_drawing(page, {"offsets": words, **own}, "lane 1 moved to word 34")["predicted_degree"] == 2
    assert lanes[1].get_attribute("aria-valuenow") == "34" and "degree 2" in lanes[1].get_attribute("aria-valuetext")
    assert state(page)["offsets"].split() == [str(word) for word in words] and state(page)["pattern"] == "offsets"
    circle = page.find(".banks g circle")
    page.run("arguments[0].scrollIntoView({block: 'center'})", circle)
    cell = page.find(".banks svg").rect["width"] / 32
    ActionChains(page.driver, 0).click_and_hold(circle).move_by_offset(round(2 * cell), round(3 * cell)).release().perform()
    words[0] = 98
    assert check_drawing(page, {"offsets": words, **own}, "lane 0 dragged to word 98")["predicted_degree"] == 3
    enter(page, "offsets", "0, 0, 0, 0, 32 32 1 -")
    check_drawing(page, {"offsets": [0, 0, 0, 0, 32, 32, 1], **own}, "seven lanes")

    page.find(".banks summary").click()
    rows = fetch("/v1/benchmark", {"op": "shared_access", "patterns": "stride", "word_bytes": 4})["rows"]
    want = {(row["stride"], row["padded"]): row for row in rows if row["memory"] == "shared"}
    strides = page.wait(lambda page: table(page, ".banks"), "all strides")
    assert len(strides) == len(want) == 64
    for row in strides:
        one = want[int(row["stride"]), row["padded"] == "true"]
        for title, name in (("degree", "predicted_degree"), ("passes", "predicted_wavefronts")):
            assert agree(row["predicted " + title], one[name]), row
    assert "latency cycles" not in strides[0]


def check_blocks(page):
    enter(page, "threads", 256)
    enter(page, "registers", 40)
    enter(page, "shared", 65536)

    def shown(page):
        rows = table(page, ".blocks")
        return rows and rows[0]["registers per thread"] == "40" and rows[0]["shared bytes"] == "65,536" and rows
    rows = page.wait(shown, "the blocks that fit")
    assert [row["tile"] for row in rows[:4]] == ["–", "4", "8", "16"], rows
    for row in rows:
        needs = {name: int(row[name.replace("_", " ")].replace(",", "")) for name in (
            "threads_per_block", "registers_per_thread", "shared_bytes")}
        if row["kernel"] == "two tiles":
            tile = int(row["tile"])
            assert needs["shared_bytes"] == 2 * 4 * tile * tile and needs["threads_per_block"] <= 1024, row
        want = fetch("/v1/benchmark", {"op": "occupancy", **needs})["rows"][0]
        assert agree(row["blocks"], want["blocks"]) and agree(row["warps"], want["warps"]), (row, want)
        assert agree(row["% of all warps"], 100 * want["occupancy"]), (row, want)
        assert row["limited by"] == ", ".join(want["limiters"]).replace("_", " "), (row, want)
    assert page.find(".blocks [role=status]").text.endswith("9.0: 3, limited by shared memory"), page.find(".blocks").text


def check_code(page):
    choice = Select(page.find("[name=source]"))
    variants = fetch("/v1/variants")["variants"]
    assert len(choice.options) == sum(len(one["sources"]) for one in variants)
    one = next(one for one in variants if len(one["sources"]) > 1 and one["backend"] == "cuda")
    choose(page, "source", f"cuda/{one['op']}/{one['name']}/{one['sources'][1]}")
    path = f"/v1/variants/{one['name']}/source?backend=cuda&op={one['op']}&file={one['sources'][1]}"
    text = urllib.request.urlopen(URL + path, timeout=20).read().decode()
    page.wait(lambda page: page.run("return document.querySelector('.code code').textContent") == text, "the file's text")
    assert page.find(".code span").get_attribute("textContent").split("\n")[-1] == str(text.count("\n"))
    assert page.find(".code [role=status]").text.startswith(one["summary"])


def check_address(browser):
    """A link reproduces the state, and an address edited by hand changes it; what it does not name stays."""
    link = "/#compare?part=blocks&m=33&dtype=int32&variants=cpu:naive&pattern=stride&stride=8&padded=on&registers=77"
    page = browser.open(link)
    ready(page)
    page.wait(lambda page: abs(page.run("return document.querySelector('.blocks').getBoundingClientRect().top")) < 5,
              "the part is in sight")
    for name, value in (("m", "33"), ("k", "256"), ("dtype", "int32"), ("stride", "8"), ("registers", "77")):
        assert page.find(f"#compare [name={name}]").get_attribute("value") == value, name
    assert [box.get_attribute("value") for box in page.find_all("[name=variants]:checked")] == ["cpu:naive"]
    check_drawing(page, {"patterns": "stride", "strides": 8, "padded": True, "word_bytes": 4}, "the link's pattern")
    assert state(page)["n"] == "256" and state(page)["m"] == "33"
    page.find('.parts nav a[href$="part=code"]').click()
    page.wait(lambda page: state(page).get("m") == "33" and state(page)["part"] == "code", "another part, the same state")
    page.wait(lambda page: page.run("return document.activeElement.className") == "code", "that part has the focus")
    page.run("location.hash = '#compare?part=banks&stride=16&padded=none'")
    check_drawing(page, {"patterns": "stride", "strides": 16, "padded": False, "word_bytes": 4}, "an edited address")
    page.find('nav a[href="#operate"]').click()
    page.wait(lambda page: not page.find("#compare").is_displayed(), "another view")
    page.find('nav a[href="#compare"]').click()
    page.wait(lambda page: page.find("#compare").is_displayed(), "the view again")
    page.wait(lambda page: state(page).get("stride") == "16", "the state is in the address again")
    assert page.find("[name=stride]").get_attribute("value") == "16" and len(page.find_all(".banks line")) == 32
    assert not page.messages()[0]


def before_page(browser, source):
    return browser.driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": source})


def check_off(browser):
    """Without benchmarks the parts say so, and draw nothing."""
    script = before_page(browser, OFF)
    page = browser.open("/#compare")
    for part in (".banks", ".blocks"):
        page.wait(lambda page: "switched off" in page.find(f"{part} .problem").text, "it is said")
    page.wait(lambda page: page.find(".code code").text, "the code is there")
    drawn = page.run("return [...document.querySelectorAll('#compare line, #compare .chart')]"
                     ".filter(one => one.checkVisibility({ visibilityProperty: true })).length")
    assert drawn == 0, drawn
    browser.driver.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", script)


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
    check_banks(page)
    check_blocks(page)
    check_code(page)
    assert not page.clipped("#compare"), page.clipped("#compare")
    page.finish("compare")
    check_address(browser)
    check_off(browser)
    check_key(browser)
    for size, scheme in LOOKS[1:]:
        page = browser.open("/#compare?m=8&k=8&n=8&repeats=1&pattern=stride&stride=32", size, scheme)
        ready(page)
        time_them(page)
        page.finish("compare")
