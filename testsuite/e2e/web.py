"""web.py: checks the page of tcclacct serve. Called by web.sh, which says what ran."""
import json
import os
import re
import socket
import subprocess
import sys
import threading

from browser import Browser, Failed

MINI, CLUSTER, WORK, MIXED, SINGLE, ROOTS, LONGER, *HOSTILE = sys.argv[1:]
NOBODY, OTHER = 65534, 1  # a user whose jobs ran, and one who has nothing here
ROUNDS = "Number(document.documentElement.dataset.rounds)"
failures = 0


def check(what, actual, expected=True):
    global failures
    if actual != expected:
        print(f"failed: {what}: {str(actual)[:600]!r}, expected {str(expected)[:600]!r}")
        failures += 1


def mini(*command):
    return subprocess.run([MINI, *command, "--dir", CLUSTER], check=True, capture_output=True, text=True).stdout


def tcclacct(*options):
    command = [MINI, "run", "--dir", CLUSTER, "--as", "nobody", "--", "tcclacct", *options, "--json"]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


# ---- who is let in ----

def exchange(family, address, text):
    """Sends a request as it is; the answer."""
    with socket.socket(family) as client:
        client.settimeout(60)
        client.connect(address)
        data = b""
        try:
            client.sendall(text.encode())
            while more := client.recv(65536):
                data += more
        except ConnectionError:
            pass
    return data.decode(errors="replace")


def reaches(uid, path):
    """What happens to a user who goes to the socket."""
    program = "import os, socket, sys; os.setgroups([]); os.setgid({0}); os.setuid({0}); socket.socket(socket.AF_UNIX).connect({1!r})"
    ended = subprocess.run([sys.executable, "-c", program.format(uid, path)], capture_output=True, text=True)
    return ended.stderr.strip().split("\n")[-1].split(":")[0] if ended.returncode else "connected"


def status(answer):
    found = re.match(r"HTTP/1\.1 (\d+) ", answer)
    return int(found[1]) if found else answer.strip()


def get(path, host="localhost", method="GET", more=""):
    return f"{method} {path} HTTP/1.1\r\nHost: {host}\r\n{more}\r\n"


def check_doors(url):
    port, token = int(re.search(r":(\d+)/", url)[1]), url.split("token=")[1]
    tcp = (socket.AF_INET, ("127.0.0.1", port))
    unix = (socket.AF_UNIX, f"{WORK}/page.sock")
    check("the token's length", len(token), 32)
    for name, door, cookie in (("tcp", tcp, f"Cookie: tcclacct-{port}={token}\r\n"), ("unix", unix, "")):
        ask = lambda path, **more: exchange(*door, get(path, **{"more": cookie, **more}))
        page = ask("/")
        check(f"{name}: page", status(page), 200)
        for line in ("Content-Security-Policy: default-src 'none';", "X-Content-Type-Options: nosniff", "Referrer-Policy: no-referrer",
                     "Cache-Control: no-store", "X-Frame-Options: DENY"):
            check(f"{name}: {line}", line in page)
        check(f"{name}: HEAD", ask("/", method="HEAD").endswith("\r\n\r\n"))
        for method in ("POST", "PUT", "DELETE", "OPTIONS", "PATCH", "get"):
            check(f"{name}: {method}", status(ask("/api/steps", method=method)), 405)
        check(f"{name}: a body", status(exchange(*door, get("/", more="Content-Length: 3\r\n") + "a=b")), 413)
        for host in ("evil.example", "localhost.evil.example", "127.0.0.1.nip.io:80", ""):
            check(f"{name}: Host {host}", status(ask("/", host=host)), 403 if host else 400)
        for path, expected in (("/../page.sock", 404), ("/etc/passwd", 404), ("/api/step?id=../../x", 400), ("/api/kind?id=../../../etc", 404),
                               ("/api/nothing", 404), ("/api/steps?range=year", 400), ("/api/step?id=1%002", 400), ("/" + "a" * 5000, 414)):
            check(f"{name}: {path[:40]}", status(ask(path)), expected)
        check(f"{name}: a head without end", status(exchange(*door, "GET / HTTP/1.1\r\nHost: localhost\r\nX: " + "a" * 70000)), 431)
        check(f"{name}: nonsense", status(exchange(*door, "\x16\x03\x01 hello\r\n\r\n")), 400)
    check("no token", status(exchange(*tcp, get("/"))), 403)
    check("no token for the API", status(exchange(*tcp, get("/api/steps"))), 403)
    check("no token for the script", status(exchange(*tcp, get("/page.js"))), 403)
    check("a wrong token", status(exchange(*tcp, get("/?token=" + "0" * 32))), 403)
    check("a wrong cookie", status(exchange(*tcp, get("/", more=f"Cookie: tcclacct-{port}={token[:-1]}x\r\n"))), 403)
    welcome = exchange(*tcp, get(f"/?token={token}"))
    check("the printed address", status(welcome), 303)
    folder = re.search(r"\r\nLocation: (/[0-9a-f]{32}/)\r\n", welcome)
    check("its folder", folder and token not in folder[1])
    check("its cookie", f"; Path={folder and folder[1]}; HttpOnly; SameSite=Strict" in welcome)
    check("the folder without the cookie", status(exchange(*tcp, get(folder[1]))), 403)
    check("the folder with the cookie", status(exchange(*tcp, get(folder[1], more=f"Cookie: tcclacct-{port}={token}\r\n"))), 200)
    check("another user at the socket", reaches(OTHER, unix[1]), "PermissionError")
    check("its own user at the socket", reaches(NOBODY, unix[1]), "connected")
    listening = open("/proc/net/tcp").read() + open("/proc/net/tcp6").read()
    check("listens on loopback only", sorted(set(re.findall(rf": (\w+):{port:04X} 0+:0000 0A", listening))
                                             - {"0100007F", "00000000000000000000000001000000"}), [])
    check_slow(port, token)


def check_slow(port, token):
    """Clients that say nothing, or half a request, keep nobody out."""
    idle = []
    for number in range(200):
        client = socket.create_connection(("127.0.0.1", port))
        if number % 2:
            client.sendall(b"GET / HTTP/1.1\r\nHost: loc")
        idle.append(client)
    check("behind 200 slow clients", status(exchange(socket.AF_INET, ("127.0.0.1", port), get(f"/?token={token}"))), 303)
    for client in idle:
        client.close()


# ---- the page ----

def cells(browser, job):
    return browser.value(f"""[...document.querySelectorAll('#steps tr')].filter((row) => row.dataset.job === '{job}')
        .map((row) => [...row.cells].map((cell) => cell.textContent))[0]""")


def check_table(browser):
    rows = browser.value("[...document.querySelectorAll('#steps tr')].map((row) => row.dataset.job)")
    check("root's job is not there", f"{ROOTS}.0" in rows, False)
    for job in (MIXED, SINGLE):
        record = tcclacct("-j", job)["records"][0]
        cell = cells(browser, f"{job}.0")
        check(f"job {job}", [cell[i] for i in (1, 2, 3, 4, 5, 6, 7, 8)],
              [record["job_name"], "nobody", record["nodes"], str(record["gpus"]), record["state"], f"{record['gbps']:.2f}",
               f"{record['baseline_gbps']:.2f}", f"{record['ratio']:.2f}×"])
    check("the job that runs", "runs" in cells(browser, f"{LONGER}.0")[5])
    check("a job that does not", "runs" in cells(browser, f"{SINGLE}.0")[5], False)


def shown(text):
    return re.sub(r"[\x00-\x1f\x7f-\x9f\u202a-\u202e]", lambda c: f"\\u{ord(c[0]):04x}", text)


def check_hostile(browser):
    for job in HOSTILE + ["999", "950"]:
        record = tcclacct("-j", job)["records"][0]
        cell = cells(browser, f"{job}.0")
        check(f"name of {job}", cell[1], shown(record["job_name"]))
        browser.open(place(job=f"{job}.0"))
        text = browser.wait(f"step {job}", f"!$('detail').hidden && $('detail').dataset.job === '{job}.0' && $('detail').textContent")
        for field in ("job_name", "account", "reason"):
            check(f"{field} of {job}", shown(record[field]) in text)
        if job == "950":
            check("its reason is said once", text.count(record["reason"]), 1)
        check(f"heading of {job}", browser.value("document.querySelector('#detail h2').offsetHeight < 140"))
    check("nothing was built from names", browser.value("document.querySelectorAll('#steps script, #steps svg, #steps img, #steps b, #detail script').length"), 0)


def place(**words):
    return base + "#" + "&".join(f"{name}={value}" for name, value in words.items())


def pictures(browser, what):
    return browser.wait(what, """(() => { const all = [...document.querySelectorAll('#detail img')];
        return all.length && all.every((one) => one.complete && one.naturalWidth > 100) && all.length; })()""")


def check_rings(browser):
    browser.open(place())
    browser.wait("table", f"document.querySelector('#steps tr[data-job=\"{SINGLE}.0\"]') !== null")
    browser.value(f"document.querySelector('#steps tr[data-job=\"{SINGLE}.0\"]').cells[3].click()")
    browser.wait("detail", f"document.querySelector('#detail:not([hidden])')?.dataset.job === '{SINGLE}.0'")
    check("pictures of one node: ring and node", pictures(browser, "pictures"), 2)
    check("its address", browser.value("location.hash").startswith(f"#job={SINGLE}.0"))
    check("the row is marked", browser.value("document.querySelector('#steps [aria-selected=true]').dataset.job"), f"{SINGLE}.0")
    browser.key("Escape")
    browser.wait("closed", "$('detail').hidden")
    browser.open(place(job=MIXED))  # a link that names no step
    browser.wait("mixed", f"document.querySelector('#detail:not([hidden])')?.dataset.job === '{MIXED}.0'")
    check("pictures of two kinds: ring, and the kind of this host", pictures(browser, "pictures"), 2)
    panels = browser.value("[...document.querySelectorAll('#detail .panel figcaption')].map((one) => one.textContent)")
    ring = tcclacct("-j", MIXED)["records"][0]["ring"]
    check("chains of all nodes", [chain in " ".join(panels) for chain in re.findall(r"\[([^]]+)\]", ring)], [True] * 4)
    check("nodes of the panels", [panel.split(" ")[0] for panel in panels], ["n[1-2]", "n[3-4]"])
    check("the kind of this host's nodes", "amd-4gpu" in panels[0] and "amd-4gpu" not in panels[1])
    svg = browser.value(f"fetch('api/step?id={MIXED}.0').then((answer) => answer.json()).then((step) => step.overview)")
    check("the ring's picture names all nodes", all(name in svg for name in ("n[1-2]", "n[3-4]")))


def check_days(browser):
    browser.open(place(range="month"))
    browser.wait("days of a month", "document.querySelectorAll('[data-day]').length > 7")
    days = tcclacct("summary", "-S", "now-30days")["days"]
    first, last = days[0]["start"], days[-1]["start"]
    check("days in the chart", browser.value("document.querySelectorAll('[data-day]').length"), round((last - first) / 86400) + 1)
    check("days in the table", browser.value("document.querySelectorAll('#gain tbody tr').length"), round((last - first) / 86400) + 1)
    check("days with a gain", browser.value("document.querySelectorAll('#gain .dot').length"), sum(day["gain_mean"] > 0 for day in days))
    check("reasons", "<script>" in browser.value("$('reasons').textContent"))
    browser.open(place(range="week"))
    browser.wait("days of a week", "document.querySelectorAll('[data-day]').length === 7")


def check_kinds(browser):
    browser.wait("congested sets", "document.querySelectorAll('#kind-body tbody tr').length > 0")
    kind = os.listdir(f"{CLUSTER}/nodes/n1/cache")[0]
    check("the kind", browser.value("document.querySelector('#kind-body [data-kind]').dataset.kind"), kind)
    report = subprocess.run([MINI, "run", "--dir", CLUSTER, "--", "tccl-profile", "report", "--json", "--cache", f"{CLUSTER}/nodes/n1/cache",
                             "--machine", f"{CLUSTER}/nodes/n1/machine.json"], check=True, capture_output=True, text=True).stdout
    sentence = json.loads(report)["congested"][0]["sentence"]
    check("the worst of its sets", sentence in browser.value("document.querySelector('#kind-body tbody tr').textContent"))


def check_daemon(browser):
    browser.open(place())
    before = browser.value("document.querySelectorAll('#steps tr').length")
    mini("stop-tccld", "n1")
    text = browser.wait("the daemon's absence is told", "!$('trouble').hidden && $('trouble').textContent")
    check("what, where", "n1" in text and "refused" in text or "No such file" in text)
    check("once", text.count("n1: "), 1)
    check("what now", "Is tccld running" in text)
    check("what was there stays", browser.value("document.querySelectorAll('#steps tr').length"), before)
    mini("start-tccld", "n1")
    browser.wait("the page goes on by itself", "$('trouble').hidden")


def check_search(browser):
    browser.open(place())
    browser.wait("rows", "document.querySelectorAll('#steps tr').length > 5")
    browser.value("$('search').value = 'train <b>'; $('search').dispatchEvent(new Event('input'))")
    check("search", browser.value("[...document.querySelectorAll('#steps tr')].map((row) => row.dataset.job)"), [f"{MIXED}.0"])
    browser.value("$('search').value = 'no such thing'; $('search').dispatchEvent(new Event('input'))")
    check("nothing found", "No step here fits" in browser.value("$('steps-empty').innerText"))
    browser.value("$('search').value = '12345678'; $('search').dispatchEvent(new Event('input')); $('search').focus()")
    browser.key("Enter")
    browser.wait("a job that is not there", "$('detail').textContent.includes('no record of 12345678')")
    browser.value("$('search').value = ''; $('search').dispatchEvent(new Event('input'))")


def check_legible(browser):
    """Words stay whole, and on a phone texts of charts and pictures are large enough, and nothing stands there empty."""
    browser.open(place())
    browser.wait("rows", "document.querySelectorAll('#steps tr').length > 5")
    check("names of users in one line", browser.value("[...document.querySelectorAll('#steps td:nth-child(3) .said')].every((one) => one.offsetHeight < 32)"))
    browser.size(390, 800, dark=True)
    browser.wait("a chart for this width", "document.querySelector('#gain svg')?.viewBox.baseVal.width < 400")
    check("the chart's texts", browser.value("[...document.querySelectorAll('#gain svg text')].every((one) => one.getBoundingClientRect().height > 9)"))
    check("empty cells", browser.value("[...document.querySelectorAll('#steps td')].filter((one) => !one.textContent && one.offsetHeight > 0).length"), 0)
    browser.open(place(job=MIXED))
    browser.wait("mixed", f"document.querySelector('#detail:not([hidden])')?.dataset.job === '{MIXED}.0'")
    pictures(browser, "pictures on a phone")
    check("scale of pictures", browser.value("[...document.querySelectorAll('#detail img')].every((one) => one.width / one.naturalWidth > 0.69)"))
    check("a narrow window is not too narrow", browser.value("document.documentElement.scrollWidth <= innerWidth"))
    check("why there is no picture is said once", browser.value("$('detail').textContent.split('No picture of').length"), 2)
    browser.size(1300)


def check_slow_nodes(browser):
    """Only nodes that are slow, or that steps fell back because of."""
    shown = lambda *nodes: browser.value(f"show_nodes({{ nodes: {json.dumps(nodes)} }}), $('nodes').textContent")
    good, slow, bad = ({"node": name, "share": share, "steps": 7, "fallbacks": fallbacks}
                       for name, share, fallbacks in (("n1", 0.99, 0), ("n2", 0.5, 0), ("n3", 1, 4)))
    check("all nodes are well", shown(good).startswith("None stands out"))
    text = shown(slow, bad, good)
    check("nodes that stand out", ["50 %" in text, "n3" in text, "n1" in text], [True, True, False])
    check("no node", shown(), "No node had a ring in this time.")


def check_page(url):
    global base
    browser = Browser()
    try:
        browser.size(1300)
        browser.open(url)
        browser.wait("the page", f"{ROUNDS} > 0")
        check("the token has left the address", re.fullmatch(re.escape(base) + "[0-9a-f]{32}/", browser.value("location.href")) is not None)
        base = browser.value("location.href")
        for part in (check_table, check_hostile, check_rings, check_kinds, check_days):
            part(browser)
        check_legible(browser)
        check_slow_nodes(browser)
        check("complaints of the page", browser.complaints, [])
        check_search(browser)
        check_daemon(browser)
        # The browser itself puts a status that is no success on its console.
        check("complaints", [one for one in browser.complaints if "502 (Bad Gateway)" not in one and "404 (Not Found)" not in one], [])
        check("dialogs", browser.dialogs, [])
        check("scripts from names", browser.value("typeof hacked"), "undefined")
        door = url.split("?")[0]
        check("requests elsewhere", [one for one in browser.requests if not one.startswith((door, "blob:" + door))], [])
        check_other_port(browser)
    finally:
        browser.close()


def check_other_port(browser):
    """Browsers send cookies to all ports of a host: another user's server must not get ours."""
    heard = []
    with socket.create_server(("127.0.0.1", 0)) as server:
        def serve():
            while True:
                try:
                    client = server.accept()[0]
                except OSError:
                    return
                heard.append(client.recv(65536).decode(errors="replace"))
                client.sendall(b"HTTP/1.0 200 OK\r\nContent-Type: text/html\r\n\r\n<title>other</title>")
                client.close()

        threading.Thread(target=serve, daemon=True).start()
        browser.open(f"http://127.0.0.1:{server.getsockname()[1]}/")
        browser.wait("another server's page", "document.title === 'other'")
        browser.value("fetch('/api/steps').then(() => { document.title = 'asked'; }), 0")
        browser.wait("its question", "document.title === 'asked'")
    check("another server is asked", len(heard) >= 2)
    check("cookies for another server", [one for one in heard if "tcclacct-" in one], [])


url = re.search(r"open (\S+)", open(f"{WORK}/serve.tcp").read())[1]
base = url.split("?")[0]
try:
    check_doors(url)
    check_page(url)
except Failed as error:
    print(f"failed: {error}")
    failures += 1
print("web.py:", "all is well" if failures == 0 else f"{failures} failures")
sys.exit(failures > 0)
