"""The feature store, on another node."""
import http.server
import json


class Store(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        rows = [[i / 10, i % 3, i / 5] for i in range(64)]
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps(rows).encode())

    def log_message(self, *_):
        pass


http.server.ThreadingHTTPServer(("127.0.0.1", 29722), Store).serve_forever()
