"""A headless Chromium, told what to do through chromedriver."""

import base64
import ctypes
import json
import os
import shutil
import signal
import subprocess
import time
import urllib.error
import urllib.request

NEEDED = ("chromium", "chromedriver")
QUIET = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    # Its end is that of the pipe, so a browser never outlives chromedriver.
    "--remote-debugging-pipe",
)


def why_not():
    """Why there can be no browser here."""
    missing = [tool for tool in NEEDED if shutil.which(tool) is None]
    if missing:
        return f"missing: {', '.join(missing)}; apt-get install -y chromium chromium-driver"
    return None


_LIBC = ctypes.CDLL(None)
_PR_SET_PDEATHSIG = 1  # of Linux's prctl()


class Browser:
    """One session; `close` ends it and all that it has started."""

    def __init__(self, folder):
        """`folder`: for its profile and its log."""
        self._log = folder / "chromedriver.log"
        with self._log.open("w") as log:
            self._process = subprocess.Popen(
                [shutil.which("chromedriver"), "--port=0"],
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=_end_with_parent,  # noqa: PLW1509  (one call into the kernel, no locks)
                env={**os.environ, "HOME": str(folder)},
            )
        self._session = ""
        try:
            self._base = f"http://127.0.0.1:{self._port()}"
            options = {
                "binary": shutil.which("chromium"),
                "args": [*QUIET, f"--user-data-dir={folder / 'profile'}"],
            }
            capabilities = {
                "browserName": "chrome",
                "goog:chromeOptions": options,
                "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"},
            }
            answer = self._ask("POST", "/session", {"capabilities": {"alwaysMatch": capabilities}})
            self._session = f"/session/{answer['sessionId']}"
        except BaseException:
            self.close()
            raise

    def open(self, url):
        self._ask("POST", f"{self._session}/url", {"url": url})

    def run(self, script):
        """The value that JavaScript returns."""
        body = {"script": script, "args": []}
        return self._ask("POST", f"{self._session}/execute/sync", body)

    def screen(self, width, height, scheme="light", media=""):
        """As on a screen of that size, with colours as the system prefers them."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self._tell("Emulation.setDeviceMetricsOverride", size)
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self._tell("Emulation.setEmulatedMedia", {"media": media, "features": features})

    def said(self):
        """What the console was told since it was asked last."""
        return self._ask("POST", f"{self._session}/se/log", {"type": "browser"})

    def requested(self):
        """Addresses that pages have asked for since it was asked last."""
        entries = self._ask("POST", f"{self._session}/se/log", {"type": "performance"})
        messages = [json.loads(entry["message"])["message"] for entry in entries]
        return [
            message["params"]["request"]["url"]
            for message in messages
            if message["method"] == "Network.requestWillBeSent"
        ]

    def picture(self, path):
        """Of the whole page, however long it is."""
        shot = self._tell("Page.captureScreenshot", {"captureBeyondViewport": True})
        path.write_bytes(base64.b64decode(shot["data"]))

    def close(self):
        if self._session:
            self._ask("DELETE", self._session)
            self._session = ""
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGTERM)
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait(10)

    def _port(self):
        """That it has found for itself."""
        until = time.monotonic() + 30
        while time.monotonic() < until and self._process.poll() is None:
            for line in self._log.read_text().splitlines():
                if "started successfully on port" in line:
                    return int(line.rstrip(".").rsplit(" ", 1)[1])
            time.sleep(0.05)
        raise RuntimeError(f"chromedriver did not start: {self._log.read_text()}")

    def _tell(self, command, parameters):
        body = {"cmd": command, "params": parameters}
        return self._ask("POST", f"{self._session}/goog/cdp/execute", body)

    def _ask(self, method, path, body=None):
        request = urllib.request.Request(  # noqa: S310 (its own address)
            self._base + path,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Content-Type": "application/json"},
            method=method,
        )
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with opener.open(request, timeout=60) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            raise RuntimeError(error.read().decode()) from error


def _end_with_parent():
    """Tests that run out of time are killed; chromedriver takes its browser with it."""
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
