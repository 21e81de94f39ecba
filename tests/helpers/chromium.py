"""A page in headless Chromium, driven over the pipe of its debugging protocol: no package, no network, no port."""

from __future__ import annotations

import base64
import fcntl
import json
import os
import select
import shutil
import subprocess
import time
from pathlib import Path

EXECUTABLE = shutil.which("chromium") or shutil.which("google-chrome")


class Chromium:
    """One browser with one tab; use it in a ``with`` block.

    ``errors`` holds the messages of the page's console and of exceptions in its scripts.
    """

    def __init__(self, profile: Path, timeout: float = 60.0) -> None:
        self.timeout, self.errors = timeout, []
        self._number, self._buffer, self._replies, self._events = 0, b"", {}, []
        commands, to_browser = os.pipe()
        from_browser, replies = os.pipe()
        high = [fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 20) for end in (commands, replies)]  # neither is 3 or 4
        script = f'exec 3<&{high[0]} 4>&{high[1]}; exec "$@"'
        options = ["--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--remote-debugging-pipe"]
        self._process = subprocess.Popen(
            ["bash", "-c", script, "chromium", EXECUTABLE, *options, f"--user-data-dir={profile}", "about:blank"],
            pass_fds=high,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for end in (commands, replies, *high):
            os.close(end)
        self._write, self._read = to_browser, from_browser
        target = self._call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self._call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.call(f"{domain}.enable")

    def __enter__(self) -> Chromium:
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self._call("Browser.close")
            self._process.wait(timeout=20)
        except (RuntimeError, OSError, subprocess.TimeoutExpired):
            self._process.kill()
            self._process.wait()
        finally:
            os.close(self._write)
            os.close(self._read)

    def call(self, method: str, **parameters):
        """Send a command to the tab and return its result."""
        return self._call(method, self._session, **parameters)

    def open(
        self, address: str, width: int = 1200, height: int = 900, dark: bool = False, scripts: bool = True
    ) -> None:
        """Load a page at a width in CSS pixels."""
        scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.call("Emulation.setEmulatedMedia", features=scheme)
        self.call("Emulation.setScriptExecutionDisabled", value=not scripts)
        self.call("Page.navigate", url="about:blank")  # so that an address that differs in its fragment only is loaded
        self._wait_for("Page.loadEventFired")
        self.call("Page.navigate", url=address)
        self._wait_for("Page.loadEventFired")

    def evaluate(self, expression: str):
        """Return the value of an expression in the page."""
        reply = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in reply:
            raise RuntimeError(reply["exceptionDetails"].get("exception", {}).get("description", str(reply)))
        return reply["result"].get("value")

    def press(self, key: str, code: int) -> None:
        """Press and release a key."""
        text = {"text": "\r"} if key == "Enter" else {}
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, windowsVirtualKeyCode=code, **text)

    def screenshot(self, path: Path, complete: bool = False) -> None:
        """Write a PNG of the window, or of the complete page."""
        image = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=complete)["data"]
        path.write_bytes(base64.b64decode(image))

    def _call(self, method: str, session: str | None = None, **parameters):
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if session:
            message["sessionId"] = session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + self.timeout
        while self._number not in self._replies:
            self._receive(deadline)
        reply = self._replies.pop(self._number)
        if "error" in reply:
            raise RuntimeError(f"{method}: {reply['error']}")
        return reply["result"]

    def _wait_for(self, event: str) -> None:
        deadline = time.monotonic() + self.timeout
        while event not in self._events:
            self._receive(deadline)
        self._events = self._events[self._events.index(event) + 1 :]

    def _receive(self, deadline: float) -> None:
        ready, _, _ = select.select([self._read], [], [], max(deadline - time.monotonic(), 0))
        chunk = os.read(self._read, 1 << 20) if ready else b""
        if not chunk:
            raise RuntimeError("Chromium did not answer")
        *messages, self._buffer = (self._buffer + chunk).split(b"\0")
        for text in messages:
            message = json.loads(text)
            if "id" in message:
                self._replies[message["id"]] = message
            elif "method" in message:
                self._note(message["method"], message.get("params", {}))

    def _note(self, event: str, content: dict) -> None:
        if event == "Runtime.exceptionThrown":
            self.errors.append(content["exceptionDetails"].get("exception", {}).get("description", "exception"))
        elif event == "Log.entryAdded" and content["entry"]["level"] == "error":
            self.errors.append(content["entry"]["text"])
        elif event.startswith("Page."):
            self._events.append(event)
