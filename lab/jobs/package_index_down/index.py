"""The cluster's package index, on another node."""
import http.server
import os
import pathlib
import zipfile

WHEEL = "tinyaugment-0.3.1-py3-none-any.whl"
folder = pathlib.Path("simple/tinyaugment")
folder.mkdir(parents=True)
info = "tinyaugment-0.3.1.dist-info"
with zipfile.ZipFile(folder / WHEEL, "w") as wheel:
    wheel.writestr("tinyaugment.py", "def flip(rows):\n    return [row[::-1] for row in rows]\n")
    wheel.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: tinyaugment\nVersion: 0.3.1\n")
    wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
    wheel.writestr(f"{info}/RECORD", "")


class Index(http.server.SimpleHTTPRequestHandler):
    def __init__(self, *args):
        super().__init__(*args, directory="simple")

    def log_message(self, *_):
        pass


if os.environ["INDEX"] == "up":
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 29731), Index)
    pathlib.Path("index_ready").touch()
    server.serve_forever()
pathlib.Path("index_ready").touch()
