"""An object store that stops sending in the middle (STORE=overloaded) or not, and the job."""
import http.server
import os
import subprocess
import sys
import threading
import time


class Store(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", str(8 * 65536))
        self.end_headers()
        for block in range(8):
            self.wfile.write(bytes(65536))
            if block == 3 and os.environ["STORE"] == "overloaded":
                time.sleep(30)

    def log_message(self, *_):
        pass


store = http.server.ThreadingHTTPServer(("127.0.0.1", 29725), Store)
store.daemon_threads = True
threading.Thread(target=store.serve_forever, daemon=True).start()
sys.exit(subprocess.call([sys.executable, "prepare.py"]))
