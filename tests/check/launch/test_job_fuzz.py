"""Any command, script, batch file or manifest is read or refused with `InputError`."""

from __future__ import annotations

import tempfile
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from epochzero import launchers
from epochzero.check.findings import SourceLocation
from epochzero.check.launch import read_job
from epochzero.check.launch.meanings import MEANINGS, bytes_of, seconds_of, slurm_seconds
from epochzero.check.launch.model import Job, Word
from epochzero.errors import InputError

OPTIONS = sorted({name for launcher in launchers.by_name().values() for name in launcher.options})
WORDS = st.one_of(
    st.sampled_from(
        [*launchers.by_name(), *OPTIONS, "python", "-m", "-c", "-", "--", "train.py", "a.sh", "bash", "launch",
         "run", "exec", "apply", "pod.yaml", "1", "4G", "1:2", "A=1", "image", "/data:/d:ro", "sh"]
    ),
    st.text(max_size=12),
)  # fmt: skip
SHELL = st.lists(
    st.one_of(
        st.sampled_from(
            ["python", "train.py", "$1", '"$@"', "${A:-b}", "${A%%x*}", "${#A[@]}", "$(", ")", "`", "if",
             "then", "else", "fi", "for x in", "do", "done", "while", "case", "esac", "[[", "]]", "((", "))",
             "{", "}", "&&", "||", "|", "&", ";", "\n", "<<EOF", "EOF", "'", '"', "\\", "A=1", "A=(", "cd",
             "set -- a b", "shift", "exit", "return", "break", "f() {", "f", "eval", "source a.sh", "export",
             "local", "unset A", "srun", "torchrun", "$((", "1 + 2", "{1..9}", "*", "~", "> out", "2>&1",
             "#SBATCH -N 2\n", "$A$A", "A=$A$A", "true", "!", "in", "-eq", "==", "read x", "bash -c"]
        ),
        st.text(max_size=6),
    ),
    max_size=40,
).map(" ".join)  # fmt: skip
YAML = st.recursive(
    st.one_of(st.none(), st.integers(), st.text(max_size=8), st.sampled_from(["python", "train.py", "$(A)"])),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(
            st.sampled_from(
                ["kind", "spec", "containers", "command", "args", "env", "name", "value", "template",
                 "resources", "limits", "nvidia.com/gpu", "memory", "volumes", "volumeMounts", "mountPath",
                 "workingDir", "pytorchReplicaSpecs", "replicas", "entrypoint", "parallelism", "<<",
                 "extends", "service", "environment", "env_file", "deploy", "shm_size", "services"]
            ),
            inner,
            max_size=6,
        ),
    ),
    max_leaves=30,
)  # fmt: skip


def read(arguments: list[str], **files: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        for name, text in {"train_py": "x = 1\n", **files}.items():
            path = Path(folder, ".".join(name.rsplit("_", 1)))
            path.write_bytes(text.encode("utf-8", errors="replace"))
        with suppress(InputError):
            read_job(arguments, Path(folder), {"HOME": "/home/me"})


@given(st.lists(WORDS, max_size=10))
def test_any_command_is_read_or_refused(arguments: list[str]) -> None:
    read(arguments, a_sh='python train.py "$@"\n')


@given(SHELL)
def test_any_launch_script_is_read_or_refused(text: str) -> None:
    read(["bash", "a.sh", "1", "2"], a_sh=text)
    read(["sbatch", "a.sh"], a_sh=text)


@given(st.text(max_size=200))
def test_any_text_is_no_trouble_as_script_manifest_or_configuration(text: str) -> None:
    read(["bash", "a.sh"], a_sh=text)
    read(["pod.yaml"], pod_yaml=text)
    read(["docker", "compose", "up"], compose_yaml=text)
    read(["accelerate", "launch", "--config_file", "c.yaml", "train.py"], c_yaml=text)


@given(YAML)
def test_any_manifest_is_read_or_refused(document: object) -> None:
    import yaml

    read(["kubectl", "apply", "-f", "pod.yaml"], pod_yaml=yaml.safe_dump(document))
    read(["pod.yaml"], pod_yaml=yaml.safe_dump({"kind": "PyTorchJob", "spec": document}))
    read(["docker", "compose", "up"], compose_yaml=yaml.safe_dump({"services": document}))


@given(st.sampled_from(sorted(MEANINGS)), st.text(max_size=30), st.booleans())
def test_any_value_of_an_option_is_understood_or_not_known(
    meaning: str, text: str, known: bool
) -> None:
    job = Job((), None, "", Path("/job"))
    MEANINGS[meaning](job, Word(text, SourceLocation("a.sh"), known))


@given(st.text(alphabet="0123456789:-.kKmMgGtTiIbBsdh ", max_size=20))
def test_quantities_and_times_are_numbers_or_none(text: str) -> None:
    for read_one in (bytes_of, seconds_of, slurm_seconds):
        value = read_one(text)
        assert value is None or value >= 0


@pytest.mark.parametrize(
    "text",
    [
        "A=x\n" + "A=$A$A\n" * 60 + "python train.py $A\n",
        'set -- a b\n' + 'set -- "$@" "$@"\n' * 60 + 'python train.py "$@"\n',
        'f() { f "$@" "$@"; }\nf a b\npython train.py\n',
        "while true; do python train.py; done\n",
        "for a in {1..99}; do for b in {1..99}; do for c in {1..99}; do :; done; done; done\n",
        ". ./a.sh\n" * 3 + "python train.py\n",
        "bash a.sh; bash a.sh; python train.py\n",
        "(" * 3000 + "python train.py" + ")" * 3000,
        "if a; then " * 400 + "python train.py" + "; fi" * 400,
        "python train.py " + "$(" * 2000,
        "x=${" * 2000,
    ],
)  # fmt: skip
def test_a_script_that_grows_or_never_ends_is_given_up(text: str) -> None:
    read(["bash", "a.sh"], a_sh=text)


def test_aliases_do_not_make_a_manifest_endless() -> None:
    bomb = "a0: &a0 [x, x]\n" + "".join(
        f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}, *a{n - 1}]\n" for n in range(1, 40)
    )
    read(["pod.yaml"], pod_yaml="kind: Job\n" + bomb)
    merged = "a0: &a0 {x: x}\n" + "".join(
        f"a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 30)}]}}\n" for n in range(1, 40)
    )
    read(["docker", "compose", "up"], compose_yaml=merged + "services: {a: *a39}\n")
