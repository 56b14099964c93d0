"""Ordered keyword rules: what a platform team writes in an afternoon.

The last exception line is tried first, then the whole log; the first rule that fits decides.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from epochzero.logs.source import Log
from rivals import Answer, Line, lines_of
from rivals.last_exception import last_exception

__all__ = ["Keywords"]

_RULES = [
    (category, re.compile(pattern))
    for category, pattern in (
        ("gpu_out_of_memory", r"CUDA(?: error)?:? out of memory|CUDA_ERROR_OUT_OF_MEMORY"),
        ("gpu_out_of_memory", r"OOM when allocating|ResourceExhausted|CUBLAS_STATUS_ALLOC_FAILED"),
        ("gpu_out_of_memory", r"cuda runtime error \(2\)|cudaMalloc failed|cudaErrorMemoryAlloc"),
        ("storage_full", r"No space left on device|Disk quota exceeded|Too many open files"),
        ("cpu_out_of_memory", r"\bMemoryError|bad_alloc|Cannot allocate memory|oom-kill"),
        ("cpu_out_of_memory", r"DefaultCPUAllocator|[Oo]ut of memory|Unable to allocate"),
        ("gpu_fault", r"CUDNN_STATUS|CUBLAS_STATUS|CUFFT_|CURAND_|illegal memory access"),
        ("gpu_fault", r"device-side assert|no kernel image|CUDA driver|NVIDIA driver"),
        ("gpu_fault", r"CUDA error|cuda runtime error|CUDA_ERROR|cudaSuccess|Xid"),
        ("communication_failure", r"NCCL (?:error|WARN.*error)|[Gg]loo|MPI_"),
        ("communication_failure", r"Connection(?:Error|.*Refused| refused| reset)"),
        ("communication_failure", r"ActorDied|WorkerCrashed|UNAVAILABLE|RemoteDisconnected"),
        ("null_reference", r"'?NoneType'?|NullPointerException"),
        ("permission_denied", r"PermissionError|[Pp]ermission denied|Access is denied"),
        ("library_not_found", r"ModuleNotFoundError|ImportError|No module named"),
        ("library_not_found", r"cannot open shared object|DLL load failed|command not found"),
        ("library_not_found", r"undefined symbol|DistributionNotFound|ClassNotFoundException"),
        ("path_not_found", r"FileNotFoundError|No such file or directory|NotADirectoryError"),
        ("path_not_found", r"does not exist|NotFoundError|cannot find the (?:file|path)"),
        ("unexpected_encoding", r"Unicode(?:De|En)codeError|codec can't"),
        ("syntax_error", r"SyntaxError|IndentationError|TabError|error: expected"),
        ("undefined_variable", r"NameError|UnboundLocalError"),
        ("division_by_zero", r"ZeroDivisionError|division by zero"),
        ("not_implemented", r"NotImplemented|Unimplemented|not implemented|UnsupportedOperation"),
        ("corrupt_data", r"[Ii]nput contains (?:NaN|nan)|inconsistent numbers of samples"),
        ("loss_nan", r"(?i:loss (?:is|became|=|:) ?nan)|contains? (?:NaN|nan)|Nan in summary"),
        (
            "tensor_mismatch",
            r"size mismatch|[Ss]hapes? mismatch|[Ss]hapes? .*(?:match|incompatible)",
        ),
        ("tensor_mismatch", r"[Dd]imensions? (?:must|of|out|mismatch)|[Ii]ncompatible shapes?"),
        (
            "tensor_mismatch",
            r"expected (?:ndim|shape|axis|\d+D)|could not broadcast|cannot reshape",
        ),
        (
            "tensor_mismatch",
            r"size of tensor|shapes cannot be multiplied|(?:Missing|Unexpected) key",
        ),
        (
            "tensor_mismatch",
            r"loading state_dict|[Ss]hape of passed values|Cannot feed value of shape",
        ),
        (
            "tensor_mismatch",
            r"shape .* is invalid for input|to have (?:shape|\d+ dim)|infer.* shape",
        ),
        ("illegal_argument", r"(?:missing|takes|got an unexpected|multiple values).*argument"),
        ("illegal_argument", r"no such option|got multiple values|Keyword argument not understood"),
        ("type_mismatch", r"[Cc]an(?:'t|not) pickle|not (?:JSON )?serializable|unhashable"),
        ("attribute_not_found", r"AttributeError|has no (?:attribute|member)|NoSuchMethod"),
        ("key_not_found", r"KeyError"),
        ("illegal_index", r"IndexError|out of (?:range|bounds)|OutOfBounds"),
        (
            "corrupt_data",
            r"JSONDecodeError|UnpicklingError|BadZipFile|EOFError|DataLoss|ParserError",
        ),
        ("corrupt_data", r"[Cc]orrupt|truncated|UnidentifiedImageError|Only one class present"),
        ("type_mismatch", r"TypeError|PicklingError|ClassCastException|cannot convert"),
        ("framework_api_misuse", r"FailedPrecondition|NotFittedError|element \d+ of tensors"),
        ("framework_api_misuse", r"on the same device|expected .* but (?:found|got)|Session"),
        ("illegal_argument", r"ValueError|InvalidArgument|IllegalArgument|unrecognized arguments"),
        (
            "illegal_argument",
            r"AssertionError|ValidationError|ArgumentError|invalid (?:value|choice)",
        ),
        ("timeout", r"TimeoutError|TimeoutExpired|DEADLINE|DUE TO TIME LIMIT|[Tt]imed out"),
        ("interrupted", r"KeyboardInterrupt|CANCELLED|SIGTERM|SIGINT|[Pp]reempted"),
        ("process_crash", r"Segmentation fault|SIGSEGV|SIGABRT|core dumped|Check failed|Aborted"),
        ("process_crash", r"Bus error|Illegal instruction|Killed|double free|std::"),
        ("internal_error", r"RuntimeError|InternalError|UnknownError|Error:|Exception:|error:"),
    )
]


class Keywords:
    """Names the category of the first rule that fits."""

    name = "keyword_rules"
    version = f"own, {len(_RULES)} rules"

    def answer(self, logs: Sequence[Log], exit_code: int | None = None) -> Answer:
        """What the tool says of the job that wrote ``logs``."""
        lines = lines_of(logs)
        last = last_exception(lines)
        found = (_first([last]) if last else None) or _first(lines)
        if found is None:
            return Answer(failed=False, category="not_a_failure")
        category, line = found
        return Answer(True, category, line.file, line.number, line.text, line.rank)


def _first(lines: Sequence[Line]) -> tuple[str, Line] | None:
    """The first rule that fits any line, and the line."""
    whole = "\n".join(line.text for line in lines)
    for category, pattern in _RULES:
        if found := pattern.search(whole):
            return category, lines[whole.count("\n", 0, found.start())]
    return None
