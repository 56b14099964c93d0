"""Takes pictures of all pages of the team server, for a person to review: wide and narrow, light and dark.

With the script of axe-core (`npm install axe-core`), each page is also checked for accessibility. A service with
generated jobs of 30 days is started and shown in Chromium (`chromium` must be installed), which is controlled through
its DevTools protocol. Nothing is compared.
"""

from __future__ import annotations

import argparse
import base64
import itertools
import json
import os
import random
import re
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from epochzero.http_client import NoResponseError, request
from epochzero.store.database import open_database
from epochzero.store.issues import add_owner_rule
from epochzero.store.teams import add_team, add_token

SIZES = {"wide": (1440, 900), "narrow": (390, 844)}
SCHEMES = ("light", "dark")
DAY = 86_400.0
FAILURES = {
    "vit": 'Traceback (most recent call last):\n  File "/home/ann/vit/train.py", line 88, in main\n'
    '    report(stats)\n  File "/home/ann/vit/report.py", line 12, in report\n    return stats["fox"]\n'
    "KeyError: 'fox'\n",
    "llama": "RuntimeError: CUDA error: an illegal memory access was encountered\n",
    "bert": "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total "
    "capacity of 79.15 GiB of which 1.20 GiB is free.\n",
    "diffusion": "[rank3]:[E ProcessGroupNCCL.cpp:616] [Rank 3] Watchdog caught collective operation timeout: "
    "WorkNCCL(SeqNum=511, OpType=ALLREDUCE, Timeout(ms)=600000) ran for 600031 milliseconds before timing out.\n",
    "asr": "slurmstepd: error: Detected 1 oom_kill event in StepId=4242.0. Some of the step tasks have been OOM "
    "Killed.\n",
    "ocr": 'Traceback (most recent call last):\n  File "/home/bo/ocr/data.py", line 41, in load\n    open(path)\n'
    "FileNotFoundError: [Errno 2] No such file or directory: '/data/lines/train.parquet'\n",
    "rl": "OSError: [Errno 28] No space left on device\n",
    "eval": 'Traceback (most recent call last):\n  File "/home/cy/eval/run.py", line 9, in <module>\n'
    "    import lm_eval\nModuleNotFoundError: No module named 'lm_eval'\n",
}


def jobs() -> Iterator[dict[str, Any]]:
    """Jobs as a small team has them, in no order."""
    rng = random.Random(1)
    now = time.time()
    users = ("ann", "bo", "cy", "dee")
    for number in range(420):
        name = rng.choice(tuple(FAILURES))
        start = now - 30 * DAY * rng.random() ** 1.3 - 7200
        took = rng.uniform(300, 7000)
        steps = "".join(f"step {n} loss {2 / (n + 1):.3f}\n" for n in range(60))
        fails = rng.random() < 0.35
        yield {
            "job": f"j{number}", "name": f"{name}-pretrain", "user": rng.choice(users),
            "host": f"gpu{rng.randrange(12):02}", "gpus": rng.choice((1, 8, 8, 32)),
            "started": start, "ended": start + took, "exit_code": int(fails), "launcher": "slurm",
            "command": ["torchrun", "train.py", f"--model={name}"],
            "log": steps + (FAILURES[name] if fails else "done\n"),
        }  # fmt: skip


_AXE = """axe.run().then(result => result.violations.map(
    one => `${one.id} (${one.impact}), ${one.nodes.length} times: ${one.nodes[0].target}`))"""


class Browser:
    """Chromium, controlled through a pipe (`--remote-debugging-pipe`)."""

    def __init__(self, folder: Path) -> None:
        commands, self._write = os.pipe()
        self._read, answers = os.pipe()

        def pipes() -> None:
            os.dup2(commands, 3)
            os.dup2(answers, 4)

        words = ("--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
                 "--remote-debugging-pipe", f"--user-data-dir={folder}", "about:blank")  # fmt: skip
        self._process = subprocess.Popen(
            ("chromium", *words), preexec_fn=pipes, pass_fds=(3, 4), stderr=subprocess.DEVNULL
        )
        self._rest = b""
        self._numbers = itertools.count(1)
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = ""
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)[
            "sessionId"
        ]
        self.call("Page.enable")

    def call(self, method: str, **values: Any) -> Any:
        """The result of a command."""
        number = next(self._numbers)
        message: dict[str, Any] = {"id": number, "method": method, "params": values}
        if getattr(self, "_session", ""):
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while (answer := self._next()).get("id") != number:
            pass
        return answer.get("result", {})

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            self._rest += os.read(self._read, 1 << 20)
        text, _, self._rest = self._rest.partition(b"\0")
        found: dict[str, Any] = json.loads(text)
        return found

    def show(self, url: str, token: str) -> None:
        """Opens a page and waits until it is loaded."""
        self.call("Network.enable")
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        self.call("Network.setExtraHTTPHeaders", headers=headers)
        self.call("Page.navigate", url=url)
        while self._next().get("method") != "Page.loadEventFired":
            pass

    def picture(self, file: Path, size: tuple[int, int], scheme: str) -> None:
        """Saves the whole page."""
        width, height = size
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height,
                  deviceScaleFactor=1, mobile=width < 600)  # fmt: skip
        feature = [{"name": "prefers-color-scheme", "value": scheme}]
        self.call("Emulation.setEmulatedMedia", features=feature)
        whole = self.call("Page.getLayoutMetrics")["cssContentSize"]
        if whole["width"] > width:
            print(f"{file.name}: {whole['width']:.0f} px wide", file=sys.stderr)
        clip = {"x": 0, "y": 0, "width": width, "height": min(whole["height"], 2600), "scale": 1}
        data = self.call("Page.captureScreenshot", clip=clip, captureBeyondViewport=True)["data"]
        file.write_bytes(base64.b64decode(data))

    def violations(self, axe: str) -> list[str]:
        """What axe-core finds in the page as it is shown: rule, weight and the first element."""
        self.call("Runtime.evaluate", expression=axe)
        found = self.call(
            "Runtime.evaluate", expression=_AXE, awaitPromise=True, returnByValue=True
        )
        if "value" not in found.get("result", {}):
            return [f"axe did not run: {found}"]
        return [str(line) for line in found["result"]["value"]]

    def close(self) -> None:
        self._process.kill()
        self._process.wait()


@contextmanager
def service(folder: Path) -> Iterator[tuple[str, str]]:
    """The address of a service with the made jobs, and a token of its team."""
    store = folder / "store.db"
    database = open_database(store)
    add_team(database, "vision")
    token = add_token(database, "vision", "ann", "admin")
    add_owner_rule(database, "vision", "path", "vit/*", "ann")
    database.close()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = ("serve", "--port", str(port), "--store", str(store), "--folder", str(folder / "spool"))
    process = subprocess.Popen(
        (sys.executable, "-m", "epochzero", *words), stderr=subprocess.DEVNULL
    )
    url = f"http://127.0.0.1:{port}"
    try:
        for _ in range(200):
            try:
                request("GET", f"{url}/healthz", None, headers={}, timeout=5)
                break
            except NoResponseError:
                time.sleep(0.2)
        lines = "\n".join(map(json.dumps, jobs())).encode()
        headers = {"Authorization": f"Bearer {token}"}
        sent = request(
            "POST", f"{url}/api/v1/diagnose-and-store/bulk", lines, headers=headers, timeout=300
        )
        if not sent.succeeded:
            raise SystemExit(sent.content.decode())
        yield url, token
    finally:
        process.terminate()
        process.wait()


def pages(url: str, token: str) -> dict[str, str]:
    """The pages, by the names of their pictures."""

    def rows(path: str) -> list[dict[str, Any]]:
        headers = {"Authorization": f"Bearer {token}"}
        found: list[dict[str, Any]] = json.loads(
            request("GET", url + path, None, headers=headers, timeout=60).content
        )
        return found

    failed = rows("/jobs?state=failed&name=vit*&format=json")[0]["id"]
    issue = rows("/failures?format=json")[0]["fingerprint"]
    text = request("GET", f"{url}/jobs/{failed}", None,
                   headers={"Authorization": f"Bearer {token}"}, timeout=60).content.decode()  # fmt: skip
    log = re.search(r'href="(/jobs/[^"]+/logs/output[^"#]*)', text)
    return {
        "overview": "/", "issues": "/failures", "issue": f"/failures/{issue}", "jobs": "/jobs",
        "job": f"/jobs/{failed}", "log": log[1] if log else "/", "compare": "/compare?days=7",
        "targets": "/targets", "report": "/report", "admin": "/admin", "missing": "/jobs/none",
        "login": "/login",
    }  # fmt: skip


def _wait_for_report(url: str, token: str) -> None:
    headers = {"Authorization": f"Bearer {token}"}
    for _ in range(100):
        if request("GET", f"{url}/report?format=json", None, headers=headers, timeout=60).succeeded:
            return
        time.sleep(1.0)


def main() -> None:
    """Takes the pictures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("target", type=Path, metavar="DIRECTORY", help="for the pictures")
    parser.add_argument("axe", type=Path, nargs="?", metavar="AXE.MIN.JS", help="axe-core")
    options = parser.parse_args()
    target, axe = options.target, options.axe.read_text("utf-8") if options.axe else ""
    target.mkdir(parents=True, exist_ok=True)
    with (
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder,
        service(Path(folder)) as (url, token),
    ):
        browser = Browser(Path(folder) / "chromium")
        try:
            wanted = pages(url, token)
            _wait_for_report(url, token)
            for name, path in wanted.items():
                browser.show(url + path, "" if name == "login" else token)
                for size, scheme in itertools.product(SIZES, SCHEMES):
                    browser.picture(target / f"{name}-{size}-{scheme}.png", SIZES[size], scheme)
                    for line in browser.violations(axe) if axe else ():
                        print(f"{name}, {size}, {scheme}: {line}", file=sys.stderr)
        finally:
            browser.close()


if __name__ == "__main__":
    main()
