"""Tests the view Try: all kinds of operands, products that agree with the API, times, command lines,
links, files, errors and API keys."""

import ast
import json
import os
import pathlib
import re
import shlex
import struct
import subprocess
import tempfile
import urllib.parse

from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select

import browser as tools
from browser import LOOKS, URL, Browser, fetch

HERE = pathlib.Path(__file__).resolve()
CLIENT = HERE.parents[3] / "clients" / "python"
NUMPY = HERE.parents[3] / "build" / "numpy" / "bin" / "python3"
DRAWN = "return performance.getEntriesByName('try-product').length"
PASTE = """const data = new DataTransfer(); data.setData('text/plain', arguments[1]);
arguments[0].dispatchEvent(new ClipboardEvent('paste', { clipboardData: data, bubbles: true, cancelable: true }))"""
DROP = """const data = new DataTransfer(); data.items.add(new File([arguments[1]], arguments[2]));
arguments[0].dispatchEvent(new DragEvent('drop', { dataTransfer: data, bubbles: true, cancelable: true }))"""
SAID = re.compile(r"NaN|-?Infinity|-?\d[\d.eE+-]*")
scratch = tempfile.TemporaryDirectory(dir=".")
KEPT = "the-weights-of-the-first-layer-of-a-small-network"  # so long that it could make the page too wide
work = pathlib.Path(scratch.name)


def cells(page, selector="#try-c"):
    return page.run("return [...document.querySelectorAll(arguments[0] + ' tbody tr')].map(row => "
                    "[...row.cells].map(cell => cell.querySelector('input')?.value ?? cell.textContent))", selector)


def texts(matrix):
    """Returns the texts that the page must show for a matrix of the API."""
    return [[element if isinstance(element, str) else json.dumps(element) for element in row] for row in matrix]


def exact(reply):
    """Parses JSON, but keeps numbers as text."""
    return json.loads(reply, parse_float=str, parse_int=str)


def multiply(page, act=None):
    """Clicks the button, or calls `act`, and waits for the product and its times."""
    before = page.run(DRAWN)
    page.run("document.querySelector('#try-times').replaceChildren()")
    (act or page.find("#try .main").click)()
    page.wait(lambda page: page.run(DRAWN) > before and page.find("#try-times table"), "the product is drawn")
    return cells(page)


def choose(page, name, value):
    select = page.find(f"[name={name}]")
    Select(select).select_by_value(value)
    page.run("arguments[0].dispatchEvent(new Event('input', { bubbles: true }))", select)  # Selenium only sends `change`


def put(page, selector, text):
    element = page.find(selector)
    element.clear()
    element.send_keys(text)


def shown_lines(page):
    return [element.text for element in page.find_all("#try-code code")]


def same_by_lines(page, expected, environment=None):
    """Runs the curl and Python commands that the page shows. Their results must equal the page's."""
    environment = {**os.environ, "PYTHONPATH": str(CLIENT), "PYTHONDONTWRITEBYTECODE": "1", **(environment or {})}
    curl, python = shown_lines(page)
    reply = subprocess.run(["sh", "-c", curl], cwd=work, env=environment, stdout=subprocess.PIPE, check=True, timeout=60).stdout
    assert exact(reply)["c"] == expected, (curl, reply, expected)
    if NUMPY.exists():
        printed = subprocess.run([NUMPY, "-c", python], cwd=work, env=environment, stdout=subprocess.PIPE, check=True,
                                 timeout=60).stdout.decode()
        # curl prints JSON, the Python client prints a NumPy array.
        got = json.loads(printed)["c"] if printed.startswith("{") else [
            SAID.findall(row) for row in printed.replace("nan", "NaN").replace("inf", "Infinity").splitlines()]
        plain = [[str(float(x)) for x in row] for row in got]
        assert plain == [[str(float(x)) for x in row] for row in expected], (python, printed, expected)


def opening(browser):
    page = browser.open("/")
    page.wait(lambda page: page.find("#try-times table"), "the example's product is drawn")
    assert cells(page) == texts(fetch("/v1/matmul", {"a": [[1, 2], [3, 4]], "b": [[5, 6], [7, 8]]})["c"])
    page.wait(lambda page: page.find("#try-summary").text, "the variants have come")
    first, last = page.run("const at = name => performance.getEntriesByType('resource').find(one => one.name.endsWith(name));"
                           "return [at('/v1/matmul').responseEnd, at('/v1/variants').startTime]")
    assert last >= first, "the list of variants is loaded before the first product"
    rows = fetch("/v1/variants")["variants"]
    here = [row["name"] for row in rows if row["op"] == "matmul" and row["backend"] == "cpu"]
    names = [option.get_attribute("value") for option in Select(page.find("[name=variant]")).options]
    assert names[0] == "" and sorted(names[1:] + ["auto"]) == sorted(here), names
    choose(page, "dtype", "int8")
    names = [option.get_attribute("value") for option in Select(page.find("[name=variant]")).options]
    takers = [row["name"] for row in rows if row["op"] == "matmul" and row["backend"] == "cpu" and "int8" in row["dtypes"]]
    assert sorted(names[1:] + ["auto"]) == sorted(takers) and len(takers) < len(here), names
    same_by_lines(page, cells(page))
    return page


def typing(page):
    """Tests keys in the grid, 64-bit integers, NaN, adding and removing rows and columns, and paste."""
    choose(page, "dtype", "int64")
    put(page, '[aria-label="A, row 1, column 1"]', "9007199254740993")
    page.driver.switch_to.active_element.send_keys(Keys.ENTER, "-1", Keys.ARROW_RIGHT, "10", Keys.ARROW_UP, "0")
    assert cells(page, "[name=a]") == [["9007199254740993", "0"], ["-1", "10"]], cells(page, "[name=a]")
    got = multiply(page, lambda: page.driver.switch_to.active_element.send_keys(Keys.CONTROL, Keys.ENTER))
    expected = [[str(9007199254740993 * 5), str(9007199254740993 * 6)], ["65", "74"]]
    assert got == expected, got
    same_by_lines(page, expected)

    choose(page, "dtype", "")
    for text, shape in (("1\t2\n3\tNaN\n-5\t1e2\n", [["1", "2"], ["3", "NaN"], ["-5", "1e2"]]),
                        ("1; 2\r\n0.5; 4\r\n", [["1", "2"], ["0.5", "4"]]), ("1,2\n3\n", [["1", "2"], ["3", ""]]),
                        (" 1  2 3\n 4 5 6 ", [["1", "2", "3"], ["4", "5", "6"]])):
        page.run(PASTE, page.find("[name=a] td input"), text)
        assert cells(page, "[name=a]") == shape, (text, cells(page, "[name=a]"))
    for name in ("− column", "+ row", "+ row", "− row", "+ column", "− column"):
        page.run("[...document.querySelectorAll('[name=a] button')].find(one => one.textContent === arguments[0]).click()", name)
    assert cells(page, "[name=a]") == [["1", "2"], ["4", "5"], ["0", "0"]]
    put(page, '[aria-label="A, row 2, column 1"]', "NaN")
    page.find("[name=transpose_b]").click()
    page.find("[name=verify]").click()
    expected = texts(fetch("/v1/matmul", {"a": [[1, 2], ["NaN", 5], [0, 0]], "b": [[5, 6], [7, 8]], "transpose_b": True})["c"])
    assert multiply(page) == expected
    assert "passed true" in page.find("#try-facts").text
    same_by_lines(page, expected)


def times(page):
    rows = page.run("return [...document.querySelectorAll('#try-times tbody tr')].map(row => [row.cells[0].textContent, "
                    "+row.cells[1].textContent, ...[...row.querySelectorAll('i')].flatMap(bar => "
                    "[parseFloat(bar.style.left), parseFloat(bar.style.width)])])")
    names = [row[0] for row in rows]
    spans = ["server: " + name for name in (
        "receive", "decode", "queue", "upload", "kernel", "download", "encode", "other")]
    assert names[3:11] == spans and len(names) == 13, names
    before, wait, total, added, read = (rows[at] for at in (0, 1, 2, 11, 12))
    assert abs(sum(row[1] for row in rows[3:11]) - total[1]) < 0.01, rows
    assert abs(wait[1] - total[1] - added[1]) < 0.01, rows
    assert abs(total[2] - wait[2] - (wait[2] + wait[3] - total[2] - total[3])) < 0.01, "the server's total is in the middle"
    at = total[2]
    for _, _, left, width in rows[3:11]:
        assert abs(left - at) < 0.01, rows
        at = left + width
    assert abs(at - total[2] - total[3]) < 0.01 and abs(read[2] + read[3] - 100) < 0.01 and before[2] == 0, rows


def links(browser, page):
    """The address restores the view."""
    page.find("#try-link").click()
    page.wait(lambda page: page.find("#try-note").text == "Copied.", "the link is copied")
    page.run("Object.defineProperty(navigator, 'clipboard', { value: undefined })")  # browsers have no clipboard without https
    page.find("#try-link").click()
    assert page.run("return document.activeElement.id") == "try-link", "the focus is lost"
    seen, operand, address = cells(page), cells(page, "[name=a]"), page.run("return location.href")
    page.find('nav a[href="#compare"]').click()
    page.wait(lambda page: page.find("#compare").is_displayed(), "another view")
    page.find('nav a[href="#try"]').click()
    page.wait(lambda page: page.find("#try").is_displayed() and page.run("return location.href") == address, "back as it was")
    page = browser.open(address[len(tools.URL):])
    page.wait(lambda page: page.find("#try-times table"), "the link's product is drawn")
    assert cells(page) == seen and cells(page, "[name=a]") == operand
    assert page.find("[name=transpose_b]").is_selected() and page.find("[name=verify]").is_selected()
    page.run(PASTE, page.find("[name=a] td input"), "\n".join(["1,2"] * 2000))
    page.find("#try-link").click()
    page.wait(lambda page: "does not hold" in page.find("#try-note").text, "what the link lacks is said")
    assert len(page.run("return location.href")) < 4000
    assert not shown_lines(page)
    assert len(cells(page, "[name=a]")) == 16
    assert multiply(page)[0] == seen[0] and "2000×2" in page.find("#try-c caption").text
    lost = browser.open(page.run("return location.href")[len(tools.URL):])
    lost.wait(lambda page: "add what is missing" in page.find("#try-note").text, "what the link lacks is said")
    return lost


def problems(browser):
    page = browser.open("/#try?a=1,100&b=1,2&dtype=int8")
    page.expected = ["422", "400"]
    page.wait(lambda page: "do not conform" in page.find("#try-problem").text, "the shapes are refused")
    page.find("[name=transpose_b]").click()
    put(page, '[aria-label="A, row 1, column 2"]', "1000")
    page.find("#try .main").click()
    page.wait(lambda page: "a[0][1] is 1000" in page.find("#try-problem").text, "the element is refused")
    assert "bad" in page.find("[name=a]").get_attribute("class") and not page.find("#try-out").is_displayed()
    choose(page, "dtype", "int32")
    assert multiply(page) == [["2001"]] and not page.find_all(".bad") and not page.find("#try-problem").text
    page.run("const real = fetch; window.fetch = async (...all) => new Response(await (await real(...all)).text())")
    page.find("#try .main").click()
    page.wait(lambda page: "no Server-Timing" in page.find("#try-times").text, "a proxy took a header away")
    assert cells(page) == [["2001"]] and page.find("#try-c").is_displayed() and not page.find("#try-problem").text
    page = browser.open("/#try?variant=no_such")
    page.expected = ["422"]
    page.wait(lambda page: "no_such" in page.find("#try-problem").text, "the variant is refused")
    page.wait(lambda page: "not here" in page.find("[name=variant]").text, "the list has come")
    assert "bad" in page.find("[name=variant]").get_attribute("class")


def quoting(browser):
    """Text from a link stays within its quotes in the command lines that the page shows."""
    evil = """x'")\\$(id)#"""
    for parameters in ({"a_from": evil}, {"a": evil, "dtype": "bfloat16" + evil}, {"b": evil, "a_from": "identity()", "variant": evil}):
        page = browser.open("/#try?" + urllib.parse.urlencode(parameters))
        page.expected = ["404", "400", "422"]
        page.wait(lambda page: page.find("#try-problem").text, "it is refused")
        curl, python = shown_lines(page)
        sent = json.loads(shlex.split(curl)[-1])
        texts = [node.value for node in ast.walk(ast.parse(python)) if isinstance(node, ast.Constant)]
        assert evil in str(sent.get("variant")) or evil in (sent["a"].get("from") if "a_from" in parameters else sent["a"][0]), curl
        assert any(evil in json.dumps(text) or evil in str(text) or json.dumps(evil) in str(text) for text in texts), python


def npy(descr, shape, elements):
    head = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}"
    head = head.ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + elements


def files(browser):
    page = browser.open("/")
    page.wait(lambda page: page.find("#try-times table"), "the first product")
    (work / "it's; a.npy").write_bytes(npy("<f8", (2, 3), struct.pack("<6d", 1, 2, 3, 4, 5, 6.25)))
    (work / "b.csv").write_text("1;2\n3;4\n5;-6\n")
    choose(page, "a_from", "@")
    page.find("#try .main").click()
    assert not page.run("return document.querySelector('#try-form').checkValidity()"), "a file is asked for"
    page.find("[name=a] [type=file]").send_keys(str((work / "it's; a.npy").resolve()))
    page.wait(lambda page: "2×3 float64" in page.find("[name=a] .file p").text, "the head of the file is read")
    page.run(DROP, page.find("[name=b] legend"), (work / "b.csv").read_text(), "b.csv")
    page.wait(lambda page: "b.csv: 3×2" in page.find("[name=b] .file p").text, "the file is dropped")
    expected = texts(fetch("/v1/matmul", {"a": [[1, 2, 3], [4, 5, 6.25]], "b": [[1, 2], [3, 4], [5, -6]], "dtype": "float64"})["c"])
    assert multiply(page) == expected and "2×2, float64" in page.find("#try-c caption").text
    same_by_lines(page, expected)
    choose(page, "b_from", "")
    page.run(PASTE, page.find("[name=b] td input"), "1\n0\n-Infinity")
    expected = [["-Infinity"], ["-Infinity"]]
    assert multiply(page) == expected
    same_by_lines(page, expected)
    # A file name may look like a generated operand. A newly dropped file replaces a file that is still being
    # read.
    page.run(DROP, page.find("[name=a] legend"), "1,2\n", "copy(1)")
    page.wait(lambda page: "copy(1)" in page.find("[name=a] .file p").text, "the file is taken")
    assert not page.find("[name=m]").is_displayed() and "'m=" not in shown_lines(page)[0]
    page.driver.execute_async_script("""const [done] = arguments, slow = new File(['1;2'], 'slow.csv');
        let read;
        slow.text = () => new Promise((resolve) => { read = resolve; });
        for (const file of [slow, new File(['1;2;3'], 'next.csv')]) {
          const event = new DragEvent('drop', { bubbles: true, cancelable: true });
          Object.defineProperty(event, 'dataTransfer', { value: { files: [file] } });
          document.querySelector('[name=b] legend').dispatchEvent(event);
        }
        const shown = () => document.querySelector('[name=b] .file p').textContent.startsWith('next') ?
          (read('1;2'), setTimeout(done, 50)) : setTimeout(shown, 10);
        shown();""")
    assert page.find("[name=b] .file p").text == "next.csv: 1×3", page.find("[name=b] .file p").text
    choose(page, "b_from", "")
    (work / "stack.npy").write_bytes(npy("<f4", (5, 1, 3), struct.pack("<15f", *range(15))))
    page.find("[name=a] [type=file]").send_keys(str((work / "stack.npy").resolve()))
    page.wait(lambda page: "5×1×3 float32" in page.find("[name=a] .file p").text, "the stack's head is read")
    assert multiply(page) == [] and "5×1×1, float32: download it" in page.find("#try-c caption").text


def made(browser):
    """The page shows only a corner of a large product of generated operands, but the download is complete."""
    page = browser.open("/#try?a_from=uniform(7)&b_from=uniform(2)&m=700&k=40&n=20")
    page.wait(lambda page: page.find("#try-times table"), "the product of random matrices")
    request = {"a": {"from": "uniform(7)"}, "b": {"from": "uniform(2)"}, "m": 700, "k": 40, "n": 20}
    expected = texts(fetch("/v1/matmul", {**request, "rows": "0:16", "cols": "0:16"})["c"])
    assert cells(page) == expected and len(expected) == 16
    assert "700×20" in page.find("#try-c caption").text
    same_by_lines(page, expected)
    page.driver.execute_cdp_cmd("Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(work.resolve())})
    page.find("#try-download").click()
    page.wait(lambda _: (work / "c.npy").stat().st_size == 128 + 700 * 20 * 4, "the whole product is downloaded")

    fetch_put = urllib.request.Request(tools.URL + "/v1/matrices/" + KEPT, b'{"a": [[1,0,2]], "dtype": "int32"}', method="PUT")
    urllib.request.urlopen(fetch_put, timeout=20).close()
    page = browser.open("/")
    page.wait(lambda page: page.find(f'[name=a_from] [value={KEPT}]'), "the stored matrix is listed")
    choose(page, "a_from", KEPT)
    assert page.find(f"[name=b_from] [value={KEPT}]").text == f"stored: {KEPT}, 1×3 int32"
    choose(page, "b_from", "identity()")
    put(page, "[name=n]", "20")
    assert not page.find("[name=m]").is_displayed() and not page.find("[name=k]").is_displayed()
    assert multiply(page) == [["1", "0", "2"] + ["0"] * 13]
    choose(page, "b_from", "")
    page.run(PASTE, page.find("[name=b] td input"), "1\n2\n3")
    assert multiply(page) == [["7"]]
    same_by_lines(page, [["7"]])
    page.find("[name=transpose_a]").click()
    page.find("[name=transpose_b]").click()
    assert multiply(page) == [["1", "2", "3"], ["0", "0", "0"], ["2", "4", "6"]] and "3×3" in page.find("#try-c caption").text
    page.find("[name=transpose_a]").click()
    page.find("[name=transpose_b]").click()

    vector = urllib.request.Request(tools.URL + "/v1/matrices/vector", b'{"a": [1, 2]}', method="PUT")
    urllib.request.urlopen(vector, timeout=20).close()
    choose(page, "a_from", "")
    page.run(PASTE, page.find("[name=a] td input"), "1,1\n" * 20)
    page.run("""const option = new Option('', 'vector'), select = document.querySelector('[name=b_from]');
        select.append(option); select.value = 'vector'; select.dispatchEvent(new Event('input', { bubbles: true }));""")
    assert multiply(page) == [["3"] * 16] and "C, 20," in page.find("#try-c caption").text
    choose(page, "b_from", "")

    # Starting a second product cancels the first.
    choose(page, "a_from", "")
    page.run(PASTE, page.find("[name=a] td input"), "1,2\n3,4")
    page.run("""const real = fetch, set = (text) => {
            const input = document.querySelector('[name=b] td input');
            input.value = text;
            input.dispatchEvent(new Event('input', { bubbles: true }));
        };
        window.signals = [];
        window.fetch = (path, options) => (signals.push(options.signal), real(path, options));
        window.twice = () => ['5', '6'].forEach((text) => (set(text), document.querySelector('#try .main').click()));""")
    page.run(PASTE, page.find("[name=b] td input"), "0,1\n1,0")
    assert multiply(page, lambda: page.run("twice()")) == [["8", "1"], ["22", "3"]]
    assert page.run("return signals.map(signal => signal.aborted)") == [True, False], "the first goes on"

    # Leaving the view also cancels a product, and the last result stays visible.
    page.run("window.fetch = (path, { signal }) => new Promise((done, fail) => { signal.onabort = () => fail(signal.reason); })")
    page.find("#try .main").click()
    page.wait(lambda page: re.match(r"Multiplying… \d+ s", page.find("#try-note").text), "it runs, and how long")
    page.find('nav a[href="#compare"]').click()
    page.wait(lambda page: page.run("return document.querySelector('#try-note').textContent") == "", "it is cancelled")
    page.find('nav a[href="#try"]').click()
    page.wait(lambda page: cells(page) == [["8", "1"], ["22", "3"]] and page.find("#try-c").is_displayed(), "back as it was")


def more(browser):
    """alpha, beta, c, bias and activation: typed, stored and generated, beside arrays and beside a file."""
    page = browser.open("/")
    page.wait(lambda page: page.find("#try-times table"), "the first product")
    page.find("#try-more summary").click()
    for name, text in (("alpha", "0.5"), ("beta", "-2"), ("c", "1, 2; 3,NaN"), ("bias", "-0.5,1")):
        put(page, f"#try [name={name}]", text)
    page.find("[name=activation]").send_keys("relu")
    request = {"a": [[1, 2], [3, 4]], "b": [[5, 6], [7, 8]], "alpha": 0.5, "beta": -2, "bias": [-0.5, 1], "activation": "relu"}
    expected = texts(fetch("/v1/matmul", {**request, "c": [[1, 2], [3, "NaN"]]})["c"])
    assert multiply(page) == expected and expected[1][1] == "NaN", expected
    same_by_lines(page, expected)
    page = browser.open(page.run("return location.href")[len(tools.URL):])
    page.wait(lambda page: page.find("#try-times table"), "the link's product is drawn")
    assert cells(page) == expected and page.find("#try [name=bias]").is_displayed(), "the fold is open"

    kept = urllib.request.Request(tools.URL + "/v1/matrices/added", b'{"a": [[1, -20], [3, 4]]}', method="PUT")
    urllib.request.urlopen(kept, timeout=20).close()
    page.find("#try [name=c]").clear()
    put(page, "[name=c_from]", "added")
    expected = texts(fetch("/v1/matmul", {**request, "c": {"from": "added"}})["c"])
    assert multiply(page) == expected
    same_by_lines(page, expected)
    page.run(DROP, page.find("[name=a] legend"), "1,2\n3,4\n", "a.csv")
    page.wait(lambda page: "a.csv: 2×2" in page.find("[name=a] .file p").text, "the file is taken")
    (work / "a.csv").write_text("1,2\n3,4\n")
    for c_from, c in ("added", ""), ("", "1,-20;3,4"):
        page.find("#try [name=c]").clear()
        page.find("[name=c_from]").clear()
        page.find("#try [name=c_from]" if c_from else "#try [name=c]").send_keys(c_from or c)
        assert multiply(page) == expected
        same_by_lines(page, expected)
    choose(page, "a_from", "")
    page.find("#try [name=c]").clear()
    put(page, "[name=c_from]", "uniform(3)")
    expected = texts(fetch("/v1/matmul", {**request, "c": {"from": "uniform(3)"}})["c"])
    assert multiply(page) == expected
    same_by_lines(page, expected)
    page.expected = ["400"]
    put(page, "[name=alpha]", "x")
    page.find("#try .main").click()
    page.wait(lambda page: "alpha is" in page.find("#try-problem").text, "the factor is refused")
    assert "bad" in page.find("[name=alpha]").get_attribute("class")


def keys(browser):
    """A server with API keys: the page asks for a key in a dialog. Command lines have the key in a variable."""
    environment = {**os.environ, "MATMULD_API_KEY": "open-sesame-0123456789"}
    options = ["--backend", "cpu", "--port", "0", "--log-format", "text", "--store-memory", "0"]
    server = subprocess.Popen([os.environ["MATMULD"], *options], env=environment, stderr=subprocess.PIPE, text=True)
    try:
        tools.URL = next(re.search(r"http://\S+", line) for line in server.stderr if "listening on" in line)[0]
        next(line for line in server.stderr if line.strip().endswith("ready"))
        page = browser.open("/")
        page.expected = ["401", "404"]
        page.wait(lambda page: "needs an API key" in page.find("#try-note").text, "a hint, and no dialog")
        assert not page.find_all("dialog") and not page.find("#try-problem").text
        page.find("#try .main").click()
        page.wait(lambda page: page.find("dialog input"), "the key is asked for").send_keys("\u20ac", Keys.ENTER)
        page.find("dialog input").clear()  # the page rejected a key with invalid characters
        page.find("dialog input").send_keys("open-sesame-0123456789 ", Keys.ENTER)
        page.wait(lambda page: page.find("#try-times table") and page.find("#try-summary").text, "the product")
        assert cells(page) == [["19", "22"], ["43", "50"]]
        times(page)
        page.run("document.querySelector('[name=verify]').click()")
        same_by_lines(page, cells(page), environment)
        choose(page, "a_from", "identity()")
        put(page, "[name=m]", "2")
        same_by_lines(page, multiply(page), environment)
        assert "$MATMULD_API_KEY" in shown_lines(page)[0] and "sesame" not in page.run("return document.body.textContent")
    finally:
        server.kill()
        tools.URL = URL


with Browser() as browser:
    page = opening(browser)
    typing(page)
    times(page)
    links(browser, page)
    problems(browser)
    quoting(browser)
    files(browser)
    made(browser)
    more(browser)
    keys(browser)
    for size, scheme in LOOKS:
        page = browser.open("/", size, scheme)
        page.wait(lambda page: page.find("#try-times table") and page.find("#try-summary").text, "all is drawn")
        page.finish("try")
