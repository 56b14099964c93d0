"""The cluster's proxy, which lets nobody out to foreign hosts, and the job."""
import http.server
import os
import subprocess
import sys
import threading


class Proxy(http.server.BaseHTTPRequestHandler):
    def do_CONNECT(self):
        self.send_error(403)

    def log_message(self, *_):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 29738), Proxy)
threading.Thread(target=server.serve_forever, daemon=True).start()
env = {**os.environ, "https_proxy": "http://127.0.0.1:29738"}
sys.exit(subprocess.call([sys.executable, "train.py"], env=env))
