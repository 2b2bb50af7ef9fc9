"""Pages in a headless Chromium, where one is installed."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


def environment() -> dict[str, str]:
    """Return the environment without the sanitizer's runtime (`make sanitize`)."""
    return {key: value for key, value in os.environ.items() if key != "LD_PRELOAD"}


class Browser:
    """A running browser, spoken to over a pipe (DevTools protocol). Each page is a target of its own, opened in
    milliseconds; nothing is fetched from a network."""

    def __init__(self) -> None:
        self._profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        to_us, theirs_out = os.pipe()
        theirs_in, to_them = os.pipe()

        def pipes() -> None:  # Chromium reads commands from 3 and answers on 4
            read, write = os.dup(theirs_in), os.dup(theirs_out)
            os.dup2(read, 3)
            os.dup2(write, 4)

        command = [
            str(CHROMIUM), "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-quic",
            "--allow-file-access-from-files", "--disable-background-networking", "--disable-component-update",
            "--disable-sync", "--host-resolver-rules=MAP * ~NOTFOUND", "--remote-debugging-pipe",
            f"--user-data-dir={self._profile.name}", "about:blank",
        ]  # fmt: skip
        self._process = subprocess.Popen(
            command, preexec_fn=pipes, close_fds=False, stderr=subprocess.DEVNULL, env=environment()
        )
        os.close(theirs_in)
        os.close(theirs_out)
        self._in, self._out = os.fdopen(to_us, "rb"), os.fdopen(to_them, "wb")
        self._rest, self._last = b"", 0

    def close(self) -> None:
        self._out.close()
        self._in.close()
        self._process.kill()
        self._process.wait()
        self._profile.cleanup()

    def _message(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            more = os.read(self._in.fileno(), 1 << 16)
            if not more:
                raise RuntimeError("the browser has ended")
            self._rest += more
        text, _, self._rest = self._rest.partition(b"\0")
        return json.loads(text)

    def call(self, method: str, session: str | None = None, **values: Any) -> dict[str, Any]:
        self._last += 1
        message = {"id": self._last, "method": method, "params": values, **({"sessionId": session} if session else {})}
        self._out.write(json.dumps(message).encode() + b"\0")
        self._out.flush()
        while (answer := self._message()).get("id") != self._last:
            pass
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']}")
        return answer["result"]

    @contextmanager
    def page(self, path: Path, width: int, height: int = 900, dark: bool = False) -> Iterator[Page]:
        """Open a file in a window of this size, light or dark."""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        try:
            page = Page(self, session)
            page.resize(width, height)
            scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
            self.call("Emulation.setEmulatedMedia", session, features=[scheme])
            self.call("Page.enable", session)
            self.call("Performance.enable", session, timeDomain="threadTicks")
            self.call("Page.addScriptToEvaluateOnNewDocument", session, source=_WATCH)
            self.call("Page.navigate", session, url=path.as_uri())
            yield page
        finally:
            self.call("Target.closeTarget", targetId=target)


_WATCH = """window.failures = [];
addEventListener('error', (e) => failures.push(e.message));
addEventListener('unhandledrejection', (e) => failures.push(String(e.reason)));
document.addEventListener('securitypolicyviolation', (e) => failures.push('blocked ' + e.blockedURI));"""


class Page:
    """One open page."""

    def __init__(self, browser: Browser, session: str) -> None:
        self.browser, self.session = browser, session

    def resize(self, width: int, height: int = 900) -> None:
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.browser.call("Emulation.setDeviceMetricsOverride", self.session, **size)

    def run(self, script: str) -> Any:
        """Return what the body of an async function returns; an exception in it is one here."""
        expression = f"(async () => {{ {script} }})()"
        found = self.browser.call(
            "Runtime.evaluate", self.session, expression=expression, awaitPromise=True, returnByValue=True
        )
        if "exceptionDetails" in found:
            raise RuntimeError(json.dumps(found["exceptionDetails"]["exception"].get("description", found)))
        return found["result"].get("value")

    def cpu_ms(self) -> float:
        """Return the CPU time of the page's main thread since it was opened: scripts, styles, layout and painting."""
        found = self.browser.call("Performance.getMetrics", self.session)["metrics"]
        return 1000 * next(each["value"] for each in found if each["name"] == "TaskDuration")

    def wait(self, condition: str, seconds: float = 180) -> None:
        """Wait until an expression is true."""
        end = time.monotonic() + seconds
        while not self.run(f"return document.readyState === 'complete' && Boolean({condition});"):
            if time.monotonic() > end:
                raise TimeoutError(f"{condition}; failures: {self.run('return window.failures')}")
            time.sleep(0.03)

    @property
    def document(self) -> str:
        return self.run("return document.documentElement.outerHTML;")

    @property
    def failures(self) -> list[str]:
        return self.run("return window.failures;")
