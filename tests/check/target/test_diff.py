"""What differs between two platforms, worst first."""

from __future__ import annotations

from dataclasses import replace

from epochzero import taxonomy
from epochzero.check.target import differences
from epochzero.check.target.gpus import cuda, gpus_of, oldest_driver, presets, version
from epochzero.check.target.model import Distribution, Mount, NetworkAccess, Target, User

LAPTOP = Target(
    "laptop",
    python=(3, 12, 1),
    distributions={
        "torch": Distribution("torch", "2.4.0", ("torch",)),
        "pyyaml": Distribution("pyyaml", "6.0", ("yaml",)),
    },
    shared_libraries=frozenset({"libGL.so.1"}),
    programs=frozenset({"ffmpeg"}),
    gpus=gpus_of("RTX 4090"),
    driver="550.54.15",
    cuda_of_torch="12.4",
    mounts=(Mount("/", free_bytes=100), Mount("/data")),
    user=User("me", 0, 0),
    environment={"DATA_ROOT": "/data"},
    memory_bytes=64 << 30,
    shared_memory_bytes=8 << 30,
    network=NetworkAccess(True),
)
CLUSTER = Target(
    "cluster",
    python=(3, 9, 2),
    distributions={"torch": Distribution("torch", "1.13.1", ("torch",))},
    shared_libraries=frozenset(),
    programs=frozenset(),
    gpus=gpus_of("T4"),
    driver="470.42.01",
    cuda_of_torch="11.7",
    mounts=(Mount("/", writable=False, free_bytes=10),),
    user=User("job", 1000, 1000),
    environment={},
    memory_bytes=16 << 30,
    shared_memory_bytes=64 << 20,
    network=NetworkAccess(False),
)


def test_what_a_job_would_miss_worst_first() -> None:
    found = differences(LAPTOP, CLUSTER).differences
    assert [(each.kind, each.name, each.category) for each in found] == [
        ("module", "yaml", "library_not_found"),
        ("python", "", "syntax_error"),
        ("major version", "torch", "framework_api_misuse"),
        ("gpu memory", "", "gpu_out_of_memory"),
        ("gpu capability", "", "framework_api_misuse"),
        ("cuda", "torch", "framework_api_misuse"),
        ("driver", "", "framework_api_misuse"),
        ("read-only", "/", "permission_denied"),
        ("shared library", "libGL.so.1", "library_not_found"),
        ("program", "ffmpeg", "path_not_found"),
        ("memory", "", "cpu_out_of_memory"),
        ("shared memory", "/dev/shm", "cpu_out_of_memory"),
        ("space", "/", "storage_full"),
        ("mount", "/data", "path_not_found"),
        ("user", "", "permission_denied"),
        ("environment", "DATA_ROOT", "key_not_found"),
        ("network", "", "communication_failure"),
    ]
    assert {each.category for each in found} <= taxonomy.categories().keys()


def test_what_is_the_same_does_not_differ() -> None:
    assert not differences(LAPTOP, LAPTOP).differences


def test_more_of_something_is_no_difference() -> None:
    kinds = {each.kind for each in differences(CLUSTER, LAPTOP).differences}
    assert kinds == {"python", "major version", "gpu capability", "cuda"}


def test_what_only_one_tells_is_not_compared_but_named() -> None:
    found = differences(LAPTOP, replace(LAPTOP, distributions=None, driver="", gpus=None))
    assert not found.differences
    assert found.unknown == ("distributions", "gpus", "driver")


def test_a_limit_of_which_nothing_is_known_does_not_differ() -> None:
    assert not differences(Target("a"), Target("b", open_files=1024, nodes=1)).differences


def test_no_gpu_at_all() -> None:
    found = differences(LAPTOP, replace(LAPTOP, gpus=())).differences
    assert [(each.kind, each.second) for each in found] == [("gpus", "none")]


def test_a_module_that_another_distribution_brings_is_not_missing() -> None:
    first = Target("a", distributions={"opencv-python": Distribution("opencv-python", "4")})
    second = Target("b", distributions={"x": Distribution("x", "4", ("cv2",))})
    assert not differences(first, second).differences


def test_presets_and_tables_agree() -> None:
    assert len(presets()) >= 40
    for name, gpu in presets().items():
        assert gpus_of(f"2 x {name}") == (gpu, gpu)
        assert gpus_of(gpu.model) == (gpu,) or name in {"MI250", "MI250X"}
        if gpu.capability is not None:
            assert ".".join(map(str, gpu.capability)) in cuda().architectures
    drivers = [version(driver) for driver in cuda().driver.values()]
    assert drivers == sorted(drivers)
    assert oldest_driver("12.4") == "525.60.13"
    assert oldest_driver("10.2") == "440.33"
    assert oldest_driver("99.0") is None


def test_fewer_processors_are_told() -> None:
    found = differences(replace(LAPTOP, cpus=16), replace(LAPTOP, cpus=2)).differences
    assert [(one.name, one.first, one.second, one.category) for one in found] == [
        ("processors", "16", "2", "timeout")
    ]
