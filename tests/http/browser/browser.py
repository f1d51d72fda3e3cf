"""Functions for the tests of the page in headless Chromium.

A test opens a Page with a width and a colour scheme, uses it, and calls finish(). This takes a screenshot.
It fails on an error in the console, a request to another host, an accessibility problem found by axe, or a
page wider than its window."""

import json
import pathlib
import sys
import urllib.parse
import urllib.request

import axe_core_python
from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

URL, SCREENSHOTS = sys.argv[1], pathlib.Path(sys.argv[2])
AXE = (pathlib.Path(axe_core_python.__file__).parent / "axe.min.js").read_text()
SECONDS = 20  # time limit for each wait; shorter limits fail on a busy machine
SIZES = {"wide": (1280, 900), "phone": (360, 740)}
LOOKS = (("wide", "light"), ("phone", "dark"))  # finish() checks each view in these


def fetch(path, body=None, headers=None):
    """Returns the API's JSON reply, to compare with what the page shows."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(URL + path, data, {"Content-Type": "application/json", **(headers or {})})
    with urllib.request.urlopen(request, timeout=60) as reply:
        return json.load(reply)


class Browser:
    """Chromium, which shows one page after another."""

    def __enter__(self):
        options = webdriver.ChromeOptions()
        options.binary_location = "/usr/bin/chromium"
        for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu", "--hide-scrollbars"):
            options.add_argument(argument)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        self.driver = webdriver.Chrome(options, Service("/usr/bin/chromedriver"))
        return self

    def __exit__(self, *error):
        self.driver.quit()

    def open(self, address, size="wide", scheme="light"):
        return Page(self.driver, address, size, scheme)


class Page:
    """A tab at URL + address. A test appends to `expected` the console messages that it causes."""

    def __init__(self, driver, address, size, scheme):
        self.driver, self.size, self.scheme, self.expected = driver, size, scheme, []
        width, height = SIZES[size]
        driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {
            "width": width, "height": height, "deviceScaleFactor": 1, "mobile": size == "phone"})
        driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {
            "features": [{"name": "prefers-color-scheme", "value": scheme}]})
        driver.get("about:blank")  # otherwise a new part after # would not load the page again
        self.messages()
        driver.get(URL + address)

    def find(self, selector):
        return self.driver.find_element(By.CSS_SELECTOR, selector)

    def find_all(self, selector):
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def wait(self, condition, what):
        """Waits until condition(page) is true, and returns its value."""
        return WebDriverWait(self.driver, SECONDS, 0.05, (Exception,)).until(lambda _: condition(self), what)

    def run(self, script, *arguments):
        return self.driver.execute_script(script, *arguments)

    def messages(self):
        """Returns console messages and requested addresses since the last call."""
        console = [entry["message"] for entry in self.driver.get_log("browser") if entry["level"] in ("SEVERE", "WARNING")]
        events = [json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance")]
        requests = [event["params"]["request"]["url"] for event in events if event["method"] == "Network.requestWillBeSent"]
        return console, requests

    def clipped(self, view):
        """Returns the tables of a view that are wider than their container."""
        return self.run("return [...document.querySelectorAll(arguments[0] + ' .scroll:has(table)')]"
                        ".filter(one => one.scrollWidth > one.clientWidth).map(one => one.textContent)", view)

    def finish(self, name):
        """Checks the current state of the page, and takes a screenshot."""
        violations = self.find_violations()
        height = min(6000, self.run("return document.documentElement.scrollHeight"))
        width = SIZES[self.size][0]
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {
            "width": width, "height": height, "deviceScaleFactor": 1, "mobile": self.size == "phone"})
        self.driver.save_screenshot(str(SCREENSHOTS / f"{name}-{self.size}-{self.scheme}.png"))
        assert not violations, f"{name} {self.size} {self.scheme}: " + "; ".join(violations)

    def find_violations(self):
        console, requests = self.messages()
        bad = [text for text in console if not any(part in text for part in self.expected)]
        host = urllib.parse.urlsplit(URL).netloc
        bad += [f"request to {url}" for url in requests
                if urllib.parse.urlsplit(url).scheme in ("http", "https", "ws", "wss") and urllib.parse.urlsplit(url).netloc != host]
        wide = self.run("return document.documentElement.scrollWidth") - self.run("return document.documentElement.clientWidth")
        if wide > 0:
            bad.append(f"the page is {wide} pixels wider than its window")
        bad += self.run("return [...document.querySelectorAll('caption')].filter(one => one.checkVisibility()"
                        "&& one.getBoundingClientRect().right > innerWidth).map(one => 'clipped: ' + one.textContent)")
        bad += self.run("return [...document.querySelectorAll('.copied pre')].filter(one => one.scrollWidth > one.clientWidth)"
                        ".map(one => 'beneath its button: ' + one.textContent)")
        self.run(AXE)
        # axe would check the text of closed folds against the colours of what lies in its place. Other result types would
        # double the time that axe takes.
        result = self.driver.execute_async_script("axe.run({exclude: ['details:not([open]) > :not(summary)']},"
                                                  "{resultTypes: ['violations']}).then(arguments[0], error => arguments[0]({error: String(error)}))")
        assert "error" not in result, result
        bad += [f"axe: {violation['id']}: {violation['nodes'][0]['html'][:200]}" for violation in result["violations"]]
        return bad
