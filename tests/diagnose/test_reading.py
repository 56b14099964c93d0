"""The general reading, by the definitions of the categories.

The rows come from no rule: each was written down from what the category means, then asked.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from epochzero import taxonomy
from epochzero.diagnose import reading
from epochzero.diagnose.reading import read

ROWS = {
    "gpu_out_of_memory": [
        ("torch.cuda.OutOfMemoryError", "CUDA out of memory. Tried to allocate 20.00 MiB"),
        ("torch.OutOfMemoryError", "HIP out of memory. Tried to allocate 2.00 GiB."),
        ("RuntimeError", "CUDA error: out of memory"),
        ("ResourceExhaustedError", "OOM when allocating tensor with shape[64,512] on /device:GPU:0"),
        ("RuntimeError", "cuDNN error: CUDNN_STATUS_ALLOC_FAILED"),
        ("cupy.cuda.memory.OutOfMemoryError", "Out of memory allocating 1,024 bytes on GPU"),
    ],
    "cpu_out_of_memory": [
        ("MemoryError", ""),
        ("numpy.core._exceptions._ArrayMemoryError", "Unable to allocate 7.5 GiB for an array"),
        ("OSError", "[Errno 12] Cannot allocate memory"),
        ("RuntimeError", "[enforce fail at alloc_cpu.cpp:114] DefaultCPUAllocator: can't allocate"
                         " memory: you tried to allocate 80000000000 bytes."),
        ("std::bad_alloc", "std::bad_alloc"),
        ("java.lang.OutOfMemoryError", "Java heap space"),
    ],
    "framework_api_misuse": [
        ("NotFittedError", "This StandardScaler instance is not fitted yet."),
        ("FailedPreconditionError", "Attempting to use uninitialized value dense/kernel"),
    ],
    "tensor_mismatch": [
        ("RuntimeError", "mat1 and mat2 shapes cannot be multiplied (32x784 and 512x10)"),
        ("RuntimeError", "The size of tensor a (10) must match the size of tensor b (12) at dim 1"),
        ("RuntimeError", "size mismatch for fc.weight: copying a param with shape"),
        ("ValueError", "operands could not be broadcast together with shapes (3,) (4,)"),
        ("ValueError", "cannot reshape array of size 784 into shape (32,32)"),
        ("ValueError", "shapes (3,4) and (5,6) not aligned: 4 (dim 1) != 5 (dim 0)"),
        ("InvalidArgumentError", "Incompatible shapes: [32,10] vs. [32,12]"),
        ("ValueError", "Shapes (32, 1) and (32, 10) are incompatible"),
        ("RuntimeError", "Expected 4-dimensional input for 4-dimensional weight [64, 3, 7, 7]"),
        ("RuntimeError", "stack expects each tensor to be equal size, but got [3] at entry 0"),
        ("TypeError", "dot_general requires contracting dimensions to have the same shape"),
        ("RuntimeError", "Given groups=1, weight of size [64, 3, 7, 7], expected input[8, 1, 28, 28]"
                         " to have 3 channels, but got 1 channels instead"),
    ],
    "loss_nan": [
        ("RuntimeError", "Function 'LogBackward0' returned nan values in its 0th output."),
        ("ValueError", "loss is NaN at step 300, stopping training"),
        ("FloatingPointError", "invalid value (nan) encountered in jit(step)"),
        ("InvalidArgumentError", "Gradient for layer 3 is NaN : Tensor had NaN values"),
    ],
    "path_not_found": [
        ("FileNotFoundError", "[Errno 2] No such file or directory: '/data/train.csv'"),
        ("IOError", "[Errno 2] No such file or directory: 'a'"),
        ("NotADirectoryError", "[Errno 20] Not a directory: '/data/train.csv/x'"),
        ("OSError", "File /data/x.h5 does not exist"),
        ("", "bash: ./run.sh: No such file or directory"),
        ("botocore.errorfactory.NoSuchKey", "The specified key does not exist."),
        ("", "cat: /data/list.txt: No such file or directory"),
    ],
    "library_not_found": [
        ("ModuleNotFoundError", "No module named 'apex'"),
        ("ImportError", "cannot import name 'AdamW' from 'transformers'"),
        ("OSError", "libcudart.so.11.0: cannot open shared object file: No such file or directory"),
        ("", "bash: nvcc: command not found"),
        ("ImportError", "/usr/lib/libstdc++.so.6: version `GLIBCXX_3.4.29' not found"),
        ("", "exec: \"python\": executable file not found in $PATH"),
        ("java.lang.NoClassDefFoundError", "org/apache/hadoop/conf/Configuration"),
    ],
    "permission_denied": [
        ("PermissionError", "[Errno 13] Permission denied: '/checkpoints/last.pt'"),
        ("OSError", "[Errno 30] Read-only file system: '/data/cache'"),
        ("", "bash: ./train.sh: Permission denied"),
        ("botocore.exceptions.ClientError", "An error occurred (AccessDenied) when calling PutObject"),
        ("requests.exceptions.HTTPError", "403 Client Error: Forbidden for url: https://x"),
        ("requests.exceptions.HTTPError", "401 Client Error: Unauthorized for url: https://x"),
    ],
    "illegal_argument": [
        ("ValueError", "Invalid rank 2, rank should be in the interval [0, 1]"),
        ("ValueError", "optimizer got an empty parameter list"),
        ("ValueError", "num_workers must be non-negative"),
        ("TypeError", "__init__() got an unexpected keyword argument 'lr_scale'"),
        ("TypeError", "forward() missing 1 required positional argument: 'mask'"),
        ("TypeError", "forward() takes 2 positional arguments but 3 were given"),
        ("ValueError", "not enough values to unpack (expected 2, got 1)"),
        ("ValueError", "invalid literal for int() with base 10: 'ten'"),
        ("", "train.py: error: unrecognized arguments: --epoch 3"),
        ("", "train.py: error: argument --lr: invalid float value: 'fast'"),
        ("AssertionError", "batch size should be divisible by world size"),
        ("IllegalArgumentException", "requirement failed"),
    ],
    "type_mismatch": [
        ("TypeError", "unsupported operand type(s) for +: 'int' and 'str'"),
        ("TypeError", "can't multiply sequence by non-int of type 'float'"),
        ("TypeError", "'int' object is not iterable"),
        ("TypeError", "'float' object is not callable"),
        ("TypeError", "unhashable type: 'list'"),
        ("TypeError", "Object of type float32 is not JSON serializable"),
        ("AttributeError", "Can't pickle local object 'main.<locals>.<lambda>'"),
        ("TypeError", "can only concatenate str (not \"int\") to str"),
        ("RuntimeError", "expected scalar type Long but found Float"),
        ("java.lang.ClassCastException", "java.lang.String cannot be cast to java.lang.Integer"),
    ],
    "key_not_found": [
        ("KeyError", "'label'"),
        ("KeyError", "3"),
        ("omegaconf.errors.ConfigAttributeError", "Key 'lr' is not in struct"),
        ("KeyError", "\"None of [Index(['a'])] are in the [columns]\""),
    ],
    "null_reference": [
        ("AttributeError", "'NoneType' object has no attribute 'shape'"),
        ("TypeError", "'NoneType' object is not subscriptable"),
        ("java.lang.NullPointerException", ""),
        ("TypeError", "'NoneType' object is not iterable"),
    ],
    "attribute_not_found": [
        ("AttributeError", "'Net' object has no attribute 'fc3'"),
        ("AttributeError", "module 'torch' has no attribute 'frobnicate'"),
        ("torch.nn.modules.module.ModuleAttributeError", "'Net' object has no attribute 'x'"),
        ("java.lang.NoSuchMethodError", "org.apache.spark.Foo.bar()V"),
    ],
    "syntax_error": [
        ("SyntaxError", "invalid syntax"),
        ("IndentationError", "unexpected indent"),
        ("TabError", "inconsistent use of tabs and spaces in indentation"),
        ("", "run.sh: line 3: syntax error near unexpected token `fi'"),
        ("", "kernel.cu:12: error: expected a ';'"),
    ],
    "illegal_index": [
        ("IndexError", "list index out of range"),
        ("IndexError", "index 10 is out of bounds for axis 0 with size 10"),
        ("IndexError", "Dimension out of range (expected to be in range of [-1, 0], but got 1)"),
        ("java.lang.ArrayIndexOutOfBoundsException", "Index 3 out of bounds for length 3"),
        ("TypeError", "list indices must be integers or slices, not str"),
    ],
    "undefined_variable": [
        ("NameError", "name 'optimzer' is not defined"),
        ("UnboundLocalError", "local variable 'loss' referenced before assignment"),
        ("UnboundLocalError", "cannot access local variable 'loss' where it is not associated with"
                              " a value"),
        ("", "run.sh: line 4: MASTER_ADDR: unbound variable"),
    ],
    "not_implemented": [
        ("NotImplementedError", ""),
        ("NotImplementedError", "Could not run 'aten::bincount' with arguments from the 'MPS' backend"),
        ("UnimplementedError", "Cast string to float is not supported"),
        ("UnsupportedOperatorError", "Exporting the operator 'aten::unique' is not supported"),
    ],
    "division_by_zero": [
        ("ZeroDivisionError", "division by zero"),
        ("ZeroDivisionError", "float division by zero"),
        ("java.lang.ArithmeticException", "/ by zero"),
        ("RuntimeError", "Integer division by zero in fused kernel"),
    ],
    "corrupt_data": [
        ("EOFError", "Compressed file ended before the end-of-stream marker was reached"),
        ("json.decoder.JSONDecodeError", "Expecting value: line 1 column 1 (char 0)"),
        ("zipfile.BadZipFile", "File is not a zip file"),
        ("_pickle.UnpicklingError", "invalid load key, '<'."),
        ("PIL.UnidentifiedImageError", "cannot identify image file '/data/7.jpg'"),
        ("OSError", "image file is truncated (4 bytes not processed)"),
        ("pandas.errors.ParserError", "Error tokenizing data. C error: Expected 3 fields, saw 4"),
        ("DataLossError", "corrupted record at 0"),
        ("ValueError", "Only one class present in y_true. ROC AUC score is not defined in that case."),
        ("ValueError", "Input contains NaN, infinity or a value too large for dtype('float64')."),
        ("IndexError", "Target 10 is out of bounds."),
        ("tarfile.ReadError", "unexpected end of data"),
    ],
    "unexpected_encoding": [
        ("UnicodeDecodeError", "'utf-8' codec can't decode byte 0xff in position 0"),
        ("UnicodeEncodeError", "'ascii' codec can't encode character '\\xe9' in position 4"),
        ("ValueError", "Invalid UTF-8 in line 3"),
    ],
    "gpu_fault": [
        ("torch.AcceleratorError", "CUDA error: an illegal memory access was encountered"),
        ("RuntimeError", "CUDA error: no kernel image is available for execution on the device"),
        ("RuntimeError", "cuDNN error: CUDNN_STATUS_EXECUTION_FAILED"),
        ("RuntimeError", "CUDA driver version is insufficient for CUDA runtime version"),
        ("", "NVRM: Xid (PCI:0000:3b:00): 79, pid=1234, GPU has fallen off the bus."),
        ("RuntimeError", "CUDA error: uncorrectable ECC error encountered"),
    ],
    "communication_failure": [
        ("ConnectionRefusedError", "[Errno 111] Connection refused"),
        ("ConnectionResetError", "[Errno 104] Connection reset by peer"),
        ("RuntimeError", "NCCL error in: ProcessGroupNCCL.cpp:825, unhandled system error"),
        ("socket.gaierror", "[Errno -2] Name or service not known"),
        ("BrokenPipeError", "[Errno 32] Broken pipe"),
        ("requests.exceptions.SSLError", "certificate verify failed: self signed certificate"),
        ("ray.exceptions.ActorDiedError", "The actor died unexpectedly before finishing this task."),
        ("grpc._channel._InactiveRpcError", "StatusCode.UNAVAILABLE: failed to connect to all addresses"),
    ],
    "process_crash": [
        ("", "Segmentation fault (core dumped)"),
        ("", "double free or corruption (out)"),
        ("", "*** SIGABRT received by PID 12 ***"),
        ("", "Illegal instruction (core dumped)"),
        ("", "F tensorflow/core/tensor.cc:12] Check failed: dtype() == 1 (3 vs. 1)"),
    ],
    "storage_full": [
        ("OSError", "[Errno 28] No space left on device"),
        ("OSError", "[Errno 122] Disk quota exceeded"),
        ("OSError", "[Errno 24] Too many open files"),
        ("BlockingIOError", "[Errno 11] Resource temporarily unavailable"),
        ("", "write error: No space left on device"),
    ],
    "timeout": [
        ("", "slurmstepd: error: *** JOB 1 ON n1 CANCELLED AT 2024-05-01T12:00:00 DUE TO TIME LIMIT ***"),
        ("subprocess.TimeoutExpired", "Command 'eval.sh' timed out after 60 seconds"),
        ("queue.Empty", "worker timed out after 300 seconds"),
        ("TimeoutError", "evaluation took longer than 600 s"),
    ],
    "interrupted": [
        ("SystemError", "(Fatal) DataLoader process (pid 1244489) exited is killed by signal: Terminated."),
        ("KeyboardInterrupt", ""),
        ("asyncio.exceptions.CancelledError", ""),
        ("", "slurmstepd: error: *** JOB 1 ON n1 CANCELLED AT 2024-05-01T12:00:00 DUE TO PREEMPTION ***"),
    ],
    "internal_error": [
        ("RecursionError", "maximum recursion depth exceeded"),
        ("RuntimeError", "INTERNAL ASSERT FAILED at \"engine.cpp\":12, please report a bug to PyTorch"),
        ("SystemError", "<built-in function read> returned NULL without setting an error"),
        ("InternalError", "Failed to complete the operation"),
    ],
    "": [
        ("RuntimeError", "the moon is full"),
        ("Oops", ""),
        ("", "the model is good"),
        ("", ""),
    ],
}  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "message", "category"),
    [(*row, category) for category, rows in ROWS.items() for row in rows],
)
def test_by_meaning(kind: str, message: str, category: str) -> None:
    assert read(kind, message).category == category


LIBRARY, OWN = "/env/lib/python3.11/site-packages/lib/core.py", "/job/train.py"


@pytest.mark.parametrize(
    ("file", "code", "category"),
    [
        (LIBRARY, "assert len(parts) == 1", "internal_error"),
        (LIBRARY, "assert scores.is_cuda", "framework_api_misuse"),
        (OWN, "assert len(parts) == 1", "tensor_mismatch"),
        (OWN, "assert not np.isnan(action)", "loss_nan"),
        (OWN, "assert os.path.isfile(weights)", "path_not_found"),
        (OWN, "assert ready", "illegal_argument"),
        (OWN, "", "illegal_argument"),
    ],
)
@pytest.mark.parametrize("below", ["", "== Status ==\nMemory usage: 20/60 GiB"])
def test_an_assertion_without_a_message_is_read_in_its_source_line(
    file: str, code: str, category: str, below: str
) -> None:
    if code or not below:
        assert read("AssertionError", below, file, code).category == category


def test_the_message_of_an_assertion_counts() -> None:
    code = 'assert len(parts) == 1, "no such file"'
    assert read("AssertionError", "no such file", OWN, code).category == "path_not_found"


@pytest.mark.parametrize(
    ("kind", "message", "category"),
    [
        ("", "Check failed: n == m (3 vs. 4)", "process_crash"),
        ("", "Check failed: fd >= 0 bind failed: Permission denied", "permission_denied"),
        ("std::runtime_error", "Mode is not defined", "process_crash"),
        ("lib.Error", "Check failed: done: the queue", "internal_error"),
        ("lib.Error", "Check failed: lhs.shape == rhs.shape", "tensor_mismatch"),
    ],
)
def test_a_failed_check_that_python_caught_is_no_crash(
    kind: str, message: str, category: str
) -> None:
    assert reading.stated_reason(kind, message, "process_crash") == category


def test_the_table_is_long_and_knows_every_category() -> None:
    assert sum(map(len, ROWS.values())) >= 100
    assert ROWS.keys() - {""} == taxonomy.categories().keys() - {"not_a_failure"}


@given(st.text(), st.text())
def test_any_text_has_a_category_or_none(kind: str, message: str) -> None:
    assert read(kind, message).category in {"", *taxonomy.categories()}


def test_all_patterns_at_once_find_what_each_finds_alone() -> None:
    patterns = ["|".join(raw["message"]) if "message" in raw else None for raw in reading._raw()]
    slow, fast = reading.Messages(patterns, slow_readings=10**6), reading.Messages(patterns)
    fast.prepare()
    for message in (message for rows in ROWS.values() for _, message in rows):
        said = slow.said_in(message)
        assert {n for n in range(len(patterns)) if n in said} == fast.said_in(message)
