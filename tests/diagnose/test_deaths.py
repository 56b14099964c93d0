"""Whether a job died: what proves a death, what proves that a process lived on, and what neither does."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from epochzero.diagnose import Facts

if TYPE_CHECKING:
    from collections.abc import Callable

    from epochzero.diagnose import Diagnosis

    Diagnose = Callable[..., Diagnosis]


def steps(first: int, last: int) -> str:
    return "".join(f"step {n} | loss {3 - n / 100:.4f} | lr 1e-4\n" for n in range(first, last, 10))


START = steps(10, 60)
LATER = steps(60, 160)
TOP = """\
Traceback (most recent call last):
  File "/job/train.py", line 210, in <module>
    main()
  File "/job/train.py", line 180, in main
    loss.backward()
"""
OUT_OF_MEMORY = TOP + "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n\n"
INNER = """\
Traceback (most recent call last):
  File "/job/data.py", line 30, in load
    return read(path)
"""

SUMMARIES = {
    "wandb": "wandb: Run history:\nwandb: train/loss █▆▄▂▁\nwandb: Run summary:\nwandb: epoch 3\n"
    "wandb: global_step 1200\nwandb: train/loss 1.4358\nwandb: Synced 5 W&B file(s)\n",
    "comet": "COMET INFO:   Metrics [count] (min, max):\nCOMET INFO:     loss [500] : (0.83, 2.31)\n",
    "neptune": "[Neptune] train/loss: 1.4358, step: 120\n[Neptune] waiting for 12 operations\n",
    "best": "Best epoch 3, best val loss 1.203, saved to /out/best.pt\n",
    "cleanup": "Cleaning up: epoch 3 time 12.1 sec elapsed\n",
    "upload": "".join(f"Uploading: {n}%|##| {n}/100 [00:0{n // 20}<00:01, 12MB/s]\n" for n in range(9, 99, 9)),
    "shell": "All done\n",
}  # fmt: skip


@pytest.mark.parametrize("name", SUMMARIES)
@pytest.mark.parametrize("facts", [Facts(), Facts(exit_code=1)], ids=["log only", "exit code 1"])
def test_no_summary_upload_or_teardown_overrules_an_uncaught_exception(
    diagnose: Diagnose, name: str, facts: Facts
) -> None:
    found = diagnose(START + OUT_OF_MEMORY + SUMMARIES[name], facts)
    assert (found.outcome, found.category) == ("failed", "gpu_out_of_memory")
    assert found.exception is not None
    assert "wandb" not in found.exception.message


def test_a_summary_right_below_an_exception_is_no_part_of_its_message(diagnose: Diagnose) -> None:
    found = diagnose(START + OUT_OF_MEMORY.rstrip("\n") + "\n" + SUMMARIES["wandb"])
    assert found.exception is not None
    assert found.exception.message == "CUDA out of memory. Tried to allocate 2.00 GiB."


@pytest.mark.parametrize("later", [LATER, LATER[: LATER.index("\n") + 1]])
def test_later_steps_overrule_an_exception(diagnose: Diagnose, later: str) -> None:
    assert diagnose(START + OUT_OF_MEMORY + later).outcome == "no_failure"


def test_steps_of_another_rank_do_not(diagnose: Diagnose) -> None:
    def rank(number: int, text: str) -> str:
        return "".join(f"[rank{number}]: {line}\n" for line in text.splitlines())

    log = rank(0, START) + rank(1, START) + rank(1, OUT_OF_MEMORY) + rank(0, LATER)
    found = diagnose(log)
    assert found.category == "gpu_out_of_memory"
    assert found.root is not None
    assert found.root.rank == 1


@pytest.mark.parametrize(
    "line",
    [
        "Killed: 9",
        "run.sh: line 3: 4411 Killed: 9               python train.py",
        "  exitcode  : -9 (pid: 815)",
        "torch/distributed/elastic/multiprocessing/api.py:869] failed (exitcode: -9) local_rank: 2 (pid: 815) of binary: python",
        "traceback : Signal 9 (SIGKILL) received by PID 815",
    ],
)
@pytest.mark.parametrize("after", ["", "All done\n"])
def test_a_kill_without_a_reason_may_be_one_for_memory(
    diagnose: Diagnose, line: str, after: str
) -> None:
    found = diagnose(f"{START}{line}\n{after if line.startswith('Killed') else ''}")
    assert (found.outcome, found.category) == ("evidence_missing", "process_crash")
    assert found.also == ("cpu_out_of_memory",)
    assert any("memory" in fix for fix in found.fixes)
    assert (found.retry, found.root_cause) == ("unknown", "unknown")
    assert "SIGKILL" in found.title


def test_the_table_of_torchrun_names_the_signal_and_the_rank(diagnose: Diagnose) -> None:
    table = """\
torch.distributed.elastic.multiprocessing.errors.ChildFailedError:
============================================================
train.py FAILED
------------------------------------------------------------
Failures:
  <NO_OTHER_FAILURES>
------------------------------------------------------------
Root Cause (first observed failure):
[0]:
  time      : 2026-05-01_12:00:09
  host      : node1
  rank      : 2 (local_rank: 2)
  exitcode  : -9 (pid: 815)
  error_file: <N/A>
  traceback : Signal 9 (SIGKILL) received by PID 815
============================================================
"""
    found = diagnose(START + TOP + table)
    assert (found.outcome, found.category) == ("evidence_missing", "process_crash")
    assert found.root is not None
    assert found.root.rank == 2


@pytest.mark.parametrize("end", ["\n", "", "\n\n"])
@pytest.mark.parametrize("prefix", ["", "[rank3]: "])
def test_a_bare_header_at_the_end_is_a_death(diagnose: Diagnose, prefix: str, end: str) -> None:
    found = diagnose(f"{START}{prefix}Traceback (most recent call last):{end}")
    assert (found.outcome, found.title) == ("evidence_missing", "Truncated traceback")


@pytest.mark.parametrize(
    ("good", "bad"),
    [
        (START, "step 60 | loss nan | lr 1e-4\n"),
        ("{'loss': 2.31, 'epoch': 0.1}\n{'loss': 2.22, 'epoch': 0.2}\n", "{'loss': nan, 'epoch': 0.3}\n"),
        ("Epoch 1/9 train_loss=2.3\nEpoch 2/9 train_loss=2.2\n", "Epoch 3/9 train_loss=nan val_loss=nan\n"),
        ("Epoch 1: Loss: 2.3\nEpoch 2: Loss: 2.2\n", "Epoch 3: Loss: nan\n"),
        ("[1/9] Loss 2.3\n[2/9] Loss 2.2\n", "[3/9] Loss nan\n"),
    ],
)  # fmt: skip
def test_a_loss_that_stays_nan_is_a_failure(diagnose: Diagnose, good: str, bad: str) -> None:
    found = diagnose(good + bad)
    assert (found.outcome, found.category) == ("failed", "loss_nan")
    assert diagnose(good + bad + good).outcome == "no_failure"
    assert diagnose(good + bad, Facts(exit_code=0)).outcome == "no_failure"


PIN_MEMORY = """\
Exception in thread Thread-3 (_pin_memory_loop):
Traceback (most recent call last):
  File "/opt/conda/lib/python3.11/threading.py", line 1045, in _bootstrap_inner
    self.run()
  File "/opt/conda/lib/python3.11/site-packages/torch/utils/data/_utils/pin_memory.py", line 55, in do_one_step
    r = in_queue.get(timeout=MP_STATUS_CHECK_INTERVAL)
  File "/opt/conda/lib/python3.11/multiprocessing/connection.py", line 395, in _recv
    chunk = read(handle, remaining)
ConnectionResetError: [Errno 104] Connection reset by peer
"""
DYNAMO = """\
{0}WON'T CONVERT forward /job/model.py line 30
{0}due to:
{0}Traceback (most recent call last):
{0}  File "/opt/conda/lib/python3.11/site-packages/torch/_dynamo/output_graph.py", line 1196, in call
{0}    raise BackendCompilerFailed(self.compiler_fn, e)
{0}torch._dynamo.exc.BackendCompilerFailed: backend='inductor' raised:
{0}RuntimeError: Cannot find a working triton installation
"""
SURVIVED = {
    "a thread after the end": "Done.\n" + PIN_MEMORY,
    "a thread after saving": "Model saved to /out\n"
    + PIN_MEMORY.replace("ConnectionResetError: [Errno 104] Connection reset by peer", "EOFError"),
    "dynamo": DYNAMO.format(
        "[2024-01-01 12:00:00,123] torch._dynamo.convert_frame: [WARNING] "
    ),
    "dynamo, glog": DYNAMO.format(
        "W0501 12:00:00.000000 811 torch/_dynamo/convert_frame.py:1125] "
    ),
    "a tokenizer's cache": INNER
    + "PermissionError: [Errno 13] Permission denied: '/shared/tokenizer/cache.json'\n"
    "Could not write the tokenizer cache, continuing without it.\nloading weights\n",
    "a hook": f"progress failed; training continues\n{INNER}TypeError: progress() takes 0 positional arguments\n",
    "a skipped sample": f"Skipping corrupt sample 123.jpg:\n{INNER}ValueError: bad image\n",
    "a retry": f"{INNER}ConnectionError: Max retries exceeded\nRetrying in 5 seconds (1/3)\n",
    "a logged warning": f"WARNING:root:could not log metrics, skipping\n{INNER}ConnectionError: x\n",
    "a quoted crash": "Question: What does 'Segmentation fault' mean?\n"
    "Prediction: Segmentation fault (core dumped) means that a program failed\n"
    "Segmentation fault (core dumped) is a common error in C.\naccuracy: 0.83\n",
    "a quoted traceback": f"Answer: {INNER}ValueError: the model wrote this\naccuracy: 0.83\n",
}  # fmt: skip


@pytest.mark.parametrize("name", SURVIVED)
def test_what_was_set_aside_needs_other_evidence_of_a_death(diagnose: Diagnose, name: str) -> None:
    found = diagnose(START + SURVIVED[name])
    assert found.outcome == "no_failure", found.root
    died = diagnose(START + SURVIVED[name] + TOP + "ValueError: Expected input batch_size (32)\n")
    assert died.exception is not None
    assert died.exception.type == "ValueError"
    assert died.exception.message.startswith("Expected input batch_size")
    assert diagnose(START + SURVIVED[name], Facts(exit_code=1)).outcome != "no_failure"


@pytest.mark.parametrize(
    "after",
    [
        "Worker ip unknown, skipping the log sync for /out\n",
        "Retrying failed: giving up after 3 attempts\n",
        "loading weights\n",
    ],
)
def test_a_line_about_something_else_sets_nothing_aside(diagnose: Diagnose, after: str) -> None:
    assert diagnose(f"{START}{INNER}ValueError: bad shape\n{after}").outcome == "failed"


def test_a_warning_that_announces_the_end_counts(diagnose: Diagnose) -> None:
    found = diagnose(f"{START}WARNING: nan loss detected, ending training\n")
    assert (found.outcome, found.category) == ("failed", "loss_nan")


@pytest.mark.parametrize(
    "line",
    [
        "[1234.5] NVRM: Xid (PCI:0000:3b:00): 79, pid=4411, GPU has fallen off the bus.",
        "kernel: NVRM: Xid (PCI:0000:3b:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off",
    ],
)
def test_a_lost_gpu_is_not_overruled_by_a_step_that_was_on_its_way(
    diagnose: Diagnose, line: str
) -> None:
    found = diagnose(f"{START}{line}\nstep 60 | loss 2.4000 | lr 1e-4\n")
    assert (found.category, found.signature) == ("gpu_fault", "cuda/xid-79")


def test_a_handler_that_does_other_work_raises_a_failure_of_its_own(diagnose: Diagnose) -> None:
    log = """\
Traceback (most recent call last):
  File "/usr/lib/python3.11/pathlib.py", line 1116, in mkdir
    os.mkdir(self, mode)
FileNotFoundError: [Errno 2] No such file or directory: '/sys/fs/models/a'

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "/job/train.py", line 3, in <module>
    Path("/sys/fs/models/a").mkdir(parents=True)
  File "/usr/lib/python3.11/pathlib.py", line 1120, in mkdir
    self.parent.mkdir(parents=True, exist_ok=True)
PermissionError: [Errno 1] Operation not permitted: '/sys/fs/models'
"""
    assert diagnose(log).category == "permission_denied"
    renamed = log.replace(
        "self.parent.mkdir(parents=True, exist_ok=True)", "raise PermissionError(e)"
    )
    assert diagnose(renamed).category == "path_not_found"


@pytest.mark.parametrize(
    ("line", "category", "retry"),
    [
        ("The node was low on resource: ephemeral-storage. Threshold quantity: 10Gi.", "storage_full", "fails_again"),
        ('Container main exceeded its local ephemeral storage limit "20Gi".', "storage_full", "fails_again"),
        ("The node was low on resource: memory. Container main was using 9Gi, request is 1Gi", "cpu_out_of_memory", "fails_again"),
        ("The node was low on resource: inodes. Threshold quantity: 5%.", "interrupted", "unknown"),
        ("NVRM: Xid (PCI:0000:3b:00): 154, GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)", "gpu_fault", "may_succeed"),
        ("sock.c:478  UCX  ERROR recv(fd=61) failed: Input/output error", "communication_failure", "may_succeed"),
        ("OSError: QuotaExceeded: disk quota of project p1 on /gpfs is used up", "storage_full", "fails_again"),
        ("OSError: DiskQuotaExceeded: /home/u", "storage_full", "fails_again"),
        ("pyarrow.lib.ArrowInvalid: JSON parse error: Invalid value. in row 0", "corrupt_data", "fails_again"),
        ("pyarrow.lib.ArrowInvalid: CSV parse error: Expected 3 columns, got 5: a,b", "corrupt_data", "fails_again"),
        ("OSError: PermissionError at /sys/fs/models when downloading x. Check cache directory", "permission_denied", "fails_again"),
        ("PermissionError: [Errno 13] Permission denied: '/sys/fs/models'", "permission_denied", "fails_again"),
    ],
)  # fmt: skip
def test_what_a_line_says(diagnose: Diagnose, line: str, category: str, retry: str) -> None:
    found = diagnose(f"{START}{line}\n")
    assert (found.category, found.retry) == (category, retry)


def test_the_title_of_xid_154_is_its_own(diagnose: Diagnose) -> None:
    found = diagnose("NVRM: Xid (PCI:0000:3b:00): 154, GPU recovery action changed\n")
    assert "154" in found.title


@pytest.mark.parametrize(
    ("log", "facts", "state", "evidence"),
    [
        (START + OUT_OF_MEMORY, Facts(), "died", "uncaught_exception"),
        (f"{START}Segmentation fault (core dumped)\n", Facts(), "died", "crash_or_kill"),
        (START, Facts(state="TIMEOUT"), "died", "scheduler_state"),
        (f"{START}Killed: 9\n", Facts(), "died", "reported_death"),
        (START, Facts(exit_code=3), "died", "exit_status"),
        (f"{START}Traceback (most recent call last):\n", Facts(), "died", "cut_off_traceback"),
        (f"{START}{INNER}ValueError: bad shape\n", Facts(), "died", "no_later_steps"),
        (START + OUT_OF_MEMORY + LATER, Facts(), "survived", "later_steps"),
        (f"{START}{INNER}ValueError: x\nTraining complete\n", Facts(), "survived", "completion"),
        (START + SURVIVED["dynamo"], Facts(), "survived", "set_aside"),
        (f"ERROR: no module file\n{START}{LATER}", Facts(), "survived", "later_steps"),
        ("ERROR: no module file\n" + "loading\n" * 20, Facts(), "survived", "later_output"),
        (START, Facts(), "survived", "no_error"),
        (START, Facts(exit_code=0), "survived", "exit_status"),
        ("", Facts(), "unknown", ""),
    ],
)
def test_the_evidence_of_a_death_is_stated(
    diagnose: Diagnose, log: str, facts: Facts, state: str, evidence: str
) -> None:
    end = diagnose(log, facts).to_dict()["end"]
    assert (end["state"], end["evidence"]) == (state, evidence)
    assert bool(end["reason"]) is (state != "unknown")


ERROR_RECORD = (
    "2026-01-02 10:00:00,123 - trainer - ERROR - Training failed\n"
    + INNER
    + "RuntimeError: The size of tensor a (3) must match the size of tensor b (4)"
    " at non-singleton dimension 1\n"
)


@pytest.mark.parametrize(
    "after",
    [
        "2026-01-02 10:00:05,123 - trainer - INFO - uploading checkpoint to s3://b/x\n"
        "2026-01-02 10:00:09,123 - trainer - INFO - Final metrics: loss=0.42 acc=0.91\n",
        "Uploading artifacts...\nUpload complete\nfinal metrics: accuracy 0.91 loss 0.42\n",
    ],
)
def test_metrics_after_a_traceback_logged_as_an_error_are_no_later_steps(
    diagnose: Diagnose, after: str
) -> None:
    assert diagnose(START + ERROR_RECORD + after).category == "tensor_mismatch"
    assert diagnose(START + ERROR_RECORD + LATER).outcome == "no_failure"


def test_code_that_asks_an_exhausted_iterator_for_more_has_to_change(diagnose: Diagnose) -> None:
    found = diagnose(START + TOP + "StopIteration\n")
    assert (found.category, found.root_cause) == ("illegal_index", "programming_error")


@pytest.mark.parametrize(
    ("line", "category"),
    [
        ("Worker 2 died with exitcode: -24", "timeout"),
        ("Process SpawnProcess-3 terminated with exit code -11", "process_crash"),
    ],
)
def test_the_signal_of_a_dead_worker_decides(diagnose: Diagnose, line: str, category: str) -> None:
    assert diagnose(START + line + "\n").category == category


def test_the_message_of_an_evicted_pod_is_read(diagnose: Diagnose) -> None:
    message = "Pod ephemeral local storage usage exceeds the total limit of containers 20Gi."
    found = diagnose(START, Facts(state="Evicted", message=message))
    assert (found.category, found.retry) == ("storage_full", "fails_again")


def messages(count: int) -> str:
    return "".join(f"Evaluating shard {n} on device {n % 8}\n" for n in range(count))


CAUGHT = f"{INNER}ValueError: truncated image\n"
MENTIONED = {
    "a warning": "[WARNING] gds requires libaio, but the headers were not found.\n",
    "a warning in colour": " \x1b[93m[WARNING]\x1b[0m gds requires libaio, which was not found.\n",
    "a setting": "TIMEOUT(ms): 31536000000\n" + messages(5),
    "an error of the shell's profile": "ERROR: Unable to locate a modulefile for 'anaconda'\n"
    + messages(20),
    "a caught exception": CAUGHT + messages(120),
    "an error after the last step": "step 200/200 | loss 1.0\n"
    "[rank7]:[E814 01:57:12.984417033 ProcessGroupNCCL.cpp:542] [Rank 7] Collective raised an exception\n"
    "ncclSystemError: System call (e.g. socket, malloc) or external library call failed\n"
    "saved step200.pt\n",
    "repeated": "judge gpt-x\n" + "Error code: 400 - {'message': 'Invalid image data.'}\n" * 14,
    "advice": "Flash Attention 2.0 only supports torch.float16 dtypes, but the current one is torch.float32. "
    "You should run inference using Automatic Mixed-Precision.\n",
    "condition": "[2025-03-02 11:56:30,767 E 4511 4512] (raylet) file_system_monitor.cc:111: /tmp/ray is over 95% "
    "full. Object creation will fail if spilling is required.\n",
    "told to exit": "ERROR 12-18 20:22:01 utils.py:116] Worker process pid 29 died, exit code: -15\n",
    "worker of Ray": "(Worker pid=7) TypeError: cannot unpack non-iterable NoneType object\n"
    + "".join(f"(Worker pid=8) sample {n} generated\n" for n in "abcde"),
    "quoted": "Compilation output: b'/tmp/top.v:18: error: Module definition cannot nest\\nI give up.'\n",
    "continued warning": "2025-07-22 10:09:30,399 - WARNING - Detection failed: Error(s) in loading state_dict:\n"
    "\tsize mismatch for conv.weight: copying a param with shape torch.Size([64]) from checkpoint, the shape in "
    "current model is torch.Size([32]).\n2025-07-22 10:09:30,401 - INFO - Continuing with random weights\n",
    "next to the job": "slurmstepd: error: _cgroup_procs_check: failed on path: No such file or directory\n",
    "server that shut down": "INFO: 127.0.0.1:9 - \"POST /v1/chat/completions HTTP/1.1\" 200 OK\n" * 3
    + "INFO:     Shutting down\nERROR 04-18 15:05:59 engine.py:389] EngineDeadError: EngineCore encountered an issue.\n"
    "INFO:     Application shutdown complete.\n",
    "redrawn bar": OUT_OF_MEMORY
    + "".join(f"Training:  {n}%|#  | {n}/100 [00:0{n}<01:12,  1.0s/it]\r" for n in range(1, 9)) + "\n",
}  # fmt: skip


@pytest.mark.parametrize("log", MENTIONED.values(), ids=list(MENTIONED))
def test_a_process_that_continues_has_only_mentioned_an_error(diagnose: Diagnose, log: str) -> None:
    assert diagnose(START + log).outcome == "no_failure"


DIED = {
    "an error at the end": "ERROR: checkpoint /ckpt/last.pt does not exist\n",
    "an epilogue": "ERROR: checkpoint /ckpt/last.pt does not exist\n" + messages(5),
    "a caught exception with an epilogue": CAUGHT + messages(5),
    "a loss that stays NaN": "step 70 | loss nan\nstep 80 | loss nan\n" + messages(20),
    "an uncaught exception": OUT_OF_MEMORY + messages(40),
    "below an unrelated warning": "2024-05-01 12:00:00 WARNING merging results\n"
    + OUT_OF_MEMORY
    + "2024-05-01 12:00:01 INFO watchdog stopped\n",
    "killed behind a bar": "train:  68%|###   | 15/22 [00:19<00:09,  1.29s/it]Killed\n",
    "a bar with a loss": "train:  68%|###   | 15/22 [00:19<00:09,  1.29s/it, loss=0.3]Killed\n",
}


@pytest.mark.parametrize("log", DIED.values(), ids=list(DIED))
def test_an_epilogue_does_not_prove_life(diagnose: Diagnose, log: str) -> None:
    assert diagnose(START + log).is_failure


def test_a_line_long_before_a_death_does_not_explain_it(diagnose: Diagnose) -> None:
    log = f"CUDA_HOME /opt/cuda was not found\n{messages(70)}{START}Killed: 9\n"
    assert diagnose(log).category != "library_not_found"


FIRST_RUN = "starting\n" + TOP + "KeyError: 'GPU_IDS'\n"
SECOND_RUN = TOP + "FileNotFoundError: [Errno 2] No such file or directory: '/data/x.npy'\n"


def test_the_last_run_of_a_log_is_diagnosed(diagnose: Diagnose) -> None:
    ranked = "".join(f"[rank4]: {line}\n" for line in SECOND_RUN.splitlines())
    for second in (SECOND_RUN, ranked):
        assert diagnose(FIRST_RUN + messages(80) + second).category == "path_not_found"
    # A process dies once; several can fail within a few lines.
    assert diagnose(FIRST_RUN + messages(20) + SECOND_RUN).category == "path_not_found"
    assert diagnose(FIRST_RUN + messages(20) + ranked).category == "key_not_found"


BANNER = "loading the configuration of the project\nreading annotations into memory\n"


@pytest.mark.parametrize(
    "start",
    [BANNER, "Setting OMP_NUM_THREADS environment variable for each process to be 1 in default\n"],
    ids=["the first lines again", "the launcher's start"],
)
def test_a_run_that_starts_again_leaves_the_failure_of_the_earlier_one_behind(
    diagnose: Diagnose, start: str
) -> None:
    killed = BANNER + messages(4) + "Killed: 9\n"
    assert diagnose(killed + start + SECOND_RUN).category == "path_not_found"
    continued = diagnose(killed + start + messages(30))
    assert continued.outcome == "no_failure"
    assert any(":7: Killed: 9" in note for note in continued.notes)


def test_the_first_lines_of_other_ranks_are_no_other_run(diagnose: Diagnose) -> None:
    other = "ConnectionResetError: [Errno 104] Connection reset by peer\n"
    log = BANNER + TOP + "KeyError: 'GPU_IDS'\n" + BANNER + TOP + other
    assert diagnose(log).category == "key_not_found"


def test_output_that_was_buffered_is_no_other_run(diagnose: Diagnose) -> None:
    assert diagnose(START + TOP + "KeyError: 'x'\n" + messages(120)).is_failure
    assert not diagnose(START + TOP + "KeyError: 'x'\n" + messages(900)).is_failure


def test_what_fails_after_the_launcher_reported_a_death_is_no_cause(diagnose: Diagnose) -> None:
    log = (
        "RuntimeError: CUDA error: invalid device ordinal\n"
        "srun: error: node1: task 1: Exited with exit code 1\n"
    )
    assert diagnose(log + TOP + "EOFError: Ran out of input\n").category == "gpu_fault"


def test_a_failure_before_a_signal_ended_its_process(diagnose: Diagnose) -> None:
    interrupted = TOP + "KeyboardInterrupt\nterminate called without an active exception\n"
    assert diagnose(START + interrupted).category == "interrupted"


def test_a_child_process_below_an_ignored_exception_died(diagnose: Diagnose) -> None:
    ignored = (
        "Exception ignored in: <function Loader.__del__ at 0x7f1f>\n" + CAUGHT.rstrip() + "\n"
        "Process Process-1:\n" + OUT_OF_MEMORY
    )
    assert diagnose(START + ignored).category == "gpu_out_of_memory"


def test_other_ranks_that_die_later_are_not_another_run(diagnose: Diagnose) -> None:
    def rank(number: int, text: str) -> str:
        return "".join(f"[rank{number}]: {line}\n" for line in text.splitlines())

    log = rank(6, FIRST_RUN) + rank(0, messages(80)) + rank(7, SECOND_RUN)
    assert diagnose(log).category == "key_not_found"


def test_a_program_from_standard_input_ends_with_its_exception(diagnose: Diagnose) -> None:
    trace = (
        'Traceback (most recent call last):\n  File "<stdin>", line {}, in <module>\nKeyError: 1\n'
    )
    assert diagnose(trace.format(5)).end.evidence == "uncaught_exception"
    assert diagnose(trace.format(1)).end.evidence == "no_later_steps"


@pytest.mark.parametrize(
    "after",
    [
        "2024-05-01 10:00:06 INFO upload finished successfully\n",
        "2024-05-01 10:00:07 INFO final metrics: acc=0.71 loss=0.91\n",
        "2024-05-01 10:00:08 INFO Job finished, cleaning up\n",
    ],
)
def test_no_report_of_completion_overrules_an_exception_logged_as_an_error(
    diagnose: Diagnose, after: str
) -> None:
    error = "2024-05-01 10:00:00 ERROR fit failed\n" + INNER + "ValueError: bad batch\n"
    assert diagnose(START + error + after).is_failure
    assert diagnose(START + error + LATER + after).outcome == "no_failure"


@pytest.mark.parametrize(
    "sentence",
    [
        "Why does my program print Segmentation fault (core dumped)?",
        "This means that the kernel says Segmentation fault (core dumped) here",
        "A: because it reads memory, RuntimeError: CUDA error is another one",
    ],
)
def test_a_sentence_about_a_crash_is_none(diagnose: Diagnose, sentence: str) -> None:
    assert diagnose(f"{START}{sentence}\nrouge 0.31\n").outcome == "no_failure"
    crash = "run.sh: line 3: 812 Segmentation fault (core dumped) python train.py\n"
    assert diagnose(START + crash).is_failure


def test_a_message_ends_where_the_scheduler_writes(diagnose: Diagnose) -> None:
    found = diagnose(
        TOP + "EOFError: Ran out of input\nsrun: Job step aborted: Waiting up to 32 seconds\n"
    )
    assert found.exception is not None
    assert found.exception.message == "Ran out of input"


def test_a_complaint_of_the_shell_does_not_explain_a_cancelled_job(diagnose: Diagnose) -> None:
    log = (
        "/var/spool/slurmd/job1/slurm_script: line 10: /opt/conda.sh: No such file or directory\n"
        "slurmstepd: error: *** JOB 1 ON gpu3 CANCELLED AT 2024-03-05T09:00:01 ***\n"
    )
    assert diagnose(log).category == "interrupted"


def test_a_process_that_aborts_itself_has_printed_why(diagnose: Diagnose) -> None:
    log = (
        "[rank0]:[E118 16:05:23.739761196 ProcessGroupNCCL.cpp:616] [Rank 0] Watchdog caught collective operation "
        "timeout: WorkNCCL(SeqNum=1454, OpType=ALLREDUCE, Timeout(ms)=600000) ran for 600001 milliseconds\n"
        "E0118 16:05:34.231000 641 torch/distributed/elastic/multiprocessing/api.py:869] failed (exitcode: -6) "
        "local_rank: 0 (pid: 659) of binary: /usr/bin/python\n"
    )
    found = diagnose(START + log)
    assert found.category == "communication_failure"
    assert found.root is not None
    assert found.root.rank == 0


def test_lightning_names_its_rank(diagnose: Diagnose) -> None:
    bar = "Epoch 19:  36%|###   | 10/28 [00:06<00:11,  1.61it/s, loss=0.4]"
    found = diagnose(f"{START}{bar}[rank: 3] Received SIGTERM: 15\n")
    assert found.category == "interrupted"
    assert found.root is not None
    assert found.root.rank == 3


OOM = """\
Traceback (most recent call last):
  File "/job/train.py", line 9, in step
    loss.backward()
torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.
"""
WAITED = "".join(f"waiting for rank 3, round {n} of the store\n" for n in range(40))


def test_a_timeout_of_peers_follows_from_the_process_that_failed_before(diagnose: Diagnose) -> None:
    late = OOM.replace(
        "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.",
        "RuntimeError: Socket Timeout",
    )
    steps = "".join(f"step {n} loss 0.{n}\n" for n in range(10, 30))
    assert diagnose(OOM + WAITED + late).category == "gpu_out_of_memory"
    assert diagnose(OOM + steps + late).category == "communication_failure", "it was survived"


def test_hydra_s_hint_reports_that_the_traceback_above_ended_the_program(
    diagnose: Diagnose,
) -> None:
    report = "".join(f"Allocation {n}: 126.00M of the program\n" for n in range(150))
    hint = "Set the environment variable HYDRA_FULL_ERROR=1 for a complete stack trace.\n"
    assert diagnose(OOM + report).outcome == "no_failure"
    assert diagnose(OOM + report + hint).category == "gpu_out_of_memory"


@pytest.mark.parametrize(
    "report",
    [
        "*** SIGTERM received at time=1700000000 on cpu 3 ***\n",
        "FatalError: `Termination signal` is detected by the operating system.\n"
        '  [TimeInfo: *** Aborted at 1700000000 (unix time) try "date -d @1700000000" ***]\n'
        "  [SignalInfo: *** SIGTERM (@0x20) received by PID 83 (TID 0x7f) from PID 80 ***]\n",
    ],
)
def test_a_signal_handler_that_reports_sigterm_saw_no_crash(
    diagnose: Diagnose, report: str
) -> None:
    found = diagnose(START + report)
    assert (found.outcome, found.category) == ("evidence_missing", "interrupted")


def test_a_warning_does_not_explain_a_kill(diagnose: Diagnose) -> None:
    warning = (
        "[WARNING|tokenization_x.py:24] 2021-02-01 09:17:33,905 >> merge indices are corrupted\n"
    )
    assert diagnose(START + warning * 3 + "Killed\n").category == "process_crash"


@pytest.mark.parametrize(("requests", "line"), [(40, 43), (2, 2)])
def test_a_server_that_works_long_after_a_logged_error_is_killed_for_another_reason(
    diagnose: Diagnose, requests: int, line: int
) -> None:
    log = (
        "(APIServer pid=77) INFO 09-26 23:38:46 [api.py:9] loading the model\n"
        "(APIServer pid=77) ERROR 09-26 23:38:47 [config.py:130] OSError: [Errno 28] No space left on device, retrying 1 of 2\n"
        + "".join(
            f"(EngineCore pid=78) INFO 09-26 23:39:{n:02} [core.py:{n}] part {chr(65 + n)} of the model is ready\n"
            for n in range(requests)
        )
        + "./serve.sh: line 193: 77 Killed                  serve model\n"
    )
    found = diagnose(log)
    assert found.root is not None
    assert found.root.line == line


def test_a_job_that_continues_in_another_folder_is_not_ended_by_that(diagnose: Diagnose) -> None:
    chdir = "slurmstepd: error: couldn't chdir to `/workspace': No such file or directory: going to /tmp instead\n"
    assert diagnose(chdir + START).outcome == "no_failure"


def test_an_error_record_at_the_end_is_read_for_what_did_not_hold(diagnose: Diagnose) -> None:
    record = "E1125 19:47:53.820859 32422 place.cc:15] Invalid argument(1), must be inside [0, 1)\n"
    assert diagnose(START + record).outcome == "failed"


def test_of_several_runs_the_last_kill_counts(diagnose: Diagnose) -> None:
    log = f"{START}./run.sh: line 3: 41 Killed      python a.py\n{WAITED * 3}Worker 2 died with exitcode: -11\n"
    found = diagnose(log)
    assert found.root is not None
    assert "exitcode: -11" in found.root.text


EPILOGUES = {
    "PBS, signal": ("\tExit Status: 271\n", "interrupted"),
    "PBS, time limit": (
        "=>> PBS: job killed: walltime 3632 exceeded limit 3600\nExit Status: 271\n",
        "timeout",
    ),
    "PBS, memory": ("=>> PBS: job killed: vmem 99kb exceeded limit 90kb\n", "cpu_out_of_memory"),
    "Grid Engine": ("exit_status  137                 (Killed)\n", "process_crash"),
    "LSF": ("Exited with exit code 139.\n\nResource usage summary:\n", "process_crash"),
    "LSF, time limit": (
        "TERM_RUNLIMIT: job killed after reaching LSF run time limit.\nExited with exit code 140.\n",
        "timeout",
    ),
    "LSF, success": ("Successfully completed.\n\nResource usage summary:\n", ""),
    "HTCondor": ("005 (2.0.0) 12/09 13:44:04 Job terminated.\n\t(0) Abnormal termination (signal 9)\n", "process_crash"),
    "HTCondor, removed": ("009 (4.0.0) 12/10 09:35:20 Job was aborted by the user.\n", "interrupted"),
    "HTCondor, success": ("\t(1) Normal termination (return value 0)\n", ""),
    "Flux": ("flux-job: task(s) exited with exit code 127\n", "library_not_found"),
    "SkyPilot": ("ERROR: Job 1 failed with return code list: [137]\n", "process_crash"),
    "kubectl get": ("trainer-0   0/1     OOMKilled   0          5m\n", "cpu_out_of_memory"),
    "kubectl describe": ("      Reason:       Error\n      Exit Code:    143\n", "interrupted"),
    "kubectl describe, success": ("      Reason:       Completed\n      Exit Code:    0\n", ""),
}  # fmt: skip


@pytest.mark.parametrize("name", EPILOGUES)
def test_a_scheduler_reports_the_end_of_its_job(diagnose: Diagnose, name: str) -> None:
    epilogue, category = EPILOGUES[name]
    found = diagnose(START + epilogue)
    assert found.is_failure == bool(category)
    if category:
        assert found.category == category
        assert diagnose(START + OUT_OF_MEMORY + epilogue).category == "gpu_out_of_memory"


REFUSED = """\
INFO:     127.0.0.1:50001 - "POST /v1/completions HTTP/1.1" 200 OK
ERROR 05-02 10:00:01 [serving.py:251] Error in preprocessing prompt inputs
ERROR 05-02 10:00:01 [serving.py:251] Traceback (most recent call last):
ERROR 05-02 10:00:01 [serving.py:251]   File "/srv/serving.py", line 90, in check
ERROR 05-02 10:00:01 [serving.py:251]     raise ValueError("the request has 9000 tokens")
ERROR 05-02 10:00:01 [serving.py:251] ValueError: the request has 9000 tokens
INFO:     127.0.0.1:50002 - "POST /v1/completions HTTP/1.1" 400 Bad Request
"""


@pytest.mark.parametrize(
    ("later", "outcome"),
    [
        ('INFO:     127.0.0.1:50003 - "POST /v1/completions HTTP/1.1" 200 OK\n', "no_failure"),
        ("INFO 05-02 10:00:09 [log.py:3] Avg generation throughput: 8.5 tokens/s\n" * 2, "failed"),
        ('INFO:     127.0.0.1:50003 - "GET /health HTTP/1.1" 200 OK\n', "failed"),
        ("", "failed"),
    ],
    ids=["answers", "repeats itself", "is only asked for its health", "nothing"],
)
def test_a_server_that_answers_requests_has_survived(
    diagnose: Diagnose, later: str, outcome: str
) -> None:
    assert diagnose(REFUSED + later).outcome == outcome


MISSING = TOP.replace("loss.backward()", "import apex") + "ModuleNotFoundError: No module named 'apex'\n"  # fmt: skip
TIME_LIMIT = "slurmstepd: error: *** JOB 12 ON node1 CANCELLED AT 2026-05-01T12:00:00 DUE TO TIME LIMIT ***\n"


@pytest.mark.parametrize(("lines", "category"), [(40, "timeout"), (2, "library_not_found")])
def test_a_job_that_wrote_much_after_a_failure_outlived_it(
    diagnose: Diagnose, lines: int, category: str
) -> None:
    output = "".join(f"reading the settings of worker {'abcdefgh'[n % 8]}\n" for n in range(lines))
    assert diagnose(MISSING + output + TIME_LIMIT).category == category


ASSERTED = (
    "../aten/src/ATen/native/cuda/IndexKernel.cu:92: operator(): block: [0,0,0], thread: [4,0,0] Assertion "
    '`-sizes[i] <= index && index < sizes[i] && "index out of bounds"` failed.\n'
)


def test_steps_of_other_processes_do_not_overrule_a_lost_gpu(diagnose: Diagnose) -> None:
    closed = "torch.distributed.elastic.multiprocessing.errors.ChildFailedError:\n"
    found = diagnose(START + ASSERTED + LATER + TOP + closed)
    assert found.root is not None
    assert "IndexKernel.cu" in found.root.text


@pytest.mark.parametrize(
    ("end", "title", "retry"),
    [
        ("2026-05-02T12:10:00", "The job hung until its time limit", "unknown"),
        ("2026-05-01T12:11:30", "Slurm: time limit reached", "fails_again"),
    ],
    ids=["silent for a day", "at work"],
)
def test_a_long_silence_before_the_limit_is_a_hang(
    diagnose: Diagnose, end: str, title: str, retry: str
) -> None:
    log = "".join(f"2026-05-01 12:{n:02}:00,123 - INFO - step {n}\n" for n in range(12))
    found = diagnose(
        f"{log}slurmstepd: error: *** JOB 4 ON n1 CANCELLED AT {end} DUE TO TIME LIMIT ***\n"
    )
    assert (found.category, found.title, found.retry) == ("timeout", title, retry)


USAGE = "usage: train.py [-h] [--mode {a,b}]\ntrain.py: error: argument --mode: invalid choice: '{}' (choose from 'a', 'b')\n"


def test_of_usage_errors_of_a_script_the_last_one_counts(diagnose: Diagnose) -> None:
    found = diagnose(USAGE.replace("{}", "c") + "processId: 12\n" + USAGE.replace("{}", "d"))
    assert found.root.line == 5


def test_an_error_that_a_handler_completes_is_reported_complete(diagnose: Diagnose) -> None:
    frames = 'Traceback (most recent call last):\n  File "m.py", line 3, in build\n    check()\n'
    log = (
        frames
        + "AssertionError: 64 is not divisible by 6\n\n"
        + "During handling of the above exception, another exception occurred:\n\n"
        + frames
        + "AssertionError: 64 is not divisible by 6 when instantiating Attention\n"
    )
    assert diagnose(log).root.text.endswith("Attention")


def test_steps_of_other_ranks_do_not_overrule_an_exit_that_the_launcher_reports(
    diagnose: Diagnose,
) -> None:
    launcher = (
        "[2024-03-04 17:28:49,027] [ERROR] [launch.py:322:sigkill_handler] "
        "['/usr/bin/python', '-u', 'train.py', '--local_rank=7'] exits with return code = 1\n"
    )
    failed = START + TOP + "UnboundLocalError: local variable 'x' referenced before assignment\n"
    found = diagnose(failed + LATER + launcher)
    assert (found.outcome, found.category) == ("failed", "undefined_variable")


def test_a_cancelled_request_explains_the_refusal_below_it(diagnose: Diagnose) -> None:
    found = diagnose(
        "srun: job 1731 queued and waiting for resources\nsrun: Job has been cancelled\n"
        "srun: error: Unable to allocate resources: Job/step already completing or completed\n"
    )
    assert (found.category, found.root.line) == ("interrupted", 2)


def test_a_library_that_compares_shapes_for_the_job_shows_a_slip_of_the_job(
    diagnose: Diagnose,
) -> None:
    library = '  File "/x/site-packages/torch/nn/modules/linear.py", line 114, in forward\n    return F.linear(input, self.weight, self.bias)\n'
    found = diagnose(
        TOP + library + "RuntimeError: mat1 and mat2 shapes cannot be multiplied (32x7 and 5x1)\n"
    )
    assert found.root_cause == "programming_error"


ANSWER = 'INFO:     127.0.0.1:50001 - "POST /v1/completions HTTP/1.1" 200 OK\n'
IN_REQUEST = """\
ERROR:    Exception in ASGI application
Traceback (most recent call last):
  File "/opt/lib/python3.11/site-packages/uvicorn/protocols/http/h11_impl.py", line 401, in run_asgi
    result = await app(self.scope, self.receive, self.send)
  File "/srv/app.py", line 47, in complete
    return names[request.model]
KeyError: 'llama'
"""


@pytest.mark.parametrize(("answers", "outcome"), [(20, "no_failure"), (2, "failed")])
def test_a_server_at_work_survives_a_failed_request(
    diagnose: Diagnose, answers: int, outcome: str
) -> None:
    assert diagnose(ANSWER * answers + IN_REQUEST).outcome == outcome


ASKED = "[2026-06-01 04:38:43] SIGTERM received. Draining requests and shutting down...\n"


@pytest.mark.parametrize(
    ("before", "category"),
    [("", "interrupted"), (ANSWER * 3, "not_a_failure")],
    ids=["loads", "serves"],
)
def test_a_server_that_is_asked_to_stop(diagnose: Diagnose, before: str, category: str) -> None:
    assert diagnose("Load weight begin.\n" + before + ASKED).category == category


def test_who_is_asked_to_stop_had_survived_what_was_logged_before(diagnose: Diagnose) -> None:
    logged = "ERROR reward: index 1 is out of bounds for dimension 0 with size 1\n"
    output = "".join(f"reading the settings of worker {'abcdefgh'[n % 8]}\n" for n in range(40))
    assert diagnose(logged + output + ASKED).category == "interrupted"
    assert diagnose(logged + ASKED).category == "illegal_index"


def test_a_server_fails_while_it_serves(diagnose: Diagnose) -> None:
    killed = "serve.sh: line 9: 124064 Killed                  serve model\n"
    assert diagnose(ANSWER * 3 + killed).phase == "evaluation"
    assert (
        diagnose(ANSWER * 3 + OUT_OF_MEMORY.replace("loss.backward()", "run()")).phase
        == "evaluation"
    )


def test_an_error_that_only_speaks_of_a_death_is_evidence_of_it(diagnose: Diagnose) -> None:
    found = diagnose(
        "2026-01-01T00:00:00 ERROR launcher: Shard 0 crashed\nError: ShardCannotStart\n"
    )
    assert (found.category, found.root and found.root.line) == ("process_crash", 1)


@pytest.mark.parametrize(
    ("condition", "category"),
    [("totalElements <= srcSize", "tensor_mismatch"), ("state == READY", "gpu_fault")],
)
def test_a_failed_check_in_a_kernel_is_read(
    diagnose: Diagnose, condition: str, category: str
) -> None:
    place = "/pytorch/native/cuda/Kernel.cu:402: check: block: [0,0,0], thread: [0,0,0]"
    assert diagnose(f"{place} Assertion `{condition}` failed.\n").category == category
