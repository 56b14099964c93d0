import socket
import sys

host, _, port = sys.argv[1].partition(":")
with socket.create_connection((host, int(port)), timeout=5) as connection:
    connection.sendall(b"GET /license HTTP/1.0\r\n\r\n")
    print(connection.recv(20))
