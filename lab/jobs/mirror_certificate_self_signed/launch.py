"""A mirror with a certificate that it signed itself, and the job."""
import http.server
import ssl
import subprocess
import sys
import threading

subprocess.run(
    ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "key.pem", "-out",
     "mirror.pem", "-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"],
    check=True, capture_output=True,
)
context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
context.load_cert_chain("mirror.pem", "key.pem")


class Mirror(http.server.ThreadingHTTPServer):
    def finish_request(self, request, client_address):
        try:
            secure = context.wrap_socket(request, server_side=True)
        except ssl.SSLError:
            return
        super().finish_request(secure, client_address)


server = Mirror(("127.0.0.1", 29737), http.server.SimpleHTTPRequestHandler)
threading.Thread(target=server.serve_forever, daemon=True).start()
sys.exit(subprocess.call([sys.executable, "train.py"]))
