"""The signals of Linux, where most jobs run: macOS numbers some differently, Windows has only a few."""

from __future__ import annotations

from enum import IntEnum

LinuxSignal = IntEnum(
    "LinuxSignal",
    "SIGHUP SIGINT SIGQUIT SIGILL SIGTRAP SIGABRT SIGBUS SIGFPE SIGKILL SIGUSR1 SIGSEGV SIGUSR2 SIGPIPE SIGALRM SIGTERM"
    " SIGSTKFLT SIGCHLD SIGCONT SIGSTOP SIGTSTP SIGTTIN SIGTTOU SIGURG SIGXCPU SIGXFSZ SIGVTALRM SIGPROF SIGWINCH SIGIO"
    " SIGPWR SIGSYS",
)
