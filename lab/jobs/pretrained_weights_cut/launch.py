"""A server of weights that loses its disk in the middle of a file (DISK=lost) or not, and the job."""
import hashlib
import http.server
import os
import random
import subprocess
import sys
import threading

WEIGHTS = random.Random(0).randbytes(300_000)
DIGEST = hashlib.sha256(WEIGHTS).hexdigest()[:8]


class Server(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)  # of unknown length, as from a proxy that compresses
        self.end_headers()
        self.wfile.write(WEIGHTS[:180_000] if os.environ["DISK"] == "lost" else WEIGHTS)

    def log_message(self, *_):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 29727), Server)
threading.Thread(target=server.serve_forever, daemon=True).start()
url = f"http://127.0.0.1:29727/tinynet-{DIGEST}.bin"
sys.exit(subprocess.call([sys.executable, "evaluate.py", "--weights", url]))
