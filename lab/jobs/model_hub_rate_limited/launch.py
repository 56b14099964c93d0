"""The model hub, which has had too many requests of this network (HUB=crowded) or not, and the job."""
import http.server
import os
import subprocess
import sys
import threading


class Hub(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        if os.environ["HUB"] == "crowded" and self.path.endswith("weights-00002.bin"):
            self.send_error(429)
            return
        self.send_response(200)
        self.end_headers()
        self.wfile.write(bytes(4096))

    def log_message(self, *_):
        pass


hub = http.server.ThreadingHTTPServer(("127.0.0.1", 29724), Hub)
threading.Thread(target=hub.serve_forever, daemon=True).start()
sys.exit(subprocess.call([sys.executable, "finetune.py"]))
