"""Runs one attempt of a job: as if it ran by itself, with everything stored.

    streams, terminal <--> supervisor <-- channel --> guard --> job and its tree
                               |-- output in bounded logs
                               |-- records in the journal
                               '-- watchers, each in a thread of its own

Each stream of output has a thread that only reads, keeps and passes on, so that a slow reader outside
holds the job up as it would without us, and nothing else. The main thread waits for signals, keys
and the guard.
"""

from __future__ import annotations

import errno
import os
import selectors
import signal
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from epochzero.platform import adopt_orphans
from epochzero.run.process.guard_process import GuardProcess
from epochzero.run.process.siblings import failed_sibling
from epochzero.run.process.signals import Signals
from epochzero.run.process.streams import Streams
from epochzero.run.process.terminal import Keys, Terminal
from epochzero.run.process.watcher import EndJob, Watcher, WatcherThread
from epochzero.run.records.clock import Clock
from epochzero.run.records.journal import Journal
from epochzero.run.records.model import End, JobEvent, Record, Start
from epochzero.run.records.output import Logs
from epochzero.run.scheduler import SchedulerAllocation, allocation_of

_DRAIN_S = 2.0
"""Output that a process outside the tree holds open is waited for so long."""
_DRAIN_PAUSE_S = 0.05
_WATCHERS_S = 5.0
_FOREGROUND_S = 1.0
"""A shell need not tell that a job of its background has come to the front."""
_NOT_FOUND, _NOT_EXECUTABLE = 127, 126
_STOPS = (signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU)
_ENDS = (signal.SIGINT, signal.SIGTERM)
_BY_USER = (signal.SIGINT, signal.SIGHUP, signal.SIGQUIT)
_BY_SCHEDULER = (signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2)
_WARNING_S = 900.0
"""Before their limit jobs are rarely warned earlier (sbatch --signal; its default is 60 s)."""
_MOST_ASKING = 8
"""Ranks that ask the scheduler: thousands at once would be a load to it."""
_PARENT_S = 5.0
_ORPHAN_S = 60.0
"""How often a job asks for its allocation whose batch script is gone."""
_SILENT = (signal.SIGCONT, signal.SIGTSTP, signal.SIGWINCH)


@dataclass(frozen=True, slots=True)
class SupervisorOptions:
    """How an attempt is run.

    Attributes:
        grace: seconds from SIGINT or SIGTERM to the end of the whole tree.
        keep: bytes of the head of each log, and again of its tail.
        closed: the standard streams that the job is to have closed, as they were for us.
        command: what is executed where it is not the command of the record: a program that sets up what the
            job sees, and then becomes it. None for the command itself.
    """

    grace: float = 10.0
    keep: int = 64 << 20
    closed: frozenset[int] = frozenset()
    command: tuple[str, ...] | None = None


def run_attempt(
    started: Start,
    folder: Path | None,
    journal: Journal | None,
    *,
    environment: Mapping[str, str],
    options: SupervisorOptions | None = None,
    watchers: Sequence[Watcher] = (),
) -> End:
    """Runs a job's command in the current folder until its whole process tree has ended.

    Must be called from the main thread: it handles signals, and while it runs, processes that lose
    their parent become children of this one. The standard streams are the job's.

    Args:
        started: the attempt's first record, with the command.
        folder: where logs are stored; None stores none, and no watcher runs.
        journal: where records are stored; None stores none.
        environment: of the job.
        options: how it is run.
        watchers: who looks at it meanwhile.

    Returns:
        How it ended; 127 where the command was not found and 126 where it could not be executed, as
        a shell has it.
    """
    attempt = _SupervisedAttempt(started, folder, journal, options or SupervisorOptions())
    with ExitStack() as stack:
        adopt_orphans()
        stack.callback(adopt_orphans, False)
        stack.callback(attempt.give_back_terminal)
        attempt.start(stack.enter_context(Signals()), environment, watchers)
        attempt.wait()
        # torchrun may ask a rank to end whose job has just ended: the last records must still be written.
        return attempt.end()


class _SupervisedAttempt:
    """What is known of the attempt while it runs.

    Attributes:
        exited: when and how the job itself ended: exit code, signal.
        asked: when it was last asked to end, and by whom.
        terminated: whether SIGTERM came.
        signaled: each signal that came and was passed on, with who sent it.
        wish: of the watcher that asked first.
    """

    def __init__(
        self,
        started: Start,
        folder: Path | None,
        journal: Journal | None,
        options: SupervisorOptions,
    ) -> None:
        self.clock = Clock()
        self.started = started
        self.folder = folder
        self.journal = journal
        self.options = options
        self.logs: Logs | None = None
        self.watching: list[WatcherThread] = []
        self.terminal: Terminal | None = None
        self.keys: Keys | None = None
        self.exited: tuple[tuple[float, float], int, int | None] | None = None
        self.asked: tuple[float, str] | None = None
        self.terminated = False
        self.signaled: dict[int, str] = {}
        self.wish: EndJob | None = None
        self.interrupts = 0
        self.told_to_stop = False
        self.tree_is_gone = False
        self.parent = os.getppid()
        self.ask_again = 0.0

    def start(
        self, signals: Signals, environment: Mapping[str, str], watchers: Sequence[Watcher]
    ) -> None:
        """Start the job, then notify its watchers."""
        self.keep(self.started)
        self.signals = signals
        streams = Streams(self.options.closed, self.on_output, self._not_passed_on)
        self.pumps = streams.pumps
        typed = streams.terminal is not None and streams.terminal.typed
        self.terminal = streams.terminal
        if self.folder is not None:
            self.logs = Logs(self.folder, self.options.keep, terminal="stdout" if typed else "")
            self.watching = [
                WatcherThread(watcher, self.keep, self.clock, self._end_for) for watcher in watchers
            ]
        if self.terminal is not None:
            # Before the job can write: until then the terminal outside would change line ends once more.
            self.terminal.take_keys()
        self.guarding = GuardProcess(
            self.options.command or self.started.command,
            environment,
            streams.job,
            terminal=streams.job[0] if typed else None,
            ignored=signals.ignored,
            grace=self.options.grace,
        )
        streams.given()

    def give_back_terminal(self) -> None:
        """Leaves the terminal outside as it was, also after an error."""
        if self.terminal is not None:
            self.terminal.give_back_keys()

    def wait(self) -> None:
        """Until the job's tree is gone, and its output is through.

        The keys are given back last: until then the terminal outside must change no line end.
        """
        with selectors.DefaultSelector() as selector, ExitStack() as stack:
            selector.register(self.signals, selectors.EVENT_READ, self._signals_came)
            selector.register(self.guarding.channel, selectors.EVENT_READ, self._guard_spoke)
            if self.terminal is not None and self.terminal.typed:
                self.keys = Keys(self.terminal, selector, self._typed_interrupt)
                stack.callback(self.keys.give_back)
            while not self.tree_is_gone:
                waiting = self.keys is not None and not self.keys.take()
                pause = _PARENT_S if self._may_ask else None
                for key, _ in selector.select(_FOREGROUND_S if waiting else pause):
                    key.data()
                self._look_at_allocation()
            self.guarding.wait()
            self._drain()

    def _drain(self) -> None:
        """Lets the rest of the output through; a reader outside may take its time."""
        patience = time.monotonic() + _DRAIN_S
        while pumps := [pump for pump in self.pumps if pump.is_alive()]:
            pumps[0].join(_DRAIN_PAUSE_S)
            if {*self.signals.take()} & {*_BY_USER, signal.SIGTERM}:
                return
            if time.monotonic() > patience and not any(pump.writing for pump in pumps):
                return

    def end(self) -> End:
        """Makes the last records."""
        for watching in self.watching:
            watching.end(_WATCHERS_S)
        for output in self.logs.close(self.clock) if self.logs is not None else ():
            self.keep(output)
        if self.journal is not None and self.journal.lost:
            text = f"{self.journal.lost} records could not be written"
            self.event("journal_lost", text)
        when, code, number = self.exited or (self.clock.now(), 128 + signal.SIGKILL, signal.SIGKILL)
        # A job that has no handler for a warning signal dies of it; a shell makes an exit code of that.
        why = self._why(when[1]) or self.signaled.get(number or code - 128, "")
        state = ""
        if code:
            why, state = self._asked_scheduler(why)
        if self.wish is not None and why in ("", self.wish.why):
            why = self.wish.why
            if self.wish.exit_code is not None:
                code, number = self.wish.exit_code, None
        ended = End(*when, code, number, why, state)
        self.keep(ended)
        return ended

    def keep(self, record: Record) -> None:
        """Writes a record to the journal; from any thread."""
        if self.journal is not None:
            self.journal.write(record, now=isinstance(record, End))

    def event(self, what: str, text: str, **details: str) -> None:
        """Writes what happened."""
        self.keep(JobEvent(*self.clock.now(), what, text, details=details))

    def on_output(self, stream: str, data: bytes) -> None:
        """The job wrote; called from the streams' threads."""
        if self.logs is not None:
            self.logs.write(stream, data)
        for watching in self.watching:
            watching.on_output(stream, data)

    def _why(self, elapsed: float) -> str:
        """Who ended the job: the last that asked for it, unless the job went on for long.

        A launcher asks all ranks to end when one has failed, as a person does who has had enough.
        """
        if self.asked is None or elapsed > self.asked[0] + self._grace + _DRAIN_S:
            return ""
        if self.terminated and self.folder is not None:
            failed = failed_sibling(self.folder)
            if failed is not None:
                text = f"this rank was terminated because rank {failed} failed"
                self.event("ended_for_rank", text)
                return "another_rank"
        return self.asked[1]

    def _asked_scheduler(self, why: str) -> tuple[str, str]:
        """Who ended the job as its scheduler knows, and its state there.

        A signal does not tell whether a person, a time limit or a preemption sent it.
        """
        if why not in ("", "scheduler") or not self._may_ask:
            return why, ""
        allocation = allocation_of(self.started.scheduler)
        if allocation is None:
            return why, ""
        if not allocation.runs:
            self._note_state(allocation)
            return "user" if allocation.cancelled else "scheduler", allocation.state
        if why != "scheduler":
            return why, ""
        left = allocation.seconds_left
        if left is not None and left > _WARNING_S:
            text = f"a user sent the signal: the allocation has {left / 60:.0f} min left"
            self.event("scheduler", text, state=allocation.state)
            return "user", ""
        return why, "SIGNALED"

    @property
    def _may_ask(self) -> bool:
        """Whether this process asks the scheduler for its allocation."""
        return bool(self.started.scheduler) and (self.started.rank or 0) <= _MOST_ASKING

    def _look_at_allocation(self) -> None:
        """Ends the job if its parent is gone and its allocation is over.

        Without control groups Slurm does not find the processes of a batch script that a signal has ended.
        They would use GPUs that it has given to others.
        """
        now = time.monotonic()
        if not self._may_ask or self.asked or os.getppid() == self.parent or now < self.ask_again:
            return
        self.ask_again = now + _ORPHAN_S
        allocation = allocation_of(self.started.scheduler)
        if allocation is not None and not allocation.runs:
            self._note_state(allocation)
            self.asked = (self.clock.now()[1], "scheduler")
            self.guarding.signal(signal.SIGTERM)
            self.guarding.end(self.options.grace)

    def _note_state(self, allocation: SchedulerAllocation) -> None:
        text = f"the allocation is over: its state in the scheduler is {allocation.state}"
        self.event("scheduler", text, state=allocation.state)

    def _end_for(self, wish: EndJob) -> None:
        """A watcher wants the job to end; called from its thread, also when the job has ended."""
        if self.wish is not None:
            return
        self.wish = wish
        self.event(f"ended_by_{wish.why}", str(wish), **wish.details)
        if not self.tree_is_gone:
            self.asked = (self.clock.now()[1], wish.why)
            self.guarding.signal(signal.SIGTERM)
            self.guarding.end(self._grace)

    @property
    def _grace(self) -> float:
        """Seconds from asking the job to end until it is killed."""
        wished = self.wish.grace if self.wish is not None else None
        return self.options.grace if wished is None else wished

    def _guard_spoke(self) -> None:
        messages = self.guarding.channel.receive()
        if messages is None:
            self._guard_died()
            return
        for message in messages:
            for what, value in message.items():
                if what in self._HEARD:
                    self._HEARD[what](self, value)

    def _running(self, pid: int) -> None:
        for watching in self.watching:
            if self.folder is not None:
                watching.start(pid, self.folder)

    def _failed(self, number: int) -> None:
        command = self.started.command[0]
        self.event("not_started", f"{command}: {os.strerror(number)}")
        code = _NOT_FOUND if number == errno.ENOENT else _NOT_EXECUTABLE
        self.exited = (self.clock.now(), code, None)
        self.asked = (self.clock.now()[1], "not_started")
        self.tree_is_gone = True

    def _stopped(self, number: int) -> None:
        """The job sleeps as by Ctrl-Z; then the shell must have its terminal back."""
        self.event("stopped", f"the job was stopped by {signal.Signals(number).name}")
        if number in _STOPS and (self.keys is not None or self.told_to_stop):
            self.told_to_stop = False
            if self.keys is not None:
                self.keys.give_back()
            self.signals.stop()
            self.guarding.signal(signal.SIGCONT)
            self.event("continued", "the job continued")

    def _exited(self, status: int) -> None:
        code = os.waitstatus_to_exitcode(status)
        self.exited = (
            self.clock.now(),
            code if code >= 0 else 128 - code,
            -code if code < 0 else None,
        )

    def _left(self, names: Sequence[str]) -> None:
        self.tree_is_gone = True
        if names:
            self.event(
                "killed_leftovers",
                f"processes that the job left running were killed: {_list(names)}",
            )

    def _stuck(self, names: Sequence[str]) -> None:
        if names:
            self.event("not_ended", f"could not be killed: {_list(names)}")

    _HEARD: ClassVar[Mapping[str, Callable[[_SupervisedAttempt, Any], None]]] = {
        "running": _running,
        "failed": _failed,
        "stopped": _stopped,
        "exited": _exited,
        "gone": _left,
        "stuck": _stuck,
    }

    def _guard_died(self) -> None:
        self.tree_is_gone = True
        left = self.guarding.adopt()
        text = "the job was terminated because its guard process was killed"
        self.event("guard_lost", text + (f"; {left} processes could not be killed" if left else ""))

    def _signals_came(self) -> None:
        for number in self.signals.take():
            if number == signal.SIGWINCH and self.terminal is not None:
                self.terminal.resize()
                continue
            self.told_to_stop = number == signal.SIGTSTP
            self.guarding.signal(number)
            if number not in _SILENT:
                self._note(number)
            if number in _ENDS:
                self.interrupts += number == signal.SIGINT
                self.terminated |= number == signal.SIGTERM
                self.guarding.end(self.options.grace if self.interrupts < 2 else 0.0)

    def _note(self, number: int) -> None:
        name = signal.Signals(number).name
        scheduled = bool(self.started.scheduler) and number in _BY_SCHEDULER
        who = "scheduler" if scheduled else "user"
        self.event("signal", f"{name} was received and passed on to the job", signal=name, who=who)
        self.signaled[number] = who
        if number in _ENDS or number in _BY_USER:
            self.asked = (self.clock.now()[1], who)

    def _typed_interrupt(self) -> None:
        self.event("signal", "Ctrl-C was pressed", signal="SIGINT", who="user")
        self.asked = (self.clock.now()[1], "user")

    def _not_passed_on(self, text: str) -> None:
        self.event("output_not_passed_on", text)


def _list(names: Sequence[str]) -> str:
    counts = Counter(names)
    return ", ".join(name if count == 1 else f"{count} {name}" for name, count in counts.items())
