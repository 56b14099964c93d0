"""The fork server of dry runs, which also runs scripts that need torch: ``python zygote.py SOCKET CHILD``."""

from __future__ import annotations

import os
import runpy
import socket
import sys
from typing import Any, NoReturn

from epochzero.check.dryrun import fork_server


class Scripts(fork_server.PreloadedModules):
    """Forks that run a script, or are the launcher of a dry run."""

    def launch(self, request: dict[str, Any], given: list[int]) -> NoReturn:
        """Becomes what is asked for."""
        if "script" not in request:
            super().launch(request, given)
        fork_server.place(request["numbers"], given)
        sys.argv = request["script"]
        sys.path.insert(0, os.path.dirname(sys.argv[0]))
        runpy.run_path(sys.argv[0], run_name="__main__")
        sys.exit(0)


if __name__ == "__main__":
    fork_server.main(socket.socket(fileno=int(sys.argv[1])), sys.argv[2], Scripts)
