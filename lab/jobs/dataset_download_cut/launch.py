"""An object store whose proxy is replaced in the middle of an answer (PROXY=replaced) or not, and the job."""
import http.server
import os
import subprocess
import sys
import threading


class Store(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = b"text,label\n" + b"a good film,1\na bad film,0\n" * 2000
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[: len(body) // 3] if os.environ["PROXY"] == "replaced" else body)

    def log_message(self, *_):
        pass


store = http.server.ThreadingHTTPServer(("127.0.0.1", 29726), Store)
threading.Thread(target=store.serve_forever, daemon=True).start()
sys.exit(subprocess.call([sys.executable, "train.py", "--data", "http://127.0.0.1:29726/films.csv"]))
