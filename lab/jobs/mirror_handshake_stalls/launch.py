"""A mirror behind a balancer that accepts and then does not answer (BALANCER=overloaded), or answers."""
import http.server
import os
import socket
import ssl
import subprocess
import sys
import threading

subprocess.run(
    ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "key.pem", "-out",
     "mirror.pem", "-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"],
    check=True, capture_output=True,
)
os.makedirs("data", exist_ok=True)
with open("data/points.csv", "w") as table:
    table.writelines(f"{i},{i * i % 11}\n" for i in range(100))
if os.environ["BALANCER"] == "overloaded":
    stalled = socket.create_server(("127.0.0.1", 29732))
else:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain("mirror.pem", "key.pem")
    http.server.SimpleHTTPRequestHandler.log_message = lambda *_: None
    server = http.server.ThreadingHTTPServer(
        ("127.0.0.1", 29732), http.server.SimpleHTTPRequestHandler
    )
    server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
env = {**os.environ, "SSL_CERT_FILE": os.path.abspath("mirror.pem")}
sys.exit(subprocess.call([sys.executable, "train.py"], env=env))
