"""Tests the view Learn: lessons open, react to controls, agree with the API, and have working curl commands."""

import json
import re
import subprocess

from browser import LOOKS, Browser, fetch
from selenium.webdriver.common.keys import Keys

TRAFFIC = {"m": 512, "k": 512, "n": 512, "variants": ["cuda:tiled_32"]}
# Each row: lesson, its state in the address, expected text, a control, its new value, expected new text
LESSONS = (
    ("memory", "stride=1&offset=1", "5 sectors: the warp wants 128 bytes, and 160 are moved.",
     "stride", "8", "32 sectors: the warp wants 128 bytes, and 1,024 are moved."),
    ("tiles", "tile=8", "4,194,304 global loads without tiles, 524,288 with tiles: 1/8.",
     "tile", "32", "4,194,304 global loads without tiles, 131,072 with tiles: 1/32."),
    ("barriers", "variant=tiled_racy", ", and lacks one at line", "variant", "staged_copy", "staged_copy has no barrier."),
    ("strides", "row=0&column=0", "has 32×32 elements of 32×32", "row", "31", "has 4×32 elements of 32×32"),
    ("banks", "", "Degree 32, 32 passes", "padded", "yes", "Degree 1, 1 pass"),
    ("occupancy", "threads=1024&registers=32", "2 blocks of 32 warps, limited by threads, registers.",
     "registers", "33", "1 block of 32 warps, limited by registers."),
    ("transposition", "variant=shared", "2,097,152 sectors stored, 16,252,928 passes for conflicts.",
     "variant", "padded", "2,097,152 sectors stored, 0 passes for conflicts."),
    ("asynchronous", "", "8 steps: 16 turns of tiled_32, 9 of tiled_async.",
     "k", "64", "2 steps: 4 turns of tiled_32, 3 of tiled_async."),
)
# Patterns of access to shared memory, as values of the page's controls and as members of an API request
ACCESSES = (
    ({"stride": 2}, {"patterns": "stride", "strides": 2}),
    ({"stride": 31, "padded": "yes"}, {"patterns": "stride", "strides": 31, "padded": True}),
    *(({"pattern": name}, {"patterns": name}) for name in ("linear", "permuted", "same_bank", "broadcast")),
    ({"stride": 32, "word_bytes": 8}, {"patterns": "stride", "strides": 32, "word_bytes": 8}),
    ({"pattern": "linear", "word_bytes": 8, "padded": "yes"}, {"patterns": "linear", "word_bytes": 8, "padded": True}),
    ({"stride": 3, "bank_bytes": 8, "padded": "yes"}, {"patterns": "stride", "strides": 3, "bank_bytes": 8, "padded": True}),
    ({"pattern": "offsets", "offsets": "0, 0, 0, 0, 32 32 1 -"}, {"offsets": [0, 0, 0, 0, 32, 32, 1]}),
)
MEASURED = """const real = window.fetch;
window.fetch = async (path, options) => {
  const reply = await real(path, options);
  if (path !== 'v1/benchmark') return reply;
  const made = await reply.json();
  made.device = 'a GPU';
  for (const row of made.rows) Object.assign(row, { measured: true, kernel_ms: { median: 0.25 }, relative_error: 0.35 });
  return new Response(JSON.stringify(made));
};"""
COLUMN = "const column = cell => +cell.closest('table').tHead.rows[0].cells[cell.cellIndex].textContent;"
# Adds the largest count of each row of the table, which gives the number of passes over shared memory.
PASSES = """const most = {};
  for (const row of document.querySelectorAll('.squares tbody tr')) {
    const title = row.firstChild.textContent, counts = [...row.querySelectorAll('td')].map(cell => +cell.textContent);
    if (!/^\d+$/.test(title))
      most[title] = Math.max(most[title] ?? 0, ...counts);
  }
  return Object.values(most).reduce((sum, one) => sum + one, 0)"""
SERVED = "return [...document.querySelectorAll('.squares tbody tr:last-child td')].map(cell => +cell.textContent)"
LANES = COLUMN + """return [...document.querySelectorAll('.squares td[title^=lane]')].flatMap(cell =>
  cell.title.slice(5).split(', ').map(lane => [+lane, column(cell)]))"""
# Returns the size of the smallest text of the picture, in pixels on the screen.
SMALLEST = """return Math.min(...[...document.querySelectorAll('#learn .picture :is(th, td, text, code, figcaption)')]
  .filter(one => one.textContent).map(one => parseFloat(getComputedStyle(one).fontSize) * (one.getScreenCTM?.().a ?? 1)))"""


def said(page):
    return page.find("#learn [role=status]").text


def until(page, text):
    page.wait(lambda page: text in said(page), f"the page says {text!r}")
    page.wait(lambda page: page.find("#learn .figures table") and page.find("#learn .picture > *"), "the picture and the figures")


def put(page, name, value):
    page.run("const one = document.querySelector(`#learn [name=${arguments[0]}]`); one.value = arguments[1];"
             "one.dispatchEvent(new Event('input', { bubbles: true }))", name, value)


def check_lines(page):
    lines = [line.get_attribute("textContent") for line in page.find_all("#learn .copied code")]
    assert lines
    for line in lines:
        reply = subprocess.run(["sh", "-c", line], stdout=subprocess.PIPE, check=True, timeout=60).stdout
        assert reply, line


def check_text(page, name):
    """Opens the lesson, and checks that no Markdown is left."""
    def check(selector):
        page.wait(lambda page: page.find_all(selector), selector)
        left = page.run("const text = document.querySelector('#learn .lesson').cloneNode(true);"
                        "text.querySelectorAll('code').forEach(one => one.remove()); return text.textContent")
        assert not re.search(r"[`*#|]|\]\(|^- |details", left, re.MULTILINE), left
        faults = page.find_violations()
        assert not faults, faults

    page.run("document.querySelector('#learn .lesson summary').click()")
    check("#learn .lesson h5")
    if name == "memory":  # a link leads to the section "Request 5" of tutorials.md
        page.run("document.querySelector('#learn .lesson a[href$=\"tutorials.md\"]').click()")
        check("#at-request-5")
        assert page.run("return scrollY && document.querySelector('#at-request-5').getBoundingClientRect().top < innerHeight")


def check_lessons(browser):
    for number, (name, state, first, control, value, then) in enumerate(LESSONS, 1):
        for size, scheme in LOOKS:
            page = browser.open(f"/#learn?lesson={name}&{state}", size, scheme)
            until(page, first)
            before = page.find("#learn .picture").get_attribute("innerHTML")
            assert page.find("#learn nav [aria-current=page]").text.startswith(f"{number}. ")
            page.finish(f"learn-{name}")
            assert not page.clipped("#learn"), page.clipped("#learn")
            assert page.run(SMALLEST) >= 12, page.run(SMALLEST)
            assert page.run("return [...document.querySelectorAll('#learn .squares')].every(one => one.scrollWidth <= one.clientWidth)")
        put(page, control, value)
        until(page, then)
        assert page.find("#learn .picture").get_attribute("innerHTML") != before, name
        assert f"{control}={value}" in page.run("return location.hash")
        check_lines(page)
        check_text(page, name)


def check_banks(browser):
    """The page and the API must agree on the bank of each lane and the number of words of each bank."""
    page = browser.open("/#learn?lesson=banks")
    until(page, "Degree 32")
    usual = {"pattern": "stride", "stride": 1, "padded": "no", "word_bytes": 4, "bank_bytes": 4}
    for controls, members in ACCESSES:
        for control, value in {**usual, **controls}.items():
            put(page, control, str(value))
        want = fetch("/v1/benchmark", {"op": "shared_access", "padded": False, "word_bytes": 4, **members})["rows"][0]
        degree, wide = want["predicted_degree"], want["word_bytes"] > want["bank_bytes"]
        banks = sorted([lane, bank + half] for lane, bank in enumerate(want["banks"]) if bank is not None for half in range(1 + wide))
        page.wait(lambda page: said(page).startswith(f"Degree {degree}, {want['predicted_wavefronts']} pass")
                  and sorted(page.run(LANES)) == banks
                  and max(page.run(SERVED)) == degree and len(page.run(SERVED)) == 32
                  and page.run(PASSES) == want["predicted_wavefronts"],
                  f"{controls} as the API predicts: {want}")


def check_limits(browser):
    """A number that is too large is replaced by the limit."""
    page = browser.open("/#learn?lesson=memory&stride=99")
    until(page, "sectors:")
    assert page.find("#learn [name=stride]").get_attribute("value") == "32"
    put(page, "stride", "33")
    page.run("document.querySelector('#learn [name=stride]').dispatchEvent(new Event('change', { bubbles: true }))")
    page.wait(lambda page: page.find("#learn [name=stride]").get_attribute("value") == "32", "the most is 32")
    page = browser.open("/#learn?lesson=banks")
    until(page, "Degree 32")
    put(page, "offsets", "0 1x 2")
    page.wait(lambda page: "“1x” is no word" in page.find("#learn .problem").text, "the bad entry is named")
    assert not page.find_all("#learn .picture > *"), "the picture is of other words"


def check_figures(browser):
    page = browser.open("/#learn?lesson=barriers")
    until(page, "barriers in")
    row = fetch("/v1/benchmark", TRAFFIC)["rows"][0]
    cells = page.run("return [...document.querySelectorAll('#learn .figures td')].map(cell => [cell.dataset.title, cell.textContent])")
    shown = {title.replace(" ", "_"): text.replace(",", "") for title, text in cells}
    for name in ("global_loads", "global_load_sectors", "shared_load_passes", "bank_conflict_passes"):
        assert shown[name] == str(row[name]), (name, shown)
    assert not row["measured"] and "median_ms" not in shown, shown
    # Changes the replies to those of a server with a GPU.
    page.run(MEASURED)
    put(page, "variant", "tiled_racy")
    page.wait(lambda page: page.find("#learn caption").text == "Predicted, and measured on a GPU", "what was measured")
    assert all(title in page.find("#learn thead").text for title in ("median ms", "relative error")), page.find("#learn thead").text
    # A lesson keeps its state while another view is open. Its links can be used by keyboard.
    page.find('header nav a[href="#operate"]').click()
    page.wait(lambda page: not page.find("#learn").is_displayed(), "another view")
    page.find('header nav a[href="#learn"]').click()
    page.wait(lambda page: "lesson=barriers" in page.run("return location.hash"), "the lesson again")
    page.find('#learn nav a[href$="occupancy"]').send_keys(Keys.ENTER)
    until(page, "limited by")
    assert page.run("return document.activeElement.hash") == "#learn?lesson=occupancy", "the focus is lost"
    put(page, "threads", "5000")
    until(page, "of 32 warps")  # 5000 was replaced by the maximum of 1024 threads
    page.expected.append("409")
    page.run("const real = fetch; window.fetch = (path, ...rest) => path === 'v1/benchmark' ? Promise.resolve(new Response("
             "arguments[0], { status: 409 })) : real(path, ...rest)", json.dumps({"title": "No", "detail": "switched off"}))
    put(page, "threads", "64")
    page.wait(lambda page: "switched off" in page.find("#learn .problem").text, "a refusal is shown")


with Browser() as browser:
    check_lessons(browser)
    check_banks(browser)
    check_limits(browser)
    check_figures(browser)
