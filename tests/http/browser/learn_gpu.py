"""Tests the view Learn with a GPU. While another benchmark runs, the page waits without an error. Then it
shows the measured times."""

import http.client
import json
import select
import urllib.error
import urllib.parse

from browser import URL, Browser, fetch

# Records each error that the page shows, even briefly.
WATCH = """
window.problems = [];
new MutationObserver(() => problems.push(...[...document.querySelectorAll('.problem')]
  .filter(one => one.checkVisibility()).map(one => one.textContent))).observe(document, { childList: true, subtree: true });"""
ACCESS = {"op": "shared_access", "patterns": "stride", "strides": 32, "word_bytes": 4, "bank_bytes": 4}


def is_busy():
    try:
        fetch("/v1/benchmark", {"m": 1, "k": 1, "n": 1, "variants": ["cpu:naive"], "repeats": 1})
    except urllib.error.HTTPError as error:
        return error.code == 429
    return False


def occupy():
    """Starts a benchmark that runs until its connection closes. Returns the connection."""
    while True:
        other = http.client.HTTPConnection(urllib.parse.urlsplit(URL).netloc)
        other.request("POST", "/v1/benchmark", json.dumps({"m": 512, "k": 512, "n": 512, "variants": ["cpu:naive"], "repeats": 1000}))
        while not select.select([other.sock], [], [], 0)[0]:
            if is_busy():
                return other
        other.close()


with Browser() as browser:
    browser.driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": WATCH})
    other = occupy()
    page = browser.open("/#learn?lesson=banks&stride=32")
    page.wait(lambda page: "busy" in page.find("#learn [role=status]").text, "the page waits")
    other.close()  # ends the other benchmark
    page.wait(lambda page: page.find("#learn [role=status]").text == "Degree 32, 32 passes", "the access is predicted")
    shown = page.run("return [...document.querySelectorAll('#learn .figures tbody tr')].map(row => +row.cells[3].textContent)")
    rows = [row for row in fetch("/v1/benchmark", ACCESS)["rows"] if row["memory"] == "shared"]
    assert rows[0]["measured"] and shown == [row["latency_cycles"] for row in rows], (shown, rows[0])
    assert not page.run("return problems"), page.run("return problems")
    page.expected.append("429")  # the browser's console reports replies with an error status
    faults = page.find_violations()
    assert not faults, faults
