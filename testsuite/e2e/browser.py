"""browser.py: Debian's chromium, headless, driven over its debugging pipe; nothing else is needed."""
import base64
import itertools
import json
import os
import select
import shutil
import signal
import subprocess
import tempfile
import time

PATIENCE = 180  # seconds: bounds how long a broken page is waited for, nothing else


class Failed(Exception):
    pass


class Browser:
    """One tab. What the page complained about is in .complaints, what it asked for in .requests."""

    def __init__(self, program="chromium"):
        self.folder = tempfile.mkdtemp(prefix="tccl-chromium-")
        to_read, self.write_end = os.pipe()
        self.read_end, to_write = os.pipe()
        self.process = subprocess.Popen(
            [program, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
             "--disable-extensions", "--disable-background-networking", "--disable-component-update",
             "--remote-debugging-pipe", "--window-size=1300,900", f"--user-data-dir={self.folder}", "about:blank"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=open(f"{self.folder}/stderr", "w"),
            start_new_session=True, pass_fds=(3, 4), env={**os.environ, "HOME": self.folder, "TMPDIR": self.folder},
            preexec_fn=lambda: self._place(to_read, to_write))
        os.close(to_read)
        os.close(to_write)
        self.numbers = itertools.count(1)
        self.data = b""
        self.complaints, self.requests, self.dialogs, self.scripts = [], [], [], []
        target = next(t for t in self.call("Target.getTargets", session=None)["targetInfos"] if t["type"] == "page")
        self.session = self.call("Target.attachToTarget", session=None, targetId=target["targetId"], flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    @staticmethod
    def _place(to_read, to_write):
        """Chromium reads from descriptor 3 and writes to 4."""
        read, write = os.dup(to_read), os.dup(to_write)
        while read in (3, 4):
            read = os.dup(read)
        while write in (3, 4):
            write = os.dup(write)
        os.dup2(read, 3)
        os.dup2(write, 4)

    def close(self):
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()
        for _ in range(100):  # its other processes may still be at it
            shutil.rmtree(self.folder, ignore_errors=True)
            if not os.path.exists(self.folder):
                break
            time.sleep(0.1)

    # ---- messages ----

    def _receive(self, deadline):
        while b"\0" not in self.data:
            ready, _, _ = select.select([self.read_end], [], [], max(0, deadline - time.monotonic()))
            if not ready:
                raise Failed("chromium does not answer")
            more = os.read(self.read_end, 1 << 20)
            if not more:
                raise Failed("chromium has ended: " + open(f"{self.folder}/stderr").read()[-2000:])
            self.data += more
        message, self.data = self.data.split(b"\0", 1)
        return json.loads(message)

    def _note(self, message):
        method, about = message.get("method"), message.get("params", {})
        if method == "Runtime.exceptionThrown":
            self.complaints.append(about["exceptionDetails"].get("exception", {}).get("description") or about["exceptionDetails"]["text"])
        elif method == "Runtime.consoleAPICalled":
            self.complaints.append("console: " + " ".join(str(a.get("value", a.get("description"))) for a in about["args"]))
        elif method == "Log.entryAdded" and about["entry"]["level"] in ("error", "warning"):
            self.complaints.append(about["entry"]["text"] + " " + about["entry"].get("url", ""))
        elif method == "Network.requestWillBeSent":
            self.requests.append(about["request"]["url"])
        elif method == "Page.javascriptDialogOpening":
            self.dialogs.append(about["message"])
            self._send("Page.handleJavaScriptDialog", self.session, accept=True)

    def _send(self, method, session, **params):
        number = next(self.numbers)
        message = {"id": number, "method": method, "params": params}
        if session:
            message["sessionId"] = session
        os.write(self.write_end, json.dumps(message).encode() + b"\0")
        return number

    def call(self, method, session="own", **params):
        number = self._send(method, self.session if session == "own" else session, **params)
        deadline = time.monotonic() + PATIENCE
        while True:
            message = self._receive(deadline)
            if message.get("id") == number:
                if "error" in message:
                    raise Failed(f"{method}: {message['error']}")
                return message["result"]
            self._note(message)

    # ---- the page ----

    def open(self, url):
        self.call("Page.navigate", url=url)

    def value(self, expression):
        """Of an expression, or a promise, in the page."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise Failed(f"{expression}: {answer['exceptionDetails'].get('exception', {}).get('description')}")
        return answer["result"].get("value")

    def wait(self, what, expression):
        """Until the expression is true, whose value is returned."""
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                value = self.value(expression)
            except Failed:  # the page before has gone, and the next is not there yet
                value = None
            if value:
                return value
            if time.monotonic() > deadline:
                raise Failed(f"{what}: did not happen in {PATIENCE} s; the page says: " + str(self.value("document.body && document.body.innerText"))[:3000])
            time.sleep(0.1)

    def key(self, name, **more):
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=name, code=name, **more)

    def size(self, width, height=900, dark=False, media=""):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.call("Emulation.setEmulatedMedia", media=media, features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])

    def picture(self, path, top=0, height=900):
        """Of a part of the page, as a PNG file."""
        width = self.value("innerWidth")
        clip = {"x": 0, "y": top, "width": width, "height": height, "scale": 1}
        data = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=True, clip=clip)["data"]
        with open(path, "wb") as out:
            out.write(base64.b64decode(data))
