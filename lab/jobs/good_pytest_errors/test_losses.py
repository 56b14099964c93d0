import pytest
import torch
from losses import focal


def test_error_on_shape_mismatch():
    with pytest.raises(RuntimeError, match="shape mismatch"):
        focal(torch.zeros(3), torch.zeros(4))


def test_error_on_negative_gamma():
    with pytest.raises(ValueError):
        focal(torch.zeros(3), torch.zeros(3), gamma=-1)


@pytest.mark.parametrize("gamma", [0.0, 1.0, 2.0])
def test_no_failure_for(gamma):
    assert focal(torch.randn(8), torch.ones(8), gamma) >= 0


def test_nan_is_replaced_and_logged_as_error(caplog):
    assert focal(torch.tensor([1e4, -1e4]), torch.tensor([0.0, 1.0])) == 0
    assert "not finite" in caplog.text


@pytest.mark.xfail(raises=AssertionError, reason="float16 is not exact enough yet")
def test_half_precision_error():
    half = focal(torch.tensor([3.0]).half().float() + 1e-3, torch.ones(1))
    assert half == focal(torch.tensor([3.0]), torch.ones(1))


def test_killed_worker_message():
    print("DataLoader worker (pid 123) is killed by signal: Killed.")


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device: CUDA error expected otherwise")
def test_cuda_out_of_memory():
    raise MemoryError
