"""Operators of flash-linear-attention against the references that its package brings.

Forward and backward, and by its own measure of what is close: its source distribution has no
tests. Run in a process of its own, as ``fla_checks_program.py OPERATOR...``, or with no operator
for all of them: the library looks at the device when it is imported.
"""

import importlib
import sys
import time

import torch

torch.cuda.get_device_name = lambda *_: "NVIDIA A100"
torch.cuda.get_device_capability = lambda *_: (8, 0)
torch.set_num_threads(1)

from few_configurations import few_configurations  # noqa: E402

import culaunch.triton  # noqa: E402

few_configurations(1)
culaunch.triton.install()

from fla.utils import assert_close  # noqa: E402

HEADS, TIMES, SIZE = 2, 70, 16  # more than a chunk of 64, and no multiple of it

# The references, and the operators that compute the same. An argument is an input's name, or its
# own name and the input's. "heads-first" is the layout of a reference's inputs. With "state",
# both take and return one. With "half", the operators take only 16 bits.
CHECKS = {
    "simple_gla.naive.naive_recurrent_simple_gla q k v g state": [
        "simple_gla.chunk_simple_gla q k v g",
        "simple_gla.fused_chunk_simple_gla q k v g",
        "simple_gla.fused_recurrent_simple_gla q k v g",
    ],
    "simple_gla.naive.naive_parallel_simple_gla q k v g": [
        "simple_gla.parallel_simple_gla q k v g",
    ],
    "gla.naive.naive_recurrent_gla q k v gk state": [
        "gla.chunk_gla q k v g=gk",
        "gla.fused_recurrent_gla q k v gk",
    ],
    "retention.naive.naive_retention q k v heads-first": [
        "retention.chunk_retention q k v",
        "retention.fused_chunk_retention q k v",
        "retention.fused_recurrent_retention q k v",
        "retention.parallel_retention q k v",
    ],
    "linear_attn.naive.naive_recurrent_linear_attn q k v state": [
        "linear_attn.chunk_linear_attn q k v normalize=no",
        "linear_attn.fused_chunk_linear_attn q k v normalize=no",
        "linear_attn.fused_recurrent_linear_attn q k v normalize=no",
    ],
    "based.naive.naive_parallel_based q k v heads-first": [
        "based.parallel_based q k v",
        "based.fused_chunk_based q k v",
    ],
    "rebased.naive.naive_parallel_rebased q k v heads-first": ["rebased.parallel_rebased q k v"],
    "delta_rule.naive.delta_rule_recurrence q k=unit v beta heads-first half": [
        "delta_rule.chunk_delta_rule q k=unit v beta",
    ],
    "delta_rule.naive.delta_rule_recurrence q k=unit v beta heads-first state": [
        "delta_rule.fused_recurrent_delta_rule q k=unit v beta",
    ],
    "gated_delta_rule.naive.naive_recurrent_gated_delta_rule q k=unit v g beta state": [
        "gated_delta_rule.chunk_gated_delta_rule q k=unit v g beta",
    ],
    "kda.naive.naive_recurrent_kda q k=unit v g=gk beta state": [
        "kda.chunk_kda q k=unit v g=gk beta",
    ],
    "gdn2.naive.naive_recurrent_gdn2 q k=unit v g=gk b=some w=other state": [
        "gdn2.chunk_gdn2 q k=unit v g=gk b=some w=other",
    ],
    "comba.naive.naive_chunk_comba q k=unit v p=unit2 g beta state": [
        "comba.chunk_comba q k=unit v p=unit2 g beta",
    ],
    "hgrn.naive.naive_recurrent_hgrn x g=gx": [
        "hgrn.chunk_hgrn x g=gx",
        "hgrn.fused_recurrent_hgrn x g=gx",
    ],
    "gsa.naive.naive_recurrent_gsa q k v s=unit g=gk": [
        "gsa.chunk_gsa q k v s=unit g=gk",
        "gsa.fused_recurrent_gsa q k v s=unit g=gk",
    ],
    "rwkv6.recurrent_naive.naive_recurrent_rwkv6 q k v w=gk u heads-first state": [
        "rwkv6.chunk_rwkv6 r=q k v w=gk u",
    ],
    # Which has no gradient for its state.
    "rwkv6.recurrent_naive.naive_recurrent_rwkv6 q k v w=gk u heads-first": [
        "rwkv6.fused_recurrent_rwkv6 r=q k v w=gk u",
    ],
    "generalized_delta_rule.dplr.naive.dplr_recurrence "
    "q k v alpha=unit beta=unit2 gk heads-first state": [
        "generalized_delta_rule.dplr.chunk_dplr_delta_rule q k v a=unit b=unit2 gk",
    ],
    "generalized_delta_rule.iplr.naive.iplr_recurrence q k v alpha=unit beta=unit2 heads-first": [
        "generalized_delta_rule.iplr.fused_recurrent_iplr_delta_rule q k v a=unit b=unit2",
    ],
    "attn.naive.naive_parallel_attn q k v": ["attn.parallel_attn q k v"],
    "forgetting_attn.naive.naive_forgetting_attn q k v g": [
        "forgetting_attn.parallel_forgetting_attn q k v g",
    ],
    "parallax.naive.naive_parallax q r=k k=unit v half": [
        "parallax.parallel_parallax q r=k k=unit v"
    ],
    "path_attn.naive.naive_path_attn q k v w=unit beta g scale": [
        "path_attn.parallel_path_attn q k v w=unit beta g scale",
    ],
    "stickbreaking_attn.naive.naive_stickbreaking_attn q k v": [
        "stickbreaking_attn.parallel_stickbreaking_attn q k v",
    ],
    "wall_attn.naive.naive_wall_attn q k v g=gk scale": [
        "wall_attn.parallel_wall_attn q k v g=gk scale",
    ],
}


def inputs(dtype):
    """Return the same inputs each time."""
    torch.manual_seed(42)
    functional = torch.nn.functional
    shape = (1, TIMES, HEADS, SIZE)
    named = {name: torch.randn(shape) for name in ("q", "k", "v")}
    named |= {name: functional.normalize(torch.randn(shape), dim=-1) for name in ("unit", "unit2")}
    named |= {name: torch.rand(shape) for name in ("some", "other")}
    named |= {
        "g": functional.logsigmoid(torch.randn(shape[:3])),
        "gk": functional.logsigmoid(torch.randn(shape)),
        "beta": torch.rand(shape[:3]),
        "u": torch.randn(HEADS, SIZE),
        "x": torch.randn(1, TIMES, 2 * SIZE),
        "gx": functional.logsigmoid(torch.randn(1, TIMES, 2 * SIZE)),
        "state": torch.randn(1, HEADS, SIZE, SIZE),
    }
    return {name: one.to(dtype).requires_grad_() for name, one in named.items()}


def results(text, traits, *, heads_first=False):
    """Call what a text of `CHECKS` says; return outputs and gradients by their names."""
    path, *words = text.split()
    module, name = f"fla.ops.{path}".rsplit(".", 1)
    named = inputs(torch.float16 if "half" in traits else torch.float32)
    constants = {"no": False, "scale": SIZE**-0.5}
    given, used = {}, {}
    for word in words:
        argument, _, value = word.partition("=")
        value = value or argument
        if value in constants:
            given[argument] = constants[value]
            continue
        used[value] = given[argument] = named[value]
        if heads_first and named[value].shape[1] == TIMES:
            given[argument] = named[value].transpose(1, 2)
    if "state" in traits:
        used["state"] = named["state"]
        given |= {"initial_state": named["state"], "output_final_state": True}
    output = getattr(importlib.import_module(module), name)(**given)
    output, final = output[:2] if isinstance(output, tuple) else (output, None)
    if heads_first:
        output = output.transpose(1, 2)
    torch.manual_seed(1)
    loss = (output * torch.randn(output.shape)).sum()
    found = {"output": output}
    if "state" in traits:
        loss = loss + (final * torch.randn(final.shape)).sum()
        found["final state"] = final
    loss.backward()
    return found | {f"gradient of {name}": one.grad for name, one in used.items()}


def check(reference, operator):
    """Compare an operator with its reference, as the library's tests do."""
    traits = {"state", "heads-first", "half"}.intersection(reference.split())
    words = " ".join(word for word in reference.split() if word not in traits)
    wanted = results(words, traits, heads_first="heads-first" in traits)
    found = results(operator, traits)
    for name, one in wanted.items():
        if one is not None:  # some references are not differentiable by all
            assert_close(f"{operator.split()[0]}: {name}", one, found[name], 0.008)


chosen = sys.argv[1:]
for reference, operators in CHECKS.items():
    for operator in operators:
        name = operator.split()[0].rsplit(".", 1)[1]
        if not chosen or name in chosen:
            start = time.perf_counter()
            check(reference, operator)
            print(f"{name}: {time.perf_counter() - start:.1f} s", flush=True)
report = culaunch.triton.report()
assert report.triton == 0, str(report)
print(f"{len(report.kernels)} kernels, {report.native} launches")
