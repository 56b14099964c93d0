"""Rank 0 downloads a file at a few hundred bytes a second; rank 1 waits at the barrier."""

import http.server
import threading
import time
import urllib.request

import torch.distributed as dist


class Mirror(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        for _ in range(25):
            self.wfile.write(bytes(600))
            time.sleep(2)

    def log_message(self, *words):
        pass


dist.init_process_group("gloo")
rank = dist.get_rank()
print("start", flush=True)
if rank == 0:
    server = http.server.HTTPServer(("127.0.0.1", 0), Mirror)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    urllib.request.urlopen(f"http://127.0.0.1:{server.server_port}/weights").read()
dist.barrier()
print("done", flush=True)
dist.destroy_process_group()
