"""Tests what all views share: navigation, size of the page, and that the page loads only from its own host."""

import statistics
import urllib.request

from browser import URL, Browser
from selenium.webdriver.common.keys import Keys

OPENINGS = 5
OWN_BYTES_MAX, ALL_BYTES_MAX = 60 * 1024, 300 * 1024


def shown(page):
    return [one.get_attribute("id") for one in page.find_all("main > section") if one.is_displayed()]


with Browser() as browser:
    page = browser.open("/")
    for link, section in (("#learn", "#learn"), ("#compare", "#compare"), ("#operate", "#operate"), ("#try", "#try")):
        page.find(f'nav a[href="{link}"]').click()
        page.wait(lambda page: page.find(section).is_displayed(), f"{section} is shown")
        assert shown(page) == [section[1:]]
        assert page.find("nav a[aria-current]").get_attribute("href").endswith(link)
    names = page.run("return performance.getEntriesByType('resource').map(one => one.name)")
    files = {URL + "/"} | {name for name in names if "/page/" in name}
    assert URL + "/page/try.js" in files and URL + "/page/chart.js" in files, files
    sent, plain = (
        {name: len(urllib.request.urlopen(urllib.request.Request(name, headers=headers), timeout=20).read()) for name in files}
        for headers in ({"Accept-Encoding": "gzip"}, {}))
    for what, weights in (("as sent", sent), ("uncompressed", plain)):
        own = sum(bytes for name, bytes in weights.items() if not name.endswith("/chart.js"))
        print(f"the page with all views, {what}: {own} bytes of its own, {sum(weights.values())} with Chart.js")
    own = sum(bytes for name, bytes in sent.items() if not name.endswith("/chart.js"))
    assert own <= OWN_BYTES_MAX and sum(sent.values()) <= ALL_BYTES_MAX, sent
    assert not page.find_violations()

    slow = {"offline": False, "latency": 500, "downloadThroughput": -1, "uploadThroughput": -1}
    page.driver.execute_cdp_cmd("Network.emulateNetworkConditions", slow)
    page = browser.open("/#compare?part=code")
    page.wait(lambda page: page.find("#compare").is_displayed(), "the view of the address")
    page.find(".skip").send_keys(Keys.ENTER)
    page.wait(lambda page: page.find("#compare .code pre").text, "the part of the address")
    assert page.run("return [location.hash.split('?')[0], document.activeElement.id]") == ["#compare", "main"], \
        "the link past the navigation leads to the view, whose parts leave the focus there"
    page.driver.execute_cdp_cmd("Network.emulateNetworkConditions", {**slow, "latency": 0})

    page = browser.open("/#constructor")
    page.wait(lambda page: page.find("#try").is_displayed(), "an unknown name shows the first view")
    page.run("addEventListener('hashchange', () => { location.hash = '#operate'; }, { once: true }); location.hash = '#compare'")
    page.wait(lambda page: page.find("#operate").is_displayed(), "the second of two quick choices")
    page.driver.execute_async_script("import(new URL('page/compare.js', location)).then(() => setTimeout(arguments[0]))")
    assert shown(page) == ["operate"], "the first one is shown too"
    assert not page.find_violations()

    page = browser.open("/")
    page.wait(lambda page: page.find("#try").is_displayed(), "the first view")
    page.driver.execute_cdp_cmd("Network.setBlockedURLs", {"urls": ["*/page/compare.js"]})
    page.find('nav a[href="#compare"]').click()
    page.wait(lambda page: "did not load" in page.find("#failed").text, "a view that does not load is reported")
    assert shown(page) == []
    page.find('nav a[href="#try"]').click()
    page.wait(lambda page: shown(page) == ["try"] and not page.find("#failed").is_displayed(), "the views that are there work on")

    # Prints the times but does not check them, because a busy machine is slow.
    since_load = []
    for _ in range(OPENINGS):
        page = browser.open("/")
        page.wait(lambda page: page.run("return performance.getEntriesByName('try-product').length"), "the first product")
        since_load.append(page.run("return performance.getEntriesByName('try-product')[0].startTime"
                                   " - performance.getEntriesByType('navigation')[0].loadEventEnd"))
    print(f"the first product, ms after the load event: {statistics.median(since_load):.0f} (median of {OPENINGS};"
          f" {min(since_load):.0f} to {max(since_load):.0f})")
