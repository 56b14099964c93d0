"""Which of many errors came first: chains, cascades, recovered faults, advice, other ranks."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from epochzero.diagnose import Diagnosis

    Diagnose = Callable[..., Diagnosis]


def text(source: str) -> str:
    return textwrap.dedent(source).lstrip("\n")


def prefixed(prefix: str, lines: str) -> str:
    return "".join(f"{prefix}{line}\n" for line in lines.splitlines())


def interleaved(*parts: str) -> str:
    """Line by line from each of the parts in turn."""
    queues = [part.splitlines() for part in parts]
    merged: list[str] = []
    while any(queues):
        merged += [queue.pop(0) for queue in queues if queue]
    return "\n".join(merged) + "\n"


KEY_ERROR = text(
    """
    Traceback (most recent call last):
      File "/job/train.py", line 40, in <module>
        main()
      File "/job/train.py", line 31, in main
        lr = config["lr"]
    KeyError: 'lr'
    """
)
CLOSED = text(
    """
    Traceback (most recent call last):
      File "/job/train.py", line 50, in <module>
        loss.backward()
      File "/opt/conda/lib/python3.11/site-packages/torch/autograd/__init__.py", line 347, in backward
        _engine_run_backward(
    RuntimeError: [../third_party/gloo/gloo/transport/tcp/pair.cc:534] Connection closed by peer [10.0.0.2]:3412
    """
)
CHILD_FAILED = text(
    """
    E0501 12:00:09.100000 812 torch/distributed/elastic/multiprocessing/api.py:869] failed (exitcode: 1) local_rank: 2 (pid: 815) of binary: /opt/conda/bin/python
    Traceback (most recent call last):
      File "/opt/conda/bin/torchrun", line 8, in <module>
        sys.exit(main())
      File "/opt/conda/lib/python3.11/site-packages/torch/distributed/launcher/api.py", line 264, in launch_agent
        raise ChildFailedError(
    torch.distributed.elastic.multiprocessing.errors.ChildFailedError:
    ============================================================
    train.py FAILED
    ------------------------------------------------------------
    Failures:
      <NO_OTHER_FAILURES>
    ------------------------------------------------------------
    Root Cause (first observed failure):
    [0]:
      time      : 2024-05-01_12:00:09
      host      : node01
      rank      : 2 (local_rank: 2)
      exitcode  : 1 (pid: 815)
      error_file: <N/A>
      traceback : To enable traceback see: https://pytorch.org/docs/stable/elastic/errors.html
    ============================================================
    """
)
SLURM = text(
    """
    srun: error: node01: task 2: Exited with exit code 1
    slurmstepd: error: *** STEP 4242.0 ON node01 CANCELLED AT 2024-05-01T12:00:10 ***
    srun: error: node01: tasks 0-1,3: Terminated
    """
)
START = "loading data\nmodel has 12 layers\n"
TRAINED = "Epoch 1: loss 0.9\nEpoch 2: loss 0.5\nEpoch 3: loss 0.4\n"


def root(found: Diagnosis) -> tuple[int | None, str, int | None]:
    assert found.root is not None, found
    return found.root.line, found.root.text.strip(), found.root.rank


# -- Within one traceback ----------------------------------------------------------------------


def test_of_a_chain_the_first_exception_is_the_root(diagnose: Diagnose) -> None:
    chain = KEY_ERROR + text(
        """

        The above exception was the direct cause of the following exception:

        Traceback (most recent call last):
          File "/job/train.py", line 44, in <module>
            raise RuntimeError("could not configure") from error
        RuntimeError: could not configure
        """
    )
    found = diagnose(START + chain)
    assert root(found) == (8, "KeyError: 'lr'", None)
    assert found.exception is not None
    assert found.exception.type == "KeyError"
    assert found.category == "key_not_found"


def test_of_a_wrapper_the_exception_inside_is_the_root(diagnose: Diagnose) -> None:
    found = diagnose(
        text(
            """
            Traceback (most recent call last):
              File "train.py", line 80, in <module>
                for batch in loader:
              File "/opt/conda/lib/python3.11/site-packages/torch/_utils.py", line 733, in reraise
                raise exception
            ValueError: Caught ValueError in DataLoader worker process 1.
            Original Traceback (most recent call last):
              File "/opt/conda/lib/python3.11/site-packages/torch/utils/data/_utils/worker.py", line 349, in _worker_loop
                data = fetcher.fetch(index)
              File "train.py", line 31, in __getitem__
                raise ValueError(f"no label for {name}")
            ValueError: no label for img_7.jpg
            """
        )
    )
    assert root(found) == (12, "ValueError: no label for img_7.jpg", None)
    assert found.user_frame is not None
    assert (found.user_frame.line, found.user_frame.function) == (31, "__getitem__")


def test_the_user_frame_is_the_innermost_of_the_users_own(diagnose: Diagnose) -> None:
    found = diagnose(CLOSED.replace("RuntimeError: [..", "RuntimeError: mat1 and mat2 shapes ["))
    assert found.user_frame is not None
    assert (found.user_frame.file, found.user_frame.line) == ("/job/train.py", 50)


def test_a_syntax_error_of_the_script_itself(diagnose: Diagnose) -> None:
    found = diagnose(
        '  File "/job/train.py", line 3\n    def f(:\n          ^\nSyntaxError: invalid syntax\n'
    )
    assert found.category == "syntax_error"
    assert root(found)[0] == 4
    assert found.user_frame is not None
    assert (found.user_frame.file, found.user_frame.line) == ("/job/train.py", 3)


# -- Several processes -------------------------------------------------------------------------


@pytest.mark.parametrize("prefix", ["[rank{}]: ", "[default{}]:", "[1,{}]<stderr>:", "{}: "])
def test_the_rank_that_failed_first_is_told_from_those_that_followed(
    diagnose: Diagnose, prefix: str
) -> None:
    log = "".join(prefixed(prefix.format(rank), START) for rank in range(4))
    log += prefixed(prefix.format(0), CLOSED)
    log += prefixed(prefix.format(2), KEY_ERROR)
    log += prefixed(prefix.format(1), CLOSED) + prefixed(prefix.format(3), CLOSED)
    found = diagnose(log + (SLURM if prefix == "{}: " else CHILD_FAILED))
    assert found.category == "key_not_found"
    line, shown, rank = root(found)
    assert shown.endswith("KeyError: 'lr'")
    assert rank == 2
    assert log.splitlines()[(line or 0) - 1] == prefix.format(2) + "KeyError: 'lr'"
    assert {one.rank for one in found.cascade} >= {0, 1, 3}


def test_labels_of_srun_below_the_output_of_the_batch_script(diagnose: Diagnose) -> None:
    table = "| N/A   32C    P0    52W / 400W |      0MiB / 40960MiB |      0%      Default |\n"
    preamble = "+ module load cuda/12.1\n+ nvidia-smi\n" + table * 40
    ranks = "".join(prefixed(f"{n}: ", START + TRAINED * 9) for n in range(4))
    ranks += prefixed("2: ", KEY_ERROR) + prefixed("0: ", CLOSED)
    found = diagnose(preamble + ranks + SLURM)
    assert root(found)[1:] == ("2: KeyError: 'lr'", 2)


def test_tracebacks_that_run_into_one_another(diagnose: Diagnose) -> None:
    log = interleaved(
        *(prefixed(f"[rank{n}]: ", KEY_ERROR if n == 2 else CLOSED) for n in range(4))
    )
    found = diagnose(log)
    assert root(found)[1:] == ("[rank2]: KeyError: 'lr'", 2)
    assert found.user_frame is not None
    assert (found.user_frame.line, found.user_frame.function) == (31, "main")


def test_tracebacks_of_two_nodes_that_run_into_one_another(diagnose: Diagnose) -> None:
    other = KEY_ERROR.replace("line 31", "line 77").replace("KeyError: 'lr'", "ValueError: no lr")
    found = diagnose(interleaved(prefixed("worker-0: ", KEY_ERROR), prefixed("worker-1: ", other)))
    assert found.root is not None
    assert (found.root.text, found.root.host) == ("worker-0: KeyError: 'lr'", "worker-0")
    assert found.user_frame is not None
    assert (found.user_frame.line, found.user_frame.function) == (31, "main")


def test_rank_files(diagnose: Diagnose) -> None:
    logs = {f"attempt_0/{n}/stderr.log": KEY_ERROR if n == 2 else CLOSED for n in range(4)}
    found = diagnose(logs | {"stdout.log": CHILD_FAILED})
    assert found.root is not None
    assert (found.root.file, found.root.line, found.root.rank) == (
        "attempt_0/2/stderr.log",
        6,
        2,
    )
    assert found.category == "key_not_found"


def failed_at(clock: str, error: str) -> str:
    return f"2024-05-01 {clock} - root - ERROR - training failed\n" + KEY_ERROR.replace(
        "KeyError: 'lr'", error
    )


def test_equal_failures_are_ordered_by_time(diagnose: Diagnose) -> None:
    found = diagnose(
        {
            "rank_0.log": failed_at("12:00:07,100", "KeyError: 'epochs'"),
            "rank_1.log": failed_at("12:00:05,900", "KeyError: 'lr'"),
            "rank_2.log": failed_at("12:00:06,000", "KeyError: 'batch'"),
        }
    )
    assert found.root is not None
    assert (found.root.rank, found.root.text) == (1, "KeyError: 'lr'")
    assert found.root.time == pytest.approx(1714564805.9)


def test_the_order_of_the_files_does_not_matter(diagnose: Diagnose) -> None:
    logs = {
        "rank_0.log": failed_at("12:00:07,100", "KeyError: 'epochs'"),
        "rank_1.log": failed_at("12:00:05,900", "KeyError: 'lr'"),
    }
    assert diagnose(logs).root == diagnose(dict(reversed(logs.items()))).root


@pytest.mark.parametrize("after", [CHILD_FAILED, SLURM, CHILD_FAILED + SLURM])
def test_what_a_launcher_says_afterwards_is_no_cause(diagnose: Diagnose, after: str) -> None:
    found = diagnose(START + KEY_ERROR + after)
    assert root(found)[:2] == (8, "KeyError: 'lr'")
    assert found.category == "key_not_found"


def test_teardown_is_no_cause(diagnose: Diagnose) -> None:
    found = diagnose(
        START
        + KEY_ERROR
        + text(
            """
            Exception ignored in: <function _MultiProcessingDataLoaderIter.__del__ at 0x7f12>
            Traceback (most recent call last):
              File "/opt/conda/lib/python3.11/site-packages/torch/utils/data/dataloader.py", line 1479, in __del__
                self._shutdown_workers()
            AssertionError: can only test a child process
            """
        )
    )
    assert root(found)[1] == "KeyError: 'lr'"


# -- What was survived -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "noise",
    [
        "WARNING: could not import apex, falling back to native AMP\n",
        "ConnectionError: [Errno 104] Connection reset by peer, retrying in 5 s (1/3)\n",
        "2024-05-01 12:00:00,123 - data - WARNING - skipping broken image 7.jpg: UnidentifiedImageError\n",
        "UserWarning: Error loading libjpeg: undefined symbol, image IO is off\n",
        KEY_ERROR,
        "Namespace(on_error='raise', log='ERROR', ignore_errors=True, retry_failed=3)\n",
        "fail_fast: true\nerror_policy: abort\nkill_on_oom: false\n",
        '{"on_failure": "retry", "errors": 0, "killed": false, "loglevel": "ERROR"}\n',
        "0 errors, 0 failures\n",
        "test error: 0.0123, validation error: 0.0456\n",
    ],
    ids=lambda noise: noise[:30],
)
def test_what_was_survived_is_no_failure(diagnose: Diagnose, noise: str) -> None:
    found = diagnose(START + noise + TRAINED * 5 + "Training complete\n")
    assert (found.outcome, found.category) == ("no_failure", "not_a_failure"), found.root
    assert found.root is None


def test_an_exception_that_a_record_says_is_ignored(diagnose: Diagnose) -> None:
    record = "2024-05-01 12:00:00,123 ERROR "
    logged = f"{record}FileNotFoundError: [Errno 2] No such file or directory: 'old.lock'\n"
    ignored = diagnose(f"{START}{record}could not remove the lock (ignored)\n{logged}")
    assert ignored.outcome == "no_failure"
    assert diagnose(f"{START}{record}could not remove the lock\n{logged}").outcome == "failed"
    # A traceback below the same words was raised, not logged.
    raised = diagnose(f"{START}{record}could not remove the lock (ignored)\n{KEY_ERROR}")
    assert root(raised)[1] == "KeyError: 'lr'"


def test_steps_right_below_a_traceback_are_no_part_of_it(diagnose: Diagnose) -> None:
    steps = "".join(f"step {n} loss 0.{n}\n" for n in range(1, 6))
    found = diagnose(f"{START}2024-05-01 12:00:00 ERROR no cache\n{KEY_ERROR}{steps}")
    assert found.outcome == "no_failure"


@pytest.mark.parametrize(
    "noise",
    [
        "usage: 3 GPUs, error feedback: on, fail_fast: true\n",
        "config: {'on_error': 'raise', 'log_level': 'ERROR'}\n",
        "If the job is killed, set --resume. In case of an error see the wiki.\n",
        "classifier.bias | MISMATCH | Reinit due to size mismatch ckpt: torch.Size([1000]) vs model: torch.Size([6])\n",
        "W tensorflow/stream_executor/dso_loader.cc:64] Could not load dynamic library 'libnvinfer'\n",
    ],
)
def test_words_of_errors_alone_are_no_failure(diagnose: Diagnose, noise: str) -> None:
    assert diagnose(START + noise).outcome == "no_failure"


def test_a_fault_before_the_failure_is_not_its_cause(diagnose: Diagnose) -> None:
    early = KEY_ERROR.replace("KeyError: 'lr'", "ValueError: bad magic number in shard 3")
    found = diagnose(START + early + TRAINED * 5 + KEY_ERROR)
    assert root(found)[1] == "KeyError: 'lr'"
    assert root(found)[0] == 2 + 6 + 15 + 6


@pytest.mark.parametrize(
    "advice",
    [
        "For debugging consider passing CUDA_LAUNCH_BLOCKING=1\n",
        "Compile with `TORCH_USE_CUDA_DSA` to enable device-side assertions.\n",
        "NOTE: Some possible root causes are an out-of-memory error or a missing file.\n",
    ],
)
def test_advice_beside_an_error_is_not_its_cause(diagnose: Diagnose, advice: str) -> None:
    error = KEY_ERROR.replace(
        "KeyError: 'lr'", "RuntimeError: CUDA error: device-side assert triggered"
    )
    found = diagnose(START + error + advice)
    assert root(found)[1].startswith("RuntimeError: CUDA error")


def test_a_second_attempt_that_succeeds_is_no_failure(diagnose: Diagnose) -> None:
    found = diagnose(START + KEY_ERROR + CHILD_FAILED + START + TRAINED * 6 + "Training complete\n")
    assert found.outcome == "no_failure"


def test_of_two_attempts_the_last_failure_counts(diagnose: Diagnose) -> None:
    again = KEY_ERROR.replace("'lr'", "'epochs'")
    found = diagnose(START + KEY_ERROR + START + TRAINED * 6 + again)
    assert root(found)[1] == "KeyError: 'epochs'"


# -- How lines look ----------------------------------------------------------------------------


def test_an_error_behind_a_progress_bar(diagnose: Diagnose) -> None:
    bars = "".join(f"\r{n:3}%|{'#' * (n // 10):10}| {n}/100 [00:01<00:09]" for n in range(0, 50, 5))
    found = diagnose(START + bars + "Traceback (most recent call last):\n" + "".join(
        line + "\n" for line in KEY_ERROR.splitlines()[1:]
    ))  # fmt: skip
    assert found.category == "key_not_found"
    assert root(found)[1] == "KeyError: 'lr'"


@pytest.mark.parametrize(
    "prefix",
    [
        "2024-05-01T12:00:00.123456789Z stderr F ",
        "[pod/trainer-0/main] ",
        "(train_fn pid=812, ip=10.0.0.2) ",
        "\x1b[36m(train_fn pid=812)\x1b[0m ",
        "trainer-1  | ",
        "worker-3: ",
        "2024-05-01 12:00:00,123 ERROR ",
        "2024-05-01T12:00:00.1234567Z ",
        "",
    ],
)
def test_prefixes_do_not_hide_a_traceback(diagnose: Diagnose, prefix: str) -> None:
    found = diagnose(prefixed(prefix, START + KEY_ERROR))
    assert found.category == "key_not_found"
    assert found.exception is not None
    assert (found.exception.type, found.exception.message) == ("KeyError", "'lr'")
    assert found.user_frame is not None
    assert (found.user_frame.line, found.user_frame.function) == (31, "main")
    assert root(found)[0] == 8


def test_line_ends_of_windows(diagnose: Diagnose) -> None:
    found = diagnose((START + KEY_ERROR).replace("\n", "\r\n"))
    assert root(found)[:2] == (8, "KeyError: 'lr'")
    assert found.user_frame is not None


def test_what_was_said_before_sys_exit_counts(diagnose: Diagnose) -> None:
    left = KEY_ERROR.replace("KeyError: 'lr'", "SystemExit: 1")
    found = diagnose(f"{START}2024-05-01 12:00:00 CRITICAL no space left on device\n{left}")
    assert found.category == "storage_full"
    assert diagnose(f"{START}{left}").outcome == "failed"


RANKS = """\
[rank1]: Traceback (most recent call last):
[rank1]:   File "/w/train.py", line 8, in <module>
[rank1]:     torch.distributed.all_reduce(x)
[rank1]: torch.distributed.DistBackendError: NCCL error: remote process exited or there was a network error
[rank3]: Traceback (most recent call last):
[rank3]:   File "/w/train.py", line 7, in <module>
[rank3]:     x = table[key]
[rank3]: KeyError: 'foo'
"""


def test_what_the_death_of_another_rank_explains_is_not_the_first_cause(diagnose: Diagnose) -> None:
    found = diagnose(RANKS)
    assert found.root is not None
    assert (found.root.rank, found.category) == (3, "key_not_found")


LAUNCHER = """\
Traceback (most recent call last):
  File "/opt/bin/torchrun", line 8, in <module>
    sys.exit(main())
  File "/opt/lib/python3.10/site-packages/torch/distributed/launcher/api.py", line 264, in launch_agent
    raise ChildFailedError(
torch.distributed.elastic.multiprocessing.errors.ChildFailedError:
============================================================
train.py FAILED
------------------------------------------------------------
Root Cause (first observed failure):
[0]:
  time      : 2026-01-02_10:00:00
  host      : node1
  rank      : 3 (local_rank: 3)
  exitcode  : 1 (pid: 4411)
  error_file: <N/A>
============================================================
"""


def test_the_launcher_names_the_rank_of_a_traceback_without_prefix(diagnose: Diagnose) -> None:
    trace = 'Traceback (most recent call last):\n  File "t.py", line 1, in <module>\n    f()\nKeyError: 1\n'
    found = diagnose(trace + LAUNCHER)
    assert found.root is not None
    assert (found.root.line, found.root.rank) == (4, 3)


def test_what_fails_while_a_signal_is_handled_is_not_the_first_cause(diagnose: Diagnose) -> None:
    found = diagnose(
        text("""
        Traceback (most recent call last):
          File "/w/agent.py", line 62, in run
            raise SignalException(f"Process {os.getpid()} got signal: {sigval}", sigval=sigval)
        torch.distributed.elastic.multiprocessing.api.SignalException: Process 47068 got signal: 1

        During handling of the above exception, another exception occurred:

        Traceback (most recent call last):
          File "/w/agent.py", line 4, in <module>
            main()
          File "/w/agent.py", line 70, in close
            workers[30]
        KeyError: 30
        """)
    )
    assert found.category == "interrupted"
    assert found.exception is None or found.exception.type != "KeyError"


WAITED = (
    "[rank{0}]:[E922 03:32:06.115905315 ProcessGroupNCCL.cpp:607] [Rank {0}] Watchdog caught collective operation "
    "timeout: WorkNCCL(SeqNum={1}, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=1800000) ran for "
    "1800031 milliseconds before timing out.\n"
)


@pytest.mark.parametrize(
    ("waiting", "absent"),
    [
        ([(2, 875), (1, 875), (3, 875)], 0),
        ([(0, 875), (1, 875), (3, 875)], 2),
        ([(0, 875), (1, 875), (2, 875)], None),  # perhaps there is no other rank
        ([(1, 875), (3, 875)], None),  # two are absent
        ([(1, 875), (2, 874), (3, 875)], None),  # ranks 0 and 2 are absent
        ([(0, 875), (1, 875), (2, 874), (3, 875)], 2),  # it waits in an earlier collective
        ([(0, 875), (1, 875), (2, 876)], None),  # it has passed that of the others
        ([(0, 875), (1, 874)], None),
    ],
)
def test_the_rank_for_which_all_others_waited_is_named(
    diagnose: Diagnose, waiting: list[tuple[int, int]], absent: int | None
) -> None:
    found = diagnose("".join(WAITED.format(*one) for one in waiting))
    named = [fix for fix in found.fixes if "did not arrive at ALLREDUCE number 875" in fix]
    assert named == list(found.fixes[: absent is not None])
    if absent is not None:
        assert root(found)[2] == absent
        assert named[0].startswith(f"Rank {absent} ")
        own = dict(waiting).get(absent)
        assert ("it waited in ALLREDUCE number" in named[0]) == (own is not None)
        assert not any("Find the rank" in fix for fix in found.fixes)
        assert own is None or f"[Rank {absent}] Watchdog" in root(found)[1]


CHILD_FAILED = """\
Traceback (most recent call last):
  File "/opt/lib/python3.11/site-packages/torch/distributed/launcher/api.py", line 264, in launch_agent
    raise ChildFailedError(
torch.distributed.elastic.multiprocessing.errors.ChildFailedError:
============================================================
train.py FAILED
------------------------------------------------------------
Failures:
{1}
------------------------------------------------------------
Root Cause (first observed failure):
[0]:
  time      : 2026-05-01_12:00:09
  host      : node1
  rank      : 1 (local_rank: 1)
  exitcode  : 1 (pid: 815)
  error_file: {0}
"""
ALONE = "  <NO_OTHER_FAILURES>"
OTHER = """\
[1]:
  rank      : 0 (local_rank: 0)
  exitcode  : 1 (pid: 814)"""


@pytest.mark.parametrize(
    ("error_file", "others", "rank"),
    [
        ("/tmp/torchelastic_1/1/error.json", OTHER, 1),
        ("<N/A>", OTHER, 0),
        ("<N/A>", ALONE, 1),
    ],
    ids=["recorded", "both had exited", "the other was still alive"],
)
def test_of_equal_failures_the_launcher_can_know_the_first(
    diagnose: Diagnose, error_file: str, others: str, rank: int
) -> None:
    each = text(
        """
        Traceback (most recent call last):
          File "/job/train.py", line 210, in <module>
            main()
        KeyError: 'answer'
        """
    )
    ranks = prefixed("[rank0]: ", each) + prefixed("[rank1]: ", each)
    assert root(diagnose(ranks + CHILD_FAILED.format(error_file, others)))[2] == rank


@pytest.mark.parametrize(
    "kernel",
    [
        "[ 815.1] Out of memory: Killed process 815 (python) total-vm:9kB, anon-rss:8kB, file-rss:0kB\n",
        "[ 815.1] NVRM: Xid (PCI:0000:4b:00): 79, pid=815, GPU has fallen off the bus.\n",
    ],
)
def test_a_line_of_the_kernel_is_joined_to_the_rank_of_its_process(
    diagnose: Diagnose, kernel: str
) -> None:
    found = diagnose(kernel + CHILD_FAILED.format("<N/A>", ALONE).replace(": 1 (pid", ": -9 (pid"))
    assert root(found)[::2] == (1, 1)


def test_dumps_of_all_ranks_explain_a_lost_connection(diagnose: Diagnose) -> None:
    lost = 'Traceback (most recent call last):\n  File "/job/train.py", line 9, in <module>\n    main()\n'
    recorded = (
        lost
        + "CollectiveFault: collective 4 of default_pg was not called by rank 1; ranks 0, 2 wait in all_reduce\n"
    )
    found = diagnose(
        f"[rank0]: {lost}ConnectionResetError: [Errno 104] Connection reset by peer\n\n" + recorded
    )
    assert "was not called by rank 1" in root(found)[1]


def test_of_counted_errors_the_first_is_the_root(diagnose: Diagnose) -> None:
    found = diagnose(
        text(
            """
            Traceback (most recent call last):
              File "/job/train.py", line 210, in <module>
                model.fit(images)
            tensorflow.python.framework.errors_impl.NotFoundError: 2 root error(s) found.
              (0) Not found:  data/000000318556.jpg; No such file or directory
            \t [[{{node ReadFile}}]]
              (1) Not found:  data/000000318556.jpg; No such file or directory
            0 successful operations.
            """
        )
    )
    assert found.category == "path_not_found"
    assert root(found)[0] == 5
    assert root(found)[1].strip().startswith("(0) Not found: ")


def chained(
    first: str, link: str, second: str, *, handler: str = "raise Wrapped() from error"
) -> str:
    """Two exceptions of one traceback: the second one was raised where the first one was caught."""
    words = {
        "cause": "The above exception was the direct cause of the following exception:",
        "context": "During handling of the above exception, another exception occurred:",
    }
    top = 'Traceback (most recent call last):\n  File "/job/hub.py", line 40, in load\n    '
    return f"{top}return get(name)\n{first}\n\n{words[link]}\n\n{top}{handler}\n{second}\n"


STATUS = "requests.HTTPError: 401 Client Error. (Request ID: 1a2b)\n\nRepository Not Found for url: http://hub/x.\nInvalid password."
CHAINS = {
    "a status, and what it means": (STATUS, "cause", "OSError: x is no model of the hub", "OSError"),
    "a missing key in a sentence": ("KeyError: 'qwen9'", "context", "ValueError: the type `qwen9` is unknown", "ValueError"),
    "the whole message in a sentence": (
        "AssertionError: 64 is not divisible by 6", "context",
        "ValueError: 64 is not divisible by 6 when layer 3 is built", "ValueError",
    ),
    "a quotation at the end": (
        "TimeoutError: [Errno 110] Connection timed out", "context",
        "urllib.error.URLError: <urlopen error [Errno 110] Connection timed out>", "TimeoutError",
    ),
    "a quotation": ("KeyError: 'shape'", "cause", "Error: replacing the node failed: 'shape'", "KeyError"),
    "another message": ("KeyError: 'shape'", "cause", "RuntimeError: no node was replaced", "KeyError"),
    "a reference": (
        "ImportError: undefined symbol: _ZN2at4", "cause",
        "RuntimeError: cannot import x (look up to see its traceback): undefined symbol: _ZN2at4", "ImportError",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CHAINS)
def test_of_a_chain_the_exception_that_says_what_failed_is_the_root(
    diagnose: Diagnose, name: str
) -> None:
    first, link, second, root = CHAINS[name]
    found = diagnose(chained(first, link, second))
    assert found.exception is not None
    assert found.exception.type == root


@pytest.mark.parametrize(
    ("handler", "kind"),
    [("time.sleep(30)", "KeyboardInterrupt"), ("raise", "ConnectionRefusedError")],
)
def test_who_is_interrupted_while_it_waits_for_a_connection(
    diagnose: Diagnose, handler: str, kind: str
) -> None:
    refused = "ConnectionRefusedError: [Errno 111] Connection refused"
    found = diagnose(chained(refused, "context", "KeyboardInterrupt", handler=handler))
    assert found.exception is not None
    assert found.exception.type == kind


@pytest.mark.parametrize(
    "again",
    [
        prefixed("[rank1]: ", KEY_ERROR),
        "Process EngineCore:\n" + KEY_ERROR,
    ],
    ids=["with the rank", "when it ends the process"],
)
def test_of_a_failure_printed_twice_the_line_that_says_more_is_the_root(
    diagnose: Diagnose, again: str
) -> None:
    logged = (
        KEY_ERROR if "rank" in again else prefixed("ERROR 05-02 10:00:01 [core.py:7] ", KEY_ERROR)
    )
    found = diagnose(logged + again)
    last = (logged + again).splitlines().index(again.splitlines()[-1]) + 1
    assert found.root is not None
    assert found.root.line == last


CONSEQUENCES = {
    "refers to a message above": "RuntimeError: The backend did not start. See root cause above.",
    "refers to a log": "RuntimeError: Startup failed, check the worker logs",
    "names a dead process": "BackendError: shard 3 exited with code 1",
    "says nothing": "RuntimeError: Executor failed.",
}


@pytest.mark.parametrize("name", CONSEQUENCES)
def test_what_names_another_reason_is_a_consequence_whatever_prints_it(
    diagnose: Diagnose, name: str
) -> None:
    top = 'Traceback (most recent call last):\n  File "/srv/main.py", line 3, in <module>\n    start()\n'
    error = "ERROR loader: ValueError: max_model_len 9000 must be at most 4096\n"
    after = diagnose(error + top + CONSEQUENCES[name] + "\n")
    assert after.root is not None
    assert after.root.line == 1
    assert diagnose(top + CONSEQUENCES[name] + "\n").is_failure


def test_details_elsewhere_do_not_make_a_statement_a_consequence(diagnose: Diagnose) -> None:
    top = 'Traceback (most recent call last):\n  File "/srv/main.py", line 3, in <module>\n    start()\n'
    found = diagnose(top + "ValueError: 7 is no power of two, see the log for more details\n")
    assert found.exception is not None
    assert found.exception.type == "ValueError"
    assert found.outcome == "failed"


IGNORED = """\
Exception ignored in: <function Loader.__del__ at 0x7f8f98332f70>
Traceback (most recent call last):
  File "/opt/lib/python3.11/site-packages/torch/utils/data/dataloader.py", line 1328, in __del__
    self._shutdown_workers()
KeyboardInterrupt:
"""
INTERRUPTED = """\
Traceback (most recent call last):
  File "train.py", line 458, in <module>
    main()
KeyboardInterrupt
"""
IN_CHILD = """\
Traceback (most recent call last):
  File "<string>", line 1, in <module>
FileNotFoundError: [Errno 2] No such file or directory: '/tmp/port-1153180.txt'
"""


@pytest.mark.parametrize(
    ("log", "line"),
    [(IGNORED + INTERRUPTED, 9), (INTERRUPTED + "\n" + IN_CHILD, 4)],
    ids=["below an ignored exception", "before that of a child"],
)
def test_an_interruption_reaches_all_that_a_terminal_started(
    diagnose: Diagnose, log: str, line: int
) -> None:
    found = diagnose(log)
    assert (found.category, found.root and found.root.line) == ("interrupted", line)


HOOK = """\
Error in sys.excepthook:
Traceback (most recent call last):
  File "/opt/lib/python3.11/site-packages/IPython/core/debugger.py", line 145, in hook
    raise ValueError(
ValueError: `hook` is deprecated
Original exception was:
Traceback (most recent call last):
  File "train.py", line 3, in <module>
    main()
KeyboardInterrupt
"""


def test_what_a_hook_could_not_report_is_the_root(diagnose: Diagnose) -> None:
    assert diagnose(HOOK).category == "interrupted"


ASSERTED = (
    "0% 0/48 /pytorch/aten/src/THC/THCTensorIndex.cu:361: block: [288,0,0], thread: [96,0,0] "
    "Assertion `srcIndex < srcSelectDimSize` failed.\n"
)
REPORTED_LATE = """\
Traceback (most recent call last):
  File "train.py", line 9, in <module>
    output = model(batch)
RuntimeError: CUDA error: CUBLAS_STATUS_NOT_INITIALIZED when calling `cublasCreate(handle)`
"""


def test_what_a_gpu_reports_after_a_failed_assertion_follows_from_it(diagnose: Diagnose) -> None:
    found = diagnose(ASSERTED + REPORTED_LATE)
    assert (found.category, found.root and found.root.line) == ("illegal_index", 1)
    assert found.user_frame
    assert found.user_frame.line == 9


STOPPED = """\
[WARNING] DeepSpeed Op Builder: Installed CUDA version 11.8 does not match the version torch was compiled with 12.1.
W0127 05:55:11.043000 3800703 torch/distributed/elastic/agent/server/api.py:704] Received Signals.SIGHUP death signal, shutting down workers
Traceback (most recent call last):
  File "/opt/bin/torchrun", line 8, in <module>
    sys.exit(main())
torch.distributed.elastic.multiprocessing.api.SignalException: Process 3800703 got signal: 1
"""


def test_a_warning_does_not_explain_why_a_launcher_was_stopped(diagnose: Diagnose) -> None:
    assert diagnose(STOPPED).category == "interrupted"


TASKS = """\
srun: error: gpu56: task 1: Exited with exit code 1
srun: Terminating StepId=355274.0
srun: error: gpu91: task 2: Terminated
"""


def test_of_tasks_that_ended_the_one_that_exited_by_itself_was_first(diagnose: Diagnose) -> None:
    found = diagnose(TASKS)
    assert found.root
    assert (found.root.line, found.root.rank) == (1, 1)


ANSWERED = "ERROR client: dial tcp 10.0.0.1:8081: connect: connection refused\n"


@pytest.mark.parametrize(
    ("answers", "category"), [(80, "interrupted"), (5, "communication_failure")]
)
def test_a_lone_process_that_went_on_for_long_did_not_end_because_of_a_lost_connection(
    diagnose: Diagnose, answers: int, category: str
) -> None:
    output = "".join(f"the question of {'abcdefgh'[n % 8]} was put again\n" for n in range(answers))
    assert diagnose(ANSWERED + output + "Terminated\n").category == category


START = "The launcher starts all trainers of this node\nThe settings of all trainers follow here\n"


def test_a_launcher_that_reports_an_end_after_another_start_reports_the_last_run(
    diagnose: Diagnose,
) -> None:
    report = (
        "ERROR 2026-04-12 20:49:36,804 launch_utils.py:545] ABORT!!! Out of all 4 trainers, the trainer "
        "process with rank=[0] was aborted. Please check its log.\n"
    )
    settings = "".join(f"setting {'abcdefgh'[n % 8]} is on\n" for n in range(20))
    found = diagnose(START + INTERRUPTED + START + settings + report)
    assert found.root
    assert (found.outcome, found.root.rank) == ("evidence_missing", 0)


STOPPED = "slurmstepd: error: *** STEP 5512.0 ON n17 CANCELLED AT 2026-11-23T04:00:12 DUE TO PREEMPTION ***\n"
SAVES = """Traceback (most recent call last):
  File "/home/x/train.py", line 40, in handler
    torch.save(state, "ck.pt")
RuntimeError: PytorchStreamWriter failed writing file data/12: file write failed
"""


@pytest.mark.parametrize(("log", "category"), [(STOPPED + SAVES, "interrupted"), (SAVES + STOPPED, "storage_full")])  # fmt: skip
def test_what_fails_after_the_scheduler_stops_the_job_is_a_consequence(
    diagnose: Diagnose, log: str, category: str
) -> None:
    found = diagnose(log)
    assert found.category == category
    assert root(found)[0] == (1 if category == "interrupted" else 4)


def test_the_rank_that_a_process_group_names_is_that_of_its_message(diagnose: Diagnose) -> None:
    found = diagnose(
        "terminate called after throwing an instance of 'c10::DistBackendError'\n"
        "  what():  [PG ID 0 PG GUID 0(default_pg) Rank 5] Process group watchdog thread terminated with "
        "exception: CUDA error: uncorrectable ECC error encountered\n"
    )
    assert root(found)[2] == 5
