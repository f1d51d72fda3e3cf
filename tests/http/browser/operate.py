"""Tests the view Operate with metrics of a real server, then with simulated metrics and a simulated clock."""

import json
import re
import urllib.request

from browser import LOOKS, URL, Browser, fetch

OWN = ("/metrics", "/readyz", "/v1/devices")
PROBLEM = {"type": "urn:matmuld:problem:x", "title": "No", "detail": "for a reason", "status": 0, "request_id": "x"}

# Replaces the page's requests and clock. `replies` maps a path to status, text and required key. The page
# polls when the test calls tick().
TAKE_OVER = """
window.replies = {}; window.asked = []; window.clock = Math.ceil(performance.now()) + 1e6;
performance.now = () => clock;
window.setTimeout = (callback) => { window.tick = callback; return 0; };
window.clearTimeout = () => { window.tick = null; };
const silence = new Promise((resolve) => { window.fallSilent = resolve; });
AbortSignal.timeout = () => {
  const limit = new AbortController();
  silence.then(() => limit.abort(new DOMException('too late', 'TimeoutError')));
  return limit.signal;
};
window.fetch = async (path, { headers, signal }) => {
  asked.push(path);
  await Promise.race([window.held, new Promise((_, fail) => { if (signal) signal.onabort = () => fail(signal.reason); })]);
  const [status, text, key] = replies[path];
  if (status === 0) throw new TypeError('no connection');
  const denied = key && headers.Authorization !== 'Bearer ' + key;
  return new Response(denied ? '{"code": "unauthorized", "detail": "no key"}' : text, { status: denied ? 401 : status });
};
"""


def metrics():
    with urllib.request.urlopen(URL + "/metrics", timeout=60) as reply:
        return reply.read().decode()


def series(text, name, **labels):
    """Returns labels and values of all series of a metric that have these labels."""
    found = []
    for inner, value in re.findall(rf"^matmuld_{name}(?:\{{(.*)\}})? (\S+)$", text, re.M):
        has = dict(re.findall(r'(\w+)="([^"]*)"', inner))
        if labels.items() <= has.items():
            found.append((has, float(value)))
    return found


def total(text, name, **labels):
    return sum(value for _, value in series(text, name, **labels))


def quantile_ms(share, text, route):
    """Computes Prometheus' histogram_quantile for a route, formatted as on the page."""
    steps = [(float(labels["le"]), count) for labels, count in series(text, "request_duration_seconds_bucket", route=route)]
    rank = share * steps[-1][1]
    below = max([step for step in steps if step[1] < rank], default=(0, 0))
    above = min(step for step in steps if step[1] >= rank)
    return below[0] * 1000 + (above[0] - below[0]) * 1000 * (rank - below[1]) / (above[1] - below[1])


def rows(page, name):
    """Returns a dict from the first cell of each row to the other cells."""
    cells = page.run("return [...document.querySelectorAll(`#operate .${arguments[0]} tbody tr`)]"
                     ".map(row => [...row.cells].map(cell => cell.textContent))", name)
    return {row[0]: row[1:] for row in cells}


def facts(page):
    return dict(page.run("return [...document.querySelectorAll('#operate .facts > div')]"
                         ".map(fact => [...fact.children].map(one => one.textContent))"))


def counted(page):
    return {path: int(cells[0].replace(",", "")) for path, cells in rows(page, "requests").items() if path != "all"}


def expected(text):
    paths = {labels["route"] for labels, value in series(text, "http_requests_total") if value}
    return {path: total(text, "http_requests_total", route=path) for path in paths if path not in OWN}


def refuse(path, body=None):
    try:
        fetch(path, body)
    except urllib.error.HTTPError as error:
        return error.code
    raise AssertionError(path)


def follows_a_real_server(browser):
    page = browser.open("/#operate")
    page.wait(lambda page: rows(page, "requests"), "the first reading")
    assert page.find("#operate [role=status]").text == "Ready"
    urllib.request.urlopen(urllib.request.Request(
        URL + "/v1/matrices/kept", b'{"a": [[1, 2]]}', {"Content-Type": "application/json"}, method="PUT"), timeout=60)
    assert [refuse("/v1/matrices/none") for _ in range(3)] == [404] * 3
    assert [refuse("/v1/matmul", {"a": [[1, 2]], "b": [[1, 2]]}) for _ in range(5)] == [422] * 5
    for _ in range(30):
        fetch("/v1/matmul", {"a": [[1, 2], [3, 4]], "b": [[5, 6], [7, 8]]})
    page.wait(lambda page: counted(page) == expected(metrics()), "the page has counted all requests")
    page.find("#operate button").click()
    assert page.find("#operate button").text == "Resume" and page.find("#operate [role=status]").text == "Paused"

    text = metrics()
    assert counted(page)["/v1/matmul"] == 35
    seconds = float(re.search(r"last ([\d.,]+) s", page.find("#operate .requests caption").text)[1].replace(",", ""))
    product = rows(page, "requests")["/v1/matmul"]
    for column, count in ((1, 30), (2, 0), (3, 5), (4, 0)):
        assert abs(float(product[column]) * seconds - count) <= .02 * count, (product, seconds)
    for column, share in ((5, .5), (6, .9), (7, .99)):
        assert abs(float(product[column]) / quantile_ms(share, text, "/v1/matmul") - 1) < .01, (product, share)
    rejected = {labels["reason"]: [str(int(value))] for labels, value in series(text, "rejected_total") if value}
    assert {code: cells[:1] for code, cells in rows(page, "rejected").items() if code != "all"} == rejected
    assert rejected == {"bad_shape": ["5"], "no_such_matrix": ["3"]}

    shown = facts(page)
    assert shown["Version"] == series(text, "build_info")[0][0]["version"]
    assert shown["Products waiting"] == f"0 of {int(total(text, 'queue_jobs_max')):,}"
    assert shown["Stored matrices: 1"].startswith("8 B of ") and "Memory budget" in shown
    [device] = fetch("/v1/devices")["devices"]
    [row] = rows(page, "devices").items()
    assert row[0] == "cpu:0" and row[1][:2] == [device["name"], device["state"]] and row[1][3] == "0", row
    assert abs(float(row[1][4]) * seconds - 30) < 1, "kernels a second"
    assert page.find("#operate .points tbody tr") and page.find("#operate .latency canvas")
    return page


def made_up(start, requests, slow, waiting):
    """Returns metrics of a server with two GPUs. `slow` requests take longer than the last bucket, the
    others 1 to 2 ms."""
    lines = [f"process_start_time_seconds {start}", 'matmuld_build_info{version="9.9"} 1', f"matmuld_queue_jobs {waiting}"]
    counts = {".001": 0, ".002": requests, "+Inf": requests + slow}
    for route, code in (("/v1/matmul", 200), ("/metrics", 200)):
        lines.append(f'matmuld_http_requests_total{{route="{route}",code="{code}"}} {requests + slow}')
        lines += [f'matmuld_request_duration_seconds_bucket{{route="{route}",le="{le}"}} {count}'
                  for le, count in counts.items()]
    lines += [f'matmuld_kernel_duration_seconds_{what}{{variant="simt",backend="cuda",op="matmul"}} {value}'
              for what, value in (("count", requests), ("sum", requests / 100))]
    lines += ['matmuld_device_errors_total{device="cuda:1",kind="device_failed"} 3',
              r'matmuld_key_requests_total{key="a \"b} 1"} 7']
    return "\n".join(lines)


DEVICES = json.dumps({"devices": [
    {"index": 0, "backend": "cuda", "name": "GPU", "memory_bytes": 4 << 30, "memory_free_bytes": 1 << 30, "state": "ready"},
    {"index": 1, "backend": "cuda", "name": "GPU", "memory_bytes": 4 << 30, "state": "failed"}]})


def serve(page, metrics_text=None, key=None, ready=200):
    problem = json.dumps({**PROBLEM, "status": ready})
    page.run("window.replies = arguments[0]", {"readyz": [ready, problem], "v1/devices": [200, DEVICES, key],
                                               "metrics": [200, metrics_text, key]})


def tick(page, seconds=10):
    page.driver.execute_async_script(
        "clock += arguments[0] * 1000; asked.length = 0; window.tick().then(arguments[1], arguments[1])", seconds)
    return page.run("return asked")


def chart(page, name):
    """Returns the id of a chart, and the last three values of its first line."""
    return page.run("const drawn = Chart.getChart(document.querySelector(`#operate .${arguments[0]} canvas`));"
                    "return [drawn.id, drawn.data.datasets[0].data.slice(-3).map(point => point.y)]", name)


def follows_made_up_metrics(page):
    page.run(TAKE_OVER)
    serve(page, made_up(1, 100, 0, 0))
    page.wait(lambda page: page.run("return Boolean(window.tick)"), "the last timer of the page's own has passed")
    assert tick(page) == [], "a paused page asks for nothing"
    page.find("#operate button").click()
    page.wait(lambda page: facts(page)["Version"] == "9.9", "Resume takes a reading")
    identity, _ = chart(page, "rate")
    assert rows(page, "requests")["/v1/matmul"] == ["100"] + ["–"] * 7, "there is nothing to compare it with"
    assert rows(page, "devices")["cuda:0"][4:] == ["–", "–"]

    serve(page, made_up(1, 138, 2, 5))
    assert tick(page) == ["readyz", "v1/devices", "metrics"]
    assert rows(page, "requests") == {"all": ["140", "4", "0", "0", "0", "1.53", "1.95", "> 2"],
                                      "/v1/matmul": ["140", "4", "0", "0", "0", "1.53", "1.95", "> 2"]}
    assert rows(page, "devices") == {"cuda:0": ["GPU", "ready", "3 GiB of 4 GiB", "0", "3.8", "3.8%"],
                                     "cuda:1": ["GPU", "failed", "–", "3", "3.8", "3.8%"]}
    assert chart(page, "rate") == [identity, [None, None, 4]], chart(page, "rate")
    assert chart(page, "queue")[1][-1] == 5
    serve(page, made_up(1, 148, 2, 5))
    for _ in range(6):
        tick(page)
    assert "over the last 60 s" in page.find("#operate .requests caption").text
    assert rows(page, "requests")["/v1/matmul"][:2] == ["150", "0.167"], "readings of more than a minute ago count no more"

    page.find("#operate input").click()
    page.wait(lambda page: rows(page, "requests").get("/metrics", [""])[0] == "150", "the page's own requests count")
    assert rows(page, "requests")["all"][0] == "300" and page.run("return location.hash") == "#operate?own=1"
    page.find("#operate input").click()
    page.wait(lambda page: "/metrics" not in rows(page, "requests"), "they count no more")

    serve(page, made_up(2, 10, 0, 0))
    tick(page)
    assert rows(page, "requests")["/v1/matmul"] == ["10"] + ["–"] * 7, "a restarted server begins anew"
    serve(page, made_up(2, 20, 0, 0))
    tick(page, 30)
    assert rows(page, "requests")["/v1/matmul"][1] == "0.333"
    assert chart(page, "rate")[1][1:] == [None, 1 / 3], "nothing is drawn for time without readings"

    serve(page, made_up(2, 20, 0, 0), ready=503)
    tick(page)
    assert page.find("#operate [role=status]").text == "Not ready: for a reason"
    page.run("replies.metrics = [0]")
    tick(page)
    assert "did not answer" in page.find("#operate .hint .problem").text

    serve(page, made_up(2, 30, 0, 0), key="secret")
    assert tick(page) == ["readyz", "v1/devices"]
    assert "need a valid API key" in page.find("#operate .hint").text
    assert tick(page) == [], "the same key is not tried again"
    page.find("#operate .hint button").click()
    page.wait(lambda page: page.find("dialog #key-value"), "the dialog").send_keys("secret\n")
    page.wait(lambda page: rows(page, "requests")["/v1/matmul"][0] == "30", "the key is used")
    page.wait(lambda page: not page.find("#operate .hint").text, "the hint goes")

    page.run("window.held = new Promise(release => { window.release = release; }); window.ended = tick();"
             "location.hash = '#compare'")
    page.wait(lambda page: page.find("#compare").is_displayed(), "the other view")
    page.driver.execute_async_script("release(); ended.then(arguments[0])")
    assert page.run("return tick") is None, "another view ends the polling, in the middle of a poll too"
    page.run("location.hash = '#operate'")
    page.wait(lambda page: page.run("return Boolean(tick)"), "it goes on")

    page.run("asked.length = 0; window.held = new Promise(() => {}); window.ended = tick()")
    page.wait(lambda page: page.run("return asked.length"), "a poll")
    page.run("fallSilent()")
    page.wait(lambda page: page.find("#operate [role=status]").text.startswith("Not ready"), "a silent server is not ready")
    page.run("location.hash = '#compare'")
    page.wait(lambda page: page.find("#compare").is_displayed(), "the other view")
    assert page.run("return tick") is None, "another view ends the polling"


with Browser() as browser:
    follows_made_up_metrics(follows_a_real_server(browser))
    page = browser.open("/#operate?own=1")
    page.wait(lambda page: "/metrics" in rows(page, "requests"), "a link reproduces the choice")
    for size, scheme in LOOKS:
        page = browser.open("/#operate", size, scheme)
        page.wait(lambda page: page.find("#operate .queue canvas"), "the charts")
        page.run("document.querySelector('#operate details').open = true")
        assert not page.clipped("#operate"), page.clipped("#operate")
        page.finish("operate")
