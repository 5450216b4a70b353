"""Every kernel of Liger and flash-linear-attention with decorators: what of it a set would keep.

Run in a process of its own: the libraries look at the device when they are imported.
"""

import importlib
import pkgutil
import sys
import warnings

import torch

torch.cuda.get_device_name = lambda *_: "NVIDIA A100"
torch.cuda.get_device_capability = lambda *_: (8, 0)
warnings.simplefilter("ignore")

from triton.runtime.autotuner import Autotuner, Heuristics  # noqa: E402

from culaunch._triton.compiling import decorated, heuristics, hook_effects  # noqa: E402


def kernels(package):
    """Give every decorated kernel of a package, of what of it can be imported."""
    found = {}
    root = importlib.import_module(package)
    for one in pkgutil.walk_packages(root.__path__, f"{package}.", onerror=lambda _: None):
        try:
            module = importlib.import_module(one.name)
        except Exception:  # noqa: BLE001 - what it needs is not here
            continue
        for name, value in vars(module).items():
            if isinstance(value, (Autotuner, Heuristics)):
                found[id(value)] = (f"{one.name}.{name}", value)
    return found.values()


def refused(kernel):
    """Say what of a kernel's decorators a set would not keep."""
    parts = decorated.Decorated.of(kernel)
    saved = heuristics.Heuristics(parts.function, parts.heuristics)
    reasons = [f"{name}: {reason}" for name, reason in saved._unknown.items()]
    kinds = {
        one.name: "tensordesc<bf16[1, 1]>" if one.name.startswith("desc_") else "*bf16"
        for one in parts.function.params
        if not one.is_constexpr
    }
    for config in parts.tuner.configs if parts.tuner is not None else ():
        hook = config.pre_hook
        if hook is not None and hook_effects.effects_of(hook, config.all_kwargs(), kinds) is None:
            reasons.append(f"{config}: {hook}")
    return reasons


count = 0
for package in sys.argv[1:]:
    for place, kernel in kernels(package):
        count += 1
        for reason in refused(kernel):
            print(f"{place}: {reason}")
print(f"{count} kernels")
