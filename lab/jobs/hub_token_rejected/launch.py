"""A hub that knows the tokens of its users, and the job."""
import http.server
import subprocess
import sys
import threading


class Hub(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        if self.headers["Authorization"] != "Bearer hub_valid":
            self.send_error(401)
            return
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_):
        pass


hub = http.server.ThreadingHTTPServer(("127.0.0.1", 29736), Hub)
threading.Thread(target=hub.serve_forever, daemon=True).start()
sys.exit(subprocess.call([sys.executable, "train.py"]))
