"""The server of the group's repositories, which is being updated (GIT=updated) or not, and the job."""
import http.server
import os
import pathlib
import subprocess
import sys
import threading

pathlib.Path("upstream").mkdir()
pathlib.Path("upstream/model.py").write_text("def predict(x):\n    return [2 * v for v in x]\n")
GIT = "git -C upstream -c user.name=a -c user.email=a@example.org"
for command in ("init -q -b main", "add .", "commit -qm model", "update-server-info"):
    subprocess.run(f"{GIT} {command}", shell=True, check=True)


class Server(http.server.SimpleHTTPRequestHandler):
    def __init__(self, *args):
        super().__init__(*args, directory="upstream")

    def do_GET(self):
        if os.environ["GIT"] == "updated":
            self.send_error(503)
        else:
            super().do_GET()

    def log_message(self, *_):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 29733), Server)
threading.Thread(target=server.serve_forever, daemon=True).start()
sys.exit(subprocess.call(["bash", "job.sh"]))
