"""Pages in a headless Chromium, where one is installed."""

import os
import shutil
import subprocess
from pathlib import Path

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


def opened(page: Path, profile: Path, *options: str) -> tuple[str, str]:
    """Open a page that may fetch nothing; return its document, scripts having run, and what the browser said."""
    command = [
        str(CHROMIUM), "--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking",
        f"--user-data-dir={profile}", "--host-resolver-rules=MAP * ~NOTFOUND", "--enable-logging=stderr",
        "--virtual-time-budget=20000", *options, "--dump-dom", page.as_uri(),
    ]  # fmt: skip
    environment = {key: value for key, value in os.environ.items() if key != "LD_PRELOAD"}  # `make sanitize`
    done = subprocess.run(command, capture_output=True, timeout=240, env=environment)
    said = done.stderr.decode("utf-8", "replace")
    assert done.returncode == 0, said[-2000:]
    return done.stdout.decode("utf-8", "replace"), said
