"""The kernels that PyTorch tests torch.compile with: all as with Triton, graphs included."""

from own_launcher import MARKS, run_both

pytestmark = MARKS


def test_results_graphs_and_errors(run_after_torch, tmp_path):
    own, installed, errors = run_both(run_after_torch, "pytorch_program.py", tmp_path)
    assert sum("triton_kernel_wrapper_functional" in line for line in own) >= 10
    assert sum("Error: " in line for line in own) >= 2
    for line, other in zip(own, installed, strict=True):
        assert line == other
    # The compared launches were native.
    lines = errors.splitlines()
    native = [int(line.split()[1]) for line in lines if line.startswith("torch.testing")]
    assert sum(native) >= 50
