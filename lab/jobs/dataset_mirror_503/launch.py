"""The data sets' mirror, which has too much to do (MIRROR=busy) or not, and the job."""
import http.server
import os
import subprocess
import sys
import threading


class Mirror(http.server.SimpleHTTPRequestHandler):
    def do_GET(self):
        if os.environ["MIRROR"] == "busy":
            self.send_error(503)
        else:
            super().do_GET()

    def log_message(self, *_):
        pass


os.makedirs("sets", exist_ok=True)
with open("sets/wine.csv", "w") as table:
    table.writelines(f"{i % 7},{i % 5},{i % 2}\n" for i in range(200))
mirror = http.server.ThreadingHTTPServer(("127.0.0.1", 29723), Mirror)
threading.Thread(target=mirror.serve_forever, daemon=True).start()
sys.exit(subprocess.call([sys.executable, "train.py"]))
