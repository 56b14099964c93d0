"""Has a `command_server` carry out a command: ``python -I -S command_client.py SOCKET epochzero WORD ...``."""

import _socket
import marshal
import os
import signal
import sys

server = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
server.connect(sys.argv[1])
request = marshal.dumps((os.getcwd(), sys.argv[2:], dict(os.environ)))
streams = b"".join(number.to_bytes(4, sys.byteorder) for number in range(3))
server.sendmsg([len(request).to_bytes(8)], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, streams)])
while request:
    request = request[server.send(request) :]
code = int(server.recv(100) or -signal.SIGKILL)
if code < 0:
    os.kill(os.getpid(), -code)
os._exit(code)
